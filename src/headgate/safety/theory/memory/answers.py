"""Answers: the relational answer of a query over a handful of rows, by trying all combinations.

The measure against which a witness is checked; nothing that runs a query uses it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from operator import eq, ge, gt, le, lt

from headgate.safety.theory.memory.domain import Code
from headgate.safety.theory.memory.query import Attribute, Comparison, Element, Operator, SpjQuery

Row = tuple[Code, ...]
"""Codes in the order of a stream's attributes, or of a projection's."""

_HOLDS = {"<": lt, "<=": le, "=": eq, ">=": ge, ">": gt}


def holds(comparison: Comparison, values: Mapping[Attribute, Code]) -> bool:
    """Whether values for attributes satisfy a comparison."""

    def code(element: Element) -> Code:
        return values[element] if isinstance(element, Attribute) else element.value

    op: Operator = comparison.op
    return bool(_HOLDS[op](code(comparison.left), code(comparison.right)))


def answer(query: SpjQuery, rows: Mapping[str, Sequence[Row]]) -> Counter[Row]:
    """The bag of result rows over the rows of each stream; each at most once if duplicates are removed."""
    found: Counter[Row] = Counter()
    for chosen in product(*(rows.get(schema.stream, ()) for schema in query.streams)):
        values: dict[Attribute, Code] = {}
        for schema, row in zip(query.streams, chosen, strict=True):
            values.update(zip(schema.elements, row, strict=True))
        if all(holds(predicate, values) for predicate in query.predicates):
            found[tuple(values[attribute] for attribute in query.projection)] += 1
    return Counter(found.keys()) if query.distinct else found
