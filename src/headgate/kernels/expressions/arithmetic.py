"""Arithmetic as ANSI Spark SQL does it: overflow and division by zero are errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import polars as pl
from sqlglot import exp

from headgate.kernels.expressions import calendar, decimals
from headgate.kernels.expressions.compile import compile_node, named
from headgate.kernels.expressions.division import divided
from headgate.kernels.expressions.dtypes import FLOATS, INTEGERS, type_name
from headgate.kernels.expressions.typed import Check, Scope, Typed, combine, shown
from headgate.model.errors import UnsupportedError

_LOWEST = {pl.Int8: -(2**7), pl.Int16: -(2**15), pl.Int32: -(2**31), pl.Int64: -(2**63)}


@compile_node.register(exp.Add)
@compile_node.register(exp.Sub)
def _(node: exp.Expr, scope: Scope) -> Typed:
    operator, sign = ("+", 1) if isinstance(node, exp.Add) else ("-", -1)
    if (step := calendar.written_step(node)) is not None:
        when, interval = step
        return calendar.moved(compile_node(when, scope), interval, sign, node)
    left, right = compile_node(node.this, scope), compile_node(node.expression, scope)
    if left.dtype in INTEGERS and right.dtype == pl.Date:
        left, right = right, left
    if left.dtype == pl.Date and right.dtype in INTEGERS:
        return calendar.by_days(left, right, node, sign)
    return _checked(*_combined(operator, left, right, node))


@compile_node.register
def _(node: exp.Mul, scope: Scope) -> Typed:
    return _checked(*_operate("*", node, scope))


@compile_node.register
def _(node: exp.Div, scope: Scope) -> Typed:
    return _checked(*_operate("/", node, scope))


@compile_node.register
def _(node: exp.Mod, scope: Scope) -> Typed:
    return _checked(*_operate("%", node, scope))


@compile_node.register
def _(node: exp.IntDiv, scope: Scope) -> Typed:
    left, right = compile_node(node.this, scope).once(), compile_node(node.expression, scope).once()
    if not all(side.dtype.is_numeric() or side.dtype == pl.Null for side in (left, right)):
        raise UnsupportedError(f"DIV divides numbers, not the operands of `{shown(node)}`")
    dtype = combine(lambda a, b: a + b, left, right).dtype
    value = combine(lambda a, b: _quotient(a, b, dtype), left, right).once()
    known = left.expr.is_not_null() & (right.expr != 0)
    too_large = Check(known & value.expr.is_null(), "is too large for BIGINT", node)
    return value.failing([_zero(left, right, node), too_large])


@compile_node.register(exp.SafeAdd)
@compile_node.register(exp.SafeSubtract)
@compile_node.register(exp.SafeMultiply)
@compile_node.register(exp.SafeDivide)
def _(node: exp.Expr, scope: Scope) -> Typed:
    operators: dict[type[exp.Expr], str]
    operators = {exp.SafeAdd: "+", exp.SafeSubtract: "-", exp.SafeMultiply: "*", exp.SafeDivide: "/"}
    value, failures = _operate(operators[type(node)], node, scope)
    return value.or_null(failures)


@compile_node.register(exp.Neg)
@compile_node.register(exp.Negative)
def _(node: exp.Expr, scope: Scope) -> Typed:
    operand = compile_node(node.this, scope).once()
    if operand.dtype == pl.Null:
        return operand
    return operand.map(lambda a: -a).failing(_lowest(operand, node))


@compile_node.register
def _(node: exp.Abs, scope: Scope) -> Typed:
    operand = compile_node(node.this, scope).once()
    return operand.map(lambda a: a.abs()).failing(_lowest(operand, node))


@named("positive")
def _(arguments: list[Typed], node: exp.Anonymous) -> Typed:
    return arguments[0]


@named("pmod")
def _(arguments: list[Typed], node: exp.Anonymous) -> Typed:
    left, right = (argument.once() for argument in arguments)
    value, failures = _remainder(left, right, node)
    value = value.once()
    # A negative remainder is lifted by the divisor and reduced again, also when the divisor is negative.
    lifted, _ = _remainder(combine(lambda r, b: r + b, value, right), right, node)
    chosen = combine(lambda r, up: pl.when(r < 0).then(up).otherwise(r), value, replace(lifted, checks=()))
    return chosen.failing(failures)


@named("try_mod")
def _(arguments: list[Typed], node: exp.Anonymous) -> Typed:
    left, right = (argument.once() for argument in arguments)
    value, failures = _remainder(left, right, node)
    return value.or_null(failures)


def _checked(value: Typed, failures: Sequence[Check]) -> Typed:
    return value.failing(failures)


def _operate(operator: str, node: exp.Expr, scope: Scope) -> tuple[Typed, list[Check]]:
    return _combined(operator, compile_node(node.this, scope), compile_node(node.expression, scope), node)


def _combined(operator: str, left: Typed, right: Typed, node: exp.Expr) -> tuple[Typed, list[Check]]:
    """The value of `left operator right` and the rows on which it has none."""
    left, right = left.once(), right.once()
    if pl.Null in (left.dtype, right.dtype):
        return combine(lambda a, b: pl.lit(None), left, right), []
    if pl.Duration in (left.dtype.base_type(), right.dtype.base_type()) and operator in "*/":
        return calendar.scale(operator, left, right, node)
    if operator == "%":
        return _remainder(left, right, node)
    zero = [_zero(left, right, node)] if operator == "/" else []
    # The binder has made both decimals, or neither.
    if isinstance(left.dtype, pl.Decimal):
        value, too_large = decimals.combined(operator, left, right, node)
        return value, too_large + zero
    if operator == "/":
        return combine(divided, left, right), zero
    result = combine(_PLAIN[operator], left, right)
    if result.dtype not in INTEGERS:
        return result, []
    return _whole(operator, left, right, result, node)


_PLAIN: dict[str, Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
}


def _whole(
    operator: str, left: Typed, right: Typed, result: Typed, node: exp.Expr
) -> tuple[Typed, list[Check]]:
    """Whole numbers that wrap around in the machine: compute wider, or read the overflow off the signs."""
    reason = f"is too large for {type_name(result.dtype)}"
    if result.dtype == pl.Int64 and operator != "*":
        result = result.once()
        a, b, s = left.expr, right.expr, result.expr
        # Adding overflows where both operands differ in sign from the sum, subtracting where the operands
        # differ in sign and the difference from the first.
        overflow = (a ^ s) & (b ^ s) if operator == "+" else (a ^ b) & (a ^ s)
        return result, [Check(overflow < 0, reason, node)]
    wide = pl.Int128 if result.dtype == pl.Int64 else pl.Int64
    exact = combine(lambda a, b: _PLAIN[operator](a.cast(wide), b.cast(wide)), left, right).once()
    value = exact.map(lambda a: a.cast(result.dtype, strict=False)).once()
    return value, [Check(value.expr.is_null() & exact.expr.is_not_null(), reason, node)]


def _remainder(left: Typed, right: Typed, node: exp.Expr) -> tuple[Typed, list[Check]]:
    """The remainder with the sign of the dividend."""
    dtype = combine(lambda a, b: a + b, left, right).dtype
    value = combine(_float_remainder(dtype) if dtype in FLOATS else _exact_remainder, left, right)
    return value, [_zero(left, right, node)]


def _exact_remainder(a: pl.Expr, b: pl.Expr) -> pl.Expr:
    divisor = pl.when(b != 0).then(b)
    floored = a % divisor
    return pl.when((floored != 0) & ((a < 0) != (b < 0))).then(floored - divisor).otherwise(floored)


def _float_remainder(dtype: pl.DataType) -> Callable[[pl.Expr, pl.Expr], pl.Expr]:
    def exact(series: Sequence[pl.Series]) -> pl.Series:
        # Polars computes a - b * floor(a / b), which loses everything once a / b has no digits left.
        with np.errstate(invalid="ignore"):
            return pl.Series(np.fmod(series[0].to_numpy(), series[1].to_numpy()), dtype=dtype)

    def remainder(a: pl.Expr, b: pl.Expr) -> pl.Expr:
        known = a.is_not_null() & b.is_not_null()
        value = pl.map_batches([a.cast(dtype), b.cast(dtype)], exact, return_dtype=dtype, is_elementwise=True)
        return pl.when(known).then(value)

    return remainder


def _quotient(a: pl.Expr, b: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """The whole part of a quotient, rounded toward zero; NULL where it is no BIGINT."""
    divisor = pl.when(b != 0).then(b)
    if dtype in FLOATS:
        return divided(a, divisor).cast(pl.Int64, strict=False)
    wide = pl.Int128() if dtype in INTEGERS else pl.Decimal(38, dtype.scale)  # type: ignore[attr-defined]
    dividend, by = a.cast(wide), divisor.cast(wide)
    whole = dividend - _exact_remainder(dividend, by)
    return (whole // by if dtype in INTEGERS else whole / by).cast(pl.Int64, strict=False)


def _zero(dividend: Typed, divisor: Typed, node: exp.Expr) -> Check:
    return Check(dividend.expr.is_not_null() & (divisor.expr == 0), "divides by zero", node)


def _lowest(operand: Typed, node: exp.Expr) -> list[Check]:
    """The smallest whole number of a type has no positive counterpart."""
    if operand.dtype not in INTEGERS:
        return []
    lowest = _LOWEST[operand.dtype.base_type()]  # type: ignore[index]
    return [Check(operand.expr == lowest, f"is too large for {type_name(operand.dtype)}", node)]
