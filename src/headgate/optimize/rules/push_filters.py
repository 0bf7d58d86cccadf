"""Moves filters towards the streams.

Before: `Filter(a > 5, Window([RANGE 1 MINUTE], s))`
After:  `Window([RANGE 1 MINUTE], Filter(a > 5, s))`

A filter commutes with a time window, because a row's lifetime depends on its own time only. It does not commute
with a row window: there, other rows decide how long a row stays (Windows document, 2.4). With PARTITION BY only those
of its own part do, so a filter on nothing but the partition's columns, which keeps or drops whole parts, goes below.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from headgate.model.scalar import Scalar, conjunction
from headgate.plan.nodes import (
    Aggregate,
    Difference,
    Distinct,
    Filter,
    Join,
    Negation,
    Node,
    Project,
    SemiJoin,
    TableJoin,
    Union,
    Window,
)
from headgate.plan.normalize import split_conjunction


def push_filters(node: Node) -> Node:
    """The plan with every filter as far down as it may go."""
    if isinstance(node, Filter):
        return _place(push_filters(node.input), split_conjunction(node.predicate))
    return node.with_inputs([push_filters(each) for each in node.inputs])


def _place(node: Node, parts: list[Scalar]) -> Node:
    """`node` filtered by `parts`, each part as low as it may stand."""
    if not parts:
        return node
    match node:
        case Filter():
            return _place(node.input, split_conjunction(node.predicate) + parts)
        case Window() if node.window.is_time_based:
            return replace(node, input=_place(node.input, parts))
        case Window() if node.window.partition:
            below = [part for part in parts if part.columns and part.columns <= _told_apart(node)]
            above = [part for part in parts if not any(part is each for each in below)]
            return _above(replace(node, input=_place(node.input, below)), above)
        case Project():
            by_name = {output.name: output.scalar.expression for output in node.outputs}
            return replace(node, input=_place(node.input, [part.replace(by_name.get) for part in parts]))
        case Distinct():
            return replace(node, input=_place(node.input, parts))
        case Union():
            return _into_union(node, parts)
        case Difference():
            names = dict(
                zip((c.name for c in node.left.schema), (c.name for c in node.right.schema), strict=True)
            )
            right = _place(node.right, [part.rename(names) for part in parts])
            return replace(node, left=_place(node.left, parts), right=right)
        case SemiJoin() | Negation():
            return replace(node, left=_place(node.left, parts))
        case TableJoin():
            return _into_table_join(node, parts)
        case Join():
            return _into_join(node, parts)
        case Aggregate() if node.keys:
            keys = frozenset(node.keys)
            below = [part for part in parts if part.columns and part.columns <= keys]
            above = [part for part in parts if part not in below]
            return _above(replace(node, input=_place(node.input, below)), above)
    return _above(node, parts)


def _told_apart(node: Window) -> frozenset[str]:
    """The columns of a partition in which rows of one part are the same; 0.0 and -0.0 are one part."""
    return frozenset(name for name in node.window.partition if not pa.types.is_floating(node.type_of(name)))


def _above(node: Node, parts: list[Scalar]) -> Node:
    return Filter(node, conjunction(parts)) if parts else node


def _into_union(node: Union, parts: list[Scalar]) -> Node:
    names = [column.name for column in node.schema]
    members = []
    for member in node.members:
        rename = dict(zip(names, (column.name for column in member.schema), strict=True))
        members.append(_place(member, [part.rename(rename) for part in parts]))
    return replace(node, members=tuple(members))


def _into_table_join(node: TableJoin, parts: list[Scalar]) -> Node:
    left = [part for part in parts if part.columns <= node.left.names]
    right = [part for part in parts if part.columns <= node.right.names and part not in left]
    both = tuple(part for part in parts if part not in left and part not in right)
    return replace(
        node,
        left=_place(node.left, left),
        right=_above(node.right, right),
        residual=node.residual + both,
    )


def _into_join(node: Join, parts: list[Scalar]) -> Node:
    members = list(node.members)
    rest: list[Scalar] = []
    for part in parts:
        owner = next((i for i, member in enumerate(members) if part.columns <= member.names), None)
        if owner is None:
            rest.append(part)
        else:
            members[owner] = _place(members[owner], [part])
    return replace(node, members=tuple(members), residual=node.residual + tuple(rest))
