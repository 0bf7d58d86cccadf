"""Alternative: of an unwindowed input only what a static table knows is remembered, each value once.

Before: `Negation(t, s; t.k = s.k)` and `Distinct(Join(TableJoin(s, t; s.k = t.k), r; s.k = r.k))`
After:  `Negation(t, Distinct(SemiJoin(s, t; s.k = t.k)))` and
        `Distinct(Join(Distinct(TableJoin(s, t)), Distinct(SemiJoin(r, t; r.k = t.k)); s.k = r.k))`

What is asked is only whether partners exist, so one of each value is enough, and a row with a key that the table does
not have can be no partner of anything. What is kept has no more keys than the table has rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from headgate.optimize.rules.prune_columns import prune_columns
from headgate.optimize.rules.push_distinct import join_below, replace_below
from headgate.optimize.rules.push_filters import push_filters
from headgate.plan.nodes import (
    Distinct,
    Filter,
    Join,
    Negation,
    Node,
    Project,
    SemiJoin,
    TableJoin,
    TableScan,
)
from headgate.plan.patterns import Edges, Pattern, asks_once, is_static, label


def reduce_by_table(plan: Node) -> Iterator[Node]:
    """Plans in which the unwindowed inputs of one more join or EXISTS are reduced by a static table."""
    if not any(isinstance(node, TableScan) and not node.table.changes for node in plan.walk()):
        return
    ruled = prune_columns(push_filters(plan))
    edges = label(ruled)

    def visit(node: Node) -> Iterator[Node]:
        match node:
            case SemiJoin() | Negation() if is_static(node.left) and _stays(node.right, edges) and node.keys:
                keys = tuple((theirs, mine) for mine, theirs in node.keys)
                known = SemiJoin(node.right, _copied(node.left), keys, null_equal=node.null_equal)
                yield replace(node, right=Distinct(known))
            case Distinct():
                asked = list(_asked_tables(node.input))
                join = join_below(asked[-1].left if asked else node.input)
                reduced = None if join is None else _reduced(join, asked, edges)
                if join is not None and reduced is not None:
                    yield replace_below(node, join, reduced)
        for index, each in enumerate(node.inputs):
            for below in visit(each):
                yield node.with_inputs([*node.inputs[:index], below, *node.inputs[index + 1 :]])

    yield from visit(ruled)


def _stays(node: Node, edges: Edges) -> bool:
    """Whether the rows of an edge come over time and never die."""
    return max(edges[node].pattern, edges[node].expiry) == Pattern.MON and not is_static(node)


@dataclass(frozen=True)
class _Known:
    """A static relation, its column, and the columns of a join that equal one of that column's values."""

    relation: Node
    column: str
    equal: tuple[str, ...]


def _reduced(join: Join, above: Sequence[TableJoin | SemiJoin], edges: Edges) -> Join | None:
    """The join over what tables, above it or below, know of its unwindowed inputs; None if they know nothing."""
    known = [
        _Known(node.right, theirs, group)
        for node in (*above, *(each for member in join.members for each in _asked_tables(member)))
        for mine, theirs in node.keys
        for group in join.equalities
        if mine in group or theirs in group
    ]
    if not known:
        return None
    members = []
    for member in join.members:
        if not _stays(member, edges) or isinstance(member, Distinct):
            members.append(member)
            continue
        below = member
        for each in known:
            column = next((name for name in each.equal if name in member.names), None)
            if column is not None and not any(node.right is each.relation for node in _asked_tables(member)):
                below = SemiJoin(below, _copied(each.relation), ((column, each.column),))
        members.append(Distinct(below))
    return replace(join, members=tuple(members))


def _asked_tables(node: Node) -> Iterator[TableJoin | SemiJoin]:
    """Where rows of an input have asked a static table.

    Not below where they ask one that changes at their birth: there it matters when each of equal rows came.
    """
    while isinstance(node, (Filter, Project, TableJoin, SemiJoin)):
        if isinstance(node, (TableJoin, SemiJoin)):
            if is_static(node.right):
                yield node
            elif asks_once(node):
                return
            node = node.left
        else:
            node = node.input


def _copied(node: Node) -> Node:
    """The same relation once more: facts are kept by node."""
    if isinstance(node, TableScan):
        return TableScan(node.table, node.name)
    return node.with_inputs([_copied(each) for each in node.inputs])
