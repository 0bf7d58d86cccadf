"""Reads nothing where no row can satisfy the conditions.

Before: `Join(Filter(k > 5, a), Filter(k < 3, b); a.k = b.k)`
After:  `Filter(FALSE, Join(Filter(k > 5, Filter(FALSE, a)), Filter(k < 3, Filter(FALSE, b)); a.k = b.k))`

The operators stay, so an aggregate above still says that there is nothing; they only have nothing to keep. The filter
on top makes it right whatever is below, such as a negation, which answers more the less it reads.
"""

from __future__ import annotations

from sqlglot import exp

from headgate.model import types
from headgate.model.scalar import Scalar
from headgate.plan.nodes import Aggregate, Difference, Filter, Negation, Node, StreamScan, Union
from headgate.safety.block import flatten
from headgate.safety.reasons.column_values import column_values
from headgate.safety.reasons.contradiction import is_contradictory

_FALSE = Scalar(exp.false(), types.BOOLEAN)


def drop_contradictions(node: Node) -> Node:
    """The plan in which streams are not read for parts that stay empty."""
    while True:
        dropped = _visited(node, alone=True, compared=True)
        if dropped is node:
            return node
        # What is dropped may leave more without rows above it.
        node = dropped


def _visited(node: Node, *, alone: bool, compared: bool) -> Node:
    """`alone`: nothing above would be empty because this is; `compared`: no block above has it in."""
    if _is_dropped(node):
        return node
    if alone and column_values(node).empty:
        return _dropped(node)
    block = flatten(node, windows=True, distinct=True) if compared else None
    if block is not None and is_contradictory(block):
        return _dropped(node)
    inputs = []
    for place, each in enumerate(node.inputs):
        apart = _stands_alone(node, place)
        inputs.append(_visited(each, alone=apart, compared=apart or (compared and block is None)))
    return node.with_inputs(inputs)


def _stands_alone(node: Node, place: int) -> bool:
    """Whether an operator may say something although one of its inputs brings nothing."""
    match node:
        case Negation() | Difference():
            return place > 0
        case Aggregate():
            return not node.keys
    return isinstance(node, Union)


def _is_dropped(node: Node) -> bool:
    return isinstance(node, Filter) and node.predicate.is_false and _reads_nothing(node.input)


def _reads_nothing(node: Node) -> bool:
    if isinstance(node, Filter) and node.predicate.is_false:
        return True
    return not isinstance(node, StreamScan) and all(map(_reads_nothing, node.inputs))


def _dropped(node: Node) -> Node:
    return Filter(_unread(node), _FALSE)


def _unread(node: Node) -> Node:
    if isinstance(node, StreamScan):
        return Filter(node, _FALSE)
    return node.with_inputs([_unread(each) for each in node.inputs])
