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
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from headgate.safety.promise import Promise

_MOST_ATTRIBUTES = 64
_MOST_USED = 4


@dataclass(frozen=True)
class Attribute:
    """A column for every stream scan, by number in order of the plan, and the output columns that carry it."""

    columns: Mapping[int, str]
    carried: frozenset[str]


@dataclass(frozen=True)
class Routes:
    """How rows find their shards: the length of each axis, and for every scan its columns on each axis.

    An empty tuple of columns means that the row goes to every place on that axis. Tables have no entry: every shard
    has all their rows.
    """

    shares: tuple[int, ...]
    columns: Mapping[int, tuple[tuple[str, ...], ...]]

    @property
    def shards(self) -> int:
        return prod(self.shares)


def route(
    plan: Emit, edges: Edges, shards: int, rates: Mapping[str, float], promises: Sequence[Promise] = ()
) -> Routes:
    """The routes of a plan for up to so many shards; one shard if nothing tells its rows apart.

    A row that closes values must reach the rows that have them, so a stream that has made promises goes by columns
    of all of them only. A promise that counts rows needs to see all of them.
    """
    scans = [node for node in plan.walk() if isinstance(node, (StreamScan, TableScan))]
    streams = {number: node for number, node in enumerate(scans) if isinstance(node, StreamScan)}
    alone = Routes((1,), dict.fromkeys(streams, ((),)))
    promises = [each for each in promises if each.cause != "check"]
    if shards <= 1 or not streams or any(each.within is not None for each in promises):
        return alone
    found = [each for each in _Analysis(edges).attributes(plan) or () if _hears(each, streams, promises)]
    if found:
        used = found[:_MOST_USED]
        return Routes(
            (shards,), {number: (tuple(each.columns[number] for each in used),) for number in streams}
        )
    return (None if promises else _hypercube(plan, edges, streams, shards, rates)) or alone


def _hears(attribute: Attribute, streams: Mapping[int, StreamScan], promises: Sequence[Promise]) -> bool:
    return all(
        attribute.columns[number].removeprefix(f"{scan.name}.") in promise.columns
        for promise in promises
        for number, scan in streams.items()
        if scan.stream.name == promise.stream and promise.columns
    )


class _Analysis:
    """Valid attributes, from the scans up. None stands for rows that every shard has: those of tables."""

    def __init__(self, edges: Edges) -> None:
        self.edges = edges
        self.scans = 0

    def attributes(self, node: Node) -> list[Attribute] | None:
        if isinstance(node, (StreamScan, TableScan)):
            number, self.scans = self.scans, self.scans + 1
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
        """Births and deaths of equal rows at one instant cancel, so equal rows must meet, unless none ever dies."""
        if node.kind == "RSTREAM" and node.slide is None:
            return
        if node.window is not None and node.window.kind == "ROWS":
            yield from _on(below, node.window.partition)
            return
        dies = self.edges[node.input].pattern != Pattern.MON
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
    plan: Emit, edges: Edges, streams: Mapping[int, StreamScan], shards: int, rates: Mapping[str, float]
) -> Routes | None:
    """Routes of a join on different attributes, or None if the plan is not only that."""
    node, above = plan.input, [plan.input]
    while isinstance(node, (Filter, Project)):
        node = node.input
        above.append(node)
    if (
        not isinstance(node, Join)
        or (plan.kind == "RSTREAM" and plan.slide is None)
        or plan.window is not None
    ):
        return None
    axes: list[dict[int, str]] = [{} for _ in node.equalities]
    analysis = _Analysis(edges)
    for member in node.members:
        attributes = analysis.attributes(member)
        for axis, group in zip(axes, node.equalities, strict=True):
            chosen = _on(attributes, group)
            if chosen:
                axis.update(chosen[0].columns)
        if attributes is not None and not any(_on(attributes, group) for group in node.equalities):
            return None
    carried = [frozenset(group) for group in node.equalities]
    for each in reversed(above[:-1]):
        if isinstance(each, Project):
            carried = [_projected(Attribute({}, names), each).carried for names in carried]
    if edges[plan.input].pattern != Pattern.MON and not all(carried):
        return None
    weights = {number: rates.get(scan.stream.name, 1.0) for number, scan in streams.items()}
    shares = min(_shares(shards, len(axes)), key=lambda each: _copies(each, axes, weights))
    columns = {
        number: tuple((axis[number],) if number in axis else () for axis in axes) for number in streams
    }
    return Routes(shares, columns)


def _shares(shards: int, axes: int) -> Iterator[tuple[int, ...]]:
    """All ways to write a number of shards as a product of so many lengths."""
    if axes == 1:
        yield (shards,)
        return
    for length in range(1, shards + 1):
        if shards % length == 0:
            for rest in _shares(shards // length, axes - 1):
                yield (length, *rest)


def _copies(
    shares: tuple[int, ...], axes: Sequence[Mapping[int, str]], weights: Mapping[int, float]
) -> tuple[float, float]:
    """Rows that shards receive in all per second; among equals, the more even lengths."""
    copies = sum(
        weight * prod(share for share, axis in zip(shares, axes, strict=True) if number not in axis)
        for number, weight in weights.items()
    )
    return copies, float(sum(shares))
