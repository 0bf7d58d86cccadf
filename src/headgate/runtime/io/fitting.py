"""Fitting: rows as a format hands them over, in the types that were declared, and what is wrong with the others."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
import polars as pl
import pyarrow as pa

from headgate.model.schema import Column
from headgate.model.types import DATE, is_timestamp, spark_name
from headgate.plan.catalog import StreamDef, TableDef
from headgate.runtime.io.conform import conformed
from headgate.runtime.io.format import Piece, Reader
from headgate.runtime.io.literals import EPOCH, Mask, TextForms, epoch_advice
from headgate.runtime.io.rejects import BadRow, Origin, shown

_NEW_YEAR_2025 = 1_735_689_600_000_000


def fit(
    definition: StreamDef | TableDef, reader: Reader, origin: Origin, piece: Piece, *, stops: bool
) -> tuple[pl.DataFrame, Sequence[BadRow]]:
    """The rows of a piece that fit the declaration, and the others in the order in which they stand.

    With `stops`, only the first of the others is sure to be named.
    """
    failures: list[tuple[int, Mask]] = []
    series: list[pl.Series] = []
    for index, (column, array) in enumerate(zip(definition.columns, piece.columns, strict=True)):
        converted, failed = conformed(array, column, reader.forms)
        series.append(converted)
        if _is_time(definition, column) and converted.null_count():
            # What does not convert is NULL by now, too.
            failed = converted.is_null().to_numpy()
        if failed is not None:
            failures.append((index, failed))
    frame = pl.DataFrame(series)
    if not failures:
        return frame, piece.broken
    failed = reduce(np.logical_or, [mask for _, mask in failures])
    bad = np.flatnonzero(failed)
    unfit = [
        _unfit(definition, reader, origin, piece, failures, index)
        for index in bad[: 1 if stops else None].tolist()
    ]
    refused = sorted([*piece.broken, *unfit], key=lambda each: each.row or 0)
    return frame.filter(~pl.Series(failed)), refused


def _unfit(
    definition: StreamDef | TableDef,
    reader: Reader,
    origin: Origin,
    piece: Piece,
    failures: Sequence[tuple[int, Mask]],
    index: int,
) -> BadRow:
    """What is wrong with a row in which some columns failed: the first of them."""
    failed = next(column for column, mask in failures if mask[index])
    column, place = definition.columns[failed], piece.place(index)
    value = piece.columns[failed][index]
    reason = unfit_reason(value, column, reader.forms) if value.is_valid else "the event time is NULL"
    text = place.text if place.text is not None else _written(value)
    advice = reader.advice(place)
    if (
        advice is None
        and is_timestamp(column.type)
        and reader.forms is not None
        and reader.forms.epoch is None
    ):
        advice = epoch_advice(_written(value))
    return BadRow(origin, reason, place.row, place.line, column.name, text, advice)


def _is_time(definition: StreamDef | TableDef, column: Column) -> bool:
    return isinstance(definition, StreamDef) and column.name == definition.time


def unfit_reason(value: pa.Scalar, column: Column, forms: TextForms | None = None) -> str:
    """Why a value is not one of its column's type, which `forms` say how to write."""
    reason = f"{shown(_written(value))} is not of type {spark_name(column.type)}"
    if column.type == DATE:
        return f"{reason} (of the years 1 to 9999, such as 2025-01-31)"
    if is_timestamp(column.type) and forms is not None and forms.epoch is not None:
        return f"{reason} (of the years 1 to 9999, such as {_NEW_YEAR_2025 // forms.epoch})"
    if is_timestamp(column.type):
        zone = "Z" if column.type.tz else ""
        return (
            f"{reason} (of the years 1 to 9999, such as 2025-01-31 23:59:59.5 or 2025-01-31T23:59:59{zone})"
        )
    return reason


def _written(value: pa.Scalar) -> str:
    """A value as text; also one that Python has no object for, such as a time after the year 9999."""
    if pa.types.is_timestamp(value.type):
        return f"{value.value} {value.type.unit} since 1970"
    if pa.types.is_date(value.type):
        return f"{value.value} {'days' if pa.types.is_date32(value.type) else 'ms'} since 1970"
    try:
        if value.type == EPOCH:
            return format(value.as_py().normalize(), "f")
        return str(value.as_py())
    except (ValueError, OverflowError):
        return str(value.type)
