"""Within: how far a stream strays from a constraint, which the clause allows. The one place that knows its unit."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from sqlglot import exp

from headgate.language import nodes
from headgate.model.time import roughly, rounded_up


@dataclass(frozen=True, order=True)
class Within:
    """So many rows, or so many microseconds of event time."""

    k: int
    in_time: bool = False

    def widened(self, margin: float) -> Within:
        """With a margin above 1, at least a row more, or time that people read; without, the same rows."""
        wider = ceil(self.k * margin)
        if self.in_time:
            return Within(rounded_up(wider), in_time=True)
        return Within(max(wider, self.k + 1)) if margin > 1 else self

    @property
    def tree(self) -> exp.Expr:
        """As a clause says it."""
        return nodes.Adherence(length=self.k) if self.in_time else nodes.Adherence(rows=self.k)

    def __str__(self) -> str:
        if self.in_time:
            return roughly(self.k).lower()
        return f"{self.k:,} {'row' if self.k == 1 else 'rows'}"
