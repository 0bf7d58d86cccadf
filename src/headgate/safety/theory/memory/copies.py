"""Many solutions of one conjunction at once, with comparisons between neighbouring ones.

A witness needs n rows per stream that each satisfy the query and that stand in a fixed relation to their
neighbours, for instance A of each row at least B of the one before. That is again a set of bounds on
differences, with a node per copy and attribute. The greatest solution below a high enough ceiling is found
by lowering values in sweeps along the copies; a value with gaps is lowered to the next whole number, so that it may
be compared with one without.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm

from headgate.safety.theory.memory.domain import Code
from headgate.safety.theory.memory.query import Attribute, Comparison, Constant, Element, SpjQuery

Solution = Mapping[Attribute, Code]
"""A value for every attribute of a query."""

_Edge = tuple[int, int, int]  # (u, v, w): the value of node u is at most the value of node v plus w


@dataclass(frozen=True)
class _Copies:
    """Numbered nodes for every attribute of every copy, node 0 for zero, and codes scaled to integers.

    Whole numbers are multiples of `unit`; attributes without gaps have the integers between them to move in.
    """

    query: SpjQuery
    case: tuple[Comparison, ...]
    count: int
    spread: bool

    @cached_property
    def predicates(self) -> tuple[Comparison, ...]:
        return (*self.query.implied, *self.query.predicates, *self.case)

    @cached_property
    def constants(self) -> list[Code]:
        sides = (side for predicate in self.predicates for side in (predicate.left, predicate.right))
        return [side.value for side in sides if isinstance(side, Constant)] or [0]

    @cached_property
    def nodes(self) -> dict[Attribute, int]:
        return {attribute: node for node, attribute in enumerate(self.query.attributes, 1)}

    @cached_property
    def dense(self) -> frozenset[Attribute]:
        return frozenset(a for a in self.query.attributes if self.query.domain(a).dense)

    @property
    def size(self) -> int:
        return self.count * len(self.nodes) + 1

    @cached_property
    def unit(self) -> int:
        whole = lcm(*(value.denominator for value in self.constants))
        return whole * (self.size + 1) if self.dense else whole

    @property
    def ceiling(self) -> int:
        """High enough for a chain of strict comparisons through all nodes."""
        return (int(max(self.constants)) + 1 + self.size) * self.unit

    @property
    def floor(self) -> int:
        """So low that only comparisons that contradict each other lead below it."""
        return (int(min(self.constants)) - 1 - self.size) * self.unit

    @cached_property
    def ceilings(self) -> list[int]:
        """The ceiling of each node; if spread, far enough apart that no two nodes meet without a reason."""
        step = self.size * self.unit if self.spread else 0
        return [0, *(self.ceiling + node * step for node in range(1, self.size))]

    def node(self, copy: int, element: Element) -> int:
        if isinstance(element, Constant):
            return 0
        return copy * len(self.nodes) + self.nodes[element]

    def edges(self, comparison: Comparison, first: int, second: int) -> list[_Edge]:
        """The comparison between copy `first` of its left and copy `second` of its right side."""
        left, right = self.node(first, comparison.left), self.node(second, comparison.right)
        shift = self._offset(comparison.right) - self._offset(comparison.left)
        gapped = not self.dense.intersection(comparison.attributes)
        strict = comparison.op in ("<", ">")
        edges: list[_Edge] = []
        if comparison.op in ("<", "<=", "="):
            edges.append((left, right, self._weight(shift, gapped=gapped, strict=strict)))
        if comparison.op in (">", ">=", "="):
            edges.append((right, left, self._weight(-shift, gapped=gapped, strict=strict)))
        return edges

    def _offset(self, element: Element) -> int:
        return int(element.value * self.unit) if isinstance(element, Constant) else 0

    def _weight(self, weight: int, *, gapped: bool, strict: bool) -> int:
        if not gapped:
            return weight - strict
        whole = -(-weight // self.unit) - 1 if strict else weight // self.unit
        return whole * self.unit

    @cached_property
    def grains(self) -> list[int]:
        """For each node, the number of which its values are multiples."""
        each = [1 if attribute in self.dense else self.unit for attribute in self.query.attributes]
        return [1, *each * self.count]

    def code(self, scaled: int) -> Code:
        whole, rest = divmod(scaled, self.unit)
        return whole if rest == 0 else Fraction(scaled, self.unit)


def solve_copies(
    query: SpjQuery,
    case: Iterable[Comparison],
    steps: Iterable[Comparison],
    count: int,
    *,
    spread: bool = False,
) -> list[Solution] | None:
    """`count` solutions of a query's predicates and of `case`, or None if there are not that many.

    Each of `steps` holds between its left side in one solution and its right side in the next. `spread` keeps values
    apart that nothing makes equal.
    """
    copies = _Copies(query, tuple(case), count, spread)
    links = tuple(steps)
    edges: list[_Edge] = []
    for copy in range(count):
        for predicate in copies.predicates:
            edges += copies.edges(predicate, copy, copy)
        if copy + 1 < count:
            for link in links:
                edges += copies.edges(link, copy, copy + 1)
    values = _lowered(copies, edges)
    if values is None:
        return None
    return [{a: copies.code(values[copies.node(copy, a)]) for a in query.attributes} for copy in range(count)]


def _lowered(copies: _Copies, edges: list[_Edge]) -> list[int] | None:
    """The greatest values below the ceiling that keep all edges; None if none do."""
    values, grains = list(copies.ceilings), copies.grains
    changed = True
    while changed:
        changed = False
        # Bounds travel along the chain of copies in one sweep if it goes their way, so both ways are gone.
        for sweep in (edges, reversed(edges)):
            for node, other, weight in sweep:
                if values[other] + weight < values[node]:
                    most = values[other] + weight
                    values[node] = most - most % grains[node]
                    changed = True
                    if node == 0 or values[node] < copies.floor:
                        return None
    return values
