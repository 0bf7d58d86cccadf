"""Sizes: how large each state of a plan is expected to be, in rows and bytes, and by which formula."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headgate.model.time import SECOND, format_duration
from headgate.optimize.optimize import OptimizedPlan
from headgate.optimize.state import StoredInput
from headgate.plan.nodes import Distinct, Emit, Node


@dataclass(frozen=True)
class Term:
    """One state: rows and bytes, None if nothing says how many rows stay."""

    operator: str
    stream: str
    rows: float | None
    bytes: float | None
    formula: str

    def as_dict(self) -> dict[str, Any]:
        return {
            "operator": self.operator,
            "stream": self.stream,
            "rows": _rounded(self.rows),
            "bytes": _rounded(self.bytes),
            "formula": self.formula,
        }


@dataclass(frozen=True)
class Sizes:
    """All states of a query; `assumed` says that rates were not given."""

    terms: tuple[Term, ...]
    assumed: bool

    @property
    def rows(self) -> float | None:
        return _sum([term.rows for term in self.terms])

    @property
    def bytes(self) -> float | None:
        return _sum([term.bytes for term in self.terms])

    def as_dict(self) -> dict[str, Any]:
        """`rows` and `bytes` in all, null if the size of one state is not known; and each state's part."""
        return {
            "rows": _rounded(self.rows),
            "bytes": _rounded(self.bytes),
            "assumed": self.assumed,
            "terms": [term.as_dict() for term in self.terms],
        }

    def lines(self) -> list[str]:
        """The estimate for a terminal: all of it, then a state a line."""
        if self.rows is None or self.bytes is None:
            whole = "not known in all"
        else:
            whole = f"~{self.rows:,.0f} rows, {shown_bytes(self.bytes)}"
        return [whole, *(f"{term.operator} over {term.stream}: {term.formula}" for term in self.terms)]


def measure_sizes(optimized: OptimizedPlan, *, assumed: bool) -> Sizes:
    """The expected size of every state of a plan."""
    terms = []
    for node, choice in optimized.states.items():
        operator = node.kind.lower() if isinstance(node, Emit) else type(node).__name__.lower()
        for place, stored in enumerate(choice.stored):
            own = node.inputs[place if place < len(node.inputs) <= len(choice.stored) else -1]
            formula = _formula(node, stored, optimized.estimates.edges[own].rate)
            terms.append(Term(operator, stored.input, stored.rows, stored.bytes, formula))
    return Sizes(tuple(terms), assumed)


def _formula(node: Node, stored: StoredInput, rate: float) -> str:
    rows, size = stored.rows, stored.bytes
    if rows is None or size is None:
        return "nothing says how many rows stay, and rates alone do not"
    each = f"{size / rows:,.0f} bytes" if rows else "0 bytes"
    found = f"{rows:,.0f} {'row' if rows == 1 else 'rows'} × {each} = {shown_bytes(size)}"
    if stored.formula:
        return f"{stored.formula}, at most {found}" if stored.at_most else f"{stored.formula} = {found}"
    if stored.structure == "table":
        return f"the table, {found}"
    if isinstance(node, Distinct):
        return (
            f"at most two rows a value, {found}"
            if stored.structure == "calendar"
            else f"a row a value, {found}"
        )
    if stored.structure == "groups":
        return f"a row a group, {found}"
    seconds = rows / rate if rate else 0.0
    if isinstance(node, Emit) or not seconds or abs(seconds - round(seconds, 3)) > 1e-9:
        return found
    return f"{rate:,.6g} rows/s × {format_duration(round(seconds * SECOND))} = {found}"


def shown_bytes(size: float) -> str:
    """Bytes in the unit in which they are read."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= scale:
            return f"{size / scale:,.1f} {unit}"
    return f"{size:,.0f} bytes"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _sum(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
