"""Deaths: on which edges rows are announced with the instant of their death, which a reader has to remember."""

from __future__ import annotations

from headgate.plan.nodes import Aggregate, Difference, Distinct, Filter, Negation, Node, Project
from headgate.plan.patterns import Edges, Pattern


def is_aggregate(node: Node) -> bool:
    """Whether rows are values of an aggregate: each ends when the next one comes, and then both are at hand."""
    while isinstance(node, (Filter, Project)):
        node = node.input
    return isinstance(node, Aggregate)


def announces_deaths(node: Node, edges: Edges) -> bool:
    """Whether rows may be announced with a death, which who reads them has to remember until it comes.

    A value of an aggregate ends when the next one comes, a copy of EXCEPT ALL when its match does. NOT EXISTS
    announces a row up to the death of the left row.
    """
    match node:
        case Filter() | Project():
            return announces_deaths(node.input, edges)
        case Negation():
            return announces_deaths(node.left, edges)
        case Aggregate():
            return edges[node].pattern in (Pattern.WKS, Pattern.WK)
        case Difference():
            return False
        case Distinct() if edges[node.input].pattern == Pattern.STR:
            return False
    return edges[node].pattern != Pattern.MON
