"""Grouping and aggregates: when the current value of every group can be kept in bounded memory.

Memory document, section 8.2. The answer itself is kept, so there must be finitely many groups. Then SUM,
COUNT and AVG need only what the join over the grouping attributes needs with duplicates, for they can be
added up below the join; MIN and MAX what it needs without duplicates; and an aggregate that depends on all
values needs them to be finite.

The document lets MAX(S.A) of an unbounded A pass if MaxRef(S) is empty or its one class holds A. That is
not enough: the greatest S.A with S.A < T.B, for any T.B yet to come, depends on every A so far, and there
MaxRef(S) is empty. So MinRef(S) must be empty too, and likewise MaxRef(S) for MIN; `witness` shows why.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import assert_never

from headgate.model.aggregates import Function, Kind, Second
from headgate.safety.theory.memory.closure import Closure, close
from headgate.safety.theory.memory.failure import Condition, Failure
from headgate.safety.theory.memory.ordering import orderings
from headgate.safety.theory.memory.polynomial import induced, open_joins, polynomial_failure
from headgate.safety.theory.memory.query import Attribute, Comparison, SpjQuery
from headgate.safety.theory.memory.references import references
from headgate.safety.theory.memory.theorems import blame, in_case
from headgate.safety.theory.memory.verdict import Verdict, compares_across_kinds, judge


class Need(Enum):
    """What an aggregate asks of the values of a group."""

    SUMS = "sums"
    LEAST = "the least value"
    GREATEST = "the greatest value"
    DIFFERENT_VALUES = "every value once"
    EVERY_VALUE = "every value"

    @property
    def is_holistic(self) -> bool:
        """Whether no summary of fixed size of two bags gives the value of their union."""
        return self in (Need.DIFFERENT_VALUES, Need.EVERY_VALUE)

    @property
    def ignores_duplicates(self) -> bool:
        """Whether repeating a value changes nothing."""
        return self in (Need.LEAST, Need.GREATEST, Need.DIFFERENT_VALUES)


def need_of(function: Function, *, distinct: bool) -> Need:
    """What a function asks of the values of a group.

    The document knows no extreme of one column by another, and no sketch. Over a join these are taken to need every
    value, which is more than they do.
    """
    traits = function.traits
    match traits.kind:
        case Kind.LINEAR:
            return Need.DIFFERENT_VALUES if distinct else Need.SUMS
        case Kind.EXTREME if traits.second is Second.NOTHING:
            return Need.GREATEST if function.is_largest else Need.LEAST
        case Kind.EXTREME:
            return Need.EVERY_VALUE
        case Kind.HOLISTIC | Kind.SKETCH:
            return Need.EVERY_VALUE if traits.duplicates_matter else Need.DIFFERENT_VALUES
        case never:
            assert_never(never)


@dataclass(frozen=True)
class Aggregate:
    """What is needed of an attribute; rows may be counted without one."""

    need: Need
    attribute: Attribute | None = None

    def __post_init__(self) -> None:
        if self.attribute is None and self.need is not Need.SUMS:
            raise ValueError(f"{self.need.value} of no attribute")


@dataclass(frozen=True)
class AggregateQuery:
    """Aggregates over a select-project-join query; the projection of `source` are the grouping attributes."""

    source: SpjQuery
    aggregates: tuple[Aggregate, ...]


def judge_aggregate(query: AggregateQuery) -> Verdict:
    """The verdict on a grouping query: bounded if it is for each of its aggregates alone.

    Each aggregate can be computed beside the others, and the finitely many groups put together.
    """
    source = query.source
    closure = close(source)
    if closure is None:
        return Verdict(None)
    for attribute in source.projection:
        if not closure.is_bounded(attribute):
            failure = blame(closure, Condition.GROUPING, (attribute,))
            return Verdict(failure, exact=not compares_across_kinds(source))
    if not query.aggregates:
        return judge(source.projecting(source.projection, distinct=True))
    inexact: Verdict | None = None
    for aggregate in query.aggregates:
        verdict = _judge_one(source, closure, aggregate)
        if not verdict.bounded:
            if verdict.exact:
                return verdict
            inexact = inexact or verdict
    return inexact or Verdict(None)


def _judge_one(source: SpjQuery, closure: Closure, aggregate: Aggregate) -> Verdict:
    attribute, need = aggregate.attribute, aggregate.need
    exact = not compares_across_kinds(source)
    if need.is_holistic and attribute is not None and not closure.is_bounded(attribute):
        return Verdict(blame(closure, Condition.HOLISTIC, (attribute,)), exact=exact)
    if len(source.streams) == 1:
        return Verdict(None)
    if not need.ignores_duplicates or attribute is None:
        return judge(source.projecting(source.projection, distinct=False))
    if closure.is_bounded(attribute):
        return judge(source.projecting((*source.projection, attribute), distinct=True))
    # Covered occurrences are not dropped here: the extreme is taken over one of them.
    reduced = source.projecting(source.projection, distinct=True)
    failure = polynomial_failure(reduced) or extreme_failure(closure, attribute, need)
    decided = failure is None or failure.condition is not Condition.SIZE
    return Verdict(failure, exact=exact and decided and not source.has_self_join)


def extreme_failure(closure: Closure, attribute: Attribute, need: Need) -> Failure | None:
    """Why MIN or MAX of an unbounded attribute is not computable, the join itself being so; None if it is.

    Three attributes, the aggregated one and those of one join predicate, show it: the rest is as in `polynomial`.
    """
    for predicate in open_joins(closure):
        if attribute.stream in predicate.streams:
            attributes = dict.fromkeys((attribute, *predicate.attributes))
            part = induced(closure, attributes)
            for ordered in orderings(part):
                failure = extreme_failure_of_ordered(ordered, attribute, need)
                if failure is not None:
                    return in_case(failure, ordered, part)
    return None


def extreme_failure_of_ordered(closure: Closure, attribute: Attribute, need: Need) -> Failure | None:
    """The same for a locally totally ordered query."""
    if closure.is_bounded(attribute):
        return None
    condition = Condition.GREATEST if need is Need.GREATEST else Condition.LEAST
    for predicate, own, is_helpful in _references(closure, attribute.stream, need):
        if not is_helpful or closure.relation(own, attribute) != "=":
            return blame(closure, condition, (attribute,), (predicate,))
    return None


def _references(closure: Closure, stream: str, need: Need) -> Iterator[tuple[Comparison, Attribute, bool]]:
    """Each reference of a stream, its attribute, and whether the row kept for it is the wanted extreme."""
    found = references(closure, stream)
    for predicate in found.below:
        yield predicate, predicate.attributes[1], need is Need.GREATEST
    for predicate in found.above:
        yield predicate, predicate.attributes[0], need is Need.LEAST
