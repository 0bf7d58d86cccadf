"""Witness: streams on which an unpurgeable stream must keep every row, whatever is punctuated.

Punctuation document, section 4, proof of Theorems 1 and 3. Rows k = 1 … n, one on each stream that the
unpurgeable one reaches, all with value k. Every punctuation that a scheme allows for these values has come,
on every stream. Still, each open stream may bring a row that has k where it is joined with a reached stream
and a new value elsewhere: each of its schemes names such an elsewhere, or the stream would have been
reached.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

from headgate.safety.theory.punctuation.graph import purge
from headgate.safety.theory.punctuation.query import Column, JoinQuery, classes

Row = Mapping[str, int]
"""A value for each attribute that the query or a scheme mentions; others do not matter."""


@dataclass(frozen=True)
class Punctuation:
    """An announcement that no row of a stream with these values comes any more."""

    stream: str
    values: tuple[tuple[str, int], ...]

    def forbids(self, stream: str, row: Row) -> bool:
        return stream == self.stream and all(row[name] == value for name, value in self.values)


@dataclass(frozen=True)
class Witness:
    """Rows that arrive first, punctuations that follow, and for each row k of `stream` rows that still join it."""

    stream: str
    rows: tuple[tuple[str, Row], ...]
    punctuations: tuple[Punctuation, ...]
    continuations: tuple[tuple[tuple[str, Row], ...], ...]


def find_witness(query: JoinQuery, stream: str, count: int) -> Witness | None:
    """A witness that `count` rows of a stream must all be kept; None if the stream can be purged.

    Equality is transitive whether the predicates say so or not, so the query is closed first.
    """
    closed = query.closed()
    chain = purge(closed, stream)
    if chain.possible:
        return None
    columns = _columns(closed)
    reached = [name for name in closed.streams if name not in chain.open]
    tied = {
        column
        for members in classes(closed.predicates)
        if any(member[0] in reached for member in members)
        for column in members
    }
    fresh = 0

    def row(name: str, value: int) -> Row:
        return {a: value if name in reached or (name, a) in tied else fresh for a in columns[name]}

    values = range(1, count + 1)
    return Witness(
        stream,
        tuple((name, row(name, value)) for value in values for name in reached),
        tuple(
            Punctuation(scheme.stream, tuple(zip(sorted(scheme.attributes), chosen, strict=True)))
            for scheme in closed.schemes
            for chosen in product(values, repeat=len(scheme.attributes))
        ),
        tuple(tuple((name, row(name, value)) for name in chain.open) for value in values),
    )


def _columns(query: JoinQuery) -> dict[str, list[str]]:
    named: list[Column] = [column for p in query.predicates for column in (p.left, p.right)]
    named += [(scheme.stream, name) for scheme in query.schemes for name in scheme.attributes]
    return {stream: sorted({name for owner, name in named if owner == stream}) for stream in query.streams}
