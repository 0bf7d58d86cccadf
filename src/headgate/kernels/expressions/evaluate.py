"""Evaluate scalars on a frame, or hand them out as Polars expressions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import polars as pl

from headgate.kernels.expressions.casts import convert
from headgate.kernels.expressions.compile import compile_node
from headgate.kernels.expressions.dtypes import polars_type
from headgate.kernels.expressions.typed import Check, NeedsSchemaError, Scope, Typed, together, with_lets
from headgate.model.errors import DataError
from headgate.model.scalar import Scalar


def evaluate(frame: pl.DataFrame, outputs: Mapping[str, Scalar], keep: Sequence[str] = ()) -> pl.DataFrame:
    """The named scalars of every row, then the columns to keep; DataError where a value does not exist."""
    compiled = {name: _compiled(scalar, _layout(frame)) for name, scalar in outputs.items()}
    if not frame.height:
        return pl.DataFrame(
            schema={name: one.dtype for name, one in compiled.items()}
            | {name: frame.schema[name] for name in keep}
        )
    named = [one.expr.alias(name) for name, one in compiled.items()]
    whole = _checked(frame, compiled.values())
    found = whole.select(*named, *keep)
    if found.height == frame.height:
        return found
    # Constants alone: a column of the frame makes them as tall as it is.
    return whole.select(pl.col(frame.columns[0]).alias("_height"), *named).drop("_height")


def keep_rows(frame: pl.DataFrame, predicate: Scalar) -> pl.DataFrame:
    """The rows on which the predicate is TRUE; DataError where it has no value."""
    compiled = _compiled(predicate, _layout(frame))
    if not frame.height:
        return frame
    return _checked(frame, [compiled]).filter(compiled.expr)[frame.columns]


def compile_scalar(scalar: Scalar) -> pl.Expr:
    """A scalar as a Polars expression that reads the scalar's columns by name.

    Where the translation depends on the columns' types, or can fail on a row, the expression calls back to
    `evaluate` with the columns at hand.
    """
    try:
        plain = compile_node(scalar.expression, Scope(None))
        if not plain.checks:
            return plain.expr if scalar.is_column else plain.expr.cast(polars_type(scalar.type))
    except NeedsSchemaError:
        pass
    names = sorted(scalar.columns)
    if not names:
        one = evaluate(pl.DataFrame({"_height": [0]}), {"value": scalar})
        return pl.lit(one["value"].first(), dtype=one.schema["value"])
    return pl.map_batches(
        [pl.col(name) for name in names],
        _Deferred(scalar),
        return_dtype=polars_type(scalar.type),
        is_elementwise=True,
    )


@dataclass(frozen=True)
class _Deferred:
    """What a compiled expression calls once it has the columns."""

    scalar: Scalar

    def __call__(self, columns: Sequence[pl.Series]) -> pl.Series:
        try:
            return evaluate(pl.DataFrame(list(columns)), {"value": self.scalar})["value"]
        except DataError as error:
            raise _RetoldError(error.cause, remedy=error.remedy) from error


class _RetoldError(DataError):
    """A DataError that passes through Polars, which makes an exception anew from its text and adds to it."""

    def __init__(self, cause: str, *, remedy: str | None = None) -> None:
        told = cause.partition("\n\nThis error occurred")[0].removeprefix(f"error[{self.code}]: ")
        cause, _, help_ = told.partition("\n  help: ")
        super().__init__(cause, remedy=remedy or help_ or None)


Layout = tuple[tuple[str, pl.DataType], ...]


def _layout(frame: pl.DataFrame) -> Layout:
    return tuple(frame.schema.items())


@lru_cache(maxsize=1024)
def _compiled(scalar: Scalar, layout: Layout) -> Typed:
    value = compile_node(scalar.expression, Scope(dict(layout)))
    target = polars_type(scalar.type)
    return value if target == pl.Null() else convert(value, target, scalar.expression)


def _checked(frame: pl.DataFrame, compiled: Iterable[Typed]) -> pl.DataFrame:
    """The frame with all named values, once no check has found a row to complain about."""
    compiled = list(compiled)
    checks = [check for one in compiled for check in one.checks]
    whole = with_lets(frame, together(compiled))
    if checks:
        failed = whole.select(check.mask.any().alias(str(i)) for i, check in enumerate(checks))
        for check, column in zip(checks, failed, strict=True):
            if column.first():
                raise DataError(_complaint(whole, check), remedy=check.remedy)
    return whole


_LONGEST_VALUE = 100
"""How many characters of a value a message shows."""


def _complaint(frame: pl.DataFrame, check: Check) -> str:
    """The cause with the values of the first row that shows it."""
    columns = check.columns[:6]
    if not columns:
        return check.cause
    row = frame.filter(check.mask).select(columns).row(0)
    return f"{check.cause}, at " + ", ".join(
        f"{name} = {_shortened(repr(value))}" for name, value in zip(columns, row, strict=True)
    )


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 1] + "…"
