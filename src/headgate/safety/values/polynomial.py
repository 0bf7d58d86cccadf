"""The polynomial test: what the definition decides by all orders, decided by orders of at most four
attributes.

Memory document, section 6. An attribute that is unbounded in the query stays so in some locally totally
ordered part, which settles projections and equality joins; and two non-redundant inequality joins that meet
in one stream, four attributes in all, suffice to break the third condition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations_with_replacement

from headgate.safety.values.closure import Closure, close
from headgate.safety.values.failure import Failure
from headgate.safety.values.ordering import orderings
from headgate.safety.values.query import Attribute, Comparison, SpjQuery
from headgate.safety.values.references import is_redundant, join_inequalities
from headgate.safety.values.theorems import (
    equality_failure,
    failure_of_ordered,
    in_case,
    projection_failure,
)


def polynomial_failure(query: SpjQuery) -> Failure | None:
    """The failure of a query; None if it is computable in bounded memory. Exact where no stream occurs twice."""
    closure = close(query)
    if closure is None or (len(query.streams) == 1 and not query.distinct):
        return None
    failure = projection_failure(closure, query.projection) or equality_failure(closure)
    if failure is not None:
        return failure
    for attributes in candidates(closure, distinct=query.distinct):
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
    dense = closure.frame.dense.intersection(chosen)
    constants = closure.constants if dense else (*closure.constants[:1], *closure.constants[-1:])
    small = Closure.unconstrained(chosen, dict.fromkeys(constants), dense)
    kept = set(small.elements)
    part = small.also(p for p in closure.predicates() if p.left in kept and p.right in kept)
    if part is None:
        raise AssertionError("a part of a satisfiable conjunction is satisfiable")
    return part
