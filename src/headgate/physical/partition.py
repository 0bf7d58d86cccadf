"""Partitioning: by which values the rows of a query can be told apart so that shards answer on their own.

An *attribute* names one column of every stream that a plan reads. It is valid if any two rows that an operator
has to see together agree on it: join partners do on an equality class, rows of a group on a grouping column,
equal rows on any of their columns. If each of several attributes is valid, so are all of them together.

```
bids b [RANGE …], items i [RANGE …]  WHERE b.itemid = i.itemid  GROUP BY i.itemid, b.bidder
attribute   b.itemid, i.itemid          join partners and groups agree on it
no          b.bidder                    items have no such column
```

A join on different attributes has none; its shards form a hypercube with one axis for each equality class, and a
row goes to all shards that agree with it on the axes that it knows (each result is found in exactly one).

Promises. A shard answers the query over sub-streams: of each stream the rows whose columns on its axes have the
shard's values. Whatever a promise rules out of a stream, it rules out of a sub-stream, so what a shard forgets by its
own rows it may forget, however rows are routed:

| promise | in a sub-stream |
|---|---|
| KEY, PUNCTUATED BY | no later row has the values, if none of the stream does |
| ORDERED BY … WITHIN k ROWS | what is left of rows in order up to k is in order up to k, and has come no further |
| CLUSTERED BY … WITHIN k ROWS | between equal values lie at most as many rows with others as in the stream |
| FOREIGN KEY … WITHIN k ROWS | the partner, if it comes here, comes after at most as many rows as in its stream |

A shard's k rows take longer to come than k rows of the stream, so each shard keeps about what one alone would.

What routes must see to is that values are closed at all: the row that closes some has to reach all shards that keep
rows with them. It does if every axis that its stream knows is on one of the promise's columns, so that rows with the
same values there go to the same places, and if all inputs that have a column of the axis' class know the axis too:
then a row that waits for a value is where the value is. (Any row of the stream can move an order on; but a shard that
none ever reaches would never drop anything.) The rows by which a FOREIGN KEY tells a row's age are those of the KEY
that it refers to, which is relied on as well. Axes on which this is not so are not used.

A join of windows may rely on promises only to drop rows sooner. What is not heard then costs memory for the length of
a window; axes that a hypercube would lose for it are worth more.

All copies of a row must be judged alike, as late or not. They are where rows with the same values go to the same
places; rows that are counted have to be counted among the same others, so their stream has one feed only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice, product
from math import prod

from headgate.plan.nodes import (
    Aggregate,
    Difference,
    Distinct,
    Emit,
    Filter,
    Join,
    Negation,
    Node,
    Project,
    SemiJoin,
    StreamScan,
    TableJoin,
    TableScan,
    Union,
    Window,
)
from headgate.plan.patterns import Edges, Pattern
from headgate.safety.promise import Promise, PromiseKind

_MOST_ATTRIBUTES = 64
_MOST_USED = 4
_SHORT = 16


@dataclass(frozen=True)
class Attribute:
    """A column for every moving leaf, by number in order of the plan, and the output columns that carry it."""

    columns: Mapping[int, str]
    carried: frozenset[str]


@dataclass(frozen=True)
class Routes:
    """How rows find their shards: the length of each axis, and for every leaf its columns on each axis.

    An empty tuple of columns means that the row goes to every place on that axis. Tables have no entry: every shard
    has all their rows.
    """

    shares: tuple[int, ...]
    columns: Mapping[int, tuple[tuple[str, ...], ...]]

    @property
    def shards(self) -> int:
        return prod(self.shares)


@dataclass(frozen=True)
class Volume:
    """How much a leaf brings: bytes per second, and how many values its columns have."""

    bytes: float = 1.0
    distinct: Mapping[str, float] = field(default_factory=dict)

    def distinct_of(self, column: str) -> float:
        return max(1.0, self.distinct.get(column, float("inf")))


def route(
    roots: Sequence[Node],
    edges: Edges,
    shards: int,
    volumes: Mapping[Node, Volume],
    promises: Sequence[Promise] = (),
    entering: Collection[Node] = (),
    *,
    sooner: Collection[Promise] = (),
) -> Routes:
    """The routes of plan fragments for up to so many shards; one shard if nothing tells their rows apart.

    Leaves are scans, and the nodes that are `entering`: their rows come from an earlier stage. A row that closes
    values must reach the rows that have them, so a stream that has made promises goes by columns of all of them only.
    Of those by which rows are only dropped `sooner`, it does if it can.
    """
    leaves = leaves_of(roots, entering)
    moving = {number: node for number, node in enumerate(leaves) if not isinstance(node, TableScan)}
    alone = Routes((1,), dict.fromkeys(moving, ((),)))
    promises = [each for each in promises if each.kind is not PromiseKind.CHECK]
    needed = [each for each in promises if each not in sooner]
    if shards <= 1 or not moving:
        return alone
    columns: dict[int, tuple[tuple[str, ...], ...]] = {}
    analysis = _Analysis(edges, entering)
    for root in roots:
        attributes = analysis.attributes(root)
        if attributes is None:
            continue
        found = [each for each in attributes if _hears(each, moving, promises)]
        found = found or [each for each in attributes if _hears(each, moving, needed)]
        if not found:
            cube = (
                _hypercube(root, edges, moving, shards, volumes, needed, entering)
                if len(roots) == 1
                else None
            )
            return cube if cube is not None and _judges_alike(cube.columns, moving, promises) else alone
        # Columns that are read anyway, if there are some: others would travel only to be hashed.
        used = ([each for each in found if each.carried] or found)[:_MOST_USED]
        columns |= {number: (tuple(each.columns[number] for each in used),) for number in used[0].columns}
    return Routes((shards,), columns) if _judges_alike(columns, moving, promises) else alone


def leaves_of(roots: Sequence[Node], entering: Collection[Node]) -> list[Node]:
    """The leaves below some nodes, from left to right."""
    found: list[Node] = []
    for root in roots:
        if root in entering or isinstance(root, (StreamScan, TableScan)):
            found.append(root)
        else:
            found += leaves_of(root.inputs, entering)
    return found


def _hears(attribute: Attribute, leaves: Mapping[int, Node], promises: Sequence[Promise]) -> bool:
    scans = {number: scan for number in attribute.columns if isinstance(scan := leaves[number], StreamScan)}
    return all(
        attribute.columns[number].removeprefix(f"{scan.name}.") in promise.columns
        for promise in promises
        for number, scan in scans.items()
        if scan.stream.name == promise.stream and promise.columns
    )


def _judges_alike(
    columns: Mapping[int, tuple[tuple[str, ...], ...]],
    leaves: Mapping[int, Node],
    promises: Sequence[Promise],
) -> bool:
    """Whether a row is late in all shards that have it or in none.

    Copies on one feed have the same rows before them. Two feeds agree if each brings all rows with the same values
    together, and nothing is counted.
    """
    ways: dict[str, set[tuple[tuple[str, ...], ...]]] = {}
    for number, scan in leaves.items():
        if isinstance(scan, StreamScan):
            way = tuple(
                tuple(name.removeprefix(f"{scan.name}.") for name in axis) for axis in columns[number]
            )
            ways.setdefault(scan.stream.name, set()).add(way)
    return all(
        len(found) == 1 or each.kind is PromiseKind.REFERENCE or _brings_together(each, found)
        for each in promises
        if (found := ways.get(each.stream, set()))
    )


def _brings_together(promise: Promise, ways: Collection[tuple[tuple[str, ...], ...]]) -> bool:
    by_value = promise.kind in (PromiseKind.KEY, PromiseKind.PUNCTUATION)
    return by_value and all(name in promise.columns for way in ways for axis in way for name in axis)


class _Analysis:
    """Valid attributes, from the scans up. None stands for rows that every shard has: those of tables."""

    def __init__(self, edges: Edges, entering: Collection[Node] = ()) -> None:
        self.edges = edges
        self.entering = entering
        self.leaves = 0

    def attributes(self, node: Node) -> list[Attribute] | None:
        if node in self.entering or isinstance(node, (StreamScan, TableScan)):
            number, self.leaves = self.leaves, self.leaves + 1
            if isinstance(node, TableScan):
                return None
            return [Attribute({number: name}, frozenset({name})) for name in sorted(node.names)]
        below = [self.attributes(each) for each in node.inputs]
        if all(each is None for each in below):
            return None if isinstance(node, (Filter, Project)) else []
        return _distinct(islice(self._valid(node, below), _MOST_ATTRIBUTES))

    def _valid(self, node: Node, below: Sequence[list[Attribute] | None]) -> Iterator[Attribute]:
        first = below[0]
        match node:
            case Window():
                rows = node.window.kind == "ROWS"
                yield from _on(first, node.window.partition) if rows else first or ()
            case Filter():
                yield from first or ()
            case Project():
                yield from (_projected(each, node) for each in first or ())
            case Join():
                for group in node.equalities:
                    yield from _together([None if each is None else _on(each, group) for each in below])
            case TableJoin():
                yield from first or ()
            case SemiJoin() | Negation():
                yield from _matching(node, below)
            case Difference():
                yield from _by_place(node.inputs, below)
            case Union():
                yield from _by_place(node.inputs, below)
                if None not in below:
                    yield from _together([_uncarried(each or []) for each in below])
            case Distinct():
                yield from _on(first, node.names)
            case Aggregate():
                yield from _on(first, node.keys)
            case Emit():
                yield from self._emitted(node, first or [])

    def _emitted(self, node: Emit, below: list[Attribute]) -> Iterator[Attribute]:
        """Births and deaths of equal rows at one instant cancel, so equal rows must meet, unless none ever dies.

        Rows leave an output window even where those that enter it, such as groups of an INTERNAL window, never die.
        """
        if node.kind == "RSTREAM" and node.slide is None:
            return
        if node.window is not None and node.window.kind == "ROWS":
            yield from _on(below, node.window.partition)
            return
        dies = any(self.edges[each].pattern != Pattern.MON for each in (node.input, node))
        yield from _on(below, node.input.names) if dies else below


def _distinct(attributes: Iterator[Attribute]) -> list[Attribute]:
    found: dict[tuple[tuple[int, str], ...], Attribute] = {}
    for each in attributes:
        key = tuple(sorted(each.columns.items()))
        old = found.get(key)
        found[key] = each if old is None else Attribute(each.columns, old.carried | each.carried)
    return list(found.values())


def _on(attributes: Sequence[Attribute] | None, names: Sequence[str] | frozenset[str]) -> list[Attribute]:
    """Those that one of the named columns carries, carried by these only."""
    wanted = frozenset(names)
    return [Attribute(a.columns, a.carried & wanted) for a in attributes or () if a.carried & wanted]


def _uncarried(attributes: Sequence[Attribute]) -> list[Attribute]:
    return [Attribute(each.columns, frozenset()) for each in attributes[:2]]


def _projected(attribute: Attribute, node: Project) -> Attribute:
    carried = frozenset(
        output.name
        for output in node.outputs
        if output.scalar.is_column and output.scalar.columns <= attribute.carried
    )
    return Attribute(attribute.columns, carried)


def _together(sides: Sequence[Sequence[Attribute] | None]) -> Iterator[Attribute]:
    """One attribute of each side made one; a side that every shard has asks for nothing."""
    asking = [side for side in sides if side is not None]
    for chosen in product(*asking):
        columns = {number: name for each in chosen for number, name in each.columns.items()}
        yield Attribute(columns, frozenset().union(*(each.carried for each in chosen)))


def _matching(node: SemiJoin | Negation, below: Sequence[list[Attribute] | None]) -> Iterator[Attribute]:
    left, right = below
    if left is None:
        return
    if right is None:
        yield from left
        return
    for ours, theirs in node.keys:
        for each in _together([_on(left, (ours,)), _on(right, (theirs,))]):
            yield Attribute(each.columns, each.carried & node.left.names)


def _by_place(inputs: Sequence[Node], below: Sequence[list[Attribute] | None]) -> Iterator[Attribute]:
    """Attributes carried by the same place in every input: equal rows agree on it."""
    if any(each is None for each in below):
        return
    for place, column in enumerate(inputs[0].schema):
        sides = [_on(each, (node.schema[place].name,)) for node, each in zip(inputs, below, strict=True)]
        for each in _together(sides):
            yield Attribute(each.columns, frozenset({column.name}))


# -- hypercube -------------------------------------------------------------------------------------


def _hypercube(
    root: Node,
    edges: Edges,
    moving: Mapping[int, Node],
    shards: int,
    volumes: Mapping[Node, Volume],
    promises: Sequence[Promise],
    entering: Collection[Node],
) -> Routes | None:
    """Routes of a join on different attributes, or None if the fragment is not only that.

    With promises, axes are left out on which a shard would not hear what closes its values.
    """
    node, above = (root.input, [root.input]) if isinstance(root, Emit) else (root, [root])
    while isinstance(node, (Filter, Project)) and node not in entering:
        node = node.input
        above.append(node)
    if not isinstance(node, Join) or node in entering:
        return None
    known: list[dict[int, str]] = [{} for _ in node.equalities]
    deaf: set[int] = set()
    analysis = _Analysis(edges, entering)
    for member in node.members:
        attributes = analysis.attributes(member)
        for number, group in enumerate(node.equalities):
            chosen = [each for each in _on(attributes, group) if _hears(each, moving, promises)]
            if chosen:
                known[number].update(chosen[0].columns)
            elif promises and not member.names.isdisjoint(group):
                deaf.add(number)
        if attributes is not None and not any(_on(attributes, group) for group in node.equalities):
            return None
    used = [number for number in range(len(known)) if number not in deaf]
    axes = [known[number] for number in used]
    if not axes or (isinstance(root, Emit) and not _meets(root, node, used, above, edges)):
        return None
    inputs: list[_Input] = []
    for number, leaf in moving.items():
        volume = volumes.get(leaf, Volume())
        told = ((at, volume.distinct_of(axis[number])) for at, axis in enumerate(axes) if number in axis)
        inputs.append((volume.bytes, tuple(told)))
    shares = _best_shares(shards, len(axes), tuple(inputs))
    columns = {number: tuple((axis[number],) if number in axis else () for axis in axes) for number in moving}
    return Routes(shares, columns)


def _meets(root: Emit, join: Join, used: Sequence[int], above: Sequence[Node], edges: Edges) -> bool:
    """Whether equal rows of the answer come from one place of the hypercube, if they have to meet."""
    if (root.kind == "RSTREAM" and root.slide is None) or root.window is not None:
        return False
    carried = [frozenset(join.equalities[number]) for number in used]
    for each in reversed(above[:-1]):
        if isinstance(each, Project):
            carried = [_projected(Attribute({}, names), each).carried for names in carried]
    return edges[root.input].pattern == Pattern.MON or all(carried)


_Input = tuple[float, tuple[tuple[int, float], ...]]
"""Bytes per second, and the axes that a row knows with how many values its column there has."""


@lru_cache(maxsize=64)
def _best_shares(shards: int, axes: int, inputs: tuple[_Input, ...]) -> tuple[int, ...]:
    """The lengths of the axes with the least load on a shard; the ways to cut a plan ask for the same ones."""
    return min(_shares(shards, axes), key=lambda each: _load(each, inputs))


def _shares(shards: int, axes: int) -> Iterator[tuple[int, ...]]:
    """Lengths of so many axes that give at most a number of shards."""
    if axes == 0:
        yield ()
        return
    for length in _lengths(shards):
        for rest in _shares(shards // length, axes - 1):
            yield (length, *rest)


@lru_cache(maxsize=1024)
def _lengths(most: int) -> tuple[int, ...]:
    """Lengths to try: all short ones, of the others those that leave little over."""
    return tuple(each for each in range(1, most + 1) if each <= _SHORT or each == most or _is_smooth(each))


def _is_smooth(number: int) -> bool:
    for prime in (2, 3, 5):
        while number % prime == 0:
            number //= prime
    return number == 1


def _load(shares: tuple[int, ...], inputs: Sequence[_Input]) -> tuple[float, float, int]:
    """Bytes that the busiest shard receives per second; then all that are sent, then the more even lengths.

    A row is told apart on the axes that it knows, and there into no more places than its column has values.
    """
    load = sent = 0.0
    shards = prod(shares)
    for size, known in inputs:
        places, told = 1.0, 1
        for axis, values in known:
            told *= shares[axis]
            places *= min(shares[axis], values)
        load += size / places
        sent += size * (shards // told)
    return load, sent, sum(shares)
