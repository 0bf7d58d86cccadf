"""Which expressions have few values, whatever comes: state per value of such a key is bounded."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from headgate.linting.jvm import items, kind, walk

PARTS_OF_TIME = {
    "DayOfMonth",
    "DayOfWeek",
    "DayOfYear",
    "Hour",
    "Minute",
    "Month",
    "Quarter",
    "Second",
    "WeekDay",
    "WeekOfYear",
}
WHOLE = {"ByteType", "IntegerType", "LongType", "ShortType"}
CURRENT = {"CurrentDate", "CurrentTime", "CurrentTimestamp", "LocalTimestamp", "Now"}
DEEP = 40
"""Definitions of definitions looked at; deeper ones count as having many values."""


class Definitions:
    """For each column of a plan, the expression that computes it."""

    def __init__(self, plan: Any) -> None:
        self._plan = plan

    @cached_property
    def _by_id(self) -> dict[int, Any]:
        found: dict[int, Any] = {}
        for node in walk(self._plan):
            for expression in items(node.expressions()):
                if kind(expression) == "Alias":
                    found[int(expression.exprId().id())] = expression.child()
        return found

    def of(self, column: Any) -> Any | None:
        """The expression behind a column, or None if it comes from a source."""
        return self._by_id.get(int(column.exprId().id()))

    def ancestors(self, expression: Any, depth: int = 0) -> Iterator[Any]:
        """The columns an expression is computed from, and those they are computed from."""
        for column in items(expression.references().toSeq()):
            yield column
            behind = self.of(column)
            if behind is not None and depth < DEEP:
                yield from self.ancestors(behind, depth + 1)


def few_values(expression: Any, definitions: Definitions, depth: int = 0) -> str | None:
    """Why an expression has few values, as words after its name; None if it may have many.

    Sound because a deterministic function of arguments with finitely many values has finitely many itself.
    """
    if depth > DEEP or not expression.deterministic() or kind(expression) in CURRENT:
        return None
    data_type = kind(expression.dataType())
    if data_type == "BooleanType":
        return "is true or false"
    if data_type == "ByteType":
        return "has at most 256 values"
    match kind(expression):
        case "Alias":
            return few_values(expression.child(), definitions, depth + 1)
        case "AttributeReference":
            behind = definitions.of(expression)
            return None if behind is None else few_values(behind, definitions, depth + 1)
        case "Literal":
            return "is a constant"
        case "Remainder" | "Pmod" if data_type in WHOLE and expression.right().foldable():
            return "is a remainder"
        case name if name in PARTS_OF_TIME:
            return "is a part of a date"
    parts = list(items(expression.children()))
    if parts and all(few_values(part, definitions, depth + 1) for part in parts):
        return "is computed from few values"
    return None
