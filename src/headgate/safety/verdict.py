"""Verdicts: for every state of every operator, whether it is bounded, by what, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headgate.safety.advice.edit import Fix

CAUSES = ("window", "values", "punctuation", "constraint", "key", "finite", "none")


@dataclass(frozen=True)
class StateVerdict:
    """One state: what an operator keeps of one of its inputs."""

    operator: str
    stream: str
    by: str
    reason: str

    def __post_init__(self) -> None:
        if self.by not in CAUSES:
            raise ValueError(f"no such cause: {self.by}")

    @property
    def bounded(self) -> bool:
        return self.by != "none"

    def as_dict(self) -> dict[str, Any]:
        return {
            "operator": self.operator,
            "stream": self.stream,
            "bounded": self.bounded,
            "by": self.by,
            "reason": self.reason,
        }


@dataclass(frozen=True)
class Verdict:
    """A query's verdict: bounded exactly if all of its states are."""

    query: str
    states: tuple[StateVerdict, ...]
    plan: str = "single"
    """How the query joins: mjoin, tree or single."""
    fixes: tuple[Fix, ...] = ()
    """For a refused query, edits that the gate would admit."""
    plan_note: str = ""
    """Why the plan is as it is, if there is something to say."""

    @property
    def bounded(self) -> bool:
        return all(state.bounded for state in self.states)

    @property
    def unbounded(self) -> tuple[StateVerdict, ...]:
        return tuple(state for state in self.states if not state.bounded)

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.query,
            "verdict": "bounded" if self.bounded else "unbounded",
            "states": [state.as_dict() for state in self.states],
            "fixes": [fix.as_dict() for fix in self.fixes],
            "plan": self.plan,
            "plan_note": self.plan_note,
        }
