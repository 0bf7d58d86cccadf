"""Witness: input on which every correct evaluation of a refused query needs memory that grows with the input.

Memory document, electronic appendix. Rows r1 … rn arrive first, on one stream; any subset of them is a
possible history. Probe k, one row on each other stream, makes the answers of two histories differ if k is
the last place in which they do. So 2ⁿ histories need different states, n bits; of a self join those of one
size, which are almost as many:

```
A of the rows          1        3        5          π σ(B < A) S×T, duplicates kept
B of the probes     0        2        4             probe k counts the rows from k on
```
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from headgate.safety.theory.memory.answers import Row, answer
from headgate.safety.theory.memory.copies import Solution, solve_copies
from headgate.safety.theory.memory.failure import Condition, Failure
from headgate.safety.theory.memory.query import Comparison, Operator, SpjQuery
from headgate.safety.theory.memory.verdict import judge

History = frozenset[int]
"""The places in a witness's rows that have arrived."""

_TRIABLE = (Condition.PROJECTION, Condition.EQUALITY, Condition.INEQUALITY)
_TRIAL = 5  # so many rows are tried out for a self join, where a row plays several parts at once


@dataclass(frozen=True)
class Witness:
    """Rows that a stream may or may not bring first, and for each the rows that later reveal whether it did.

    `one_size`: only histories with equally many rows are told apart. `proven` of the rows are known to be told
    apart: all, but for a self join only so many as have been tried out.
    """

    failure: Failure
    stream: str
    rows: tuple[Row, ...]
    probes: tuple[tuple[tuple[str, Row], ...], ...]
    one_size: bool
    proven: int

    def histories(self) -> Iterator[History]:
        """All histories that must lead to different states: very many, unless there are few rows."""
        count = len(self.rows)
        for size in (count // 2,) if self.one_size else range(count + 1):
            yield from map(frozenset, combinations(range(count), size))

    def probe_between(self, first: History, second: History) -> int:
        """The probe to which two different histories must be answered differently."""
        return max(first ^ second)

    def news(self, query: SpjQuery, history: History, probe: int) -> Counter[Row]:
        """What a probe adds to the answer after a history."""
        before: dict[str, list[Row]] = {self.stream: [self.rows[place] for place in sorted(history)]}
        after = {stream: list(rows) for stream, rows in before.items()}
        for stream, row in self.probes[probe]:
            after.setdefault(stream, []).append(row)
        return answer(query, after) - answer(query, before)

    def tells_apart(self, query: SpjQuery) -> bool:
        """Whether the probes do reveal every difference of histories, by trying all pairs of them: for few rows."""
        histories = list(self.histories())
        places = range(len(self.rows))
        news = {
            (history, probe): self.news(query, history, probe) for history in histories for probe in places
        }
        return all(
            news[first, probe] != news[second, probe]
            for first, second in combinations(histories, 2)
            for probe in (self.probe_between(first, second),)
        )


def find_witness(query: SpjQuery, count: int) -> Witness | None:
    """A witness with `count` rows that a query needs unbounded memory; None if it does not, or if none is known."""
    failure = judge(query).failure
    return None if failure is None else build_witness(query, failure, count)


def build_witness(query: SpjQuery, failure: Failure, count: int) -> Witness | None:
    """A witness with `count` rows for a failure of a query; None if this failure gives none.

    There is one for every exact refusal (`verdict.Verdict`) that breaks one of the three conditions, except for a few
    self joins; for a broken condition of MIN and MAX, answers are the extremes rather than the rows.
    """
    if query.has_self_join and failure.condition not in _TRIABLE:
        return None
    stream = failure.attributes[0].stream if failure.attributes else ""
    for steps in _chains(failure, stream):
        if query.has_self_join:
            found = _self_join_witness(query, failure, steps, count)
        else:
            others = tuple(s.occurrence for s in query.streams if s.occurrence != stream)
            # Over one stream the row itself comes again: only its first coming is news.
            found = _witness(query, failure, steps, count, others or (stream,))
        if found is not None:
            return found
    return None


def _witness(
    query: SpjQuery,
    failure: Failure,
    steps: tuple[Comparison, ...],
    count: int,
    probing: tuple[str, ...],
    *,
    spread: bool = False,
    backwards: bool = False,
) -> Witness | None:
    solutions = solve_copies(query, failure.case, steps, count, spread=spread)
    if solutions is None:
        return None
    if backwards:
        solutions.reverse()

    def row(occurrence: str, solution: Solution) -> tuple[str, Row]:
        schema = query.schema(occurrence)
        return schema.stream, tuple(solution[attribute] for attribute in schema.elements)

    stream = failure.attributes[0].stream
    return Witness(
        failure,
        query.schema(stream).stream,
        tuple(row(stream, solution)[1] for solution in solutions),
        tuple(tuple(row(name, solution) for name in probing) for solution in solutions),
        one_size=query.has_self_join,
        proven=min(count, _TRIAL) if query.has_self_join else count,
    )


def _self_join_witness(
    query: SpjQuery, failure: Failure, steps: tuple[Comparison, ...], count: int
) -> Witness | None:
    """A witness that has been tried out: rows of one stream also meet each other, which can hide a difference."""
    stream = failure.attributes[0].stream
    names = [schema.occurrence for schema in query.streams]
    choices = [tuple(name for name in names if name != stream)]
    choices += [chosen for size in range(1, len(names) + 1) for chosen in combinations(names, size)]
    for backwards in (False, True):
        for probing in dict.fromkeys(choices):
            few = min(count, _TRIAL)
            trial = _witness(query, failure, steps, few, probing, spread=True, backwards=backwards)
            if trial is not None and trial.tells_apart(query):
                return _witness(query, failure, steps, count, probing, spread=True, backwards=backwards)
    return None


def _chains(failure: Failure, stream: str) -> Iterator[tuple[Comparison, ...]]:
    """Ways to relate each solution to the next so that the rows of `stream` can be told apart, to be tried in turn.

    Each comparison has its left side in one solution and its right side in the next.
    """
    match failure.condition:
        case Condition.PROJECTION | Condition.EQUALITY | Condition.GROUPING:
            attribute = failure.attributes[0]
            yield (Comparison(attribute, "<", attribute),)
        case Condition.INEQUALITY if len(failure.predicates) == 1:
            yield (_misses_later(failure.predicates[0], stream),)
        case Condition.INEQUALITY:
            first, second = failure.predicates
            yield _misses_later(first, stream), _misses_earlier(second, stream)
            yield _misses_later(second, stream), _misses_earlier(first, stream)
        case Condition.GREATEST | Condition.LEAST:
            # The rows that a probe meets are its own and later ones, and of these its own is the extreme.
            attribute = failure.attributes[0]
            op: Operator = ">" if failure.condition is Condition.GREATEST else "<"
            yield _misses_later(failure.predicates[0], stream), Comparison(attribute, op, attribute)
        case Condition.HOLISTIC | Condition.SIZE:
            return


_DENIED: dict[Operator, Operator] = {"<": ">=", "<=": ">", ">=": "<", ">": "<="}


def _misses_later(predicate: Comparison, stream: str) -> Comparison:
    """The row of one solution does not meet, in this join predicate, the probe of the next or of any after it."""
    seen = predicate if predicate.attributes[0].stream == stream else predicate.mirrored
    return Comparison(seen.left, _DENIED[seen.op], seen.right)


def _misses_earlier(predicate: Comparison, stream: str) -> Comparison:
    """The row of one solution does not meet the probe of the one before it or of any before that."""
    return _misses_later(predicate, stream).mirrored
