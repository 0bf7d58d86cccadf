"""JoinQuery: streams joined on equalities, and the punctuation schemes they come with (Punctuation document,
section 2)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

Column = tuple[str, str]
"""A stream and one of its attributes."""


@dataclass(frozen=True)
class Scheme:
    """Attributes of a stream that are punctuated together: a punctuation fixes a value for each of them.

    No attributes at all: the stream can announce its end, or is a table that gets no new rows.
    """

    stream: str
    attributes: frozenset[str]

    @staticmethod
    def on(stream: str, *attributes: str) -> Scheme:
        return Scheme(stream, frozenset(attributes))

    def __str__(self) -> str:
        return f"{self.stream}({', '.join(sorted(self.attributes))})"


@dataclass(frozen=True)
class JoinPredicate:
    """Equality of two columns of different streams."""

    left: Column
    right: Column

    def __post_init__(self) -> None:
        if self.left[0] == self.right[0]:
            raise ValueError(f"{self} is not between two streams")

    @staticmethod
    def of(left: str, right: str) -> JoinPredicate:
        """The predicate `S.a = T.b`, its sides written with dots."""
        (left_stream, _, left_name), (right_stream, _, right_name) = left.partition("."), right.partition(".")
        return JoinPredicate((left_stream, left_name), (right_stream, right_name))

    def __str__(self) -> str:
        return f"{'.'.join(self.left)} = {'.'.join(self.right)}"


@dataclass(frozen=True)
class JoinQuery:
    """A join of streams; the predicates are taken as given, so pass all that equality implies (`close`)."""

    streams: tuple[str, ...]
    predicates: tuple[JoinPredicate, ...]
    schemes: tuple[Scheme, ...]

    def __post_init__(self) -> None:
        if not self.streams:
            raise ValueError("a query reads at least one stream")
        if len(set(self.streams)) != len(self.streams):
            raise ValueError(f"a stream is named twice: {', '.join(self.streams)}")
        named = [column[0] for p in self.predicates for column in (p.left, p.right)]
        known = set(self.streams)
        for stream in (*named, *(scheme.stream for scheme in self.schemes)):
            if stream not in known:
                raise ValueError(f"the query does not read {stream}")

    @cached_property
    def partners(self) -> dict[Column, tuple[Column, ...]]:
        """For each joined column, the columns of other streams that it must equal."""
        found: dict[Column, dict[Column, None]] = {}
        for predicate in self.predicates:
            found.setdefault(predicate.left, {})[predicate.right] = None
            found.setdefault(predicate.right, {})[predicate.left] = None
        return {column: tuple(others) for column, others in found.items()}

    @cached_property
    def schemes_of(self) -> dict[str, tuple[Scheme, ...]]:
        """The schemes of each stream."""
        found: dict[str, list[Scheme]] = {stream: [] for stream in self.streams}
        for scheme in self.schemes:
            found[scheme.stream].append(scheme)
        return {stream: tuple(schemes) for stream, schemes in found.items()}

    @cached_property
    def columns_of(self) -> dict[str, tuple[Column, ...]]:
        """The joined columns of each stream."""
        found: dict[str, list[Column]] = {stream: [] for stream in self.streams}
        for column in self.partners:
            found[column[0]].append(column)
        return {stream: tuple(columns) for stream, columns in found.items()}

    def among(self, streams: Collection[str]) -> JoinQuery:
        """The part of the query over some of its streams."""
        return JoinQuery(
            tuple(stream for stream in self.streams if stream in streams),
            tuple(p for p in self.predicates if p.left[0] in streams and p.right[0] in streams),
            tuple(scheme for scheme in self.schemes if scheme.stream in streams),
        )

    def with_schemes(self, schemes: Iterable[Scheme]) -> JoinQuery:
        """The same join under other schemes."""
        return replace(self, schemes=tuple(schemes))

    def closed(self) -> JoinQuery:
        """The same query with all equalities that its predicates imply."""
        return replace(self, predicates=close(self.predicates))


def classes(predicates: Iterable[JoinPredicate]) -> list[list[Column]]:
    """The joined columns, those that must be equal together."""
    group: dict[Column, list[Column]] = {}
    for predicate in predicates:
        left, right = (group.setdefault(side, [side]) for side in (predicate.left, predicate.right))
        if left is not right:
            left.extend(right)
            for column in right:
                group[column] = left
    return list({id(members): members for members in group.values()}.values())


def close(predicates: Iterable[JoinPredicate]) -> tuple[JoinPredicate, ...]:
    """Every equality between columns of different streams that the predicates imply, once."""
    return tuple(
        JoinPredicate(first, second)
        for members in classes(predicates)
        for first, second in combinations(members, 2)
        if first[0] != second[0]
    )
