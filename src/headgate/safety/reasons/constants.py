"""Constants: the value of a bound expression without columns, where it is plain enough to be read off."""

from __future__ import annotations

import math
import struct
from collections.abc import Hashable
from datetime import date
from decimal import Decimal, InvalidOperation

from sqlglot import exp

_WHOLE = (exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT)
_NUMBERS = (*_WHOLE, exp.DType.FLOAT, exp.DType.DOUBLE, exp.DType.DECIMAL)


def constant(node: exp.Expr) -> Hashable | None:
    """A bool, int, Decimal, str or date; None if it is no such constant."""
    match node:
        case exp.Paren():
            return constant(node.this)
        case exp.Boolean():
            return bool(node.this)
        case exp.Literal() if node.is_string:
            return str(node.this)
        case exp.Literal():
            return _number(node.this)
        case exp.Neg():
            inner = constant(node.this)
            return -inner if isinstance(inner, (int, Decimal)) and not isinstance(inner, bool) else None
        case exp.Cast():
            return _cast(constant(node.this), node.to)
    return None


def _number(text: str) -> int | Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return (
        int(number)
        if number.is_finite() and number == number.to_integral_value() and "e" not in text.lower()
        else number
    )


def _binary(value: int | Decimal, *, single: bool) -> Decimal | None:
    """The number that a FLOAT or DOUBLE has for a constant; None if it has none."""
    try:
        number = struct.unpack("f", struct.pack("f", value))[0] if single else float(value)
    except OverflowError:
        return None
    return Decimal(number) if math.isfinite(number) else None


def _cast(value: Hashable | None, target: exp.DataType) -> Hashable | None:
    to = target.this
    if isinstance(value, (int, Decimal)) and not isinstance(value, bool) and to in _NUMBERS:
        # A conversion that has to round is another value: left alone.
        if to in _WHOLE and not isinstance(value, int):
            return None
        if to in (exp.DType.FLOAT, exp.DType.DOUBLE):
            return _binary(value, single=to == exp.DType.FLOAT)
        return value if to != exp.DType.DECIMAL or _is_exact(Decimal(value), target) else None
    if isinstance(value, str) and to == exp.DType.DATE:
        try:
            return date.fromisoformat(value)
        except ValueError:
            return None
    return value if isinstance(value, str) and to in (exp.DType.VARCHAR, exp.DType.TEXT) else None


def _is_exact(value: Decimal, target: exp.DataType) -> bool:
    """Whether a DECIMAL type has all digits of a value."""
    precision, scale = ([int(each.name) for each in target.expressions] + [0, 0])[:2]
    exponent = value.normalize().as_tuple().exponent
    digits = len(str(int(abs(value)))) if abs(value) >= 1 else 0
    return isinstance(exponent, int) and -exponent <= scale and (not precision or digits <= precision - scale)
