"""Removes a DISTINCT over rows that already differ.

Before: `Distinct(Distinct(s))`, `Distinct(Aggregate(GROUP BY a))` with a among the columns
After:  `Distinct(s)`, `Aggregate(GROUP BY a)`
"""

from __future__ import annotations

from headgate.plan.nodes import (
    Aggregate,
    Distinct,
    Filter,
    Negation,
    Node,
    Project,
    SemiJoin,
)


def drop_distinct(node: Node) -> Node:
    """The plan without duplicate eliminations that have nothing to eliminate."""
    node = node.with_inputs([drop_distinct(each) for each in node.inputs])
    if isinstance(node, Distinct) and _differ(node.input, node.input.names):
        return node.input
    return node


def _differ(node: Node, columns: frozenset[str]) -> bool:
    """Whether no two rows alive together agree on the columns."""
    match node:
        case Distinct():
            return columns >= node.names
        case Aggregate():
            return columns >= frozenset(node.keys)
        case Filter():
            return _differ(node.input, columns)
        case SemiJoin() | Negation():
            return _differ(node.left, columns)
        case Project():
            plain = frozenset(
                output.scalar.expression.name
                for output in node.outputs
                if output.name in columns and output.scalar.is_column
            )
            return _differ(node.input, plain)
    return False
