"""Verdict: whether a select-project-join query is computable in bounded memory, and how sure a refusal is."""

from __future__ import annotations

from dataclasses import dataclass, replace

from headgate.safety.theory.memory.closure import Closure, close
from headgate.safety.theory.memory.failure import Condition, Failure
from headgate.safety.theory.memory.ordering import orderings
from headgate.safety.theory.memory.polynomial import polynomial_failure
from headgate.safety.theory.memory.query import SpjQuery, StreamSchema
from headgate.safety.theory.memory.selfjoin import fold
from headgate.safety.theory.memory.theorems import failure_of_ordered, in_case

PARTS_LIMIT = 20_000
"""How many cases of a duplicate-eliminating self join are tried before it is refused as too large."""


@dataclass(frozen=True)
class Verdict:
    """Bounded if there is no failure; an `exact` refusal proves that memory must grow with the input."""

    failure: Failure | None
    exact: bool = True

    @property
    def bounded(self) -> bool:
        return self.failure is None


def judge(query: SpjQuery) -> Verdict:
    """The verdict on a query.

    Exact where the Memory document's theorems are: not for a self join with duplicates removed, whose parts need not
    be bounded for the whole to be, nor where attributes with and without gaps are compared.
    """
    if query.distinct and query.has_self_join:
        return _judge_self_join(fold(query))
    return _verdict(query, polynomial_failure(query))


def _verdict(query: SpjQuery, failure: Failure | None) -> Verdict:
    decided = failure is None or failure.condition is not Condition.SIZE
    return Verdict(failure, exact=failure is None or (decided and not compares_across_kinds(query)))


def compares_across_kinds(query: SpjQuery) -> bool:
    """Whether an attribute with gaps is compared with one without."""
    return any(len({query.domain(a).dense for a in p.attributes}) > 1 for p in query.predicates)


def _judge_self_join(query: SpjQuery) -> Verdict:
    """Section 8.1: the query is the union of its ordered parts, and each may have covered occurrences of its own."""
    failure = polynomial_failure(query)
    if failure is None or not query.has_self_join:
        return _verdict(query, failure)
    closure = close(relevant(query))
    if closure is None:
        return Verdict(None)
    for tried, part in enumerate(orderings(closure)):
        if tried == PARTS_LIMIT:
            return Verdict(Failure(Condition.SIZE), exact=False)
        failure = _failure_of_part(query, part)
        if failure is not None:
            return Verdict(in_case(failure, part, closure), exact=False)
    return Verdict(None)


def _failure_of_part(query: SpjQuery, part: Closure) -> Failure | None:
    folded = _folded_part(query, part)
    closure = close(folded)
    if closure is None:
        raise AssertionError("a part is satisfiable, and folding keeps it so")
    return failure_of_ordered(closure, folded.projection, distinct=True)


def _folded_part(query: SpjQuery, part: Closure) -> SpjQuery:
    """The query of one ordered part, without the occurrences that are covered in it."""
    return fold(replace(relevant(query), predicates=tuple(part.predicates())))


def evaluable(query: SpjQuery) -> tuple[SpjQuery, ...]:
    """Queries whose union is an admitted query and each of which is bounded with its occurrences taken as streams.

    Mostly the query itself; for some self joins the query without covered occurrences, or its ordered parts.
    """
    if not (query.distinct and query.has_self_join):
        return (query,)
    folded = fold(query)
    closure = close(relevant(folded))
    if closure is None or polynomial_failure(folded) is None:
        return (folded,)
    return tuple(_folded_part(folded, part) for part in orderings(closure))


def relevant(query: SpjQuery) -> SpjQuery:
    """The query without attributes that nothing mentions, in any occurrence of their stream."""
    mentioned = {attribute for predicate in query.predicates for attribute in predicate.attributes}
    mentioned.update(query.projection)
    used = {(query.schema(attribute.stream).stream, attribute.name) for attribute in mentioned}

    def cut(schema: StreamSchema) -> StreamSchema:
        kept = tuple(name for name in schema.attributes if (schema.stream, name) in used)
        domains = tuple((name, domain) for name, domain in schema.domains if name in kept)
        return replace(schema, attributes=kept, domains=domains)

    return replace(query, streams=tuple(cut(schema) for schema in query.streams))
