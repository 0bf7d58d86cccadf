"""The polynomial test: what the definition decides by all orders, decided by orders of at most four
attributes.

Memory document, section 6. An attribute that is unbounded in the query stays so in some locally totally
ordered part, which settles projections and equality joins; and two non-redundant inequality joins that meet
in one stream, four attributes in all, suffice to break the third condition. Sets of attributes between which the
same comparisons hold are judged alike, so each pattern of comparisons is tried once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations, combinations_with_replacement

from headgate.safety.theory.memory.closure import Closure, close
from headgate.safety.theory.memory.failure import Condition, Failure
from headgate.safety.theory.memory.ordering import orderings
from headgate.safety.theory.memory.query import Attribute, Comparison, Constant, Element, Operator, SpjQuery
from headgate.safety.theory.memory.references import is_redundant, join_inequalities
from headgate.safety.theory.memory.theorems import (
    equality_failure,
    failure_of_ordered,
    in_case,
    projection_failure,
)

MOST_PATTERNS = 500
"""So many patterns of comparisons are tried; a query with more of them is not decided, and so refused.

Between attributes with gaps there are fewer than that in all but contrived queries; without gaps, every constant
of the query makes more of them.
"""

_Pattern = tuple[tuple[tuple[int, bool], ...], tuple[Constant, ...], tuple[Operator | None, ...]]


def polynomial_failure(query: SpjQuery) -> Failure | None:
    """The failure of a query; None if it is computable in bounded memory. Exact where no stream occurs twice."""
    closure = close(query)
    if closure is None or (len(query.streams) == 1 and not query.distinct):
        return None
    failure = projection_failure(closure, query.projection) or equality_failure(closure)
    if failure is not None:
        return failure
    passed: set[_Pattern] = set()
    for attributes in candidates(closure, distinct=query.distinct):
        pattern = _pattern(closure, attributes)
        if pattern in passed:
            continue
        if len(passed) == MOST_PATTERNS:
            return Failure(Condition.SIZE)
        passed.add(pattern)
        part = induced(closure, attributes)
        for ordered in orderings(part):
            failure = failure_of_ordered(ordered, (), distinct=query.distinct)
            if failure is not None:
                return in_case(failure, ordered, part)
    return None


def candidates(closure: Closure, *, distinct: bool) -> Iterator[tuple[Attribute, ...]]:
    """The sets of attributes that can show a failure: those of one join, or of two that meet in a stream.

    The document tries every set of at most four attributes. A non-redundant predicate of a part is, up to equal
    attributes of one stream, one of P⁺ that is not redundant there, so the sets named here suffice.
    """
    seen: set[frozenset[Attribute]] = set()
    for first, second in combinations_with_replacement(list(open_joins(closure)), 2):
        if first != second and (not distinct or not first.streams & second.streams):
            continue
        attributes = tuple(dict.fromkeys((*first.attributes, *second.attributes)))
        if frozenset(attributes) not in seen:
            seen.add(frozenset(attributes))
            yield attributes


def open_joins(closure: Closure) -> Iterator[Comparison]:
    """The non-redundant inequality joins of P⁺ that can stay so, with an unbounded side, in some ordered part."""
    for predicate in join_inequalities(closure):
        if _can_be_open(closure, predicate) and not is_redundant(closure, predicate):
            yield predicate


def _can_be_open(closure: Closure, predicate: Comparison) -> bool:
    """Whether both sides can lie beyond all constants on one side, or between two that have no gaps."""
    sides = predicate.attributes
    return (
        any(side in closure.frame.dense for side in sides)
        or not any(map(closure.is_upper_bounded, sides))
        or not any(map(closure.is_lower_bounded, sides))
    )


def induced(closure: Closure, attributes: Iterable[Attribute]) -> Closure:
    """What P⁺ says of some attributes and of the outermost constants, or of all constants where gaps are missing."""
    chosen = tuple(attributes)
    small = Closure.unconstrained(
        chosen, _constants(closure, chosen), closure.frame.dense.intersection(chosen)
    )
    part = small.also(closure.predicates(small.elements))
    if part is None:
        raise AssertionError("a part of a satisfiable conjunction is satisfiable")
    return part


def _constants(closure: Closure, attributes: Iterable[Attribute]) -> tuple[Constant, ...]:
    if closure.frame.dense.intersection(attributes):
        return closure.constants
    return tuple(dict.fromkeys((*closure.constants[:1], *closure.constants[-1:])))


def _pattern(closure: Closure, attributes: tuple[Attribute, ...]) -> _Pattern:
    """All that `induced` and the orderings of it depend on, without the names of streams and attributes."""
    streams = list(dict.fromkeys(attribute.stream for attribute in attributes))
    kinds = tuple((streams.index(a.stream), a in closure.frame.dense) for a in attributes)
    constants = _constants(closure, attributes)
    elements: tuple[Element, ...] = (*attributes, *constants)
    relations = tuple(closure.relation(first, second) for first, second in combinations(elements, 2))
    return kinds, constants, relations
