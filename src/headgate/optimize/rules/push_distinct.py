"""Alternative: duplicates are removed before a join as well as after it.

Before: `Distinct(Project(Join(s, t)))`
After:  `Distinct(Project(Join(Distinct(s), Distinct(t))))`

A value of the result only asks whether partners exist, not how many, so each input needs each value once. It pays
where inputs repeat values; it is not offered over inputs with endings, where δ* does not apply.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from headgate.plan.nodes import Distinct, Filter, Join, Node, Project
from headgate.plan.patterns import Pattern, label


def push_distinct(plan: Node) -> Iterator[Node]:
    """Plans in which one more DISTINCT has been pushed below the join under it."""
    edges = label(plan)

    def visit(node: Node) -> Iterator[Node]:
        if isinstance(node, Distinct):
            join = join_below(node.input)
            if join is not None:
                members = tuple(
                    Distinct(member)
                    if edges[member].pattern in (Pattern.WKS, Pattern.WK) and not isinstance(member, Distinct)
                    else member
                    for member in join.members
                )
                if any(new is not old for new, old in zip(members, join.members, strict=True)):
                    yield replace_below(node, join, replace(join, members=members))
        for index, each in enumerate(node.inputs):
            for changed in visit(each):
                yield node.with_inputs([*node.inputs[:index], changed, *node.inputs[index + 1 :]])

    yield from visit(plan)


def join_below(node: Node) -> Join | None:
    """The join under projections and filters, if there is one."""
    while isinstance(node, (Project, Filter)):
        node = node.input
    return node if isinstance(node, Join) else None


def replace_below(node: Node, old: Node, new: Node) -> Node:
    """The plan with another node in place of one."""
    if node is old:
        return new
    return node.with_inputs([replace_below(each, old, new) for each in node.inputs])
