"""Verdicts: for every state of every operator, whether it is bounded, by what, why, and on which assumptions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from headgate.safety.advice.edit import Fix
from headgate.safety.assumption import Assumption
from headgate.safety.cause import Cause

Kind = Literal["bounded", "conditional", "refused"]


@dataclass(frozen=True)
class StateVerdict:
    """One state: what an operator keeps of one of its inputs."""

    operator: str
    stream: str
    by: Cause
    reason: str
    assumes: tuple[Assumption, ...] = ()
    """What must stay true for it; nothing, if the bound holds whatever comes."""

    @property
    def bounded(self) -> bool:
        """Whether something bounds it, be it on assumptions."""
        return self.by is not Cause.NONE

    def as_dict(self) -> dict[str, Any]:
        return {
            "operator": self.operator,
            "stream": self.stream,
            "bounded": self.bounded,
            "by": str(self.by),
            "reason": self.reason,
        }


@dataclass(frozen=True)
class Verdict:
    """A query's verdict: refused if a state is not bounded, conditional if the bounds rest on assumptions."""

    query: str
    states: tuple[StateVerdict, ...]
    plan: str = "single"
    """How the query joins: mjoin, tree or single."""
    waits: tuple[Assumption, ...] = ()
    """What must stay true for rows not to pile up before the first operator."""
    fixes: tuple[Fix, ...] = ()
    """For a refused query, edits that the gate would admit."""
    plan_note: str = ""
    """Why the plan is as it is, if there is something to say."""
    warnings: tuple[str, ...] = ()
    """What is no matter of state and yet should be known before the query runs."""

    @property
    def kind(self) -> Kind:
        if not self.admitted:
            return "refused"
        return "conditional" if self.assumes else "bounded"

    @property
    def admitted(self) -> bool:
        """Whether something bounds every state."""
        return all(state.bounded for state in self.states)

    @property
    def assumes(self) -> tuple[Assumption, ...]:
        """What must stay true for the bounds to hold, each once."""
        found = [each for state in self.states for each in state.assumes]
        return tuple(dict.fromkeys((*found, *self.waits)))

    @property
    def unbounded(self) -> tuple[StateVerdict, ...]:
        return tuple(state for state in self.states if not state.bounded)

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.query,
            "verdict": self.kind,
            "assumes": [each.as_dict() for each in self.assumes],
            "states": [state.as_dict() for state in self.states],
            "fixes": [fix.as_dict() for fix in self.fixes],
            "plan": self.plan,
            "plan_note": self.plan_note,
            "warnings": list(self.warnings),
        }
