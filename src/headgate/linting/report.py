"""What lint found: for every state of a Spark query whether it is bounded, by what, and what to change."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

CAUSES = ("watermark", "values", "finite", "code", "none")
"""`code` means that only the user's own code decides: neither bounded nor unbounded can be said."""

MARKS = {True: "✓", False: "✗", None: "?"}


@dataclass(frozen=True)
class Fix:
    """A change that alone bounds a state: text to paste, and what the change does to the answer."""

    kind: str
    edit: str
    changes_answer: bool
    effect: str

    def as_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "edit": self.edit,
            "changes_answer": self.changes_answer,
            "effect": self.effect,
        }


@dataclass(frozen=True)
class State:
    """What one stateful operator keeps: `of` names its keys, or its input if it has two."""

    operator: str
    of: str
    by: str
    reason: str
    fixes: tuple[Fix, ...] = ()

    def __post_init__(self) -> None:
        if self.by not in CAUSES:
            raise ValueError(f"no such cause: {self.by}")

    @property
    def bounded(self) -> bool | None:
        """Whether Spark drops what it keeps; None where only the user's code can know."""
        return None if self.by == "code" else self.by != "none"

    def as_dict(self) -> dict[str, Any]:
        return {
            "operator": self.operator,
            "of": self.of,
            "bounded": self.bounded,
            "by": self.by,
            "reason": self.reason,
        }


@dataclass(frozen=True)
class Report:
    """All states of one query, and what Spark itself says if it would not start it."""

    name: str
    output_mode: str
    states: tuple[State, ...]
    refusal: str | None = None
    place: str | None = None

    @property
    def verdict(self) -> str:
        """`unbounded`, `refused` by Spark, `unknown` where code decides, or `bounded`."""
        if any(state.bounded is False for state in self.states):
            return "unbounded"
        if self.refusal is not None:
            return "refused"
        return "unknown" if any(state.bounded is None for state in self.states) else "bounded"

    @property
    def bounded(self) -> bool:
        """Whether every state is known to be bounded, and Spark would start the query."""
        return self.verdict == "bounded"

    @property
    def fixes(self) -> tuple[Fix, ...]:
        """What to change, each change once."""
        return tuple(dict.fromkeys(fix for state in self.states for fix in state.fixes))

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "place": self.place,
            "output_mode": self.output_mode,
            "verdict": self.verdict,
            "refusal": self.refusal,
            "states": [state.as_dict() for state in self.states],
            "fixes": [fix.as_dict() for fix in self.fixes],
        }

    def to_text(self) -> str:
        """The report as lines: the verdict, one line per state, and the changes."""
        where = f"  {self.place}" if self.place else ""
        lines = [f"{self.verdict:<9}  {self.name}{where}  ({self.output_mode} mode)"]
        if self.refusal is not None:
            lines.append(f"  ✗ Spark does not start it: {self.refusal}")
        if not self.states:
            lines.append("  keeps nothing")
        for state in self.states:
            cause = {True: state.by, False: "not bounded", None: "cannot know"}[state.bounded]
            what = f"{state.operator} {state.of}".rstrip()
            lines.append(f"  {MARKS[state.bounded]} {what}: {cause}, {state.reason}")
        if self.fixes:
            lines.append("  to change:")
        for fix in self.fixes:
            lines += [f"    {line}" for line in fix.edit.splitlines()]
            lines.append(f"      ({fix.effect})")
        return "\n".join(lines) + "\n"

    def __str__(self) -> str:
        return self.to_text()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.to_text())}</pre>"


def read_report(record: dict[str, Any]) -> Report:
    """A report from what `pack` made of it."""
    states = tuple(
        State(
            each["operator"], each["of"], each["by"], each["reason"], tuple(Fix(**f) for f in each["fixes"])
        )
        for each in record["states"]
    )
    return Report(record["name"], record["output_mode"], states, record["refusal"], record["place"])


def pack(report: Report) -> dict[str, Any]:
    """A report as plain values from which `read_report` makes it again: a fix stays with its state."""
    states = [state.as_dict() | {"fixes": [fix.as_dict() for fix in state.fixes]} for state in report.states]
    return report.as_dict() | {"states": states}
