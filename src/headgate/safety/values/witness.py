"""Witness: input on which every correct evaluation of a refused query needs memory that grows with the input.

Memory document, electronic appendix. Rows r1 … rn arrive first, on one stream; any subset of them is a possible history.
Probe k, one row on each other stream, makes the answers of two histories differ if k is the last place in which they
do. So 2ⁿ histories need different states, n bits:

```
A of the rows          1        3        5          π σ(B < A) S×T, duplicates kept
B of the probes     0        2        4             probe k counts the rows from k on
```
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headgate.safety.values.copies import Solution, solve_copies
from headgate.safety.values.domain import Code
from headgate.safety.values.failure import Condition, Failure
from headgate.safety.values.query import Attribute, Comparison, Operator, SpjQuery

Row = tuple[Code, ...]
"""Codes in the order of a stream's attributes."""


@dataclass(frozen=True)
class Witness:
    """Rows that a stream may or may not bring first, and for each the rows that later reveal whether it did."""

    failure: Failure
    stream: str
    rows: tuple[Row, ...]
    probes: tuple[tuple[tuple[str, Row], ...], ...]

    def probe_between(self, first: frozenset[int], second: frozenset[int]) -> int:
        """The probe on which two different histories, given as places in `rows`, must be answered differently."""
        return max(first ^ second)


def find_witness(query: SpjQuery, failure: Failure, count: int) -> Witness | None:
    """A witness with `count` rows for a failure of a query; None if this failure gives none.

    Exact judgements always have one: see `verdict.Verdict.exact`.
    """
    stream = failure.attributes[0].stream
    for steps in _chains(failure, stream):
        solutions = solve_copies(query, failure.case, steps, count)
        if solutions is not None:
            return _witness(query, failure, stream, solutions)
    return None


def _witness(query: SpjQuery, failure: Failure, stream: str, solutions: list[Solution]) -> Witness:
    def row(occurrence: str, solution: Solution) -> tuple[str, Row]:
        schema = query.schema(occurrence)
        return schema.stream, tuple(solution[attribute] for attribute in schema.elements)

    # Over one stream the row itself comes again: only its first coming is news.
    probing = [s.occurrence for s in query.streams if s.occurrence != stream] or [stream]
    return Witness(
        failure,
        query.schema(stream).stream,
        tuple(row(stream, solution)[1] for solution in solutions),
        tuple(tuple(row(name, solution) for name in probing) for solution in solutions),
    )


def _chains(failure: Failure, stream: str) -> Iterator[tuple[Comparison, ...]]:
    """Ways to relate each solution to the next so that the rows of `stream` can be told apart, to be tried in turn."""
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
        case _:
            return


_DENIED: dict[Operator, Operator] = {"<": ">=", "<=": ">"}


def _misses_later(predicate: Comparison, stream: str) -> Comparison:
    """The row of one solution does not meet, in this join predicate, the probe of the next or of any after it."""
    denied = Comparison(predicate.left, _DENIED[predicate.op], predicate.right)
    return denied if _own(predicate, stream) == predicate.left else denied.mirrored


def _misses_earlier(predicate: Comparison, stream: str) -> Comparison:
    """The row of one solution does not meet the probe of the one before it or of any before that."""
    return _misses_later(predicate, stream).mirrored


def _own(predicate: Comparison, stream: str) -> Attribute:
    first, second = predicate.attributes
    return first if first.stream == stream else second
