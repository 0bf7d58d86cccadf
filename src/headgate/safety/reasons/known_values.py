"""Known values: what is known of expressions over an edge's columns, and what conditions add to it.

```
c = 'x' OR c = 'y'               c is 'x' or 'y'
upper(c) IN ('A', 'B')           upper(c) is, wherever it is computed above
k % 10 = 3 AND k BETWEEN 0 AND 5 k % 10 is 3, k is from 0 to 5
k > 5 AND k < 3                  nothing: no row satisfies it
```

Sound because a row passes only if every condition is true of it: what is not understood is left out, and of several
conditions joined by OR only what all of them say is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce

import pyarrow as pa
from sqlglot import exp

from headgate.model import types
from headgate.model.scalar import column
from headgate.plan.functions import BY_CLASS
from headgate.plan.nodes import TableScan
from headgate.plan.sqltypes import from_sql
from headgate.safety.reasons.constants import constant
from headgate.safety.reasons.finite_values import ONLY_NULL, Values, together, values_of
from headgate.safety.reasons.opposites import opposite
from headgate.safety.reasons.widening import beneath_widening

_ORDER: Mapping[type[exp.Expr], str] = {exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_LARGEST = 2**61
"""Whole numbers beyond are not taken as bounds."""
_ROUNDS = 4
"""How often conditions are read over, as one may say something of what another compares."""


@dataclass(frozen=True)
class ColumnValues:
    """What is known of expressions over an edge's columns, and whether any row can come at all."""

    types: dict[str, pa.DataType]
    known: dict[exp.Expr, Values]
    empty: bool = False

    def of(self, node: exp.Expr) -> Values:
        """What is known of an expression."""
        return values_of(node, self.known, self.types.__getitem__)

    def column(self, name: str) -> Values:
        return self.of(column(name))

    def count(self, columns: Iterable[str]) -> tuple[int, frozenset[TableScan]] | None:
        """How many different rows there are in some columns, for each row of tables; None if there is no limit."""
        if self.empty:
            return 0, frozenset()
        return together(self.column(name) for name in columns)

    def where(self, conditions: Iterable[exp.Expr]) -> ColumnValues:
        """What is known of the rows for which conditions are true."""
        parts = list(conditions)
        found = self
        # What one condition says of a column may be news for another that compares it.
        for _ in range(min(len(parts), _ROUNDS)):
            before, found = found.known, reduce(_add, parts, found)
            if before == found.known or found.empty:
                break
        return found

    def narrowed(self, node: exp.Expr, values: Values) -> ColumnValues:
        """The same, with something more known of one expression."""
        met = self.of(node).met(values)
        if self.known.get(node) == met:
            return self
        return ColumnValues(self.types, self.known | {node: met}, self.empty or met.empty)


def _add(found: ColumnValues, node: exp.Expr) -> ColumnValues:
    """What is known of the rows for which one more condition is true."""
    match node:
        case exp.Paren():
            return _add(found, node.this)
        case exp.And():
            return _add(_add(found, node.this), node.expression)
        case exp.Or():
            return _either(found, node)
        case exp.Boolean() if not node.this:
            return ColumnValues(found.types, found.known, empty=True)
        case exp.Null():
            return ColumnValues(found.types, found.known, empty=True)
        case exp.Column():
            return found.narrowed(node, Values.of([True]))
        case exp.Not():
            return _negated(found, node.this)
        case exp.In():
            return _listed(found, node)
        case exp.EQ() | exp.NullSafeEQ():
            return _equated(found, node)
        case exp.Is(expression=exp.Null()):
            return found.narrowed(_bare(found, node.this), ONLY_NULL)
    if type(node) in _ORDER:
        return _ordered(found, node)
    return found


def _either(found: ColumnValues, node: exp.Or) -> ColumnValues:
    """One of several is true: of each expression that all speak of, one of what they say."""
    parts: list[exp.Expr] = []
    pending: list[exp.Expr] = [node]
    while pending:
        each = pending.pop()
        if isinstance(each, exp.Paren):
            pending.append(each.this)
        elif isinstance(each, exp.Or):
            pending += [each.expression, each.this]
        else:
            parts.append(each)
    told = [case for part in parts if not (case := _add(found, part)).empty]
    if not told:
        return ColumnValues(found.types, found.known, empty=True)
    shared = set(told[0].known).intersection(*(each.known for each in told[1:]))
    for expression in sorted(shared, key=lambda each: each.sql()):
        values = reduce(Values.joined, (each.known[expression] for each in told))
        found = found.narrowed(expression, values)
    return found


def _negated(found: ColumnValues, node: exp.Expr) -> ColumnValues:
    while isinstance(node, exp.Paren):
        node = node.this
    match node:
        case exp.Column():
            return found.narrowed(node, Values.of([False]))
        case exp.Boolean() if node.this:
            return ColumnValues(found.types, found.known, empty=True)
        case exp.Is(expression=exp.Null()):
            return found.narrowed(_bare(found, node.this), Values(nullable=False))
        case exp.Not():
            return _add(found, node.this)
        case exp.Or():
            return _negated(_negated(found, node.this), node.expression)
    turned = opposite(node)
    return found if turned is None else _add(found, turned)


def _listed(found: ColumnValues, node: exp.In) -> ColumnValues:
    values = [constant(each) for each in node.expressions]
    if any(value is None for value in values):
        # NULL in a list equals nothing; anything else that is no constant may be any value.
        if not all(
            isinstance(each, exp.Null) or _is_null(each)
            for each in node.expressions
            if constant(each) is None
        ):
            return found
        values = [value for value in values if value is not None]
    operand = _bare(found, node.this)
    return found.narrowed(operand, _constants(found, operand, values))


def _is_null(node: exp.Expr) -> bool:
    while isinstance(node, (exp.Cast, exp.Paren)):
        node = node.this
    return isinstance(node, exp.Null)


def _equated(found: ColumnValues, node: exp.Expr) -> ColumnValues:
    left, right = node.this, node.expression
    if constant(left) is not None:
        left, right = right, left
    value, operand = constant(right), _bare(found, left)
    if value is not None:
        return found.narrowed(operand, _constants(found, operand, [value]))
    strict = isinstance(node, exp.EQ)
    if _is_null(left) or _is_null(right):
        other = _bare(found, right if _is_null(left) else left)
        return (
            ColumnValues(found.types, found.known, empty=True) if strict else found.narrowed(other, ONLY_NULL)
        )
    other = _bare(found, right)
    filled = Values(nullable=not strict)
    one, two = found.of(operand).met(filled), found.of(other).met(filled)
    if _kind(found, operand) != _kind(found, other):
        # Equal values of other types are as many, but are written otherwise.
        one, two = (Values(each.count, each.nullable, tables=each.tables) for each in (one, two))
    return found.narrowed(operand, two).narrowed(other, one)


def _ordered(found: ColumnValues, node: exp.Expr) -> ColumnValues:
    """A bound on a whole number or on a date; of other types, that the value is not NULL."""
    left, right, op = node.this, node.expression, _ORDER[type(node)]
    if constant(left) is not None:
        left, right, op = right, left, _MIRRORED[op]
    operand, value = _bare(found, left), constant(right)
    filled = found.narrowed(operand, Values(nullable=False))
    kind = _kind(found, operand)
    if value is None:
        return filled.narrowed(_bare(found, right), Values(nullable=False))
    if isinstance(value, Decimal) and kind == "whole":
        up = op in (">", ">=")
        value, op = (value.__ceil__(), ">=") if up else (value.__floor__(), "<=")
    listed = Values.of([value])
    bound = listed.low if listed.low == listed.high else None
    if (
        kind not in ("whole", "date")
        or bound is None
        or isinstance(value, (bool, Decimal))
        or abs(bound) > _LARGEST
    ):
        return filled
    match op:
        case "<":
            return filled.narrowed(operand, Values(nullable=False, high=bound - 1))
        case "<=":
            return filled.narrowed(operand, Values(nullable=False, high=bound))
        case ">":
            return filled.narrowed(operand, Values(nullable=False, low=bound + 1))
    return filled.narrowed(operand, Values(nullable=False, low=bound))


def _constants(found: ColumnValues, operand: exp.Expr, values: Sequence[object]) -> Values:
    """One of some constants; which one it is counts only where a value is written in one way."""
    kind = _kind(found, operand)
    exact = {"whole": int, "date": object, "text": str, "boolean": bool}.get(kind)
    if exact is None:
        # 0.0 equals -0.0.
        return Values(len(values) + 1 if values else 0, nullable=False)
    return Values.of([value for value in values if isinstance(value, exact)])


def _kind(found: ColumnValues, node: exp.Expr) -> str:
    """What type of values an expression has, as far as it matters here."""
    match node:
        case exp.Column():
            dtype: pa.DataType | None = found.types.get(node.name)
        case exp.Cast():
            dtype = from_sql(node.to)
        case _ if type(node) in BY_CLASS and not callable(BY_CLASS[type(node)].result):
            dtype = BY_CLASS[type(node)].result
        case _:
            dtype = from_sql(node.type) if isinstance(node.type, exp.DataType) else None
    if dtype is None:
        return "other"
    if types.is_integer(dtype):
        return "whole"
    if pa.types.is_boolean(dtype):
        return "boolean"
    if pa.types.is_date(dtype):
        return "date"
    return "text" if pa.types.is_string(dtype) else "other"


def _bare(found: ColumnValues, node: exp.Expr) -> exp.Expr:
    """The expression beneath conversions of whole numbers to wider ones, which change no comparison."""

    def type_of(inner: exp.Expr) -> pa.DataType | None:
        if isinstance(inner, exp.Cast):
            return from_sql(inner.to)
        return found.types.get(inner.name) if isinstance(inner, exp.Column) else None

    return beneath_widening(node, type_of)
