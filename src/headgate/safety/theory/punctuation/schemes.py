"""Which schemes a query needs: the smallest sets that keep it safe, those it can do without, those it lacks.

Punctuation document, section 5.2: all schemes purge earliest and cost the most to process, a smallest set
the least. More schemes never make a query unsafe, so the smallest sets are found one by one: each further
one must do without some scheme of every set found before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from headgate.safety.theory.punctuation.graph import is_safe
from headgate.safety.theory.punctuation.query import JoinQuery, Scheme

_SEARCH_PER_SET = 200


@dataclass(frozen=True)
class SchemeSets:
    """Sets of schemes of which none can be left out; `complete` if there are no others."""

    sets: tuple[frozenset[Scheme], ...]
    complete: bool


def minimal_schemes(query: JoinQuery, *, limit: int = 100) -> SchemeSets:
    """The smallest sets of the query's schemes that keep it safe, at most `limit` of them; none if it is unsafe."""
    return smallest_sets(query.schemes, lambda kept: is_safe(query.with_schemes(kept)), limit)


def missing_schemes(
    query: JoinQuery, candidates: Iterable[Scheme] | None = None, *, limit: int = 100
) -> SchemeSets:
    """The smallest sets of further schemes that would make an unsafe query safe.

    Candidates are, unless given, one scheme for every joined column: others cannot help more.
    """
    offered = tuple(candidates) if candidates is not None else _column_schemes(query)
    new = [scheme for scheme in offered if scheme not in query.schemes]
    return smallest_sets(new, lambda kept: is_safe(query.with_schemes((*query.schemes, *kept))), limit)


def useless_schemes(query: JoinQuery, *, limit: int = 100) -> frozenset[Scheme]:
    """The schemes whose punctuations a safe query may ignore: they occur in no smallest set.

    If there are more than `limit` sets, only schemes that can never be used: they name a column that is not joined.
    """
    found = minimal_schemes(query, limit=limit)
    if found.complete and found.sets:
        return frozenset(query.schemes).difference(*found.sets)
    return frozenset(
        scheme
        for scheme in query.schemes
        if any((scheme.stream, name) not in query.partners for name in scheme.attributes)
    )


def _column_schemes(query: JoinQuery) -> tuple[Scheme, ...]:
    return tuple(Scheme.on(*column) for column in sorted(query.partners))


def smallest_sets(
    schemes: Iterable[Scheme], suffices: Callable[[Iterable[Scheme]], bool], limit: int
) -> SchemeSets:
    """The sets of schemes that suffice and from which nothing can be left out, at most `limit` of them."""
    pool = tuple(dict.fromkeys(schemes))
    found: dict[frozenset[Scheme], None] = {}
    waiting: deque[frozenset[Scheme]] = deque([frozenset()])
    seen = {frozenset[Scheme]()}
    for _ in range(_SEARCH_PER_SET * limit):
        if not waiting:
            return SchemeSets(tuple(found), complete=True)
        excluded = waiting.popleft()
        smallest = next((known for known in found if not known & excluded), None)
        if smallest is None:
            allowed = [scheme for scheme in pool if scheme not in excluded]
            if not suffices(allowed):
                continue
            if len(found) == limit:
                return SchemeSets(tuple(found), complete=False)
            smallest = _shrunk(allowed, suffices)
            found[smallest] = None
        for scheme in pool:
            further = excluded | {scheme}
            if scheme in smallest and further not in seen:
                seen.add(further)
                waiting.append(further)
    return SchemeSets(tuple(found), complete=False)


def _shrunk(schemes: list[Scheme], suffices: Callable[[Iterable[Scheme]], bool]) -> frozenset[Scheme]:
    """A subset that suffices and from which nothing can be left out."""
    kept = list(schemes)
    # Schemes of many attributes go first: they are the most expensive to keep.
    for scheme in sorted(schemes, key=lambda scheme: -len(scheme.attributes)):
        without = [other for other in kept if other != scheme]
        if suffices(without):
            kept = without
    return frozenset(kept)
