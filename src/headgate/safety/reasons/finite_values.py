"""Finite values: how many values an expression can have, from its shape and from what is known of its columns.

```
k % 10          -9 … 9               v > 3           FALSE, TRUE          CASE … THEN 'a' ELSE 'b' END    'a', 'b'
hour(ts)        0 … 23               k % 10 + 1      -8 … 10              upper(c)       as many as c has
```

Sound because every function of the language gives equal values for equal arguments: an expression has no more values
than its arguments have together, and each rule below only narrows that down by the range or the list of its results.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from math import prod

import pyarrow as pa
from sqlglot import exp

from headgate.model import types
from headgate.plan.functions import BY_CLASS
from headgate.plan.nodes import TableScan
from headgate.plan.sqltypes import from_sql
from headgate.safety.reasons.constants import constant

_EPOCH = date(1970, 1, 1)
_LARGEST = 2**61
"""Whole numbers beyond are not taken as bounds."""
_LONGEST_LIST = 10_000
"""A longer list of values is only counted."""


@dataclass(frozen=True)
class Values:
    """What is known of the values of an expression.

    `count` is how many there are besides NULL for each row of the `tables`; None if there is no limit. `low` and
    `high` are bounds of whole numbers, or of dates as days since 1970; `listed` are the values themselves, if known.
    """

    count: int | None = None
    nullable: bool = True
    low: int | None = None
    high: int | None = None
    listed: frozenset[Hashable] | None = None
    tables: frozenset[TableScan] = frozenset()

    @staticmethod
    def between(low: int | None, high: int | None, *, nullable: bool = True) -> Values:
        """Whole numbers from `low` to `high`."""
        count = None if low is None or high is None else max(0, high - low + 1)
        return Values(count, nullable, low, high)

    @staticmethod
    def of(values: Iterable[Hashable], *, nullable: bool = False) -> Values:
        """The listed values."""
        listed = frozenset(values)
        codes = [_code(value) for value in listed]
        known = [code for code in codes if code is not None]
        low, high = (min(known), max(known)) if listed and len(known) == len(codes) else (None, None)
        return Values(len(listed), nullable, low, high, listed if len(listed) <= _LONGEST_LIST else None)

    @staticmethod
    def some(count: int | None) -> Values:
        """So many values, whichever they are."""
        return Values(count)

    @property
    def finite(self) -> bool:
        return self.count is not None

    @property
    def empty(self) -> bool:
        """Whether there is no such value, not even NULL."""
        return self.count == 0 and not self.nullable

    @property
    def total(self) -> int:
        """How many values there are with NULL, for each row of the tables."""
        assert self.count is not None
        # Where each row of a table gives one value, NULL is the value of some of them.
        one_a_row = bool(self.tables) and self.count == 1
        return self.count + (self.nullable and not one_a_row)

    def met(self, other: Values) -> Values:
        """What is known of a value of which both are true."""
        listed = self.listed
        if other.listed is not None:
            listed = other.listed if listed is None else listed & other.listed
        low = max((each for each in (self.low, other.low) if each is not None), default=None)
        high = min((each for each in (self.high, other.high) if each is not None), default=None)
        if listed is not None:
            listed = frozenset(each for each in listed if _within(each, low, high))
        nullable = self.nullable and other.nullable
        counted = [each for each in (self, other) if each.count is not None]
        # Numbers are better than sizes of tables, which are not known yet.
        limits = [each.count for each in counted if each.count is not None and not each.tables]
        limits += [] if low is None or high is None else [max(0, high - low + 1)]
        limits += [] if listed is None else [len(listed)]
        if limits or not counted:
            return Values(min(limits, default=None), nullable, low, high, listed)
        best = min(counted, key=lambda each: (len(each.tables), each.total))
        return Values(best.count, nullable, low, high, listed, best.tables)

    def joined(self, other: Values) -> Values:
        """What is known of a value of which one of the two is true."""
        if self.count == 0:
            return replace(other, nullable=self.nullable or other.nullable)
        if other.count == 0:
            return replace(self, nullable=self.nullable or other.nullable)
        low = None if self.low is None or other.low is None else min(self.low, other.low)
        high = None if self.high is None or other.high is None else max(self.high, other.high)
        nullable, tables = self.nullable or other.nullable, self.tables | other.tables
        if self.listed is not None and other.listed is not None:
            listed = self.listed | other.listed
            return Values(len(listed), nullable, low, high, listed, tables)
        count = None if self.count is None or other.count is None else self.count + other.count
        return Values(count, nullable, low, high, None, tables)


NOTHING = Values(0, nullable=False)
ONLY_NULL = Values(0)
EITHER = Values(2, True, 0, 1, frozenset((False, True)))

Known = Mapping[exp.Expr, Values]
"""What is known of expressions, columns among them."""


def by_type(dtype: pa.DataType) -> Values:
    """What a type says of its values; of types with very many, nothing."""
    if pa.types.is_boolean(dtype):
        return EITHER
    if dtype == pa.int8():
        return Values.between(-(2**7), 2**7 - 1)
    if dtype == pa.int16():
        return Values.between(-(2**15), 2**15 - 1)
    return Values()


def values_of(node: exp.Expr, known: Known, type_of: Callable[[str], pa.DataType]) -> Values:
    """What is known of the values of a bound expression over columns with these types."""
    return _Reading(known, type_of).values(node)


def together(values: Iterable[Values]) -> tuple[int, frozenset[TableScan]] | None:
    """How many combinations of values there are, for each row of the tables; None if there is no limit."""
    listed = list(values)
    if not all(each.finite for each in listed):
        return None
    return prod(each.total for each in listed), frozenset(t for each in listed for t in each.tables)


_ALWAYS_FILLED = (exp.Is, exp.NullSafeEQ, exp.NullSafeNEQ, exp.EqualNull)
_CONDITIONS = (
    *(exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE),
    *(exp.In, exp.Like, exp.ILike, exp.RegexpLike),
)
_PARTS: Mapping[type[exp.Expr], tuple[int, int]] = {
    exp.Quarter: (1, 4),
    exp.Month: (1, 12),
    exp.Day: (1, 31),
    exp.DayOfMonth: (1, 31),
    exp.DayOfWeek: (1, 7),
    exp.DayOfYear: (1, 366),
    exp.WeekOfYear: (1, 53),
    exp.Hour: (0, 23),
    exp.Minute: (0, 59),
    exp.Second: (0, 59),
}
"""Parts of a date or of an instant, and from where to where they go."""
_SIGNS = 5
"""-1, 0, 1, and what SIGN makes of -0.0 and NaN."""


@dataclass(frozen=True)
class _Reading:
    known: Known
    type_of: Callable[[str], pa.DataType]

    def values(self, node: exp.Expr) -> Values:
        while isinstance(node, exp.Paren):
            node = node.this
        found = self._by_shape(node)
        told = self.known.get(node) if self.known else None
        if told is not None:
            found = found.met(told)
        if not found.finite and not isinstance(node, exp.Column):
            found = found.met(self._by_columns(node))
        return found

    def _by_columns(self, node: exp.Expr) -> Values:
        """As many as the columns have values together."""
        columns = {each.name: each for each in node.find_all(exp.Column)}
        limit = together(self.values(each) for each in columns.values())
        return Values() if limit is None else Values(limit[0], tables=limit[1])

    def _by_shape(self, node: exp.Expr) -> Values:
        if isinstance(node, exp.Column):
            return by_type(self.type_of(node.name))
        value = constant(node)
        if value is not None:
            return Values.of([value])
        if isinstance(node, _ALWAYS_FILLED):
            return replace(EITHER, nullable=False)
        if isinstance(node, _CONDITIONS):
            return EITHER
        if type(node) in _PARTS:
            return Values.between(*_PARTS[type(node)])
        match node:
            case exp.Null():
                return ONLY_NULL
            case exp.Cast():
                return self._cast(node)
            case exp.Case():
                return self._any_of([*(each.args["true"] for each in node.args["ifs"]), node.args["default"]])
            case exp.Coalesce():
                return self._first_filled([node.this, *node.expressions])
            case exp.Nvl2():
                return self._any_of([node.args["true"], node.args["false"]])
            case exp.Nullif():
                return replace(self.values(node.this), nullable=True)
            case exp.Greatest() | exp.Least():
                return self._any_of([node.this, *node.expressions])
            case exp.Nanvl():
                return self._any_of([node.this, node.expression])
            case exp.Sign():
                return Values.some(_SIGNS)
            case exp.Anonymous():
                return self._named(node)
        signature = BY_CLASS.get(type(node))
        if signature is not None and signature.result == types.BOOLEAN:
            return EITHER
        return self._whole(node) if self.is_whole(node) else Values()

    def _any_of(self, nodes: Iterable[exp.Expr]) -> Values:
        found = NOTHING
        for each in nodes:
            found = found.joined(self.values(each))
        return found

    def _first_filled(self, nodes: list[exp.Expr]) -> Values:
        found = [self.values(each) for each in nodes]
        return replace(self._any_of(nodes), nullable=all(each.nullable for each in found))

    def _cast(self, node: exp.Cast) -> Values:
        """A conversion gives equal results for equal values, and NULL or an error for what does not fit."""
        to, inner = from_sql(node.to), self.values(node.this)
        if to is None:
            return Values()
        if (
            types.is_integer(to)
            and self.is_whole(node.this)
            and inner.low is not None
            and inner.high is not None
        ):
            most = 2 ** (to.bit_width - 1)
            if -most <= inner.low and inner.high < most:
                return inner
        return by_type(to).met(Values(inner.count, tables=inner.tables))

    def _named(self, node: exp.Anonymous) -> Values:
        name = str(node.this).lower()
        match name:
            case "pmod" | "try_mod":
                return self._remainder(*node.expressions, positive=name == "pmod")
            case "weekday":
                return Values.between(0, 6)
            case "isnull" | "isnotnull":
                return replace(EITHER, nullable=False)
        return Values()

    # -- whole numbers ----------------------------------------------------------------------------

    def is_whole(self, node: exp.Expr) -> bool:
        """Whether an expression is of a type of whole numbers."""
        match node:
            case exp.Paren() | exp.Neg() | exp.Abs():
                return self.is_whole(node.this)
            case exp.Column():
                return types.is_integer(self.type_of(node.name))
            case exp.Cast():
                to = from_sql(node.to)
                return to is not None and types.is_integer(to)
            case exp.Literal():
                return isinstance(constant(node), int) and not node.is_string
            case exp.BitwiseAnd() | exp.BitwiseOr() | exp.BitwiseXor() | exp.BitwiseNot():
                return True
            case exp.Add() | exp.Sub() | exp.Mul() | exp.Mod() | exp.IntDiv():
                return self.is_whole(node.this) and self.is_whole(node.expression)
            case exp.Case():
                results = [*(each.args["true"] for each in node.args["ifs"]), node.args["default"]]
                return all(isinstance(each, exp.Null) or self.is_whole(each) for each in results)
            case exp.Coalesce() | exp.Greatest() | exp.Least():
                return all(self.is_whole(each) for each in (node.this, *node.expressions))
            case exp.Anonymous() if str(node.this).lower() in ("pmod", "try_mod"):
                return all(self.is_whole(each) for each in node.expressions)
        signature = BY_CLASS.get(type(node))
        return signature is not None and not callable(signature.result) and types.is_integer(signature.result)

    def _whole(self, node: exp.Expr) -> Values:
        """Arithmetic of whole numbers: from the least to the greatest result."""
        match node:
            case exp.Mod():
                return self._remainder(node.this, node.expression)
            case exp.Neg():
                inner = self.values(node.this)
                low = None if inner.high is None else -inner.high
                high = None if inner.low is None else -inner.low
                return Values.between(low, high)
            case exp.Abs():
                inner = self.values(node.this)
                if inner.low is None or inner.high is None:
                    return Values.between(0, None)
                return Values.between(0, max(abs(inner.low), abs(inner.high)))
            case exp.BitwiseAnd():
                return self._common_bits(self.values(node.this), self.values(node.expression))
            case exp.Add() | exp.Sub() | exp.Mul():
                return self._combined(node)
        return Values()

    def _common_bits(self, left: Values, right: Values) -> Values:
        """a & b: no bit is set that one side has not, and the sign is a bit; beside a number from 0 on, no larger."""
        highs = [side.high for side in (left, right) if side.low is not None and side.low >= 0]
        if not highs:
            return Values()
        return Values.between(0, min((high for high in highs if high is not None), default=None))

    def _combined(self, node: exp.Expr) -> Values:
        left, right = self.values(node.this), self.values(node.expression)
        if left.low is None or left.high is None or right.low is None or right.high is None:
            return Values()
        corners = [
            first + second
            if isinstance(node, exp.Add)
            else first - second
            if isinstance(node, exp.Sub)
            else first * second
            for first in (left.low, left.high)
            for second in (right.low, right.high)
        ]
        if max(map(abs, corners)) > _LARGEST:
            return Values()
        return Values.between(min(corners), max(corners))

    def _remainder(self, left: exp.Expr, right: exp.Expr, *, positive: bool = False) -> Values:
        """Smaller than the divisor, with the sign of what is divided; never less than 0 if `positive`."""
        if not (self.is_whole(left) and self.is_whole(right)):
            return Values()
        divisor, divided = self.values(right), self.values(left)
        if divisor.low is None or divisor.high is None:
            return Values()
        most = max(abs(divisor.low), abs(divisor.high), 1) - 1
        positive = positive or (divided.low is not None and divided.low >= 0)
        return Values.between(0 if positive and divisor.low > 0 else -most, most)


def _code(value: Hashable) -> int | None:
    match value:
        case bool() | int():
            return int(value)
        case date():
            return (value - _EPOCH).days
    return None


def _within(value: Hashable, low: int | None, high: int | None) -> bool:
    code = _code(value)
    if code is None:
        return True
    return (low is None or code >= low) and (high is None or code <= high)
