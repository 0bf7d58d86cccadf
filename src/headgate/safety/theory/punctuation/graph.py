"""Punctuation graphs: whose punctuations let a stream's rows be purged, and in which order.

Punctuation document, section 4. A row t can be purged once no new row of any other stream can meet it. For
a stream joined with t directly, punctuations on the joined values of t say so. For one further away,
punctuations on the values of the rows that t has met so far do, since no others can come any more: the
purge is chained.

```
predicates S1.B = S2.B, S2.C = S3.C      schemes S2(B), S3(C)

S1 row (a, b) ──► S2 closed at B = b ──► S3 closed at every C of S2's rows with B = b ──► the row can go
```
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import product

from headgate.safety.theory.punctuation.query import Column, JoinQuery, Scheme


@dataclass(frozen=True)
class Edge:
    """A stream that punctuations can close, given the values of rows of all `sources` (Definitions 7 and 8)."""

    sources: frozenset[str]
    target: str
    scheme: Scheme


@dataclass(frozen=True)
class PurgeStep:
    """A link of a purge chain: punctuations of `scheme`, with values found in stored rows of the `values` columns."""

    scheme: Scheme
    values: tuple[tuple[str, Column], ...]

    @property
    def stream(self) -> str:
        """The stream that has been closed after this step."""
        return self.scheme.stream

    def __str__(self) -> str:
        if not self.values:
            return f"{self.stream} has ended"
        said = " and ".join(f"{name} = {stream}.{other}" for name, (stream, other) in self.values)
        return f"{self.stream} is punctuated at {said}"


@dataclass(frozen=True)
class Purge:
    """How rows of `stream` are purged: the steps in order, and the streams that no step closes."""

    stream: str
    steps: tuple[PurgeStep, ...]
    open: tuple[str, ...]

    @property
    def possible(self) -> bool:
        return not self.open

    def __str__(self) -> str:
        chain = ", then ".join(map(str, self.steps)) or "at once"
        if self.possible:
            return (
                f"a row of {self.stream} is purged when {chain}" if self.steps else f"{self.stream}: {chain}"
            )
        return f"a row of {self.stream} is never purged: nothing closes {', '.join(self.open)}"


def punctuation_graph(query: JoinQuery) -> dict[str, frozenset[str]]:
    """For each stream, the streams that one-attribute schemes let it close directly (Definition 7)."""
    reach: dict[str, set[str]] = {stream: set() for stream in query.streams}
    for edge in generalized_edges(query):
        if len(edge.scheme.attributes) == 1:
            (source,) = edge.sources
            reach[source].add(edge.target)
    return {stream: frozenset(targets) for stream, targets in reach.items()}


def generalized_edges(query: JoinQuery) -> Iterator[Edge]:
    """Every edge of the generalized graph (Definition 8): one for each choice of a partner per punctuated attribute.

    Their number grows with the product of the partners; `purge` needs none of them.
    """
    for scheme in query.schemes:
        partners = [
            sorted({other[0] for other in query.partners.get((scheme.stream, name), ())})
            for name in sorted(scheme.attributes)
        ]
        for sources in dict.fromkeys(frozenset(choice) for choice in product(*partners)):
            yield Edge(sources, scheme.stream, scheme)


def purge(query: JoinQuery, stream: str) -> Purge:
    """The purge chain of a stream's rows, possible exactly if the stream reaches all others (Theorem 3).

    Definition 9 as a fixpoint: a stream is reached once one of its schemes has a reached partner for every attribute.
    """
    reached = {stream}
    steps: list[PurgeStep] = []
    for other in closed_in_turn(query, query.schemes, stream):
        step = _step(query, other, reached)
        assert step is not None
        steps.append(step)
        reached.add(other)
    return Purge(stream, tuple(steps), tuple(other for other in query.streams if other not in reached))


def closed_in_turn(query: JoinQuery, schemes: Sequence[Scheme], stream: str) -> Iterator[str]:
    """The streams that a stream reaches under some schemes, in the order in which each can be closed.

    Sweep after sweep over the streams in the query's order, as far as anything is closed: but a stream is looked at
    only once all columns of one of its schemes have a partner, so that the work is that of the edges, not of sweeps.
    """
    naming: dict[Column, list[int]] = {}
    lacking = [len(scheme.attributes) for scheme in schemes]
    for number, scheme in enumerate(schemes):
        for name in scheme.attributes:
            naming.setdefault((scheme.stream, name), []).append(number)
    places = {name: place for place, name in enumerate(query.streams)}
    reached, valued = {stream}, set[Column]()
    # By sweep and place; a stream that stands before the one that opened it waits for the next sweep.
    waiting = [(0, places[each.stream]) for each in schemes if not each.attributes]
    heapify(waiting)
    sweep, place, current = 0, -1, stream
    while True:
        for column in query.columns_of[current]:
            for other in query.partners[column]:
                if other in valued or other[0] in reached:
                    continue
                valued.add(other)
                for number in naming.get(other, ()):
                    lacking[number] -= 1
                    if lacking[number] == 0:
                        heappush(waiting, (sweep + (places[other[0]] < place), places[other[0]]))
        while waiting and query.streams[waiting[0][1]] in reached:
            heappop(waiting)
        if not waiting:
            return
        sweep, place = heappop(waiting)
        current = query.streams[place]
        reached.add(current)
        yield current


def _step(query: JoinQuery, stream: str, reached: Collection[str]) -> PurgeStep | None:
    # Fewer attributes mean fewer punctuations to wait for.
    for scheme in sorted(query.schemes_of[stream], key=lambda scheme: len(scheme.attributes)):
        values = []
        for name in sorted(scheme.attributes):
            known = [other for other in query.partners.get((stream, name), ()) if other[0] in reached]
            if not known:
                break
            values.append((name, known[0]))
        else:
            return PurgeStep(scheme, tuple(values))
    return None


def is_safe(query: JoinQuery) -> bool:
    """Whether every stream's rows can be purged, as one join of all streams or by any plan (Theorem 4)."""
    return all(purge(query, stream).possible for stream in query.streams)


def unpurgeable(query: JoinQuery) -> tuple[Purge, ...]:
    """The streams whose rows can never be purged, each with the streams that stay open."""
    purges = (purge(query, stream) for stream in query.streams)
    return tuple(found for found in purges if not found.possible)
