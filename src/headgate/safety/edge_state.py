"""Edge state: the verdict on rows that an operator keeps as they live on an edge."""

from __future__ import annotations

from headgate.plan.nodes import Node, StreamScan, TableScan
from headgate.safety.boundedness import Boundedness, EdgeBounds
from headgate.safety.state_plan import StatePlan
from headgate.safety.verdict import StateVerdict


def edge_state(edge_bounds: EdgeBounds, state_plan: StatePlan, operator: str, node: Node) -> StateVerdict:
    """The verdict on the rows of an edge that an operator keeps while they live."""
    return state_of(state_plan, operator, node, edge_bounds[node])


def state_of(state_plan: StatePlan, operator: str, node: Node, boundedness: Boundedness) -> StateVerdict:
    """The verdict on a state with some bound; the CHECKs behind it are relied on from here."""
    state_plan.checks.update(boundedness.checks)
    return StateVerdict(operator, stream_of(node), boundedness.by, boundedness.reason, boundedness.assumes)


def stream_of(node: Node) -> str:
    """The streams and tables below an edge, as the query calls them."""
    names = [each.name for each in node.walk() if isinstance(each, (StreamScan, TableScan))]
    return ", ".join(dict.fromkeys(names))
