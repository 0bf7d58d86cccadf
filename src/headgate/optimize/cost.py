"""Cost of a plan per second: processing, state maintenance and negative tuples (Windows document, 3.5.3).

The unit is one access to a stored row. Joins are costed as in 5.3; every other stateful operator looks up each
arriving row; an insertion and an expiry cost one access each; an ending costs one access in a hash, and a scan
of the partitions in a calendar.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headgate.optimize.estimate import Estimates
from headgate.optimize.state import StateChoice
from headgate.plan.nodes import Filter, Join, Negation, Node, Project, SemiJoin, TableJoin


@dataclass(frozen=True)
class Cost:
    """Row accesses per second, by what they are for."""

    processing: float = 0.0
    maintenance: float = 0.0
    endings: float = 0.0

    @property
    def total(self) -> float:
        return self.processing + self.maintenance + self.endings

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.processing + other.processing,
            self.maintenance + other.maintenance,
            self.endings + other.endings,
        )


def plan_cost(plan: Node, estimates: Estimates, states: Mapping[Node, StateChoice]) -> Cost:
    """The cost of a whole plan."""
    return sum((node_cost(node, estimates, states.get(node)) for node in plan.walk()), Cost())


def node_cost(node: Node, estimates: Estimates, state: StateChoice | None) -> Cost:
    """The cost of one operator."""
    inputs = [estimates.edges[each] for each in node.inputs]
    arriving = sum(edge.rate for edge in inputs)
    ending = sum(edge.endings for edge in inputs)
    if state is None:
        return Cost(processing=arriving, endings=ending) if isinstance(node, (Filter, Project)) else Cost()
    match node:
        case Join():
            # The order's cost counts endings as arrivals, because they probe the other inputs too.
            processing = estimates.orders[node].best.cost
        case SemiJoin() | Negation() | TableJoin():
            left, right = inputs
            matches = left.rows / left.distinct_of(node.keys[0][0]) if node.keys else left.rows
            processing = left.rate + right.rate * max(1.0, matches)
        case _:
            processing = arriving
    maintenance = 2 * arriving
    scans = 0.0
    for stored, edge in zip(state.stored[-len(inputs) :], inputs, strict=False):
        if stored.structure == "calendar" and stored.partitions and stored.rows:
            scans += edge.endings * stored.rows
        else:
            scans += edge.endings
    return Cost(processing, maintenance, ending + scans)
