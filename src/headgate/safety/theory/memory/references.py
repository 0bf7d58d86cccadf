"""MaxRef and MinRef: the unbounded attributes of a stream that joins compare from below and from above.

The Memory document, section 4 (redundancy) and section 5 (the two sets). Only a predicate that neither a
third element nor a constant makes superfluous costs memory; the rest follow from filters and from other
predicates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headgate.safety.theory.memory.closure import Closure
from headgate.safety.theory.memory.query import Attribute, Comparison, Constant


@dataclass(frozen=True)
class References:
    """For one stream, the non-redundant join predicates by the attribute of the stream that they reach.

    `below` holds T.B < S.A with S.A unbounded (their S.A are MaxRef), `above` S.A < T.B (their S.A are MinRef).
    """

    below: tuple[Comparison, ...]
    above: tuple[Comparison, ...]

    @property
    def max_ref(self) -> tuple[Attribute, ...]:
        return tuple(dict.fromkeys(p.attributes[1] for p in self.below))

    @property
    def min_ref(self) -> tuple[Attribute, ...]:
        return tuple(dict.fromkeys(p.attributes[0] for p in self.above))


def join_inequalities(closure: Closure) -> Iterator[Comparison]:
    """Every inequality of P⁺ between attributes of two occurrences, the smaller side first."""
    for first in closure.attributes:
        for second in closure.attributes:
            if first.stream != second.stream:
                relation = closure.relation(first, second)
                if relation in ("<", "<="):
                    yield Comparison(first, relation, second)


def join_equalities(closure: Closure) -> Iterator[Comparison]:
    """Every equality of P⁺ between attributes of two occurrences, once."""
    for position, first in enumerate(closure.attributes):
        for second in closure.attributes[position + 1 :]:
            if first.stream != second.stream and closure.relation(first, second) == "=":
                yield Comparison(first, "=", second)


def is_redundant(closure: Closure, predicate: Comparison) -> bool:
    """Whether an inequality of P⁺ follows from two that meet in a third element, or from filters on a constant.

    With ≤ beside <, two steps stand for one only if they are as strict as it is.
    """
    low, high = predicate.attributes
    for middle in closure.between(low, high):
        first, second = closure.relation(low, middle), closure.relation(middle, high)
        # An equal constant turns it into a filter; an equal attribute only says the same predicate again.
        if (
            "=" in (first, second)
            and not isinstance(middle, Constant)
            and not _is_filter(closure, predicate, middle)
        ):
            continue
        if predicate.op == "<=" or "<" in (first, second):
            return True
    return False


def _is_filter(closure: Closure, predicate: Comparison, middle: Attribute) -> bool:
    """Whether an equal attribute turns a join predicate into a filter and an equality join on finitely many values.

    It matters only where attributes with and without gaps meet: elsewhere the far side is bounded too.
    """
    low, high = predicate.attributes
    local = low if closure.relation(middle, high) == "=" else high
    return middle.stream == local.stream and closure.is_bounded(middle)


def references(closure: Closure, stream: str) -> References:
    """The references of one occurrence: what its memory has to remember beyond bounded attributes."""
    below: list[Comparison] = []
    above: list[Comparison] = []
    for predicate in join_inequalities(closure):
        low, high = predicate.attributes
        if high.stream == stream and not closure.is_bounded(high) and not is_redundant(closure, predicate):
            below.append(predicate)
        if low.stream == stream and not closure.is_bounded(low) and not is_redundant(closure, predicate):
            above.append(predicate)
    return References(tuple(below), tuple(above))
