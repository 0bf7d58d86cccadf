"""A tiny evaluation by buckets: the reference against which the state of an admitted query is tried out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import product

from headgate.safety.theory.memory.answers import Row, holds
from headgate.safety.theory.memory.buckets import Bucket, Keep, StreamSynopsis, synopses
from headgate.safety.theory.memory.domain import Code
from headgate.safety.theory.memory.query import Attribute, SpjQuery
from headgate.safety.theory.memory.verdict import evaluable

Values = Mapping[Attribute, Code]


class Memory:
    """What one occurrence keeps: rows with their multiplicities, by bucket."""

    def __init__(self, synopsis: StreamSynopsis) -> None:
        self.synopsis = synopsis
        self.buckets: dict[Bucket, list[tuple[Values, int]]] = {}

    def add(self, row: Values) -> None:
        if not all(holds(predicate, row) for predicate in self.synopsis.filters):
            return
        bucket = self.synopsis.bucket(row)
        kept = self.buckets.get(bucket, [])
        if not self.synopsis.distinct:
            first, count = kept[0] if kept else (row, 0)
            self.buckets[bucket] = [(first, count + 1)]
        else:
            rows = [*(values for values, _ in kept), row]
            self.buckets[bucket] = [
                (values, 1) for values in representatives(rows, self.synopsis.keep(bucket))
            ]
        assert len(self.buckets) <= self.synopsis.size

    def rows(self) -> list[tuple[Values, int]]:
        return [kept for bucket in self.buckets.values() for kept in bucket]

    def contents(self) -> object:
        """What is remembered, as far as it can matter: cut attributes and those that rows are chosen by."""
        return sorted(
            (bucket, sorted((tuple(sorted(values.items())), count) for values, count in kept))
            for bucket, kept in self.buckets.items()
        )


def representatives(rows: list[Values], keep: Keep) -> list[Values]:
    chosen = []
    if keep.greatest:
        chosen.append(max(rows, key=lambda values: min(values[a] for a in keep.greatest)))
    if keep.least:
        chosen.append(min(rows, key=lambda values: max(values[a] for a in keep.least)))
    return chosen or rows[:1]


class Evaluation:
    """A query evaluated from synopses alone, as the union of what `evaluable` says."""

    def __init__(self, query: SpjQuery) -> None:
        self.query = query
        self.parts = [(part, [Memory(s) for s in synopses(part)]) for part in evaluable(query)]
        self.emitted: Counter[Row] = Counter()

    def add(self, stream: str, row: Row) -> None:
        names = next(s.attributes for s in self.query.streams if s.stream == stream)
        named = dict(zip(names, row, strict=True))
        for part, memories in self.parts:
            for schema, memory in zip(part.streams, memories, strict=bool(memories)):
                if schema.stream == stream:
                    memory.add({a: named[a.name] for a in schema.elements})
        answer = self.answer()
        self.emitted = answer | self.emitted if self.query.distinct else answer

    def answer(self) -> Counter[Row]:
        """The answer over what is remembered."""
        found: Counter[Row] = Counter()
        for part, memories in self.parts:
            for chosen in product(*(memory.rows() for memory in memories)) if memories else ():
                values: dict[Attribute, Code] = {}
                count = 1
                for row, copies in chosen:
                    values.update(row)
                    count *= copies
                if all(holds(predicate, values) for predicate in part.predicates):
                    found[tuple(values[a] for a in part.projection)] += count
        return Counter(found.keys()) if self.query.distinct else found

    def contents(self) -> str:
        """All that the evaluation knows."""
        told = sorted(self.emitted.items()) if self.query.distinct else None
        return repr(([[memory.contents() for memory in memories] for _, memories in self.parts], told))
