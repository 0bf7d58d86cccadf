"""Probe witness: rows that later rows of another stream ask for, through a negation, EXISTS, a join or a count.

```
NOT EXISTS (b)     b has brought some of the keys 1, 2, 3, …; a row of a with key k then is an answer, or is none
```

So the state after b has to tell all sets of keys apart. The same holds for the left side where a row of the right
brings its rows into the answer or takes them out, and for the unwindowed input of a join whatever window the others
have. No stream may promise anything about the columns in question: what has been promised is not said here. Whether
the rows pass the query's conditions shows when they are played.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headgate.model import types
from headgate.model.aggregates import Accumulator, Function
from headgate.plan.nodes import (
    Aggregate,
    AggregateCall,
    Difference,
    Distinct,
    Emit,
    Filter,
    Join,
    Negation,
    Node,
    Project,
    SemiJoin,
)
from headgate.plan.patterns import Pattern, label
from headgate.safety.lineage import Lineage, lineage
from headgate.safety.promise import closes_within
from headgate.safety.witness.model import Adversary, Values
from headgate.safety.witness.purge import value_of

_FAR = 1_000_000_000
_LEAST_BITS = 32


@dataclass(frozen=True)
class _Asking:
    """Rows of `asked` with a key, and the rows of the others with the same key that ask for it."""

    asked: tuple[Lineage, tuple[str, ...]]
    askers: tuple[tuple[Lineage, tuple[str, ...]], ...]
    reason: str


def find_probe_adversary(plan: Emit, count: int) -> Adversary | None:
    """An adversary with `count` rows against an operator right below projections; None if none is known."""
    node: Node = plan.input
    while isinstance(node, (Project, Distinct, Filter)):
        node = node.input
    if isinstance(node, Aggregate):
        swept = _swept(node, count)
        if swept is not None:
            return swept
    for asking in _askings(node, plan):
        if any(closes_within(each.scan.stream, names) for each, names in (asking.asked, *asking.askers)):
            continue
        rows = [_row(*asking.asked, number) for number in range(1, count + 1)]
        probes = [
            [(behind.scan.stream.name, _row(behind, names, number)) for behind, names in asking.askers]
            for number in range(1, count + 1)
        ]
        if all(row is not None for row in rows) and all(
            row is not None for probe in probes for _, row in probe
        ):
            return Adversary(
                asking.asked[0].scan.stream.name,
                tuple(row for row in rows if row is not None),
                tuple(tuple((name, row) for name, row in probe if row is not None) for probe in probes),
                one_size=False,
                reason=asking.reason,
            )
    return None


def _askings(node: Node, plan: Emit) -> Iterator[_Asking]:
    match node:
        case SemiJoin() | Negation() if node.keys and not node.residual:
            sides = ((node.left, [a for a, _ in node.keys]), (node.right, [b for _, b in node.keys]))
            yield from _pairs(plan, sides, "whether a row of {} counts depends on whether one of {} has come")
        case Difference():
            names = [[column.name for column in each.schema] for each in node.inputs]
            sides = ((node.left, names[0]), (node.right, names[1]))
            yield from _pairs(plan, sides, "how many copies of {} count depends on how many of {} have come")
        case Join() if node.equalities and not node.residual:
            yield from _joined(node, plan)
        case Aggregate() if not node.keys:
            yield from _counted(node, plan)


def _pairs(
    plan: Emit, sides: tuple[tuple[Node, list[str]], tuple[Node, list[str]]], said: str
) -> Iterator[_Asking]:
    """The right side asked by the left, then the left by the right; only a side that nothing leaves is asked."""
    edges = label(plan)
    later = "a later row of {} decides whether rows of {} count, so it has to be known which have come"
    for (asker, their), (asked, own), words in ((*sides, said), (*sides[::-1], later)):
        one, other = _behind(asked, own), _behind(asker, their)
        edge = edges[asked]
        if one is not None and other is not None and max(edge.pattern, edge.expiry) == Pattern.MON:
            yield _Asking(one, (other,), words.format(other[0].name, one[0].name))


def _joined(node: Join, plan: Emit) -> Iterator[_Asking]:
    edges = label(plan)
    found = []
    for member in node.members:
        names = [name for group in node.equalities for name in group if name in member.names]
        behind = _behind(member, names)
        if behind is None:
            return
        found.append(behind)
    for number, member in enumerate(node.members):
        if max(edges[member].pattern, edges[member].expiry) == Pattern.MON:
            others = tuple(each for place, each in enumerate(found) if place != number)
            askers = " and ".join(each[0].name for each in others)
            yield _Asking(
                found[number],
                others,
                f"a row of {askers} later asks for every row of {found[number][0].name}",
            )


def _counted(node: Aggregate, plan: Emit) -> Iterator[_Asking]:
    """COUNT(DISTINCT …) and sets: a value counts if it has not come before."""
    edge = label(plan)[node.input]
    if max(edge.pattern, edge.expiry) != Pattern.MON:
        return
    for call in node.calls:
        if call.argument is not None and _says_whether_new(call):
            behind = _behind(node.input, [call.argument])
            if behind is not None:
                yield _Asking(
                    behind, (behind,), f"{call.show()} asks of each row whether its value has come before"
                )


def _says_whether_new(call: AggregateCall) -> bool:
    """Whether the answer changes with a row just if its value has not come before."""
    accumulator = call.function.traits.accumulator
    return (call.distinct and accumulator is Accumulator.COUNT) or accumulator is Accumulator.SET


def _swept(node: Aggregate, count: int) -> Adversary | None:
    """MEDIAN: rows far above, then twice as many far below, move it over every value that has come."""
    for call in node.calls:
        behind = _behind(node.input, [call.argument]) if call.argument is not None else None
        if (
            call.function is not Function.MEDIAN
            or node.keys
            or behind is None
            or behind[0].window is not None
        ):
            continue
        found, (name,) = behind
        dtype = next(column.type for column in found.scan.stream.columns if column.name == name)
        if not types.is_integer(dtype) or dtype.bit_width < _LEAST_BITS:
            continue
        sweep = [*([_FAR] * (count + 1)), *([-_FAR] * (2 * count + 2))]
        if closes_within(found.scan.stream, [name]):
            continue
        stream = found.scan.stream.name
        return Adversary(
            stream,
            tuple({name: number} for number in range(1, count + 1)),
            (tuple((stream, {name: value}) for value in sweep),),
            one_size=True,
            reason=f"rows far above and below move {call.show()} over every value that has come",
        )
    return None


def _behind(node: Node, names: list[str]) -> tuple[Lineage, tuple[str, ...]] | None:
    """The stream behind an edge and its columns of these names; None if there are others in between."""
    found = lineage(node.input if isinstance(node, Distinct) else node)
    if found is None or not names or not all(name in found.columns for name in names):
        return None
    return found, tuple(found.columns[name] for name in names)


def _row(behind: Lineage, names: tuple[str, ...], number: int) -> Values | None:
    stream = behind.scan.stream
    types = {column.name: column.type for column in stream.columns}
    values = {name: value_of(types[name], number) for name in names}
    return None if stream.time in names or None in values.values() else values
