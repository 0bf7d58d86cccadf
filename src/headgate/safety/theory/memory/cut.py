"""Cuts: an attribute's domain divided into cells, so that rows with equal cells can stand for each other."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

from headgate.safety.theory.memory.closure import Bound
from headgate.safety.theory.memory.domain import Code
from headgate.safety.theory.memory.query import Attribute, Comparison, Constant


@dataclass(frozen=True)
class IntegerCut:
    """Below `low`, each integer from `low` to `high`, above `high`."""

    attribute: Attribute
    low: int
    high: int

    @property
    def top(self) -> int:
        """The highest cell."""
        return self.high - self.low + 2

    def cell(self, value: Code) -> int:
        """The cell of a value; 0 is everything below."""
        return min(max(int(value) - self.low + 1, 0), self.top)

    def says(self, cell: int) -> tuple[Comparison, ...]:
        """What a cell says of its values."""
        if cell == 0:
            return (Comparison(self.attribute, "<", Constant(self.low)),)
        if cell == self.top:
            return (Comparison(self.attribute, ">", Constant(self.high)),)
        return (Comparison(self.attribute, "=", Constant(self.low + cell - 1)),)


@dataclass(frozen=True)
class IntervalCut:
    """Each point and each interval beside one; without points, one cell for everything."""

    attribute: Attribute
    points: tuple[Code, ...] = ()

    @property
    def top(self) -> int:
        """The highest cell."""
        return 2 * len(self.points)

    def cell(self, value: Code) -> int:
        """The cell of a value: odd at a point, even beside it."""
        place = bisect_left(self.points, value)
        return 2 * place + (place < len(self.points) and self.points[place] == value)

    def says(self, cell: int) -> tuple[Comparison, ...]:
        """What a cell says of its values."""
        place, is_point = divmod(cell, 2)
        if is_point:
            return (Comparison(self.attribute, "=", Constant(self.points[place])),)
        said = []
        if place > 0:
            said.append(Comparison(self.attribute, ">", Constant(self.points[place - 1])))
        if place < len(self.points):
            said.append(Comparison(self.attribute, "<", Constant(self.points[place])))
        return tuple(said)


Cut = IntegerCut | IntervalCut


def cells_between(cut: Cut, lower: Bound | None, upper: Bound | None) -> range:
    """The cells that values within two bounds can be in."""
    first = 0 if lower is None else cut.cell(lower.value) + _inward(cut, lower)
    last = cut.top if upper is None else cut.cell(upper.value) - _inward(cut, upper)
    return range(first, last + 1)


def _inward(cut: Cut, bound: Bound) -> int:
    """1 if the bound itself is out and has a cell of its own."""
    return int(bound.strict and bool(cut.cell(bound.value) % 2) and isinstance(cut, IntervalCut))
