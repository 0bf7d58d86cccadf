"""Functions on numbers: rounding, powers, logarithms, angles, bits."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import polars as pl
from sqlglot import exp

from headgate.kernels.expressions import decimals
from headgate.kernels.expressions.compile import compile_node, constant_integer, named
from headgate.kernels.expressions.division import divided
from headgate.kernels.expressions.dtypes import INTEGERS, type_name
from headgate.kernels.expressions.typed import Check, Scope, Typed, combine
from headgate.model.decimals import rounded


def _logarithm(value: pl.Expr) -> pl.Expr:
    """The natural logarithm; NULL where there is none, as in Spark SQL."""
    return pl.when(value > 0).then(value.log())


_REAL: dict[type[exp.Expr], Callable[[pl.Expr], pl.Expr]] = {
    exp.Sqrt: lambda a: a.sqrt(),
    exp.Cbrt: lambda a: a.cbrt(),
    exp.Exp: lambda a: a.exp(),
    exp.Ln: _logarithm,
    exp.Sign: lambda a: a.sign(),
    exp.Sin: lambda a: a.sin(),
    exp.Cos: lambda a: a.cos(),
    exp.Tan: lambda a: a.tan(),
    exp.Asin: lambda a: a.arcsin(),
    exp.Acos: lambda a: a.arccos(),
    exp.Atan: lambda a: a.arctan(),
    exp.Degrees: lambda a: a.degrees(),
    exp.Radians: lambda a: a.radians(),
    exp.Rint: lambda a: a.round(0, mode="half_to_even"),
}


@compile_node.register(exp.Sqrt)
@compile_node.register(exp.Cbrt)
@compile_node.register(exp.Exp)
@compile_node.register(exp.Ln)
@compile_node.register(exp.Sign)
@compile_node.register(exp.Sin)
@compile_node.register(exp.Cos)
@compile_node.register(exp.Tan)
@compile_node.register(exp.Asin)
@compile_node.register(exp.Acos)
@compile_node.register(exp.Atan)
@compile_node.register(exp.Degrees)
@compile_node.register(exp.Radians)
@compile_node.register(exp.Rint)
def _(node: exp.Expr, scope: Scope) -> Typed:
    return _real(node.this, scope).map(_REAL[type(node)])


@compile_node.register
def _(node: exp.Atan2, scope: Scope) -> Typed:
    return combine(pl.arctan2, _real(node.this, scope), _real(node.expression, scope))


@compile_node.register
def _(node: exp.Pow, scope: Scope) -> Typed:
    return combine(lambda a, b: a.pow(b), _real(node.this, scope), _real(node.expression, scope))


@compile_node.register
def _(node: exp.Log, scope: Scope) -> Typed:
    # The binder has made the base a DOUBLE, as it does with every argument of a logarithm.
    base = node.this.this if isinstance(node.this, exp.Cast) else node.this
    value = _real(node.expression, scope)
    if isinstance(base, exp.Literal) and base.this == "10":
        return value.map(
            lambda a: pl.when(a > 0).then(a.map_batches(_log10, pl.Float64, is_elementwise=True))
        )
    if isinstance(base, exp.Literal) and base.this == "2":
        return value.map(lambda a: divided(_logarithm(a), math.log(2)))
    return combine(lambda b, a: divided(_logarithm(a), _logarithm(b)), _real(base, scope), value)


def _log10(values: pl.Series) -> pl.Series:
    # Polars divides two logarithms, and log10(1000) comes out below 3.
    with np.errstate(divide="ignore", invalid="ignore"):
        return pl.Series(np.log10(values.to_numpy()))


@named("log1p")
def _(arguments: list[Typed], node: exp.Anonymous) -> Typed:
    return arguments[0].map(lambda a: pl.when(a > -1).then(a.cast(pl.Float64).log1p()))


@compile_node.register
def _(node: exp.Pi, scope: Scope) -> Typed:
    return Typed(pl.lit(math.pi), scope)


@named("e")
def _(arguments: list[Typed], node: exp.Anonymous) -> Typed:
    return Typed(pl.lit(math.e), Scope({}))


def _real(node: exp.Expr, scope: Scope) -> Typed:
    return compile_node(node, scope).map(lambda a: a.cast(pl.Float64)).once()


@compile_node.register(exp.Floor)
@compile_node.register(exp.Ceil)
def _(node: exp.Floor | exp.Ceil, scope: Scope) -> Typed:
    value = compile_node(node.this, scope).once()
    down = isinstance(node, exp.Floor)
    if isinstance(value.dtype, pl.Decimal):
        given = node.args.get("decimals")
        places = 0 if given is None else constant_integer(given, "the digits of FLOOR and CEIL")
        return _decimal(value, places, node, lambda a, scale: decimals.cut(a, scale, places, down=down))
    if value.dtype in INTEGERS:
        return value.map(lambda a: a.cast(pl.Int64))

    def whole(a: pl.Expr) -> pl.Expr:
        # As in Java, what is no number is 0.
        number = a.cast(pl.Float64).fill_nan(0.0)
        return (number.floor() if down else number.ceil()).cast(pl.Int64, strict=False)

    found = value.map(whole).once()
    lost = value.expr.is_not_null() & found.expr.is_null()
    return found.failing([Check(lost, "is too large for BIGINT", node)])


@compile_node.register
def _(node: exp.Round, scope: Scope) -> Typed:
    digits = node.args.get("decimals")
    return _round(compile_node(node.this, scope), digits, node, even=False)


@named("bround")
def _(arguments: list[Typed], node: exp.Anonymous) -> Typed:
    digits = node.expressions[1] if len(node.expressions) > 1 else None
    return _round(arguments[0], digits, node, even=True)


def _round(value: Typed, digits: exp.Expr | None, node: exp.Expr, *, even: bool) -> Typed:
    value = value.once()
    places = 0 if digits is None else constant_integer(digits, "the digits of ROUND")
    if value.dtype in INTEGERS:
        return value if places >= 0 else _round_whole(value, 10**-places, node, even=even)
    if isinstance(value.dtype, pl.Decimal):
        return _decimal(value, places, node, lambda a, scale: decimals.rounded(a, scale, places, even=even))
    return value.map(lambda a: _round_real(a, places, even=even))


def _round_real(value: pl.Expr, places: int, *, even: bool) -> pl.Expr:
    """Rounds as the shortest decimal text would: 2.675 is a half, though its bits lie below.

    A number is at least half way up iff it is not below the double nearest to the midpoint, and that double
    is (k + 0.5) / 10^places, correctly rounded by one division.
    """
    size, power = value.abs(), 10.0 ** abs(places)
    scaled = size * power if places >= 0 else divided(size, power)
    low = scaled.floor()
    middle = divided(low + 0.5, power) if places >= 0 else (low + 0.5) * power
    up = size >= middle
    if even:
        up = (size > middle) | ((size == middle) & (low % 2 == 1))
    whole = pl.when(up).then(low + 1).otherwise(low)
    result = divided(whole, power) if places >= 0 else whole * power
    # As in Java, no result is -0.0.
    signed = pl.when(whole > 0).then(result * value.sign()).otherwise(0.0)
    # From 2^52 on a double has no fraction to round, and the product may have left the range.
    return pl.when(scaled < 2.0**52).then(signed).otherwise(value)


def _decimal(value: Typed, places: int, node: exp.Expr, function: Callable[[pl.Expr, int], pl.Expr]) -> Typed:
    """A decimal with so many digits behind the point, made by a function of the decimal and its scale."""
    digits = decimals.digits(value.dtype)
    target = pl.Decimal(*rounded(digits, places))
    if places >= digits.scale:
        return value.map(lambda a: a.cast(target))
    result = value.map(lambda a: function(a, digits.scale).cast(target)).once()
    reason = f"is too large for {type_name(target)}"
    return result.failing([Check(value.expr.is_not_null() & result.expr.is_null(), reason, node)])


def _round_whole(value: Typed, power: int, node: exp.Expr, *, even: bool) -> Typed:
    """Tens, hundreds, ... of a whole number."""
    dtype = value.dtype
    result = value.map(
        lambda a: (decimals.nearest(a, power, even=even) * power).cast(dtype, strict=False)
    ).once()
    reason = f"is too large for {type_name(dtype)}"
    return result.failing([Check(value.expr.is_not_null() & result.expr.is_null(), reason, node)])


@compile_node.register(exp.BitwiseAnd)
@compile_node.register(exp.BitwiseOr)
@compile_node.register(exp.BitwiseXor)
def _(node: exp.Expr, scope: Scope) -> Typed:
    left, right = compile_node(node.this, scope), compile_node(node.expression, scope)
    match node:
        case exp.BitwiseAnd():
            return combine(lambda a, b: a & b, left, right)
        case exp.BitwiseOr():
            return combine(lambda a, b: a | b, left, right)
    return combine(lambda a, b: a ^ b, left, right)


@compile_node.register
def _(node: exp.BitwiseNot, scope: Scope) -> Typed:
    return compile_node(node.this, scope).map(lambda a: ~a)
