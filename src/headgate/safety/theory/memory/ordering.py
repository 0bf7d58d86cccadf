"""Locally totally ordered queries: a conjunction split by filters until every stream's attributes are in order.

The Memory document, section 5: a query is the disjoint union of the queries got by adding filters that order
each stream's attributes together with all constants. Over distinct streams it is computable in bounded memory
exactly if each of those is, for a filter costs no memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations

from headgate.safety.theory.memory.closure import Closure
from headgate.safety.theory.memory.query import Attribute, Comparison, Element, Operator

_TOTAL = ("<", "=", ">")
_CASES: tuple[Operator, ...] = ("<", "=", ">")


def is_ordered(closure: Closure) -> bool:
    """Whether each stream's attributes and all constants are totally ordered."""
    return all(closure.relation(first, second) in _TOTAL for first, second in _local_pairs(closure))


def orderings(closure: Closure) -> Iterator[Closure]:
    """Every satisfiable locally totally ordered conjunction that adds only filters, each once."""
    yield from _split(closure, list(_local_pairs(closure)), 0)


def _split(closure: Closure, pairs: list[tuple[Element, Element]], start: int) -> Iterator[Closure]:
    for position in range(start, len(pairs)):
        first, second = pairs[position]
        if closure.relation(first, second) in _TOTAL:
            continue
        for op in _CASES:
            narrower = closure.also((Comparison(first, op, second),))
            if narrower is not None:
                yield from _split(narrower, pairs, position + 1)
        return
    yield closure


def _local_pairs(closure: Closure) -> Iterator[tuple[Element, Element]]:
    # Constants first: they decide most of the order between attributes.
    for attribute in closure.attributes:
        for constant in closure.constants:
            yield attribute, constant
    for first, second in combinations(closure.attributes, 2):
        if first.stream == second.stream:
            yield first, second


def added(narrow: Closure, wide: Closure, attributes: Iterable[Attribute]) -> tuple[Comparison, ...]:
    """The filters on some attributes that hold in `narrow` and not in `wide`, without those that others imply."""
    chosen = list(attributes)
    found: list[Comparison] = []
    known = wide
    pairs: list[tuple[Element, Element]] = [
        (first, second) for first, second in combinations(chosen, 2) if first.stream == second.stream
    ]
    # A value lies between two neighbouring constants: the nearest ones say it all.
    for attribute in chosen:
        below = [c for c in narrow.constants if narrow.relation(c, attribute) in ("<", "=")]
        above = [c for c in narrow.constants if narrow.relation(attribute, c) in ("<", "=")]
        pairs += [(attribute, c) for c in (*below[-1:], *above[:1])]
    for first, second in pairs:
        relation = narrow.relation(first, second)
        if relation is None:
            continue
        comparison = Comparison(first, relation, second)
        if not known.implies(comparison):
            found.append(comparison)
            known = known.also((comparison,)) or known
    return tuple(found)
