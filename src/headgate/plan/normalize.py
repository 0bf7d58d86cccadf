"""Normalization: every select-project-join block gets one canonical shape.

Before: `Project(Filter(Join(a, Project(Filter(Join(b, c))), t)))`, predicates in one heap.
After:  `Project(Join(Filter(a), TableJoin(Filter(b), t), c; equality classes; residual))`: nested blocks are
one join, a predicate on one input stands on that input, equalities are closed under transitivity, constants
reach every equal column, and tables hang on the input they belong to. A non-retroactive table that changes hangs on
the join of all streams: it answers as it was when a result came to be, which is when the youngest of its rows came
(Windows document, definition 3.1). So a nested block that reads one stays a block.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from sqlglot import exp

from headgate.model import types
from headgate.model.scalar import Scalar, column, conjunction
from headgate.plan.conditions import split
from headgate.plan.expressions import comparison
from headgate.plan.nodes import (
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
    Window,
    _Matching,
)
from headgate.plan.patterns import has_replaced_rows, label
from headgate.plan.sqltypes import from_sql


def normalize(node: Node) -> Node:
    """The canonical form of a bound plan; it answers the same."""
    match node:
        case Filter() | Project() | Join():
            return _block(node)
        case SemiJoin() | Negation():
            return _matching(node)
    return node.with_inputs([normalize(each) for each in node.inputs])


def split_conjunction(predicate: Scalar) -> list[Scalar]:
    """The conjuncts of a bound predicate, left to right."""
    return [Scalar(part, types.BOOLEAN) for part in split(predicate.expression)]


@dataclass(frozen=True)
class _Block:
    """A flattened select-project-join block: members, predicates over them, and what it outputs."""

    members: tuple[Node, ...]
    predicates: tuple[Scalar, ...]
    outputs: tuple[Output, ...] | None

    def substitute(self, scalar: Scalar) -> Scalar:
        """A scalar over the block's outputs as one over its members."""
        if self.outputs is None:
            return scalar
        by_name = {output.name: output.scalar.expression for output in self.outputs}
        return scalar.replace(by_name.get)


def _block(node: Node) -> Node:
    block = _gather(node)
    assembled = _assemble(block.members, block.predicates)
    if block.outputs is not None:
        return Project(assembled, block.outputs)
    if [c.name for c in assembled.schema] == [c.name for c in node.schema]:
        return assembled
    outputs = tuple(Output(c.name, Scalar.column(c.name, c.type)) for c in node.schema)
    return Project(assembled, outputs)


def _gather(node: Node) -> _Block:
    match node:
        case Filter():
            inner = _gather(node.input)
            added = tuple(inner.substitute(part) for part in split_conjunction(node.predicate))
            return replace(inner, predicates=inner.predicates + added)
        case Project():
            inner = _gather(node.input)
            outputs = tuple(Output(o.name, inner.substitute(o.scalar)) for o in node.outputs)
            return replace(inner, outputs=outputs)
        case Join():
            members: list[Node] = []
            predicates: list[Scalar] = []
            rename: dict[str, exp.Expr] = {}
            for member in node.members:
                inner = _gather(member)
                if _is_dated(inner):
                    below = _assemble(inner.members, inner.predicates)
                    members.append(below if inner.outputs is None else Project(below, inner.outputs))
                    continue
                if inner.outputs is not None and not all(_has_own_names(m) for m in inner.members):
                    # Columns below may share names with another member's: keep this projection as a wall.
                    members.append(Project(_assemble(inner.members, inner.predicates), inner.outputs))
                    continue
                members += inner.members
                predicates += inner.predicates
                rename.update({o.name: o.scalar.expression for o in inner.outputs or ()})
            predicates += [part.replace(rename.get) for part in (*_equalities(node), *node.residual)]
            if not rename:
                return _Block(tuple(members), tuple(predicates), None)
            outputs = tuple(
                Output(c.name, Scalar.column(c.name, c.type).replace(rename.get)) for c in node.schema
            )
            return _Block(tuple(members), tuple(predicates), outputs)
    return _Block((normalize(node),), (), None)


def _is_dated(block: _Block) -> bool:
    """Whether a block's results are told apart by when they came to be: a table among its streams says so."""
    tables = [each for each in block.members if _is_table(each)]
    return len(tables) < len(block.members) and any(_is_asked_at_birth(each) for each in tables)


def _equalities(node: Join) -> list[Scalar]:
    """The equality classes of a join as predicates."""
    return [
        comparison(exp.EQ, *(Scalar.column(name, node.type_of(name)) for name in (group[0], other)))
        for group in node.equalities
        for other in group[1:]
    ]


def _has_own_names(node: Node) -> bool:
    """Whether its columns carry the unique name of a FROM item."""
    match node:
        case StreamScan() | TableScan() | Project():
            return True
        case Window() | Filter():
            return _has_own_names(node.input)
    return False


# -- putting a block together ---------------------------------------------------------------------


class _Classes:
    """Equality classes of columns (union-find)."""

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}

    def root(self, name: str) -> str:
        self._parent.setdefault(name, name)
        while self._parent[name] != name:
            name = self._parent[name]
        return name

    def unite(self, a: str, b: str) -> None:
        first, second = self.root(a), self.root(b)
        if first != second:
            self._parent[second] = first

    def groups(self) -> list[list[str]]:
        found: dict[str, list[str]] = {}
        for name in self._parent:
            found.setdefault(self.root(name), []).append(name)
        return [sorted(group) for group in found.values() if len(group) > 1]

    def others(self, name: str) -> list[str]:
        root = self.root(name)
        return [each for each in list(self._parent) if each != name and self.root(each) == root]


def _assemble(members: Iterable[Node], predicates: Iterable[Scalar]) -> Node:
    parts = list(members)
    classes = _Classes()
    residual: list[Scalar] = []
    local: list[list[Scalar]] = [[] for _ in parts]

    def owners(names: frozenset[str]) -> set[int]:
        return {index for index, part in enumerate(parts) for name in names if name in part.names}

    def key(side: Scalar) -> str:
        """The column that holds one side of an equality, computed on its member if it is not one yet."""
        if side.is_column:
            return side.expression.name
        (index,) = owners(side.columns)
        parts[index], name = with_key(parts[index], side)
        return name

    for predicate in predicates:
        sides = equality_sides(predicate)
        owned = owners(predicate.columns)
        if sides and sides[0].is_column and sides[1].is_column:
            classes.unite(sides[0].expression.name, sides[1].expression.name)
            if len(owned) == 1:
                local[owned.pop()].append(predicate)
        elif len(owned) <= 1:
            local[owned.pop() if owned else 0].append(predicate)
        elif sides and all(len(owners(side.columns)) == 1 for side in sides):
            classes.unite(key(sides[0]), key(sides[1]))
        else:
            residual.append(predicate)
    for predicate in [each for found in local for each in found]:
        _spread(predicate, classes, parts, local)
    for index, part in enumerate(parts):
        local[index] += _equal_within(part, classes)
    parts = [
        Filter(part, conjunction(_unique(found))) if found else part
        for part, found in zip(parts, local, strict=True)
    ]
    return _join(parts, classes, residual)


def _spread(predicate: Scalar, classes: _Classes, parts: list[Node], local: list[list[Scalar]]) -> None:
    """A predicate on one column holds for every column that is equal to it."""
    if len(predicate.columns) != 1 or isinstance(predicate.expression, exp.Is):
        return
    (name,) = predicate.columns
    for other in classes.others(name):
        for index, part in enumerate(parts):
            if other in part.names:
                local[index].append(predicate.rename({name: other}))


def _equal_within(part: Node, classes: _Classes) -> list[Scalar]:
    """Equalities between columns of one member, whatever other member they come by: s.a = t.x and s.b = t.x."""
    found = []
    for group in classes.groups():
        first, *others = [name for name in group if name in part.names] or [""]
        dtype = part.type_of(first) if others else types.NULL
        found += [
            comparison(exp.EQ, Scalar.column(first, dtype), Scalar.column(other, dtype)) for other in others
        ]
    return found


def _unique(predicates: list[Scalar]) -> list[Scalar]:
    """The predicates without repeats; a = b and b = a are the same."""
    found: dict[object, Scalar] = {}
    for predicate in predicates:
        node = predicate.expression
        sides = frozenset((node.this, node.expression)) if isinstance(node, exp.EQ) else node
        found.setdefault(sides, predicate)
    return list(found.values())


def _join(parts: list[Node], classes: _Classes, residual: list[Scalar]) -> Node:
    """One join of all stream members, tables hung where they belong."""
    tables = [part for part in parts if _is_table(part)]
    streams = [part for part in parts if not _is_table(part)]
    if not streams:
        return tables[0] if len(tables) == 1 else _multiway(tables, classes, residual)
    if len(streams) > 1 and any(map(_is_asked_at_birth, tables)):
        static = [each for each in tables if not _scan(each).table.changes]
        tables = [each for each in tables if _scan(each).table.changes]
        for table in static:
            streams, residual = _hang(table, streams, classes, residual)
        known = frozenset().union(*(each.names for each in streams))
        among = [part for part in residual if part.columns <= known]
        residual = [part for part in residual if not part.columns <= known]
        streams = [_multiway(streams, classes, among)]
    while tables:
        table = min(tables, key=lambda each: _hanging_order(each, streams, classes))
        tables = [each for each in tables if each is not table]
        streams, residual = _hang(table, streams, classes, residual)
    if len(streams) == 1 and not _links(streams[0], streams[0], classes):
        node = streams[0]
        return Filter(node, conjunction(residual)) if residual else node
    return streams[0] if len(streams) == 1 else _multiway(streams, classes, residual)


def _is_table(node: Node) -> bool:
    match node:
        case TableScan():
            return True
        case Filter() | Project():
            return _is_table(node.input)
    return False


def _scan(table: Node) -> TableScan:
    (scan,) = (each for each in table.walk() if isinstance(each, TableScan))
    return scan


def _is_asked_at_birth(table: Node) -> bool:
    return _scan(table).table.is_asked_at_birth


def _hanging_order(table: Node, streams: list[Node], classes: _Classes) -> tuple[bool, bool]:
    """Non-retroactive tables come first, because none can hang above a retroactive one; then those with a key."""
    return _scan(table).table.rewrites, not any(_links(stream, table, classes) for stream in streams)


def _hang(
    table: Node, streams: list[Node], classes: _Classes, residual: list[Scalar]
) -> tuple[list[Node], list[Scalar]]:
    """Joins a table to a stream member that it is linked with, if it can one without endings."""
    choices = []
    for index, stream in enumerate(streams):
        reach = stream.names | table.names
        keys = _links(stream, table, classes)
        mine = [part for part in residual if part.columns & table.names and part.columns <= reach]
        edges = label(stream)
        ends = has_replaced_rows(stream, edges) or edges[stream].has_internal
        choices.append((not (keys or mine), ends, index, keys, mine))
    _, _, index, keys, mine = min(choices, key=lambda choice: choice[:3])
    joined = TableJoin(streams[index], table, keys, tuple(mine))
    rest = [part for part in residual if not any(part is each for each in mine)]
    return [*streams[:index], joined, *streams[index + 1 :]], rest


def _links(left: Node, right: Node, classes: _Classes) -> tuple[tuple[str, str], ...]:
    """Pairs of equal columns, one pair per class."""
    found = []
    for group in classes.groups():
        a = next((name for name in group if name in left.names), None)
        b = next((name for name in group if name in right.names and name != a), None)
        if a is not None and b is not None and left is not right:
            found.append((a, b))
    return tuple(found)


def _multiway(parts: list[Node], classes: _Classes, residual: list[Scalar]) -> Join:
    order = {c.name: index for index, c in enumerate(c for part in parts for c in part.schema)}
    groups = []
    for group in classes.groups():
        members = [name for name in group if name in order]
        inputs = {index for index, part in enumerate(parts) for name in members if name in part.names}
        if len(inputs) > 1:
            groups.append(tuple(sorted(members, key=order.__getitem__)))
    groups.sort(key=lambda group: order[group[0]])
    return Join(tuple(parts), tuple(groups), tuple(residual))


# -- keys -----------------------------------------------------------------------------------------


def equality_sides(predicate: Scalar) -> tuple[Scalar, Scalar] | None:
    """Both sides of an equality between things that can be keys; None for any other predicate."""
    node = predicate.expression
    if not isinstance(node, exp.EQ):
        return None
    dtypes = [from_sql(side.type) if side.type is not None else None for side in (node.this, node.expression)]
    if dtypes[0] is None or dtypes[0] != dtypes[1]:
        return None
    left, right = Scalar(node.this, dtypes[0]), Scalar(node.expression, dtypes[0])
    return (left, right) if left.columns and right.columns else None


def with_key(node: Node, side: Scalar) -> tuple[Node, str]:
    """The node with a computed column added that holds `side`, and the column's name."""
    if isinstance(node, Project):
        for output in node.outputs:
            if output.scalar.expression == side.expression:
                return node, output.name
    name = side.show()
    while name in node.names:
        name += "'"
    kept = tuple(Output(c.name, Scalar.column(c.name, c.type)) for c in node.schema)
    return Project(node, (*kept, Output(name, side))), name


def _matching(node: SemiJoin | Negation) -> Node:
    """A semi join or negation whose equalities have become keys and whose one-sided conditions have moved."""
    on_right = [part for part in node.residual if part.columns <= node.right.names]
    on_left = [
        part
        for part in node.residual
        if isinstance(node, SemiJoin) and part.columns <= node.left.names and part not in on_right
    ]
    left = normalize(Filter(node.left, conjunction(on_left)) if on_left else node.left)
    right = normalize(Filter(node.right, conjunction(on_right)) if on_right else node.right)
    keys, residual = list(node.keys), []
    for part in node.residual:
        if part in on_left or part in on_right:
            continue
        sides = equality_sides(part)
        if sides and _crosses(sides, left, right):
            a, b = sides if sides[0].columns <= left.names else (sides[1], sides[0])
            left, left_key = (left, a.expression.name) if a.is_column else with_key(left, a)
            right, right_key = (right, b.expression.name) if b.is_column else with_key(right, b)
            if (left_key, right_key) in keys:
                continue
            if all(left_key != a_key and right_key != b_key for a_key, b_key in keys):
                keys.append((left_key, right_key))
                continue
        # A column is a key once; further equalities on it are conditions like any other.
        residual.append(part)
    matched: _Matching = replace(node, left=left, right=right, keys=tuple(keys), residual=tuple(residual))
    if [c.name for c in matched.schema] == [c.name for c in node.schema]:
        return matched
    return Project(matched, tuple(Output(c.name, Scalar(column(c.name), c.type)) for c in node.schema))


def _crosses(sides: tuple[Scalar, Scalar], left: Node, right: Node) -> bool:
    a, b = sides
    return (a.columns <= left.names and b.columns <= right.names) or (
        b.columns <= left.names and a.columns <= right.names
    )
