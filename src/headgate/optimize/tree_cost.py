"""TreeCost: what one join of a tree of joins costs, each input a stream or the join of several."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from headgate.optimize.join_order import JoinInput, by_selectivity, join_size, order_cost


def tree_cost(inputs: tuple[JoinInput, ...]) -> Callable[[tuple[frozenset[str], ...]], float]:
    """The cost per second of a join, by the numbers of the inputs behind each side of it.

    Arrivals meet the other sides in the order that yields least (Windows document, 5.3), and each result of a join
    below is stored and dropped again, as a row of a stream is.
    """

    @cache
    def side(block: frozenset[str]) -> JoinInput:
        members = sorted(int(name) for name in block)
        if len(members) == 1:
            return inputs[members[0]]
        rows = join_size(inputs, members)
        rate = sum(rows / max(inputs[each].rows, 1e-9) * inputs[each].rate for each in members)
        distinct = tuple(
            min(
                (value for each in members if (value := inputs[each].distinct[place]) is not None),
                default=None,
            )
            for place in range(len(inputs[0].distinct))
        )
        return JoinInput("", rate, rows, distinct)

    def cost(blocks: tuple[frozenset[str], ...]) -> float:
        sides = tuple(side(block) for block in blocks)
        return order_cost(sides, by_selectivity(sides)) + 2 * sum(each.rate for each in sides)

    return cost
