"""SpjQuery: π_L σ_P (S1 × … × Sn) over occurrences of streams, the shape that the Memory document judges
(section 3)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Literal

from headgate.safety.theory.memory.domain import INTEGERS, Code, Domain

Operator = Literal["<", "<=", "=", ">=", ">"]

_MIRRORED: dict[Operator, Operator] = {"<": ">", "<=": ">=", "=": "=", ">=": "<=", ">": "<"}


@dataclass(frozen=True, order=True)
class Attribute:
    """A column of one occurrence of a stream."""

    stream: str
    name: str

    def __str__(self) -> str:
        return f"{self.stream}.{self.name}"


@dataclass(frozen=True, order=True)
class Constant:
    """A constant of the query, as a code of the domain it is compared in."""

    value: Code

    def __str__(self) -> str:
        return str(self.value)


Element = Attribute | Constant


@dataclass(frozen=True)
class Comparison:
    """`left op right`.

    The document has <, = and > only and turns ≤ into < by moving an integer constant. Here ≤ stays what it is: moving
    is wrong where the domain has no gaps, and there is no constant to move between two attributes.
    """

    left: Element
    op: Operator
    right: Element

    @property
    def mirrored(self) -> Comparison:
        """The same comparison with its sides exchanged."""
        return Comparison(self.right, _MIRRORED[self.op], self.left)

    @property
    def ascending(self) -> Comparison:
        """The same comparison written with <, <= or =."""
        return self.mirrored if self.op in (">", ">=") else self

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        return tuple(side for side in (self.left, self.right) if isinstance(side, Attribute))

    @property
    def streams(self) -> frozenset[str]:
        """Occurrences that it speaks of: one for a filter, two for a join."""
        return frozenset(attribute.stream for attribute in self.attributes)

    def __str__(self) -> str:
        return f"{self.left} {self.op} {self.right}"


@dataclass(frozen=True)
class StreamSchema:
    """One occurrence of a stream in FROM; `domains` names the attributes that are not plain integers.

    A self join lists the same `stream` several times under different `alias`es.
    """

    stream: str
    attributes: tuple[str, ...]
    alias: str = ""
    domains: tuple[tuple[str, Domain], ...] = ()

    def __post_init__(self) -> None:
        if len(set(self.attributes)) != len(self.attributes):
            raise ValueError(f"an attribute occurs twice in {self.stream}{self.attributes}")
        for name, _ in self.domains:
            if name not in self.attributes:
                raise ValueError(f"{self.stream} has no attribute {name}")

    @property
    def occurrence(self) -> str:
        """The name by which predicates call this occurrence."""
        return self.alias or self.stream

    @property
    def elements(self) -> tuple[Attribute, ...]:
        return tuple(Attribute(self.occurrence, name) for name in self.attributes)

    def domain(self, name: str) -> Domain:
        return dict(self.domains).get(name, INTEGERS)


@dataclass(frozen=True)
class SpjQuery:
    """A conjunctive select-project-join query; `distinct` tells duplicate-eliminating from duplicate-preserving.

    A filter that is not such a comparison may be left out: it is applied before anything is remembered, and what is
    bounded on every input is bounded on a filtered one. A join predicate must not be left out.
    """

    streams: tuple[StreamSchema, ...]
    predicates: tuple[Comparison, ...]
    projection: tuple[Attribute, ...] = ()
    distinct: bool = False

    def __post_init__(self) -> None:
        names = [schema.occurrence for schema in self.streams]
        if not names:
            raise ValueError("a query reads at least one stream")
        if len(set(names)) != len(names):
            raise ValueError(f"two occurrences have one name: {', '.join(names)}")
        known = set(self.attributes)
        used = [a for p in self.predicates for a in p.attributes] + list(self.projection)
        for attribute in used:
            if attribute not in known:
                raise ValueError(f"no stream has the attribute {attribute}")
        for predicate in self.predicates:
            lists = {self.domain(a).values for a in predicate.attributes}
            if len(lists) > 1:
                raise ValueError(f"{predicate}: codes of different lists of values cannot be compared")

    @cached_property
    def attributes(self) -> tuple[Attribute, ...]:
        """All attributes of all occurrences, in order."""
        return tuple(attribute for schema in self.streams for attribute in schema.elements)

    @cached_property
    def _schemas(self) -> dict[str, StreamSchema]:
        return {schema.occurrence: schema for schema in self.streams}

    def schema(self, occurrence: str) -> StreamSchema:
        return self._schemas[occurrence]

    def domain(self, attribute: Attribute) -> Domain:
        return self._schemas[attribute.stream].domain(attribute.name)

    @cached_property
    def implied(self) -> tuple[Comparison, ...]:
        """What the domains add to the predicates: a least and a greatest code."""
        bounds: list[Comparison] = []
        for attribute in self.attributes:
            domain = self.domain(attribute)
            if domain.low is not None:
                bounds.append(Comparison(Constant(domain.low), "<=", attribute))
            if domain.high is not None:
                bounds.append(Comparison(attribute, "<=", Constant(domain.high)))
        return tuple(bounds)

    @cached_property
    def constants(self) -> tuple[Constant, ...]:
        """Constants of predicates and domains, ascending."""
        found = {
            side
            for predicate in (*self.predicates, *self.implied)
            for side in (predicate.left, predicate.right)
            if isinstance(side, Constant)
        }
        return tuple(sorted(found))

    @property
    def has_self_join(self) -> bool:
        return len({schema.stream for schema in self.streams}) < len(self.streams)

    def projecting(self, attributes: tuple[Attribute, ...], *, distinct: bool) -> SpjQuery:
        """The same query with another projection."""
        return replace(self, projection=attributes, distinct=distinct)


def integer_at_or_below(code: Code) -> int:
    """The greatest integer that is not above a code."""
    return code if isinstance(code, int) else Fraction(code).__floor__()


def integer_at_or_above(code: Code) -> int:
    """The least integer that is not below a code."""
    return code if isinstance(code, int) else Fraction(code).__ceil__()
