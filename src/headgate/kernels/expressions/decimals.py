"""Decimals at another scale, and combined by an operator, with the digits that Spark SQL gives the result.

Polars keeps the scale of its operands, rounds halves of quotients to even, and fails on the whole column where one
row needs more than 38 digits, even on the way to its result. Here such rows are told apart and computed apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
from sqlglot import exp

from headgate.kernels.expressions.dtypes import type_name
from headgate.kernels.expressions.typed import Check, Typed, combine, one_height
from headgate.model.decimals import MOST_DIGITS, Digits, operated, whole_digits

_LARGEST = 10**MOST_DIGITS - 1
_SURELY_BELOW = 1 - 1e-9
"""Where doubles estimate a size, this share of a limit keeps them from passing it."""


def digits(dtype: pl.DataType) -> Digits:
    assert isinstance(dtype, pl.Decimal)
    return Digits(dtype.precision, dtype.scale)


def rounded(value: pl.Expr, scale: int, places: int, *, even: bool = False) -> pl.Expr:
    """Decimals with fewer digits behind the point than they have, or in tens and hundreds where `places` is negative.

    Halves are rounded away from zero, or to even. NULL where 38 digits do not suffice.
    """
    if scale - places > MOST_DIGITS:
        return pl.when(value.is_not_null()).then(pl.lit(0, dtype=pl.Decimal(MOST_DIGITS, 0)))
    units = nearest(value.to_physical(), 10 ** (scale - places), even=even)
    return pointed(units * 10 ** max(0, -places), max(0, places))


def pointed(whole: pl.Expr, scale: int) -> pl.Expr:
    """Whole numbers as decimals whose last digits are behind the point; NULL where there are more than 38."""
    decimal: pl.Expr = whole.cast(pl.Decimal(MOST_DIGITS, 0), strict=False)
    return decimal * _last_digit(scale) if scale else decimal


def nearest(whole: pl.Expr, power: int, *, even: bool) -> pl.Expr:
    """How many times a power is in whole numbers, rounded: halves away from zero, or to even."""
    size = whole.cast(pl.Int128).abs()
    unit = pl.lit(power, dtype=pl.Int128)
    low, rest = size // unit, size % unit
    up = rest >= unit - rest
    if even:
        up = (rest > unit - rest) | ((rest == unit - rest) & (low % 2 == 1))
    return (low + up.cast(pl.Int128)) * pl.when(whole < 0).then(-1).otherwise(1)


def cut(value: pl.Expr, scale: int, places: int, *, down: bool) -> pl.Expr:
    """FLOOR or CEIL of decimals to fewer digits behind the point, or to tens and hundreds.

    NULL where 38 digits do not suffice.
    """
    sign, digits = (1 if down else -1), value.to_physical()
    if scale - places > MOST_DIGITS:
        units = digits.sign().clip(upper_bound=0) if down else digits.sign().clip(lower_bound=0)
    else:
        units = digits * sign // pl.lit(10 ** (scale - places), dtype=pl.Int128) * sign
    power = 10 ** min(max(0, -places), MOST_DIGITS)
    return pointed(units * pl.lit(power, dtype=pl.Int128), max(0, places))


def rescaled(value: pl.Expr, source: pl.Decimal, target: pl.Decimal) -> pl.Expr:
    """Decimals in another decimal type, halves rounded away from zero, NULL where its digits do not suffice."""
    if target.scale < source.scale:
        value = rounded(value, source.scale, target.scale)
    return value.cast(target, strict=False)


def combined(operator: str, left: Typed, right: Typed, node: exp.Expr) -> tuple[Typed, list[Check]]:
    """The value of `left operator right` for +, -, * and /, and the rows on which it is too large."""
    a, b = digits(left.dtype), digits(right.dtype)
    target = pl.Decimal(*operated(operator, a, b))
    working = pl.Decimal(MOST_DIGITS, max(target.scale, a.scale, b.scale))
    if max(whole_digits(operator, a, b), a.whole, b.whole) + working.scale <= MOST_DIGITS:
        return combine(lambda x, y: _fast(operator, x, y, working, target), left, right), []
    fast = combine(lambda x, y: _is_small(operator, x, y, working.scale), left, right).once()
    small = [combine(lambda x, small: pl.when(small).then(x), side, fast) for side in (left, right)]
    exactly = _Exactly(operator, a.scale, b.scale, target.scale)

    def large(x: pl.Expr, y: pl.Expr, small: pl.Expr) -> pl.Expr:
        units = pl.map_batches([x, y, small], exactly, return_dtype=pl.Int128, is_elementwise=True)
        return pointed(units, target.scale)

    value = combine(
        lambda *each: pl.coalesce(
            _fast(operator, each[3], each[4], working, target), large(*each[:3]).cast(target)
        ),
        *(left, right, fast, *small),
    ).once()
    lost = fast.expr.is_not_null() & value.expr.is_null()
    return value, [Check(lost, f"is too large for {type_name(target)}", node)]


def _fast(operator: str, a: pl.Expr, b: pl.Expr, working: pl.Decimal, target: pl.Decimal) -> pl.Expr:
    """The result where 38 digits suffice on the way to it."""
    a, b = a.cast(working), b.cast(working)
    match operator:
        case "+":
            exact = a + b
        case "-":
            exact = a - b
        case "*":
            exact = a * b
        case _:
            exact = _divided(a, b, working.scale)
    return rescaled(exact, working, target)


def _is_small(operator: str, a: pl.Expr, b: pl.Expr, scale: int) -> pl.Expr:
    """Whether 38 digits, so many of them behind the point, surely suffice; NULL where there is no result."""
    x, y = a.cast(pl.Float64).abs(), b.cast(pl.Float64).abs()
    match operator:
        case "*":
            size = x * y
        case "/":
            size = x / pl.when(y != 0).then(y)
        case _:
            size = x + y
    limit = 10.0 ** (MOST_DIGITS - scale) * _SURELY_BELOW
    return pl.when(size.is_not_null()).then(pl.max_horizontal(size, x, y) < limit)


@dataclass(frozen=True)
class _Exactly:
    """The results of the few rows that need more digits than machine numbers have, by numbers of any length."""

    operator: str
    left_scale: int
    right_scale: int
    scale: int

    def __call__(self, columns: Sequence[pl.Series]) -> pl.Series:
        """Whole numbers at the scale, where the third column is FALSE and the result has at most 38 digits."""
        left, right, small = one_height(columns)
        nothing = pl.Series([None], dtype=pl.Int128)
        rows = (~small).arg_true()
        if not len(rows):
            return nothing.new_from_index(0, len(small))
        a, b = (np.array(each.gather(rows).to_physical().to_list(), dtype=object) for each in (left, right))
        units = self._rounded(a, b)
        units[abs(units) > _LARGEST] = None
        found = pl.Series(units.tolist(), dtype=pl.Int128)
        places = np.full(len(small), len(rows), dtype=np.uint32)
        places[rows.to_numpy()] = np.arange(len(rows))
        return pl.concat([found, nothing]).gather(pl.Series(places))

    def _rounded(self, a: Any, b: Any) -> Any:
        """Results as whole numbers at the scale, halves rounded away from zero."""
        one, other = 10**self.left_scale, 10**self.right_scale
        match self.operator:
            case "*":
                dividend, divisor = a * b, one * other
            case "/":
                dividend, divisor = a * other, b * one
            case "+":
                dividend, divisor = a * other + b * one, one * other
            case _:
                dividend, divisor = a * other - b * one, one * other
        twice = 2 * abs(dividend) * 10**self.scale
        size = (twice + abs(divisor)) // (2 * abs(divisor))
        return np.where((dividend < 0) != (divisor < 0), -size, size)


def _divided(a: pl.Expr, b: pl.Expr, scale: int) -> pl.Expr:
    """The quotient of decimals of one scale, NULL for a divisor of 0; a half is rounded away from 0, not to even.

    The remainder tells a half. It is exact although the products are not: they wrap around, it would not.
    """
    quotient = a / pl.when(b != 0).then(b)
    dividend, divisor = a.to_physical(), b.to_physical()
    rest = dividend * pl.lit(10**scale, dtype=pl.Int128) - quotient.to_physical() * divisor
    short = ((rest * 2).abs() == divisor.abs()) & ((rest < 0) == (dividend < 0))
    last = _last_digit(scale)
    away = pl.when((dividend < 0) == (divisor < 0)).then(quotient + last).otherwise(quotient - last)
    return pl.when(short).then(away).otherwise(quotient)


def _last_digit(scale: int) -> pl.Expr:
    """1 in the last of so many places behind the point."""
    return pl.lit(Decimal(1).scaleb(-scale), dtype=pl.Decimal(MOST_DIGITS, scale))
