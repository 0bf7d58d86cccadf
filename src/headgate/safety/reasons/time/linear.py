"""Linear: expressions over time as a sum of instants and an error that has bounds.

| expression | microseconds × its value |
|---|---|
| `b.ts - INTERVAL 1 HOUR` | b.ts − 1 hour |
| `date_trunc('hour', a.ts)` | a.ts − something from 0 to 1 hour less a microsecond |
| `unix_timestamp(a.ts) DIV 300` | a.ts, give or take 5 minutes and a second; one of its units is 5 minutes long |
| `timestampdiff(MINUTE, a.ts, b.ts)` | b.ts − a.ts, give or take a minute |

Sound for any value: `scale` × value = the sum of `terms` + an error between `low` and `high`. What is not understood
has no linear form, and nothing is concluded from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction

from sqlglot import exp

from headgate.model.time import DAY, MICROSECOND, MILLISECOND, MONTHS, SECOND, UNITS
from headgate.safety.reasons.constants import constant

_TRUNCATED = {
    **UNITS,
    "DD": DAY,
    "MONTH": 31 * DAY,
    "MON": 31 * DAY,
    "MM": 31 * DAY,
    "QUARTER": 92 * DAY,
    "YEAR": 366 * DAY,
    "YYYY": 366 * DAY,
    "YY": 366 * DAY,
}
"""The longest that a unit can be."""

_YEAR = Fraction(146_097 * DAY, 400)
"""The mean length of a year: 400 years have 146,097 days, and then the calendar repeats."""
_YEAR_ERROR = 3 * DAY
"""A year begins no farther than that from where years of mean length would have it begin."""
_YEAR_OF_EPOCH = 1970

_WHOLE = (exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT)
_INSTANTS = (exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ, exp.DType.TIMESTAMPNTZ)

_COUNTING: Mapping[type[exp.Expr], int] = {
    exp.StrToUnix: SECOND,
    exp.UnixSeconds: SECOND,
    exp.UnixMillis: MILLISECOND,
    exp.UnixMicros: MICROSECOND,
}
"""Functions that count units since the epoch."""

_ROUNDING = 4_096
"""Microseconds by which an operation on DOUBLEs can move any instant: a DOUBLE has 53 bits, an instant 63."""
_FARTHEST = 2**63
"""An error, a constant added to an instant among them, that is larger would be rounded more coarsely."""
_CALENDAR = 2**59
"""No two instants are so many microseconds apart."""
_MOST_TIMES = 8
"""So many times twice that fits 64 bits."""
_LEAST_SCALE, _GREATEST_SCALE = Fraction(1, 2**60), Fraction(2**80)
"""Beyond them a DOUBLE could overflow, or have fewer bits."""


class Kind(Enum):
    """What a value of time is."""

    INSTANT = "timestamp"
    SPAN = "interval"
    DATE = "date"
    NUMBER = "number"


@dataclass(frozen=True)
class Linear:
    """`scale` × value = Σ sign × column + an error from `low` to `high`, all in microseconds."""

    kind: Kind
    scale: Fraction
    terms: Mapping[str, int] = field(default_factory=dict)
    """By column, how often it is added; a column counts in microseconds, whatever its own unit is."""
    low: Fraction = Fraction(0)
    high: Fraction = Fraction(0)
    whole: bool = True
    """Whether the value is a whole number, with which arithmetic is exact."""

    def wider(self, low: Fraction | int, high: Fraction | int) -> Linear:
        """With an error that may be so much more."""
        return replace(self, low=self.low + low, high=self.high + high)

    def negated(self) -> Linear:
        """The value with its sign turned round."""
        terms = {name: -count for name, count in self.terms.items()}
        return replace(self, terms=terms, low=-self.high, high=-self.low)

    def plus(self, other: Linear, sign: int) -> Linear | None:
        """The sum, or the difference for sign -1; None if their units differ."""
        if self.scale != other.scale:
            if self.kind is not Kind.SPAN or other.kind is not Kind.SPAN:
                return None
            if not other.terms:
                other = other._constant_in(self.scale)
            elif not self.terms:
                return self._constant_in(other.scale).plus(other, sign)
            else:
                return None
        terms = dict(self.terms)
        for name, count in other.terms.items():
            terms[name] = terms.get(name, 0) + sign * count
        errors = (other.low, other.high) if sign > 0 else (-other.high, -other.low)
        kept = {name: count for name, count in terms.items() if count}
        kind = _KINDS.get((self.kind, other.kind), self.kind)
        if sign < 0 and self.kind is other.kind is Kind.INSTANT:
            kind = Kind.SPAN
        whole = self.whole and other.whole
        found = Linear(kind, self.scale, kept, self.low + errors[0], self.high + errors[1], whole)
        return found if whole else found.rounded()

    def _constant_in(self, scale: Fraction) -> Linear:
        """The same value with another scale, if it has no terms."""
        ratio = scale / self.scale
        return replace(self, scale=scale, low=self.low * ratio, high=self.high * ratio)

    def rounded(self) -> Linear | None:
        """The same value where it is a DOUBLE, after an operation that rounds; None if that could move it far."""
        far = max(abs(self.low), abs(self.high)) > _FARTHEST
        if far or not _LEAST_SCALE <= self.scale <= _GREATEST_SCALE:
            return None
        return replace(self, whole=False).wider(-_ROUNDING, _ROUNDING)

    def in_days(self) -> Linear | None:
        """Instants as the dates that they are on; dates as they are."""
        match self.kind:
            case Kind.DATE:
                return self
            case Kind.INSTANT:
                return replace(self, kind=Kind.DATE, scale=Fraction(DAY)).wider(-(DAY - 1), 0)
        return None


_KINDS = {(Kind.SPAN, Kind.INSTANT): Kind.INSTANT}
"""What a sum is, where it is not of the kind of its left side."""


@dataclass(frozen=True)
class Unit:
    """What one of a column's values is, and how many microseconds it has."""

    kind: Kind
    scale: Fraction
    whole: bool = True
    """Whether values are whole numbers; those of DOUBLE and DECIMAL columns need not be."""


INSTANTS = Unit(Kind.INSTANT, Fraction(1))
DATES = Unit(Kind.DATE, Fraction(DAY))

Units = Callable[[str], Unit | None]
"""The unit of a column that holds time; None for other columns."""


def linear(node: exp.Expr, units: Units) -> Linear | None:
    """The linear form of an expression over time; None if it has none."""
    match node:
        case exp.Paren() | exp.TimeStrToTime():
            return linear(node.this, units)
        case exp.Column():
            unit = units(node.name)
            return None if unit is None else Linear(unit.kind, unit.scale, {node.name: 1}, whole=unit.whole)
        case exp.Interval():
            return _interval(node)
        case exp.Add() | exp.Sub():
            return _sum(node, units)
        case exp.DateDiff() | exp.TimestampDiff():
            return _distance(node, linear(node.this, units), linear(node.expression, units))
    inner = linear(node.this, units) if isinstance(node.this, exp.Expr) else None
    if inner is None:
        return _product(node, units) if isinstance(node, exp.Mul) else None
    match node:
        case exp.Mul() | exp.Div() | exp.Neg() if inner.kind is Kind.SPAN:
            return _scaled_span(node, inner, node.expression)
        case exp.Mul() | exp.Div() | exp.IntDiv() | exp.Mod() if inner.kind is Kind.NUMBER:
            return _scaled(node, inner, _number(node.expression))
        case exp.TimestampTrunc() | exp.DateTrunc():
            return _truncated(node, inner)
        case exp.Cast() if not isinstance(node, exp.TryCast):
            return _converted(inner, node.to.this)
    return _function(node, inner)


def beside(value: Linear | None, node: exp.Expr) -> Linear | None:
    """A constant number as one in the unit of what it is compared with or added to."""
    number = _number(node)
    if value is None or value.kind not in (Kind.NUMBER, Kind.DATE) or number is None:
        return None
    instant = number * value.scale
    return Linear(Kind.NUMBER, value.scale, {}, instant, instant, number.denominator == 1)


def _unit_of(node: exp.Expr) -> str:
    """The unit that an expression names, in the singular."""
    return str(node.args["unit"].name.upper().removesuffix("S"))


def _interval(node: exp.Interval) -> Linear | None:
    unit = UNITS.get(_unit_of(node))
    try:
        amount = Fraction(node.this.name)
    except ValueError:
        return None
    return None if unit is None else Linear(Kind.SPAN, Fraction(1), {}, amount * unit, amount * unit)


def _number(node: exp.Expr) -> Fraction | None:
    value = constant(node)
    if isinstance(value, bool) or value is None:
        return None
    try:
        return Fraction(str(value))
    except ValueError:
        return None


def _sum(node: exp.Expr, units: Units) -> Linear | None:
    sign = -1 if isinstance(node, exp.Sub) else 1
    left, right = linear(node.this, units), linear(node.expression, units)
    if (months := _months(node.expression)) is not None:
        return left and _moved(left, sign * months)
    left = left or beside(right, node.this)
    right = right or beside(left, node.expression)
    if left is None or right is None:
        return None
    if right.kind is Kind.DATE and left.kind is not Kind.DATE:
        left, right = right, left
    if left.kind is Kind.DATE and right.kind is Kind.SPAN and not right.terms:
        # Days that are added to a date by an interval; those that a number counts have the unit of the date.
        low, high = sorted((sign * right.low, sign * right.high))
        return left.wider(low, high)
    return left.plus(right, sign)


def _distance(
    node: exp.DateDiff | exp.TimestampDiff, later: Linear | None, earlier: Linear | None
) -> Linear | None:
    """How many days, or whole units, one instant is after another, rounded towards zero."""
    if later is None or earlier is None or Kind.NUMBER in (later.kind, earlier.kind):
        return None
    if isinstance(node, exp.DateDiff):
        day, before = later.in_days(), earlier.in_days()
        days = None if day is None or before is None else day.plus(before, -1)
        return None if days is None else replace(days, kind=Kind.NUMBER)
    size = UNITS.get(_unit_of(node))
    between = _as_instant(later).plus(_as_instant(earlier), -1)
    if size is None or between is None:
        return None
    return replace(between, kind=Kind.NUMBER, scale=Fraction(size)).wider(1 - size, size - 1)


def _months(node: exp.Expr) -> int | None:
    """How many months an interval of months has; None for any other expression."""
    return int(node.name) if isinstance(node, exp.Interval) and node.args["unit"].name == "MONTH" else None


def _moved(inner: Linear, months: int) -> Linear | None:
    """An instant or date moved by months, which have 28 to 31 days."""
    if inner.kind not in (Kind.INSTANT, Kind.DATE):
        return None
    low, high = sorted((28 * months * DAY, 31 * months * DAY))
    return inner.wider(low, high)


def _product(node: exp.Mul, units: Units) -> Linear | None:
    """A constant times a number."""
    inner = linear(node.expression, units)
    if inner is not None and inner.kind is Kind.SPAN:
        return _scaled_span(node, inner, node.this)
    if inner is None or inner.kind is not Kind.NUMBER:
        return None
    return _scaled(node, inner, _number(node.this))


def _scaled_span(node: exp.Expr, inner: Linear, factor: exp.Expr | None) -> Linear | None:
    """An interval times or divided by a constant and rounded to microseconds, or negated."""
    if isinstance(node, exp.Neg):
        return inner.negated()
    number = factor and _number(factor)
    if not number:
        return None
    if inner.terms:
        return _repeated_span(node, inner, number)
    sizes = (
        each / number if isinstance(node, exp.Div) else each * number for each in (inner.low, inner.high)
    )
    low, high = sorted(sizes)
    if max(abs(low), abs(high)) > 2**50:
        # Doubles would round it by more than the microsecond that is allowed for.
        return None
    exact = number.denominator == 1 and not isinstance(node, exp.Div)
    return replace(inner, low=low, high=high) if exact else replace(inner, low=low - 1, high=high + 1)


def _repeated_span(node: exp.Expr, inner: Linear, number: Fraction) -> Linear | None:
    """The distance of two instants times a whole number, as a DOUBLE, that keeps it within 64 bits."""
    scale = inner.scale / abs(number)
    far = sum(map(abs, inner.terms.values())) > 2 or max(abs(inner.low), abs(inner.high)) > _CALENDAR
    if not isinstance(node, exp.Mul) or number.denominator > 1 or scale * _MOST_TIMES < 1 or far:
        return None
    return replace(inner if number > 0 else inner.negated(), scale=scale).rounded()


def _scaled(node: exp.Expr, inner: Linear, number: Fraction | None) -> Linear | None:
    if number is None or number <= 0:
        return None
    match node:
        case exp.Mul():
            product = replace(inner, scale=inner.scale / number)
            return product if inner.whole and number.denominator == 1 else product.rounded()
        case exp.Div():
            return replace(inner, scale=inner.scale * number).rounded()
        case exp.IntDiv():
            # Rounded towards zero: down after the epoch, up before it.
            unit = inner.scale * number
            return replace(inner, scale=unit, whole=True).wider(-unit, unit)
    # A remainder is no time any more, but it is small: x - x % 300 is a bucket of 300.
    size = inner.scale * number
    return Linear(Kind.NUMBER, inner.scale, {}, -size, size, inner.whole and number.denominator == 1)


def _truncated(node: exp.Expr, inner: Linear) -> Linear | None:
    unit = _TRUNCATED.get(node.args["unit"].name.upper())
    if unit is None:
        return None
    if isinstance(node, exp.DateTrunc):
        days = inner.in_days()
        return None if days is None else days.wider(-unit, 0)
    return _as_instant(inner).wider(-(unit - 1), 0) if inner.kind in (Kind.INSTANT, Kind.DATE) else None


def _as_instant(inner: Linear) -> Linear:
    """A date is the instant at which it begins."""
    return replace(inner, kind=Kind.INSTANT, scale=Fraction(1))


def _converted(inner: Linear, to: exp.DType) -> Linear | None:
    if to == exp.DType.DATE:
        return inner.in_days()
    if to in _INSTANTS:
        return _as_instant(inner) if inner.kind in (Kind.INSTANT, Kind.DATE) else None
    if to in _WHOLE and inner.kind is Kind.INSTANT:
        return replace(inner, kind=Kind.NUMBER, scale=Fraction(SECOND)).wider(-SECOND, SECOND)
    if inner.kind is not Kind.NUMBER:
        return None
    if to in _WHOLE:
        return inner if inner.whole else replace(inner, whole=True).wider(-inner.scale, inner.scale)
    if to == exp.DType.DECIMAL:
        # It may have no digits behind the point.
        return replace(inner, whole=False).wider(-inner.scale, inner.scale)
    return inner.rounded() if to == exp.DType.DOUBLE else None


def _function(node: exp.Expr, inner: Linear) -> Linear | None:
    match node:
        case exp.StrToUnix() | exp.UnixSeconds() | exp.UnixMillis() | exp.UnixMicros():
            unit = _COUNTING[type(node)]
            if inner.kind is not Kind.INSTANT:
                return None
            # unix_timestamp cuts the fraction off, also before 1970; the others round down.
            above = unit - 1 if isinstance(node, exp.StrToUnix) else 0
            return replace(inner, kind=Kind.NUMBER, scale=Fraction(unit)).wider(-(unit - 1), above)
        case exp.TsOrDsToDate():
            return inner.in_days()
        case exp.UnixDate():
            days = inner.in_days()
            return None if days is None else replace(days, kind=Kind.NUMBER)
        case exp.Year() if inner.kind in (Kind.INSTANT, Kind.DATE):
            # Year 1970 times the length of a year is not the epoch: that is moved to it.
            since = _YEAR * _YEAR_OF_EPOCH
            year = replace(inner, kind=Kind.NUMBER, scale=_YEAR)
            return year.wider(since - 366 * DAY - _YEAR_ERROR, since + _YEAR_ERROR)
        case exp.TsOrDsAdd():
            days, number = inner.in_days(), _number(node.expression)
            unit_name = node.args.get("unit")
            if days is None or number is None or (unit_name is not None and unit_name.name.upper() != "DAY"):
                return None
            return days.wider(number * DAY, number * DAY)
        case exp.AddMonths():
            days, number = inner.in_days(), _number(node.expression)
            if days is None or number is None or number.denominator != 1:
                return None
            return _moved(days, int(number))
        case exp.TimestampAdd() if inner.kind in (Kind.INSTANT, Kind.DATE):
            named, number = _unit_of(node), _number(node.expression)
            if number is None or number.denominator != 1:
                return None
            if named in MONTHS:
                return _moved(_as_instant(inner), int(number) * MONTHS[named])
            size = UNITS.get(named)
            return None if size is None else _as_instant(inner).wider(number * size, number * size)
    if inner.kind is not Kind.NUMBER or node.args.get("decimals") is not None:
        return None
    match node:
        case exp.Neg():
            return inner.negated()
        case exp.Floor() | exp.Ceil() | exp.Round():
            return replace(inner, whole=True).wider(-inner.scale, inner.scale)
    return None
