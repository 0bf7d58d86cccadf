"""The theorems on locally totally ordered queries, and the judgement that the definition gives by trying them
all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from headgate.safety.theory.memory.closure import Closure, close
from headgate.safety.theory.memory.failure import Condition, Failure
from headgate.safety.theory.memory.ordering import added, orderings
from headgate.safety.theory.memory.query import Attribute, Comparison, SpjQuery
from headgate.safety.theory.memory.references import join_equalities, references


def failure_of_ordered(
    closure: Closure, projection: Iterable[Attribute], *, distinct: bool
) -> Failure | None:
    """The condition that a locally totally ordered query breaks; None if it is computable in bounded memory.

    Not for a single stream with duplicates kept, which needs no memory at all.
    Memory document, section 5.1 (duplicates kept) and 5.2 (removed). Sufficient: what is left after filters are
    bounded attributes, to be counted or listed, and with duplicates removed one extreme row for each of their values.
    Necessary: a broken condition gives arbitrarily many rows that later rows can tell apart (`witness`).
    """
    return (
        projection_failure(closure, projection)
        or equality_failure(closure)
        or inequality_failure(closure, distinct=distinct)
    )


def projection_failure(closure: Closure, projection: Iterable[Attribute]) -> Failure | None:
    """C1: an attribute of the result that is not bounded."""
    for attribute in projection:
        if not closure.is_bounded(attribute):
            return blame(closure, Condition.PROJECTION, (attribute,))
    return None


def equality_failure(closure: Closure) -> Failure | None:
    """C2: an equality join in P⁺ whose sides, being equal, are both unbounded."""
    for predicate in join_equalities(closure):
        if not closure.is_bounded(predicate.attributes[0]):
            return blame(closure, Condition.EQUALITY, predicate.attributes, (predicate,))
    return None


def inequality_failure(closure: Closure, *, distinct: bool) -> Failure | None:
    """C3: a stream with a reference; with duplicates removed, one with two classes or directions of them."""
    for stream in dict.fromkeys(attribute.stream for attribute in closure.attributes):
        found = references(closure, stream)
        reached = [(predicate, predicate.attributes[1], "below") for predicate in found.below]
        reached += [(predicate, predicate.attributes[0], "above") for predicate in found.above]
        if not reached:
            continue
        predicate, attribute, side = reached[0]
        if not distinct:
            return blame(closure, Condition.INEQUALITY, (attribute,), (predicate,))
        for other, further, other_side in reached[1:]:
            if other_side != side or closure.relation(attribute, further) != "=":
                attributes = tuple(dict.fromkeys((attribute, further)))
                return blame(closure, Condition.INEQUALITY, attributes, (predicate, other))
    return None


def blame(
    closure: Closure,
    condition: Condition,
    attributes: tuple[Attribute, ...],
    predicates: tuple[Comparison, ...] = (),
) -> Failure:
    """The failure of a condition, with a note of the attributes that only the lack of gaps makes infinite."""
    dense = tuple(
        attribute
        for attribute in attributes
        if closure.is_lower_bounded(attribute) and closure.is_upper_bounded(attribute)
        if not closure.is_bounded(attribute)
    )
    return Failure(condition, attributes, predicates, dense=dense)


def in_case(failure: Failure, narrow: Closure, wide: Closure) -> Failure:
    """The failure with the filters that hold in its case `narrow` and not in the whole query `wide`."""
    involved = dict.fromkeys(failure.attributes)
    for predicate in failure.predicates:
        involved.update(dict.fromkeys(predicate.attributes))
    case = added(narrow, wide, involved)
    known = wide.also(case) or narrow
    # A predicate can come from the order of attributes that it does not name: A <= B <= C and A = C.
    if not all(known.implies(predicate) for predicate in failure.predicates):
        case = added(narrow, wide, narrow.attributes)
    return replace(failure, case=case)


def failure_by_definition(query: SpjQuery) -> Failure | None:
    """The failure of the first locally totally ordered part that fails; None if all of them are computable.

    Memory document, section 5: exact where no stream occurs twice, and exponential in the number of attributes.
    """
    closure = close(query)
    if closure is None or (len(query.streams) == 1 and not query.distinct):
        return None
    for part in orderings(closure):
        failure = failure_of_ordered(part, query.projection, distinct=query.distinct)
        if failure is not None:
            return in_case(failure, part, closure)
    return None
