"""Alternative: of an unwindowed input beside a windowed one, each value is remembered once.

Before: `Distinct(Project(Join(Window(s), t)))`
After:  `Distinct(Project(Join(Window(s), Distinct(t))))`, t with the columns that are asked for

A value of the result only asks whether partners exist. Where t's columns have finitely many values, what is kept of
it is bounded then, although nothing ever leaves it. Without the outer DISTINCT every copy of a row of t would count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from headgate.optimize.rules.prune_columns import prune_columns
from headgate.optimize.rules.push_distinct import join_below, replace_below
from headgate.optimize.rules.push_filters import push_filters
from headgate.plan.nodes import Distinct, Join, Node
from headgate.plan.patterns import Edges, Pattern, label


def remember_values(plan: Node) -> Iterator[Node]:
    """Plans in which the unwindowed inputs of one more join under a DISTINCT are made distinct."""
    ruled = prune_columns(push_filters(plan))
    edges = label(ruled)

    def visit(node: Node) -> Iterator[Node]:
        if isinstance(node, Distinct):
            join = join_below(node.input)
            changed = None if join is None else _remembering(join, edges)
            if join is not None and changed is not None:
                yield replace_below(node, join, changed)
        for index, each in enumerate(node.inputs):
            for below in visit(each):
                yield node.with_inputs([*node.inputs[:index], below, *node.inputs[index + 1 :]])

    yield from visit(ruled)


def _remembering(join: Join, edges: Edges) -> Join | None:
    stays = [max(edges[each].pattern, edges[each].expiry) == Pattern.MON for each in join.members]
    open_ = [stay and not isinstance(each, Distinct) for stay, each in zip(stays, join.members, strict=True)]
    if all(stays) or not any(open_):
        return None
    members = [Distinct(each) if wraps else each for wraps, each in zip(open_, join.members, strict=True)]
    return replace(join, members=tuple(members))
