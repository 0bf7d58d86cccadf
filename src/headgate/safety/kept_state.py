"""Kept state: the verdict on rows that an operator keeps as they live on an edge."""

from __future__ import annotations

from headgate.plan.nodes import Node, StreamScan, TableScan
from headgate.safety.extent import Extent, Extents
from headgate.safety.methods import Methods
from headgate.safety.verdict import StateVerdict


def kept_state(extents: Extents, methods: Methods, operator: str, node: Node) -> StateVerdict:
    """The verdict on the rows of an edge that an operator keeps while they live."""
    return state_of(methods, operator, node, extents[node])


def state_of(methods: Methods, operator: str, node: Node, extent: Extent) -> StateVerdict:
    """The verdict on a state of some extent; the CHECKs behind it are relied on from here."""
    methods.checks.update(extent.checks)
    return StateVerdict(operator, stream_of(node), extent.by, extent.reason, extent.assumes)


def stream_of(node: Node) -> str:
    """The streams and tables below an edge, as the query calls them."""
    names = [each.name for each in node.walk() if isinstance(each, (StreamScan, TableScan))]
    return ", ".join(dict.fromkeys(names))
