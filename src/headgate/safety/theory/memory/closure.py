"""Closure: P⁺, all comparisons that a conjunction implies between its elements (Memory document, section 4).

Every comparison is a bound on a difference, x − y ≤ w or x − y < w, with one extra node for zero that
carries the constants. Shortest paths over such bounds give the tightest ones; a negative cycle means that
nothing satisfies them. Between attributes with gaps every bound is rounded to a whole number, so the answer
is exact over the integers: A > 3 and A < 5 leave A = 4. Where both kinds of attributes occur, rounding and
then closing once more is exact, since the attributes without gaps can be eliminated first without losing a
solution.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import combinations
from math import lcm

from headgate.safety.theory.memory.domain import Code
from headgate.safety.theory.memory.query import Attribute, Comparison, Constant, Element, Operator, SpjQuery

# A bound is one integer, 2w for "< w" and 2w + 1 for "≤ w", so that bounds compare as what they say.
_FREE = 1 << 512
_ZERO = 1

_Matrix = tuple[tuple[int, ...], ...]


def _sum(first: int, second: int) -> int:
    return first + second - ((first & 1) | (second & 1))


@dataclass(frozen=True)
class Bound:
    """The tightest limit on one attribute; strict where the limit itself is out."""

    value: Code
    strict: bool


@dataclass(frozen=True)
class _Frame:
    """The elements of a closure and how they are numbered; node 0 is zero."""

    attributes: tuple[Attribute, ...]
    constants: tuple[Constant, ...]
    dense: frozenset[Attribute]

    @cached_property
    def nodes(self) -> dict[Attribute, int]:
        return {attribute: node for node, attribute in enumerate(self.attributes, 1)}

    @cached_property
    def scale(self) -> int:
        """By what all codes are multiplied so that fractions become integers."""
        return lcm(*(c.value.denominator for c in self.constants))

    @cached_property
    def gapped(self) -> tuple[bool, ...]:
        """For each node, whether only multiples of `scale` are its values."""
        return (True, *(attribute not in self.dense for attribute in self.attributes))

    @cached_property
    def is_mixed(self) -> bool:
        return bool(self.dense) and len(self.dense) < len(self.attributes)

    def place(self, element: Element) -> tuple[int, int]:
        """Node and offset whose sum an element is."""
        if isinstance(element, Attribute):
            return self.nodes[element], 0
        return 0, int(element.value * self.scale)

    def rounded(self, i: int, j: int, bound: int) -> int:
        """The bound on a difference of two nodes, cut to what whole numbers can reach."""
        if bound == _FREE or not (self.gapped[i] and self.gapped[j]):
            return bound
        weight, weak = divmod(bound, 2)
        steps = weight // self.scale if weak else -(-weight // self.scale) - 1
        return 2 * steps * self.scale + 1

    def bounds(self, comparison: Comparison) -> Iterator[tuple[int, int, int]]:
        """The comparison as bounds (i, j, b) on node i minus node j."""
        low = comparison.ascending
        (i, c), (j, d) = self.place(low.left), self.place(low.right)
        yield i, j, self.rounded(i, j, 2 * (d - c) + (low.op != "<"))
        if low.op == "=":
            yield j, i, self.rounded(j, i, 2 * (c - d) + 1)


@dataclass(frozen=True)
class Closure:
    """A satisfiable conjunction, closed; made by `close` and narrowed by `also`."""

    frame: _Frame
    matrix: _Matrix

    @staticmethod
    def unconstrained(
        attributes: Iterable[Attribute], constants: Iterable[Constant], dense: Iterable[Attribute] = ()
    ) -> Closure:
        """The closure of the empty conjunction over the given elements."""
        frame = _Frame(tuple(attributes), tuple(sorted(constants)), frozenset(dense))
        size = len(frame.attributes) + 1
        return Closure(
            frame, tuple(tuple(_ZERO if i == j else _FREE for j in range(size)) for i in range(size))
        )

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        return self.frame.attributes

    @property
    def constants(self) -> tuple[Constant, ...]:
        return self.frame.constants

    @property
    def elements(self) -> tuple[Element, ...]:
        return (*self.frame.attributes, *self.frame.constants)

    def also(self, comparisons: Iterable[Comparison]) -> Closure | None:
        """This conjunction with more comparisons; None if nothing satisfies it any more."""
        matrix = self.matrix
        for comparison in comparisons:
            for i, j, bound in self.frame.bounds(comparison):
                if bound >= matrix[i][j]:
                    continue
                if matrix[j][i] != _FREE and _sum(bound, matrix[j][i]) < _ZERO:
                    return None
                matrix = _narrowed(matrix, i, j, bound)
                if self.frame.is_mixed:
                    rounded = self._rounded(matrix)
                    if rounded is None:
                        return None
                    matrix = rounded
        return self if matrix is self.matrix else Closure(self.frame, matrix)

    def _rounded(self, matrix: _Matrix) -> _Matrix | None:
        frame, nodes = self.frame, range(len(matrix))
        tight = tuple(tuple(frame.rounded(i, j, matrix[i][j]) for j in nodes) for i in nodes)
        if tight == matrix:
            return matrix
        rows = [list(row) for row in tight]
        for via in nodes:
            for i in nodes:
                for j in nodes:
                    if rows[i][via] != _FREE and rows[via][j] != _FREE:
                        rows[i][j] = min(rows[i][j], _sum(rows[i][via], rows[via][j]))
        if any(rows[i][i] < _ZERO for i in nodes):
            return None
        return tuple(tuple(row) for row in rows)

    def _difference(self, first: Element, second: Element) -> int:
        (i, c), (j, d) = self.frame.place(first), self.frame.place(second)
        bound = self.matrix[i][j]
        return bound if bound == _FREE else bound + 2 * (c - d)

    def relation(self, first: Element, second: Element) -> Operator | None:
        """The strongest comparison that holds between two elements; None if none does."""
        above, below = self._difference(first, second), self._difference(second, first)
        if above < _ZERO:
            return "<"
        if below < _ZERO:
            return ">"
        if above == _ZERO:
            return "=" if below == _ZERO else "<="
        return ">=" if below == _ZERO else None

    def between(self, low: Attribute, high: Attribute) -> Iterator[Element]:
        """The other elements that are never below `low` and never above `high`."""
        first, last = self.frame.nodes[low], self.frame.nodes[high]
        row = self.matrix[first]
        for node, attribute in enumerate(self.attributes, 1):
            if row[node] <= _ZERO and self.matrix[node][last] <= _ZERO and node not in (first, last):
                yield attribute
        for constant in self.constants:
            if self._difference(low, constant) <= _ZERO and self._difference(constant, high) <= _ZERO:
                yield constant

    def implies(self, comparison: Comparison) -> bool:
        """Whether the comparison holds in every solution."""
        low = comparison.ascending
        above, below = self._difference(low.left, low.right), self._difference(low.right, low.left)
        match low.op:
            case "<":
                return above < _ZERO
            case "<=":
                return above <= _ZERO
            case _:
                return above <= _ZERO and below <= _ZERO

    def predicates(self, elements: Iterable[Element] | None = None) -> Iterator[Comparison]:
        """P⁺ of all or some elements, without what is said of constants alone, written with <, <= and =."""
        for first, second in combinations(self.elements if elements is None else elements, 2):
            if isinstance(first, Attribute) or isinstance(second, Attribute):
                relation = self.relation(first, second)
                if relation is not None:
                    yield Comparison(first, relation, second).ascending

    def lower(self, attribute: Attribute) -> Bound | None:
        """The greatest lower bound of an attribute; None if it has none."""
        bound = self.matrix[0][self.frame.nodes[attribute]]
        return None if bound == _FREE else Bound(self._code(-(bound // 2)), not bound & 1)

    def upper(self, attribute: Attribute) -> Bound | None:
        """The least upper bound of an attribute; None if it has none."""
        bound = self.matrix[self.frame.nodes[attribute]][0]
        return None if bound == _FREE else Bound(self._code(bound // 2), not bound & 1)

    def _code(self, scaled: int) -> Code:
        whole, rest = divmod(scaled, self.frame.scale)
        return whole if rest == 0 else Fraction(scaled, self.frame.scale)

    def is_lower_bounded(self, attribute: Attribute) -> bool:
        return self.matrix[0][self.frame.nodes[attribute]] != _FREE

    def is_upper_bounded(self, attribute: Attribute) -> bool:
        return self.matrix[self.frame.nodes[attribute]][0] != _FREE

    def is_bounded(self, attribute: Attribute) -> bool:
        """Whether only finitely many values of the attribute satisfy the conjunction.

        Two bounds suffice where the domain has gaps. Elsewhere (section 9) the attribute must be one constant, or
        equal an attribute that has gaps and two bounds.
        """
        if not (self.is_lower_bounded(attribute) and self.is_upper_bounded(attribute)):
            return False
        if attribute not in self.frame.dense:
            return True
        node = self.frame.nodes[attribute]
        if _sum(self.matrix[0][node], self.matrix[node][0]) == _ZERO:
            return True
        return any(
            other not in self.frame.dense and self.relation(attribute, other) == "="
            for other in self.attributes
        )

    def classes(self, attributes: Iterable[Attribute]) -> list[list[Attribute]]:
        """The attributes, those that must be equal together: |X|_eq is the length of the list."""
        groups: list[list[Attribute]] = []
        for attribute in attributes:
            for group in groups:
                if self.relation(group[0], attribute) == "=":
                    group.append(attribute)
                    break
            else:
                groups.append([attribute])
        return groups


def _narrowed(matrix: _Matrix, i: int, j: int, bound: int) -> _Matrix:
    """The closed matrix after one more bound on node i minus node j."""
    beyond = [(q, reach) for q, reach in enumerate(matrix[j]) if reach != _FREE]
    rows = []
    for row in matrix:
        if row[i] == _FREE:
            rows.append(row)
            continue
        start = _sum(row[i], bound)
        narrowed = list(row)
        for q, reach in beyond:
            total = start + reach - ((start & 1) | (reach & 1))
            if total < narrowed[q]:
                narrowed[q] = total
        rows.append(tuple(narrowed))
    return tuple(rows)


def close(query: SpjQuery) -> Closure | None:
    """P⁺ of a query's predicates and of the bounds of its domains; None if no row can satisfy them."""
    dense = tuple(attribute for attribute in query.attributes if query.domain(attribute).dense)
    return _closed(query.attributes, query.constants, dense, (*query.implied, *query.predicates))


@lru_cache(maxsize=64)
def _closed(
    attributes: tuple[Attribute, ...],
    constants: tuple[Constant, ...],
    dense: tuple[Attribute, ...],
    comparisons: tuple[Comparison, ...],
) -> Closure | None:
    """The closure; remembered, since the same conditions are judged for many states, plans and edits of a query."""
    return Closure.unconstrained(attributes, constants, dense).also(comparisons)
