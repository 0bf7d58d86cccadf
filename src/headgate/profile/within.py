"""Within: how far a stream strays from a constraint, which the clause allows. The one place that knows its unit."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from sqlglot import exp

from headgate.language import nodes


@dataclass(frozen=True, order=True)
class Within:
    """So many rows."""

    rows: int

    def widened(self, margin: float) -> Within:
        """With a margin above 1, at least a row more; without, the same."""
        return Within(max(ceil(self.rows * margin), self.rows + 1)) if margin > 1 else self

    @property
    def tree(self) -> exp.Expr:
        """As a clause says it."""
        return nodes.Adherence(rows=self.rows)

    def __str__(self) -> str:
        return f"{self.rows:,} {'row' if self.rows == 1 else 'rows'}"
