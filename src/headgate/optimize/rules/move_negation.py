"""Alternatives: a negation above a join, or below it on one input (Windows document, 3.5.3 and Figure 3.5).

Pulled up:   `Negation(Join(s1, s2), s3)`    only the result has endings
Pushed down: `Join(Negation(s1, s3), s2)`    fewer rows are joined, but the join has to follow endings

Both answer the same: every joined row contains exactly one row of the input that the negation asks about. Not so
where a table is asked as it was when a row came to be: a joined row is as young as the youngest of its parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from headgate.plan.nodes import Filter, Join, Negation, Node, Project, TableScan


def move_negation(plan: Node) -> Iterator[Node]:
    """Plans in which one negation has crossed the join next to it, in either direction."""
    match plan:
        case Negation(left=Join() as join) if not _is_asked_at_birth(plan):
            yield from _push_down(plan, join)
        case Join():
            yield from _pull_up(plan)
    for index, each in enumerate(plan.inputs):
        for changed in move_negation(each):
            yield plan.with_inputs([*plan.inputs[:index], changed, *plan.inputs[index + 1 :]])


def _push_down(node: Negation, join: Join) -> Iterator[Node]:
    for index, member in enumerate(join.members):
        keys = []
        for left, right in node.keys:
            own = _equal_column(join, left, member)
            if own is None:
                break
            keys.append((own, right))
        else:
            reads = frozenset().union(*(part.columns for part in node.residual)) - node.right.names
            if reads <= member.names and (keys or reads):
                pushed = replace(node, left=member, keys=tuple(keys))
                members = (*join.members[:index], pushed, *join.members[index + 1 :])
                yield replace(join, members=members)


def _equal_column(join: Join, name: str, member: Node) -> str | None:
    """A column of `member` that is the named one or equal to it."""
    if name in member.names:
        return name
    for group in join.equalities:
        if name in group:
            return next((each for each in group if each in member.names), None)
    return None


def _pull_up(join: Join) -> Iterator[Node]:
    for index, member in enumerate(join.members):
        negation = _negation_at_top(member)
        if negation is None or _is_asked_at_birth(negation):
            continue
        if not negation.right.names & join.names:
            members = (*join.members[:index], negation.left, *join.members[index + 1 :])
            yield replace(negation, left=replace(join, members=members))


def _is_asked_at_birth(node: Negation) -> bool:
    return any(isinstance(each, TableScan) and each.table.is_asked_at_birth for each in node.right.walk())


def _negation_at_top(node: Node) -> Negation | None:
    """The negation that a member is; what stands on it goes below it, if it keeps the columns that it asks about."""
    match node:
        case Negation():
            return node
        case Filter(input=Negation() as negation):
            return replace(negation, left=replace(node, input=negation.left))
        case Project(input=Negation() as negation):
            names = {o.scalar.expression.name: o.name for o in node.outputs if o.scalar.is_column}
            asked = {left for left, _ in negation.keys}.union(*(part.columns for part in negation.residual))
            if asked - negation.right.names <= names.keys():
                keys = tuple((names[left], right) for left, right in negation.keys)
                residual = tuple(part.rename(names) for part in negation.residual)
                left = replace(node, input=negation.left)
                return replace(negation, left=left, keys=keys, residual=residual)
    return None
