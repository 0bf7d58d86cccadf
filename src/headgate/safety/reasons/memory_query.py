"""Memory query: a block of a plan as the query that the Memory document judges.

Columns become attributes with a domain: whole numbers, dates and instants are discrete and ordered, BOOLEAN and
TINYINT finite, text with a list (IN, CHECK) finite where all that it is compared with has one too. Fractions and
other text have no gaps: an interval of them holds infinitely many values, so bounds prove nothing there. An
expression over one stream is an attribute too, about which nothing is known but what its shape (`k % 10`) and the
query say of it: to take it as independent of its columns only allows for more streams than there are.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Literal

import pyarrow as pa
from sqlglot import exp

from headgate.model import types
from headgate.model.scalar import Scalar, column
from headgate.plan.normalize import split_conjunction
from headgate.plan.sqltypes import from_sql
from headgate.safety.block import Block
from headgate.safety.reasons.constants import constant
from headgate.safety.reasons.finite_values import Values, by_type
from headgate.safety.reasons.known_values import ColumnValues
from headgate.safety.reasons.opposites import opposite
from headgate.safety.reasons.widening import beneath_widening
from headgate.safety.theory.memory.domain import Domain, ranks
from headgate.safety.theory.memory.query import (
    Attribute,
    Comparison,
    Constant,
    Element,
    Operator,
    SpjQuery,
    StreamSchema,
)

Kind = Literal["whole", "boolean", "date", "instant", "text", "dense"]

_OPERATORS: dict[type[exp.Expr], Operator] = {
    exp.LT: "<",
    exp.LTE: "<=",
    exp.EQ: "=",
    exp.GTE: ">=",
    exp.GT: ">",
}
_MIRRORED: dict[Operator, Operator] = {"<": ">", "<=": ">=", "=": "=", ">=": "<=", ">": "<"}
_EPOCH = date(1970, 1, 1)

_LARGEST = 2**61
"""Whole numbers beyond are not taken as bounds: nobody could keep a row for each value between."""
_MOST_DIGITS = 300
"""Digits before or behind the point that a constant may have and still be a DOUBLE."""


class NotAComparisonError(Exception):
    """A condition between streams that is not a comparison of two columns."""


@dataclass(frozen=True)
class Translated:
    """The query without a projection, and what its attributes and codes stand for."""

    query: SpjQuery
    scalars: Mapping[Attribute, Scalar]
    kinds: Mapping[Attribute, Kind]
    compared: frozenset[Attribute]
    """Attributes of explicit predicates: NULL there satisfies nothing."""
    values: Mapping[Attribute, tuple[str, ...]]
    """For text: the strings whose codes are 0, 1, ..."""
    checks: frozenset[str]
    """Streams whose CHECKs were believed."""
    shaped: frozenset[Attribute] = frozenset()
    """Expressions that have few values by their shape."""

    def attributes_of(self, scalar: Scalar) -> tuple[Attribute, ...]:
        """The attributes that determine a scalar: itself if something is said of it, else its columns."""
        told = self._told.get(scalar.expression)
        if told is not None:
            return (told,)
        return tuple(self._columns[name] for name in sorted(scalar.columns))

    @cached_property
    def _told(self) -> dict[exp.Expr, Attribute]:
        """The attributes of which something is said, by their expressions."""
        said: dict[exp.Expr, Attribute] = {}
        for attribute, known in self.scalars.items():
            if attribute in self.compared or attribute in self.shaped:
                said.setdefault(known.expression, attribute)
        return said

    @cached_property
    def _columns(self) -> dict[str, Attribute]:
        return {known.expression.name: a for a, known in self.scalars.items() if known.is_column}

    def projection(self, scalars: Iterable[Scalar]) -> tuple[Attribute, ...]:
        """The attributes that determine several scalars, each once."""
        return tuple(dict.fromkeys(a for scalar in scalars for a in self.attributes_of(scalar)))


def translate(
    block: Block, outputs: Iterable[Scalar], *, checks: bool, lenient: bool = False, exact: bool = False
) -> Translated:
    """The block's query; `outputs` are scalars that shall be attributes too.

    A condition between streams that is not a comparison raises NotAComparisonError, or if `lenient` is left out. If
    `exact`, a condition on one stream that is not understood in full raises it too.
    """
    return _Translation(block, tuple(outputs), checks, lenient, exact).result()


@dataclass
class _Translation:
    block: Block
    outputs: tuple[Scalar, ...]
    checks: bool
    lenient: bool
    exact: bool
    scalars: dict[Attribute, Scalar] = field(default_factory=dict)
    kinds: dict[Attribute, Kind] = field(default_factory=dict)
    types: dict[Attribute, pa.DataType] = field(default_factory=dict)
    found: list[tuple[Attribute, Operator, Attribute | Hashable]] = field(default_factory=list)
    lists: dict[Attribute, tuple[str, ...]] = field(default_factory=dict)
    compared: set[Attribute] = field(default_factory=set)
    shapes: dict[Attribute, Values] = field(default_factory=dict)

    def result(self) -> Translated:
        for predicate in self.block.predicates:
            before = len(self.found)
            joins = len(self.block.owners(predicate)) > 1 and not self.lenient
            understood = self._understood(predicate.expression)
            if self.exact and isinstance(predicate.expression, exp.In):
                understood = False
            if not understood and (joins or self.exact):
                raise NotAComparisonError(predicate.show())
            if isinstance(predicate.expression, exp.Or):
                self._note_alternatives(predicate)
            for left, _, right in self.found[before:]:
                self.compared.update(side for side in (left, right) if isinstance(side, Attribute))
        if self.checks:
            for scan in self.block.scans:
                names = {column.name: f"{scan.name}.{column.name}" for column in scan.stream.columns}
                for check in scan.stream.checks:
                    for part in split_conjunction(check.rename(names)):
                        if self._is_filled(part):
                            self._understood(part.expression)
        for scalar in self.outputs:
            if not self._is_shaped(scalar):
                for name in sorted(scalar.columns):
                    self._attribute(column(name))
        for attribute, scalar in self.scalars.items():
            if not scalar.is_column:
                self._note_shape(attribute, scalar)
        return self._assembled()

    # -- shapes -----------------------------------------------------------------------------------

    def _is_shaped(self, scalar: Scalar) -> bool:
        """Whether an output is an expression of one stream with few values, and is an attribute as such."""
        if scalar.is_column or len(self.block.owners(scalar)) != 1 or not self._by_shape(scalar).finite:
            return False
        attribute = self._attribute(scalar.expression)
        return attribute is not None and self._note_shape(attribute, self.scalars[attribute])

    def _note_shape(self, attribute: Attribute, scalar: Scalar) -> bool:
        """Notes between which codes an expression stays, or which texts it is; False if that is not known."""
        values, kind = self._by_shape(scalar), self.kinds[attribute]
        if kind == "text" and values.listed:
            self.lists.setdefault(attribute, tuple(sorted(map(str, values.listed))))
        elif kind != "boolean" and not (
            kind == "whole" and values.low is not None and values.high is not None
        ):
            return False
        self.shapes[attribute] = values
        return True

    def _by_shape(self, scalar: Scalar) -> Values:
        return self._filtered.of(scalar.expression)

    @cached_property
    def _filtered(self) -> ColumnValues:
        """What is known of rows that have passed the conditions on their own stream."""
        own = [each.expression for each in self.block.predicates if len(self.block.owners(each)) == 1]
        return ColumnValues(self._types, {}).where(own)

    @cached_property
    def _types(self) -> dict[str, pa.DataType]:
        return {column.name: column.type for scan in self.block.scans for column in scan.schema}

    # -- reading ----------------------------------------------------------------------------------

    def _understood(self, node: exp.Expr) -> bool:
        """Notes what a condition says; False if it says nothing that is understood."""
        match node:
            case exp.Paren():
                return self._understood(node.this)
            case exp.Column():
                return self._note(node, "=", True)
            case exp.Not():
                return self._negated(node.this)
            case exp.In():
                return self._listed(node)
        op = _OPERATORS.get(type(node))
        if op is None:
            return False
        left, right = node.this, node.expression
        if constant(left) is not None:
            left, right, op = right, left, _MIRRORED[op]
        value = constant(right)
        if value is not None:
            return self._note(left, op, value)
        first, second = self._attribute(left), self._attribute(right)
        if first is None or second is None or self.kinds[first] != self.kinds[second]:
            return False
        self.found.append((first, op, second))
        return True

    def _negated(self, node: exp.Expr) -> bool:
        """Notes what a condition says where it is false."""
        match node:
            case exp.Paren():
                return self._negated(node.this)
            case exp.Not():
                return self._understood(node.this)
            case exp.Column():
                return self._note(node, "=", False)
            case exp.Or():
                parts = [self._negated(part) for part in node.flatten()]
                return all(parts)
        turned = opposite(node)
        return turned is not None and self._understood(turned)

    def _note(self, node: exp.Expr, op: Operator, value: Hashable) -> bool:
        """A comparison with a constant; one with a fraction is moved to the next whole number."""
        attribute = self._attribute(beneath_widening(node, self._type))
        if attribute is None:
            return False
        kind = self.kinds[attribute]
        if kind == "whole" and isinstance(value, Decimal):
            if op == "=":
                return False
            value = value.__ceil__() if op in (">", ">=") else value.__floor__()
            op = ">=" if op in (">", ">=") else "<="
        if not _fits(kind, value):
            return False
        if kind == "text" and op == "=":
            assert isinstance(value, str)
            self.lists[attribute] = (value,)
        self.found.append((attribute, op, value))
        return True

    def _listed(self, node: exp.In) -> bool:
        attribute = self._attribute(beneath_widening(node.this, self._type))
        values = [constant(each) for each in node.expressions]
        if attribute is None or not values or any(value is None for value in values):
            return False
        kind = self.kinds[attribute]
        if kind == "text" and all(isinstance(value, str) for value in values):
            known = self.lists.get(attribute)
            listed = tuple(sorted({str(value) for value in values}))
            self.lists[attribute] = (
                listed if known is None else tuple(v for v in listed if v in known) or known
            )
            return True
        if kind == "whole":
            # A fraction equals no whole number.
            values = [value for value in values if not isinstance(value, Decimal) or value % 1 == 0]
            values = [int(value) if isinstance(value, Decimal) else value for value in values]
        if kind in ("whole", "date", "boolean") and values and all(_fits(kind, value) for value in values):
            codes = sorted(((_code(kind, value), value) for value in values), key=lambda each: each[0])
            self.found.append((attribute, ">=", codes[0][1]))
            self.found.append((attribute, "<=", codes[-1][1]))
            return True
        return False

    def _is_filled(self, check: Scalar) -> bool:
        """Whether a CHECK is true, and not NULL, of rows in which one column of it is not NULL.

        A row with NULL keeps it: of `a = b` with NULL in b nothing is known of a, unless no condition lets NULL pass.
        """
        if len(check.columns) < 2:
            return True
        return all(self._attribute(column(name)) in self.compared for name in check.columns)

    def _note_alternatives(self, predicate: Scalar) -> None:
        """Notes what conditions joined by OR say of columns: a list, or bounds."""
        told = ColumnValues(self._types, {}).where([predicate.expression])
        for name in sorted(predicate.columns):
            attribute, values = self._attribute(column(name)), told.column(name)
            # An attribute that is compared is not NULL.
            if attribute is None or values.nullable:
                continue
            kind, listed = self.kinds[attribute], values.listed
            if kind == "text" and listed and attribute not in self.lists:
                self.lists[attribute] = tuple(sorted(map(str, listed)))
            elif kind == "whole" and not values.empty:
                bounds: tuple[tuple[Operator, int | None], ...] = ((">=", values.low), ("<=", values.high))
                self.found += [(attribute, op, bound) for op, bound in bounds if bound is not None]

    def _attribute(self, node: exp.Expr) -> Attribute | None:
        """The attribute that an expression over one stream is."""
        node = beneath_widening(node, self._type)
        dtype = self._type(node)
        if dtype is None:
            return None
        scalar = Scalar(node, dtype)
        owners = self.block.owners(scalar)
        if len(owners) != 1:
            return None
        (owner,) = owners
        if scalar.is_column:
            attribute = Attribute(owner, node.name[len(owner) + 1 :])
        else:
            bare = scalar.rename({name: name[len(owner) + 1 :] for name in scalar.columns})
            attribute = Attribute(owner, f"({bare.show()})")
        self.scalars.setdefault(attribute, scalar)
        self.kinds[attribute] = _kind(dtype)
        self.types[attribute] = dtype
        return attribute

    def _type(self, node: exp.Expr) -> pa.DataType | None:
        if isinstance(node, exp.Column):
            for scan in self.block.scans:
                if node.name in scan.names:
                    return scan.type_of(node.name)
            return None
        if isinstance(node, exp.Cast):
            return from_sql(node.to)
        known = next((o.type for o in self.outputs if o.expression == node), None)
        if known is not None:
            return known
        return from_sql(node.type) if isinstance(node.type, exp.DataType) else None

    # -- putting together -------------------------------------------------------------------------

    def _assembled(self) -> Translated:
        names: dict[str, dict[str, None]] = {}
        for attribute in self.scalars:
            stream = next(s.stream.name for s in self.block.scans if s.name == attribute.stream)
            names.setdefault(stream, {})[attribute.name] = None
        values = self._text_values()
        comparisons = []
        for left, op, right in self.found:
            element: Element
            if isinstance(right, Attribute):
                element = right
            elif self.kinds[left] == "text":
                element = Constant(values[left].index(str(right)))
            else:
                element = Constant(_code(self.kinds[left], right))
            comparisons.append(Comparison(left, op, element))
        streams = []
        for scan in self.block.scans:
            listed = tuple(names.get(scan.stream.name, ()))
            domains = tuple((name, self._domain(Attribute(scan.name, name), values)) for name in listed)
            streams.append(StreamSchema(scan.stream.name, listed, scan.name, domains))
        query = SpjQuery(tuple(streams), tuple(dict.fromkeys(comparisons)))
        believed = {scan.stream.name for scan in self.block.scans if scan.stream.checks and self.checks}
        return Translated(
            query,
            self.scalars,
            self.kinds,
            frozenset(self.compared),
            values,
            frozenset(believed),
            frozenset(self.shapes),
        )

    def _domain(self, attribute: Attribute, values: Mapping[Attribute, tuple[str, ...]]) -> Domain:
        kind = self.kinds.get(attribute)
        if kind is None:
            # Another occurrence of the stream has it; here nothing mentions it.
            alike = next(a for a in self.scalars if a.name == attribute.name and self._same(a, attribute))
            kind = self.kinds[alike]
            return Domain.continuous() if kind in ("text", "dense") else Domain.integers()
        match kind:
            case "boolean":
                return Domain.integers(0, 1)
            case "whole" if attribute in self.shapes:
                low, high = self.shapes[attribute].low, self.shapes[attribute].high
                # Where there is no value at all, one too many does no harm.
                return Domain.integers(low, high if low is None or high is None else max(low, high))
            case "whole" if by_type(self.types[attribute]).finite:
                typed = by_type(self.types[attribute])
                return Domain.integers(typed.low, typed.high)
            case "text" if self._all_listed(attribute):
                return Domain.integers(0, len(values[attribute]) - 1)
            case "text" | "dense":
                return Domain.continuous()
        return Domain.integers()

    def _same(self, one: Attribute, two: Attribute) -> bool:
        streams = {scan.name: scan.stream.name for scan in self.block.scans}
        return streams[one.stream] == streams[two.stream]

    def _component(self, attribute: Attribute) -> set[Attribute]:
        """The attributes that comparisons connect it with."""
        reached, waiting = {attribute}, [attribute]
        while waiting:
            current = waiting.pop()
            for left, _, right in self.found:
                if isinstance(right, Attribute) and current in (left, right):
                    for other in (left, right):
                        if other not in reached:
                            reached.add(other)
                            waiting.append(other)
        return reached

    def _all_listed(self, attribute: Attribute) -> bool:
        return all(each in self.lists for each in self._component(attribute))

    def _text_values(self) -> dict[Attribute, tuple[str, ...]]:
        """For each attribute of text, all strings that it and those compared with it are compared with, in order."""
        found = {}
        for attribute in (each for each, kind in self.kinds.items() if kind == "text"):
            connected = self._component(attribute)
            strings = {value for each in connected for value in self.lists.get(each, ())}
            strings |= {str(c) for a, _, c in self.found if a in connected and not isinstance(c, Attribute)}
            found[attribute] = tuple(ranks(strings))
        return found


def _kind(dtype: pa.DataType) -> Kind:
    if types.is_integer(dtype):
        return "whole"
    if pa.types.is_boolean(dtype):
        return "boolean"
    if pa.types.is_date(dtype):
        return "date"
    if pa.types.is_timestamp(dtype):
        return "instant"
    return "text" if pa.types.is_string(dtype) else "dense"


def _fits(kind: Kind, value: Hashable) -> bool:
    match kind:
        case "boolean":
            return isinstance(value, bool)
        case "whole":
            return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LARGEST
        case "date":
            return isinstance(value, date)
        case "text":
            return isinstance(value, str)
        case "dense":
            number = isinstance(value, (int, Decimal)) and not isinstance(value, bool)
            return number and abs(Decimal(str(value)).adjusted()) <= _MOST_DIGITS
    return False


def _code(kind: Kind, value: Hashable) -> int | Fraction:
    match value:
        case date():
            return (value - _EPOCH).days
        case bool() | int():
            return int(value) if kind != "dense" else Fraction(value)
        case Decimal():
            return Fraction(value)
    raise AssertionError(f"{value!r} has no code")
