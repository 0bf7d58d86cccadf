"""KMon: streams of many-one joins that keep constraints up to k rows (k-Mon document, 3.5, 4.4, 5.4, 6.4, 8, F.3).

A cycle brings a row to each child stream and `multiplicity` rows to each parent stream; the join graphs are those of
the document's Figure 3.

```
a   S1(a, b) → S2(a, c), S1 → S3(b, d)      S2 S3 S1 S1 S1 S1 S1 │ S2 S3 S1 S1 S1 S1 S1 │ …
b   S1(a) → S3(a, c), S2(a) → S3            S3 S1 S2 S1 S2 S1 S2 S1 S2 S1 S2 │ …
c   S1(a) → S2(a, c)                        S2 S1 S1 S1 S1 S1 │ …
```

Rows that are arranged start in perfect order, are delayed by random numbers of rows, and are sorted by where they
then belong. Sorting moves rows a little further than they were delayed; those that have come too far are delayed by
less, until none is further than its k.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa

from headgate.lab.generators.dataset import START, Dataset, GeneratedStream
from headgate.lab.generators.draw import Ints, generator
from headgate.model import types
from headgate.model.time import MILLISECOND

Graph = Literal["a", "b", "c"]


@dataclass(frozen=True)
class Varying:
    """A k that changes in the course of a run: (part of the run that is over, k then), straight in between."""

    points: tuple[tuple[float, int], ...]

    def __post_init__(self) -> None:
        parts = [part for part, _ in self.points]
        if not parts or parts != sorted(parts) or min(k for _, k in self.points) < 0:
            raise ValueError("k is known at one point of the run at least, in order, and is not negative")


K: TypeAlias = int | Varying

RISES_AND_DROPS = Varying(
    (
        *((0.0, 1_000), (0.15, 1_000)),
        *((0.35, 4_000), (0.45, 4_000)),
        *((0.65, 1_000), (0.75, 1_000)),
        *((0.76, 5_000), (0.88, 5_000)),
        *((0.89, 1_000), (1.0, 1_000)),
    )
)
"""Steady, a gradual rise, a gradual drop, a quick rise, a quick drop, as in the document's Figures 5, 7 and 9."""


@dataclass(frozen=True)
class Arrival:
    """How the rows of one join arrive; each number is the k of a constraint, which the rows keep and nearly reach.

    `join` is RIDS: so many child rows come at most between a parent and its child. `clustered` (CA) and `ordered`
    (OAP) are about the parent's column, `child_ordered` (OAC) is about the child's; without `clustered` and `ordered`
    every parent row has a child of its own choice near it, before or after it if the child's column is ordered.
    `dangling` is the part of the parents that have no child.
    """

    join: K = 0
    clustered: K | None = None
    ordered: K | None = None
    child_ordered: K | None = None
    dangling: float = 0.0

    def __post_init__(self) -> None:
        fixed = [
            k for k in (self.join, self.clustered, self.ordered, self.child_ordered) if isinstance(k, int)
        ]
        if min(fixed, default=0) < 0:
            raise ValueError("no k is negative")
        if self.clustered is not None and self.ordered is not None:
            raise ValueError("a column is arranged in one way: clustered or ordered")
        if not 0 <= self.dangling <= 1:
            raise ValueError("what dangles is a part of 1")

    @property
    def arranged(self) -> bool:
        """Whether the order of the parents is given, and children follow them."""
        return self.clustered is not None or self.ordered is not None


@dataclass(frozen=True)
class Edge:
    """A many-one join: each row of `parent` has at most one row of `child` with the same `column`."""

    parent: str
    child: str
    column: str


EDGES: Mapping[Graph, tuple[Edge, ...]] = {
    "a": (Edge("S1", "S2", "a"), Edge("S1", "S3", "b")),
    "b": (Edge("S1", "S3", "a"), Edge("S2", "S3", "a")),
    "c": (Edge("S1", "S2", "a"),),
}
FILTERS: Mapping[Graph, Mapping[str, str]] = {
    "a": {"S2": "c", "S3": "d"},
    "b": {"S3": "c"},
    "c": {"S2": "c"},
}
"""The columns of child streams that filters read: uniform in 0 … 99, so that `c < 50` lets half of the rows pass."""


@dataclass(frozen=True)
class KMon(Dataset):
    """The streams of a join graph over so many cycles, a row every `step` microseconds, all made at once.

    `arrivals` has one arrival for each edge of the graph, or one for all. A stream whose rows must not come before
    others' begins some cycles later. The column `id` numbers all rows in the order in which they come.
    """

    graph: Graph = "a"
    cycles: int = 10_000
    arrivals: tuple[Arrival, ...] = (Arrival(),)
    multiplicity: int = 5
    step: int = MILLISECOND
    seed: int = 0
    start: int = START

    def __post_init__(self) -> None:
        if self.graph not in EDGES or self.cycles < 0 or self.multiplicity < 1 or self.step < 1:
            raise ValueError(
                "a graph is a, b or c, cycles is not negative, multiplicity and step are positive"
            )
        if len(self.arrivals) not in (1, len(EDGES[self.graph])):
            raise ValueError(
                f"there are {len(EDGES[self.graph])} joins, and an arrival for each or one for all"
            )
        if self.graph == "b" and (len(set(self.arrivals)) > 1 or self.arrivals[0].dangling):
            raise ValueError(
                "in graph b both joins have one child: their rows arrive alike, and none dangles"
            )

    @property
    def streams(self) -> Mapping[str, GeneratedStream]:
        return {
            name: GeneratedStream(
                name, self._schema(name), partial(self._tables, name), partial(self._count, name)
            )
            for name in self._slots
        }

    @property
    def per_cycle(self) -> int:
        """Rows of all streams in a cycle."""
        return sum(places.size for places in self._slots.values())

    def window(self, stream: str, rows: int) -> int:
        """The length in microseconds of the RANGE window that holds so many rows of a stream."""
        cycles, rest = divmod(rows, self._slots[stream].size)
        if rest:
            raise ValueError(
                f"{stream} has {self._slots[stream].size} rows in a cycle: {rows} are no whole number"
            )
        return cycles * self.per_cycle * self.step

    @cached_property
    def _slots(self) -> Mapping[str, Ints]:
        """The places of each stream's rows in a cycle: children first, then parents in turn."""
        parents = list(dict.fromkeys(edge.parent for edge in EDGES[self.graph]))
        children = list(dict.fromkeys(edge.child for edge in EDGES[self.graph]))
        turns = np.arange(self.multiplicity) * len(parents) + len(children)
        slots = {name: turns + number for number, name in enumerate(parents)}
        return {**slots, **{name: np.array([number]) for number, name in enumerate(children)}}

    def _schema(self, name: str) -> pa.Schema:
        columns = [edge.column for edge in EDGES[self.graph] if name in (edge.parent, edge.child)]
        columns = [
            *dict.fromkeys(columns),
            *([FILTERS[self.graph][name]] if name in FILTERS[self.graph] else []),
        ]
        return pa.schema([("ts", types.TIMESTAMP), *((each, types.BIGINT) for each in (*columns, "id"))])

    def _count(self, name: str) -> int:
        return max(0, self.cycles - self._begins[name]) * self._slots[name].size

    def _tables(self, name: str) -> Iterator[pa.Table]:
        places = self._slots[name]
        rows = self._count(name)
        cycle = self._begins[name] + np.arange(rows) // places.size
        number = cycle * self.per_cycle + places[np.arange(rows) % places.size]
        columns = {column: keys[:rows] for (stream, column), keys in self._keys.items() if stream == name}
        columns["ts"] = (self.start + number * self.step).view("datetime64[us]")
        columns["id"] = number
        if name in FILTERS[self.graph]:
            columns[FILTERS[self.graph][name]] = self._random(f"filter.{name}").integers(100, size=rows)
        schema = self._schema(name)
        yield pa.table([columns[each] for each in schema.names], schema=schema)

    def _random(self, purpose: str) -> np.random.Generator:
        return generator(self.seed, f"kmon.{purpose}", 0)

    @property
    def _keys(self) -> Mapping[tuple[str, str], Ints]:
        return self._joined[0]

    @property
    def _begins(self) -> Mapping[str, int]:
        """The cycle in which each stream has its first rows."""
        return self._joined[1]

    @cached_property
    def _joined(self) -> tuple[Mapping[tuple[str, str], Ints], Mapping[str, int]]:
        """The join columns by stream and column, and when streams begin."""
        keys: dict[tuple[str, str], Ints] = {}
        leads: dict[str, int] = {}
        edges = EDGES[self.graph]
        for number, child in enumerate(dict.fromkeys(edge.child for edge in edges)):
            mine = [edge for edge in edges if edge.child == child]
            arrival = self.arrivals[number if len(self.arrivals) > 1 else 0]
            made = self._join(mine, arrival)
            keys |= {
                (edge.parent, edge.column): found for edge, found in zip(mine, made.parents, strict=True)
            }
            keys[child, mine[0].column] = made.children
            leads[child] = made.lead
        latest = max(0, *leads.values())
        begins = {edge.parent: latest for edge in edges}
        return keys, {**begins, **{child: latest - lead for child, lead in leads.items()}}

    def _join(self, edges: list[Edge], arrival: Arrival) -> _Join:
        """The keys of the parents and of their children, in the order of arrival."""
        purpose = f"{edges[0].child}.{edges[0].column}"
        orders = arrival.ordered is not None or arrival.child_ordered is not None
        rows, random = self.cycles * self.multiplicity, self._random
        parents = []
        if arrival.arranged:
            for edge in edges:
                k, arrange = (
                    (arrival.clustered, _clustered)
                    if arrival.clustered is not None
                    else (arrival.ordered, _ordered)
                )
                assert k is not None
                limits = self._limits(k, rows, per_cycle=self.multiplicity)
                parents.append(arrange(self.multiplicity, limits, random(f"{purpose}.{edge.parent}")))
            children, lead = self._following(parents, arrival, random(f"{purpose}.children"))
        else:
            near = [self._near(arrival, random(f"{purpose}.{edge.parent}")) for edge in edges]
            count = max(self.cycles, *(1 + int(places.max(initial=0)) for places in near))
            children = self._children(arrival, count, random(f"{purpose}.children"))
            parents, lead = [children[places] for places in near], 0
        keyed = [self._dangling(each, arrival, random(f"{purpose}.dangling")) for each in parents]
        names: Callable[[Ints], Ints] = (lambda each: each) if orders else _scrambled
        return _Join(tuple(names(each) for each in keyed), names(2 * children), lead)

    def _dangling(self, values: Ints, arrival: Arrival, rng: np.random.Generator) -> Ints:
        """Keys of parents by the value that they are of: an odd one is no child's."""
        if arrival.arranged:
            # A value that is cut in two would be in other clusters.
            return 2 * values + (rng.random(self.cycles) < arrival.dangling)[values]
        return 2 * values + (rng.random(values.size) < arrival.dangling)

    def _near(self, arrival: Arrival, rng: np.random.Generator) -> Ints:
        """For each parent, the place of its child among the children."""
        cycle = np.arange(self.cycles * self.multiplicity) // self.multiplicity
        furthest = arrival.join if arrival.child_ordered is None else arrival.child_ordered
        k = self._limits(furthest, cycle.size, per_cycle=self.multiplicity)
        if arrival.child_ordered is None:
            return cycle + rng.integers(k + 1)
        return rng.integers(np.maximum(0, cycle - k), cycle + k + 1)

    def _children(self, arrival: Arrival, count: int, rng: np.random.Generator) -> Ints:
        """The values of children in the order of their arrival, where parents follow them."""
        if arrival.child_ordered is None:
            return np.arange(count)
        return _ordered(1, self._limits(arrival.child_ordered, count), rng)

    def _following(self, parents: list[Ints], arrival: Arrival, rng: np.random.Generator) -> tuple[Ints, int]:
        """The children of parents whose order is given, and by how many cycles they come before them."""
        firsts = np.min([_firsts(each, self.cycles) for each in parents], axis=0) // self.multiplicity
        if arrival.child_ordered is not None:
            children = self._children(arrival, self.cycles, rng)
        else:
            delays = rng.integers(self._limits(arrival.join, self.cycles) + 1)
            children = np.argsort(firsts + delays, kind="stable").astype(np.int64)
        distances = np.empty(self.cycles, np.int64)
        distances[children] = np.arange(self.cycles)
        distances -= firsts
        # The child of a parent's own cycle is there before it.
        beyond = distances - self._limits(arrival.join, self.cycles)
        return children, int(beyond.max()) if beyond.size else 0

    def _limits(self, k: K, count: int, *, per_cycle: int = 1) -> Ints:
        """The k of each of so many rows, of which a cycle has so many."""
        if isinstance(k, int):
            return np.full(count, k, dtype=np.int64)
        parts, values = zip(*k.points, strict=True)
        over = np.arange(count) / max(1, self.cycles * per_cycle)
        limits: Ints = np.interp(over, parts, values).astype(np.int64)
        return limits


@dataclass(frozen=True, eq=False)
class _Join:
    """Keys in the order of arrival; children begin `lead` cycles before parents."""

    parents: tuple[Ints, ...]
    children: Ints
    lead: int


def _scrambling_distances(values: Ints) -> Ints:
    """For each row, how many rows ago the first greater value came (0 if none did)."""
    place = np.arange(values.size)
    first = np.searchsorted(np.maximum.accumulate(values), values, side="right")
    distances: Ints = np.where(first < place, place - first, 0)
    return distances


def _clustering_distances(values: Ints, count: int) -> Ints:
    """For each of `count` values, how many rows of other values lie between its first and its last."""
    firsts, place = _firsts(values, count), np.arange(values.size)
    lasts = np.full(count, -1)
    np.maximum.at(lasts, values, place)
    others: Ints = lasts - firsts + 1 - np.bincount(values, minlength=count)
    return np.maximum(0, others)


def _firsts(values: Ints, count: int) -> Ints:
    """The place of the first row of each value."""
    firsts = np.full(count, values.size)
    np.minimum.at(firsts, values, np.arange(values.size))
    return firsts


def _ordered(multiplicity: int, limits: Ints, rng: np.random.Generator) -> Ints:
    """Values, each so many times, in order but for the scrambling that the limits of rows allow."""
    value = np.arange(limits.size) // multiplicity
    furthest = rng.integers(limits[::multiplicity] + 1)
    delays = rng.integers(furthest[value] + 1)
    # One row of each value is as late as may be.
    delays[::multiplicity] = furthest

    def excess(order: Ints) -> Ints:
        beyond = np.zeros(order.size, np.int64)
        beyond[order] = _scrambling_distances(value[order]) - limits[order]
        return beyond

    return value[_settled(delays, excess)]


def _clustered(multiplicity: int, limits: Ints, rng: np.random.Generator) -> Ints:
    """Values, each so many times, with as many others between them as the limits of rows allow."""
    value = np.arange(limits.size) // multiplicity
    furthest = rng.integers(limits[::multiplicity] + 1)
    delays = rng.integers(furthest[value] + 1)
    # The first row of each value is on time, the last as late as may be.
    delays[multiplicity - 1 :: multiplicity] = furthest
    delays[::multiplicity] = 0

    def excess(order: Ints) -> Ints:
        return (_clustering_distances(value[order], furthest.size) - limits[::multiplicity])[value]

    return value[_settled(delays, excess)]


def _settled(delays: Ints, excess: Callable[[Ints], Ints]) -> Ints:
    """The order of rows that are delayed by so much, or by less where they would go too far."""
    place = np.arange(delays.size)
    while True:
        # A row that is delayed by d goes behind the d rows after it.
        order = np.argsort(2 * (place + delays) + (delays > 0), kind="stable").astype(np.int64)
        beyond = np.maximum(excess(order), 0)
        if not beyond.any():
            return order
        if ((beyond > 0) & (delays > 0)).any():
            delays = np.maximum(0, delays - beyond)
        else:
            # Rows that are on time and yet too far apart are so because of others.
            delays = delays * 9 // 10


def _scrambled(number: Ints) -> Ints:
    """Different numbers below 2**40 without visible order, for different ones below it."""
    # An odd factor permutes the numbers below a power of two.
    return number * 0x9E37_79B9 % (1 << 40)
