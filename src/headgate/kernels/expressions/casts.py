"""CAST and TRY_CAST among the scalar types, as ANSI Spark SQL converts them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import polars as pl
from sqlglot import exp

from headgate.kernels.expressions import decimals, notation
from headgate.kernels.expressions.compile import compile_node
from headgate.kernels.expressions.division import divided
from headgate.kernels.expressions.dtypes import (
    FLOATS,
    INTEGERS,
    named_type,
    type_name,
)
from headgate.kernels.expressions.typed import Check, Scope, Typed, shown
from headgate.model.errors import UnsupportedError
from headgate.model.time import DAY, FIRST_DAY, LAST_DAY, SECOND

if TYPE_CHECKING:
    from polars._typing import PolarsDataType

_WIDTH = {pl.Int8: 8, pl.Int16: 16, pl.Int32: 32, pl.Int64: 64}
_MICRO_DIGITS = 6


# sqlglot's Spark dialect reads CAST as TryCast; only TRY_CAST itself is marked safe.
@compile_node.register(exp.Cast)
@compile_node.register(exp.TryCast)
def _(node: exp.Cast, scope: Scope) -> Typed:
    target = named_type(node.to)
    literal = node.this
    if isinstance(literal, exp.Literal) and not literal.is_string and target in FLOATS:
        return Typed(pl.lit(float(literal.this), dtype=target), scope)
    return convert(compile_node(literal, scope), target, literal, lenient=bool(node.args.get("safe")))


def convert(value: Typed, target: pl.DataType, node: exp.Expr, *, lenient: bool = False) -> Typed:
    """A value in another type; where it does not fit, NULL if lenient and an error otherwise."""
    source = value.dtype
    if source == target:
        return value
    if source == pl.Null:
        return value.map(lambda a: a.cast(target))
    value = value.once()
    converted = value.map(lambda a: _converted(a, source, target, node))
    if lenient or _always_fits(source, target):
        return converted
    converted = converted.once()
    reason = f"has a value that is not a valid {type_name(target)}"
    lost = (
        _lost(value.expr, source, target, node)
        if isinstance(source, (pl.List, pl.Struct))
        else value.expr.is_not_null() & converted.expr.is_null()
    )
    return converted.failing([Check(lost, reason, node)])


def _lost(a: pl.Expr, source: pl.DataType, target: pl.DataType, node: exp.Expr) -> pl.Expr:
    """Whether a value, or one inside it, does not fit."""
    match source, target:
        case pl.List(), pl.List():
            inside = _lost(pl.element(), _instance(source.inner), _instance(target.inner), node)
            return a.list.eval(inside).list.any()
        case pl.Struct(), pl.Struct():
            return pl.any_horizontal(*(_lost(*each, node) for each in _fields(a, source, target)))
    return a.is_not_null() & _converted(a, source, target, node).is_null()


def _fields(
    a: pl.Expr, source: pl.Struct, target: pl.Struct
) -> Iterator[tuple[pl.Expr, pl.DataType, pl.DataType]]:
    """The fields of a struct, with the types that they have and get."""
    for field, to in zip(source.fields, target.fields, strict=True):
        yield a.struct.field(field.name), _instance(field.dtype), _instance(to.dtype)


def _instance(dtype: PolarsDataType) -> pl.DataType:
    return dtype if isinstance(dtype, pl.DataType) else dtype()


def _converted(a: pl.Expr, source: pl.DataType, target: pl.DataType, node: exp.Expr) -> pl.Expr:
    """The values of type `source` in type `target`; NULL where they do not fit."""
    numeric = (*INTEGERS, *FLOATS)
    if source == target:
        return a
    match source, target:
        case pl.String(), _:
            if (read := notation.read(a, target)) is not None:
                return read
        case _, pl.String():
            if (written := notation.write(a, source)) is not None:
                return written
        case pl.Boolean(), _ if target in numeric or isinstance(target, pl.Decimal):
            return a.cast(pl.Int8).cast(target, strict=False)
        case _, pl.Boolean() if source in numeric or isinstance(source, pl.Decimal):
            return a != 0
        case _, pl.Decimal() if source in FLOATS:
            # By way of the shortest text, so that 0.1 stays 0.1; a FLOAT is a DOUBLE on the way, as in Spark.
            return notation.decimal_of(a.cast(pl.Float64).cast(pl.String), target)
        case pl.Decimal(), pl.Decimal():
            return decimals.rescaled(a, source, target)
        case _, _ if _is_number(source) and _is_number(target):
            return a.cast(target, strict=False)
        case pl.Date(), pl.Datetime():
            return a.cast(target)
        case pl.Datetime(), pl.Date():
            return a.dt.date()
        case pl.Datetime(), pl.Datetime():
            return a.dt.replace_time_zone(target.time_zone)
        case pl.Datetime(), _ if target in INTEGERS:
            return (a.cast(pl.Int64) // SECOND).cast(target, strict=False)
        case pl.Datetime(), _ if target in FLOATS:
            return divided(a.cast(pl.Int64), SECOND).cast(target)
        case pl.Datetime(), pl.Decimal():
            # Spark's seconds are a DOUBLE on the way.
            return notation.decimal_of(divided(a.cast(pl.Int64), SECOND).cast(pl.String), target)
        case pl.Decimal(), pl.Datetime():
            return _instant(_microseconds(a, source.scale), target)
        case _, pl.Datetime() if source in INTEGERS:
            return _instant(a.cast(pl.Int128) * SECOND, target)
        case _, pl.Datetime() if source in FLOATS:
            return _instant(a * SECOND, target)
        case pl.List(), pl.List():
            inner = (_instance(source.inner), _instance(target.inner))
            return a.list.eval(_converted(pl.element(), *inner, node))
        case pl.Struct(), pl.Struct():
            fields = (_converted(*each, node) for each in _fields(a, source, target))
            named = [each.alias(to.name) for each, to in zip(fields, target.fields, strict=True)]
            return pl.when(a.is_not_null()).then(pl.struct(named))
    raise UnsupportedError(
        f"`{shown(node)}` is {type_name(source)} and cannot be cast to {type_name(target)}"
    )


def _microseconds(seconds: pl.Expr, scale: int) -> pl.Expr:
    """Decimal seconds in microseconds, what is finer being cut off; NULL where they are too many."""
    units = seconds.to_physical()
    if scale > _MICRO_DIGITS:
        return units.abs() // pl.lit(10 ** (scale - _MICRO_DIGITS), dtype=pl.Int128) * units.sign()
    factor = 10 ** (_MICRO_DIGITS - scale)
    return pl.when(units.abs() <= 2**63 // factor).then(units * factor)


def _instant(micros: pl.Expr, target: pl.DataType) -> pl.Expr:
    """The instant so many microseconds after 1970; NULL outside of the calendar."""
    whole = micros.cast(pl.Int64, strict=False)
    return pl.when(whole.is_between(FIRST_DAY * DAY, (LAST_DAY + 1) * DAY - 1)).then(whole).cast(target)


def _is_number(dtype: pl.DataType) -> bool:
    return dtype in INTEGERS or dtype in FLOATS or isinstance(dtype, pl.Decimal)


def _always_fits(source: pl.DataType, target: pl.DataType) -> bool:
    if isinstance(target, (pl.String, pl.Boolean)) and not isinstance(source, (pl.String, pl.Binary)):
        return True
    if target in FLOATS and not isinstance(source, pl.String):
        return True
    if source in INTEGERS and target in INTEGERS:
        return _WIDTH[source.base_type()] <= _WIDTH[target.base_type()]  # type: ignore[index]
    if isinstance(source, pl.Boolean) and target in INTEGERS:
        return True
    return isinstance(source, (pl.Date, pl.Datetime)) and isinstance(target, (pl.Date, pl.Datetime))
