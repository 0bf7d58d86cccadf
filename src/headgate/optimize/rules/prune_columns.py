"""Keeps only the columns that something above needs.

Before: `Join(Window(s(a, b, c, d)), …)` where only a and b are used
After:  `Join(Window(Project(a, b; s)), …)`

Projections commute with every kind of window: they drop columns, never rows.
"""

from __future__ import annotations

from dataclasses import replace

from headgate.model.scalar import Scalar
from headgate.plan.nodes import (
    Aggregate,
    Difference,
    Distinct,
    Emit,
    Filter,
    Join,
    Negation,
    Node,
    Output,
    Project,
    SemiJoin,
    StreamScan,
    TableJoin,
    TableScan,
    Union,
    Window,
)


def prune_columns(node: Node) -> Node:
    """The plan with unused columns dropped where they are read."""
    return _prune(node, node.names)


def _prune(node: Node, needed: frozenset[str]) -> Node:
    """`node` with at least the needed columns, and few others."""
    match node:
        case StreamScan() | TableScan():
            return _keep(node, needed)
        case Window():
            return replace(node, input=_prune(node.input, needed | frozenset(node.window.partition)))
        case Filter():
            # A scan is not projected twice: once the filter has read what it needs is early enough.
            source = node.input
            wanted = needed | node.predicate.columns
            inner = source if isinstance(source, StreamScan) else _prune(source, wanted)
            return _keep(replace(node, input=inner), needed)
        case Project():
            # One column stays even if none is needed: a row without columns cannot be counted.
            outputs = tuple(o for o in node.outputs if o.name in needed) or node.outputs[:1]
            below: frozenset[str] = frozenset().union(*(output.scalar.columns for output in outputs))
            inner = _prune(node.input, below)
            if isinstance(inner, Project) and outputs:
                return merged(replace(node, input=inner, outputs=outputs))
            return replace(node, input=inner, outputs=outputs)
        case Join():
            own = needed.union(*node.equalities, *(part.columns for part in node.residual))
            members = tuple(_prune(member, own & member.names) for member in node.members)
            return _keep(replace(node, members=members), needed)
        case TableJoin() | SemiJoin() | Negation():
            own = needed.union(*node.keys, *(part.columns for part in node.residual))
            if isinstance(node, (SemiJoin, Negation)) and node.null_equal:
                own |= node.left.names
            left = _prune(node.left, own & node.left.names)
            right = _prune(node.right, own & node.right.names)
            return _keep(replace(node, left=left, right=right), needed)
        case Aggregate():
            calls = node.calls
            if not _appends(node):
                calls = tuple(call for call in calls if call.output.name in needed) or calls[:1]
            own = frozenset(node.keys) | {name for call in calls for name in call.arguments}
            return replace(node, input=_prune(node.input, own), calls=calls)
        case Distinct() | Difference() | Union() | Emit():
            # Every column is part of what is compared or shown.
            return node.with_inputs([_prune(each, each.names) for each in node.inputs])
    return node.with_inputs([_prune(each, each.names) for each in node.inputs])


def _appends(node: Aggregate) -> bool:
    """Whether each change adds a row (internal windows): then even a value that nobody reads decides when."""
    return any(isinstance(each, Window) and each.window.internal for each in node.walk())


def _keep(node: Node, needed: frozenset[str]) -> Node:
    """A projection to the needed columns, if there are others; one column stays to carry the rows."""
    kept = [column for column in node.schema if column.name in needed] or list(node.schema[:1])
    if len(kept) == len(node.schema):
        return node
    outputs = tuple(Output(column.name, Scalar.column(column.name, column.type)) for column in kept)
    if isinstance(node, Project):
        return merged(Project(node, outputs))
    return Project(node, outputs)


def merged(node: Project) -> Project:
    """Two projections, one above the other, as one."""
    assert isinstance(node.input, Project)
    by_name = {output.name: output.scalar.expression for output in node.input.outputs}
    outputs = tuple(Output(o.name, o.scalar.replace(by_name.get)) for o in node.outputs)
    return Project(node.input.input, outputs)
