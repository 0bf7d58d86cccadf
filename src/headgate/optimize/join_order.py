"""Order of a multi-way join by cost per unit of time (Windows document, 5.3).

A new row of input j meets the other inputs in the global order. Each step scans the next input once for every
partial result so far; partial results then shrink by the larger number of distinct values on every attribute
that joins the two sides, and the smaller number lives on.

```
order S1 S2 S3, new row of S2:   S2 ──► S1 ──► S3        cost = rate_2 × (|S1| + matches(S2,S1) × |S3|)
```
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations, product

EXHAUSTIVE_UP_TO = 6
"""Inputs; with more of them the heuristic decides."""

MOST_ORDERS = 300
"""Orders that the heuristic looks at: it moves up as many of the fast inputs as this allows, at most three."""

_FAST_STREAMS_MOVED = 3
LARGEST = 1e60
"""Products of sizes stop here, so that absurd statistics give large costs rather than infinite ones."""


@dataclass(frozen=True)
class JoinInput:
    """What costs depend on: rows per second, rows alive, and distinct values per equality class."""

    name: str
    rate: float
    rows: float
    distinct: tuple[float | None, ...]
    """One entry per equality class; None where the input has no column in the class."""


@dataclass(frozen=True)
class CostedOrder:
    """A global join order (indexes into the inputs) and its cost per second."""

    order: tuple[int, ...]
    cost: float


@dataclass(frozen=True)
class OrderChoice:
    """The order chosen, those the heuristic looked at, and all of them if there are few enough."""

    best: CostedOrder
    considered: tuple[CostedOrder, ...]
    all: tuple[CostedOrder, ...]

    @property
    def worst(self) -> float | None:
        return max((each.cost for each in self.all), default=None)

    @property
    def average(self) -> float | None:
        return sum(each.cost for each in self.all) / len(self.all) if self.all else None


def order_cost(inputs: Sequence[JoinInput], order: Sequence[int]) -> float:
    """Row accesses per second of a global order, over arrivals on every input."""
    total = 0.0
    for new in order:
        partial, accesses = 1.0, 0.0
        so_far = list(inputs[new].distinct)
        for other in order:
            if other == new:
                continue
            accesses += partial * inputs[other].rows
            partial = min(partial * inputs[other].rows / _shrink(so_far, inputs[other].distinct), LARGEST)
            _merge(so_far, inputs[other].distinct)
        total += inputs[new].rate * accesses
    return total


def join_size(inputs: Sequence[JoinInput], members: Iterable[int]) -> float:
    """Expected rows of the join of some inputs; values are uniform and contained in one another."""
    size = 1.0
    distinct: list[float | None] = [None] * len(inputs[0].distinct) if inputs else []
    for member in members:
        size = min(size * inputs[member].rows / _shrink(distinct, inputs[member].distinct), LARGEST)
        _merge(distinct, inputs[member].distinct)
    return size


def _shrink(so_far: Sequence[float | None], new: Sequence[float | None]) -> float:
    factor = 1.0
    for a, b in zip(so_far, new, strict=True):
        if a is not None and b is not None:
            factor *= max(a, b, 1.0)
    return factor


def _merge(so_far: list[float | None], new: Sequence[float | None]) -> None:
    for index, value in enumerate(new):
        current = so_far[index]
        if value is not None:
            so_far[index] = value if current is None else min(current, value)


def by_selectivity(inputs: Sequence[JoinInput]) -> tuple[int, ...]:
    """The initial heuristic: start with the pair that yields least, then always add what yields least."""
    count = len(inputs)
    if count == 1:
        return (0,)
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
    order = list(min(pairs, key=lambda pair: (join_size(inputs, pair), pair)))
    while len(order) < count:
        rest = [index for index in range(count) if index not in order]
        order.append(min(rest, key=lambda index: (join_size(inputs, [*order, index]), index)))
    return tuple(order)


def fast_inputs(inputs: Sequence[JoinInput]) -> list[int]:
    """Inputs that are faster than the average, fastest first."""
    mean = sum(each.rate for each in inputs) / len(inputs)
    fast = [index for index, each in enumerate(inputs) if each.rate > mean]
    return sorted(fast, key=lambda index: -inputs[index].rate)[:_FAST_STREAMS_MOVED]


def heuristic_orders(inputs: Sequence[JoinInput]) -> list[tuple[int, ...]]:
    """The initial order and every order got from it by moving fast inputs up: about n^f, at most MOST_ORDERS."""
    base = by_selectivity(inputs)
    fast = fast_inputs(inputs)
    choices = [range(base.index(index) + 1) for index in fast]
    while math.prod(len(each) for each in choices) > MOST_ORDERS:
        fast, choices = fast[:-1], choices[:-1]
    found = {base: None}
    for places in product(*choices):
        order = list(base)
        for index, place in zip(fast, places, strict=True):
            order.remove(index)
            order.insert(place, index)
        found[tuple(order)] = None
    return list(found)


def choose_order(inputs: Sequence[JoinInput]) -> OrderChoice:
    """The cheapest order: of all of them for few inputs, of the heuristic's for many."""
    considered = tuple(CostedOrder(order, order_cost(inputs, order)) for order in heuristic_orders(inputs))
    everything: tuple[CostedOrder, ...] = ()
    if len(inputs) <= EXHAUSTIVE_UP_TO:
        everything = tuple(
            CostedOrder(order, order_cost(inputs, order)) for order in permutations(range(len(inputs)))
        )
    best = min(everything or considered, key=lambda each: (each.cost, each.order))
    return OrderChoice(best, considered, everything)
