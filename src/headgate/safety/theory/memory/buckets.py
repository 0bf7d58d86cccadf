"""Buckets: what to remember of each stream of an admitted query, and how much that can become.

Memory document, section 7. Each attribute's domain is cut at the constants: below, every value between,
above. A bucket fixes a cell per attribute. With duplicates kept, the rows of a bucket are interchangeable:
one row and a count. With duplicates removed, one row stands for the bucket: the one with the greatest least
MaxRef attribute, the one with the least greatest MinRef attribute, or any. Only attributes that the result
or a join needs are cut, and only at constants that comparisons connect them with:

```
σ(B < D, A > 10, A < 20) S×T      S: A = 11 … 19, the least B of each: 9 buckets      T: the greatest D: 1 bucket
```

The document has no ≤ between attributes. Where it occurs, the greatest least of A and B is not one row any
more, for D < A and D ≤ B at once; then a bucket also fixes the order of the attributes, and a single class
is left to compare.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb, prod

from headgate.safety.theory.memory.closure import Closure, close
from headgate.safety.theory.memory.cut import Cut, IntegerCut, IntervalCut, cells_between
from headgate.safety.theory.memory.domain import Code
from headgate.safety.theory.memory.query import (
    Attribute,
    Comparison,
    Constant,
    Element,
    Operator,
    SpjQuery,
    integer_at_or_above,
    integer_at_or_below,
)
from headgate.safety.theory.memory.references import (
    is_redundant,
    join_equalities,
    join_inequalities,
    references,
)
from headgate.safety.theory.memory.verdict import evaluable

Bucket = tuple[int | None, ...]
"""A cell for each cut attribute (None for NULL), then, where order matters, the rank of each among them."""


@dataclass(frozen=True)
class Keep:
    """The rows that stand for a bucket: greatest least of `greatest`, least greatest of `least`, or any."""

    greatest: tuple[Attribute, ...] = ()
    least: tuple[Attribute, ...] = ()


@dataclass(frozen=True)
class StreamSynopsis:
    """What is remembered of one occurrence: its cuts and, by bucket, a row and a count or the rows to keep."""

    occurrence: str
    cuts: tuple[Cut, ...]
    closure: Closure
    distinct: bool
    ordered: bool
    connected: Mapping[Attribute, frozenset[Element]]
    """What comparisons connect each attribute with."""

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        return tuple(cut.attribute for cut in self.cuts)

    @cached_property
    def cells(self) -> tuple[range, ...]:
        """For each cut, the cells that rows which pass all filters can be in."""
        return tuple(
            cells_between(cut, self.closure.lower(cut.attribute), self.closure.upper(cut.attribute))
            for cut in self.cuts
        )

    @property
    def size(self) -> int:
        """An upper bound on the number of buckets; each keeps one row, or two if it is sought from both sides."""
        boxes = prod(map(len, self.cells))
        free = sum(not self.closure.is_bounded(attribute) for attribute in self.attributes)
        return boxes * weak_orders(free) if self.ordered else boxes

    @cached_property
    def filters(self) -> tuple[Comparison, ...]:
        """All that P⁺ says of a row of this occurrence alone; a row that fails it can be forgotten at once.

        That is more than the filters of the query: D > 10 and D < A give A > 11. But A = 1 and X = 'q' tell A from X
        only because codes of text and of numbers have one order: of what nothing connects, nothing is said.
        """
        said = [
            p
            for p in self.closure.predicates()
            if p.streams == {self.occurrence} and {p.left, p.right} <= self.connected[p.attributes[0]]
        ]
        for attribute in self.closure.attributes:
            if attribute.stream == self.occurrence:
                lower, upper = self.closure.lower(attribute), self.closure.upper(attribute)
                if lower is not None:
                    said.append(Comparison(Constant(lower.value), "<" if lower.strict else "<=", attribute))
                if upper is not None:
                    said.append(Comparison(attribute, "<" if upper.strict else "<=", Constant(upper.value)))
        return tuple(dict.fromkeys(said))

    def bucket(self, row: Mapping[Attribute, Code]) -> Bucket:
        """The bucket of a row that passes `filters`."""
        found = tuple(cut.cell(row[cut.attribute]) for cut in self.cuts)
        if not self.ordered:
            return found
        values = sorted({row[attribute] for attribute in self.attributes})
        return (*found, *(values.index(row[attribute]) for attribute in self.attributes))

    def keep(self, bucket: Bucket) -> Keep:
        """The rows that stand for a bucket, duplicates being removed."""
        inside = self.closure.also(self._says(bucket))
        if inside is None:
            return Keep()
        found = references(inside, self.occurrence)
        return Keep(found.max_ref, found.min_ref)

    def _says(self, bucket: Bucket) -> Iterable[Comparison]:
        for cut, cell in zip(self.cuts, bucket, strict=False):
            if cell is not None:
                yield from cut.says(cell)
        ranks = bucket[len(self.cuts) :]
        for (first, rank), (second, other) in combinations(zip(self.attributes, ranks, strict=False), 2):
            if rank is None or other is None:
                continue
            op: Operator = "=" if rank == other else "<" if rank < other else ">"
            yield Comparison(first, op, second)


def synopses(query: SpjQuery) -> tuple[StreamSynopsis, ...]:
    """What to remember of each occurrence of an admitted query; nothing if no row can satisfy it.

    The query must be bounded with its occurrences taken as streams (`verdict.evaluable`).
    """
    closure = close(query)
    if closure is None:
        return ()
    connected = _connected(query)
    if len(query.streams) == 1 and not query.distinct:
        return (
            StreamSynopsis(
                query.streams[0].occurrence, (), closure, distinct=False, ordered=False, connected=connected
            ),
        )
    joins = [p for p in join_inequalities(closure) if is_join(closure, p) and not is_redundant(closure, p)]
    needed = {attribute for p in (*joins, *join_equalities(closure)) for attribute in p.attributes}
    needed.update(query.projection)
    ordered = query.distinct and any(predicate.op == "<=" for predicate in joins)
    return tuple(
        StreamSynopsis(
            schema.occurrence,
            tuple(_cut(query, a, _constants(connected[a])) for a in schema.elements if a in needed),
            closure,
            distinct=query.distinct,
            ordered=ordered,
            connected=connected,
        )
        for schema in query.streams
    )


def size_bound(query: SpjQuery) -> dict[str, int]:
    """For each occurrence of an admitted query, the number of buckets that its synopsis can come to hold."""
    sizes = {schema.occurrence: 0 for schema in query.streams}
    for part in evaluable(query):
        for synopsis in synopses(part):
            sizes[synopsis.occurrence] += synopsis.size
    return sizes


def answer_bound(query: SpjQuery) -> int | None:
    """How many different rows the result can have; None if there is no limit."""
    closure = close(query)
    if closure is None:
        return 0
    connected = _connected(query)
    choices = []
    for attribute in query.projection:
        if not closure.is_bounded(attribute):
            return None
        cut = _cut(query, attribute, _constants(connected[attribute]))
        choices.append(len(cells_between(cut, closure.lower(attribute), closure.upper(attribute))))
    return prod(choices)


def is_join(closure: Closure, predicate: Comparison) -> bool:
    """Whether an inequality between two streams is not already a matter of the bounds of its sides."""
    low, high = predicate.attributes
    upper, lower = closure.upper(low), closure.lower(high)
    if upper is None or lower is None:
        return True
    if upper.value == lower.value:
        return predicate.op == "<" and not (upper.strict or lower.strict)
    return upper.value > lower.value


def _connected(query: SpjQuery) -> dict[Attribute, frozenset[Element]]:
    """For each attribute, the attributes and constants that comparisons connect it with."""
    group: dict[Attribute, set[Element]] = {attribute: {attribute} for attribute in query.attributes}
    for predicate in (*query.implied, *query.predicates):
        sides = (predicate.left, predicate.right)
        merged = set().union(*(group[side] if isinstance(side, Attribute) else {side} for side in sides))
        for element in merged:
            if isinstance(element, Attribute):
                group[element] = merged
    return {attribute: frozenset(found) for attribute, found in group.items()}


def _constants(connected: Iterable[Element]) -> tuple[Code, ...]:
    return tuple(sorted(element.value for element in connected if isinstance(element, Constant)))


def _cut(query: SpjQuery, attribute: Attribute, constants: tuple[Code, ...]) -> Cut:
    if query.domain(attribute).dense or not constants:
        return IntervalCut(attribute, constants)
    return IntegerCut(attribute, integer_at_or_below(constants[0]), integer_at_or_above(constants[-1]))


def weak_orders(count: int) -> int:
    """In how many ways `count` values can be ordered, ties included."""
    orders = [1]
    for size in range(1, count + 1):
        orders.append(sum(comb(size, first) * orders[size - first] for first in range(1, size + 1)))
    return orders[count]
