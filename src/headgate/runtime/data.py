"""Rows from and to the outside world: pandas, Polars, Arrow and plain dictionaries."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import polars as pl
import pyarrow as pa

from headgate.kernels.expressions import polars_type
from headgate.model.errors import DataError, InputError
from headgate.model.schema import Column
from headgate.model.types import spark_name
from headgate.runtime.io.conform import Reading, conformed, mismatch
from headgate.runtime.io.fitting import unfit_reason
from headgate.runtime.query import Metrics


def frame_of(data: Any, columns: Sequence[Column] | None = None) -> pl.DataFrame:
    """Rows as a Polars frame: from Polars, anything that speaks Arrow (pandas, pyarrow, …) or a list of dicts.

    With `columns`, exactly these, in their declared types and without loss; InputError if a column is of an unfit
    type, DataError if it is missing or has a value that does not fit.
    """
    match held(data):
        case pl.DataFrame() as frame:
            pass
        case [] | [Mapping(), *_]:
            return _inferred(data) if columns is None else _from_dicts(data, columns)
        case pa.Table() as table:
            frame = pl.DataFrame(_readable(table, columns))
        case _ if _is_pandas(data):
            frame = pl.DataFrame(data)
        case _:
            raise DataError(
                f"rows cannot be read from {type(data).__name__}",
                remedy="give a Polars or pandas DataFrame, an Arrow table, or a list of dictionaries",
            )
    return frame if columns is None else _from_frame(frame, columns)


def held(data: Any) -> Any:
    """The same data, to be looked at more than once: a lazy frame is carried out, a stream of batches is read."""
    if isinstance(data, pl.LazyFrame):
        return data.collect()
    if isinstance(data, (pl.DataFrame, pa.Table)) or _is_pandas(data):
        return data
    stream = hasattr(data, "__arrow_c_stream__")
    return pa.RecordBatchReader.from_stream(data).read_all() if stream else data


def _is_pandas(data: Any) -> bool:
    return type(data).__module__.partition(".")[0] == "pandas" and hasattr(data, "__arrow_c_stream__")


def _readable(whole: pa.Table, columns: Sequence[Column] | None) -> pa.Table:
    """Arrow's data without undeclared columns of types that have no place here; InputError if others have one."""
    declared = None if columns is None else {column.name.casefold() for column in columns}
    kept = []
    for number, field in enumerate(whole.schema):
        foreign = _foreign_type(field.type)
        if foreign is None:
            kept.append(number)
        elif declared is None or field.name.casefold() in declared:
            raise InputError(
                f"column {field.name} has Arrow's type {foreign}, which has no place in Spark SQL",
                remedy=f"leave {field.name} out, or convert it in the data: {_FOREIGN[foreign.partition('(')[0]]}",
            )
    return whole if len(kept) == len(whole.schema) else whole.select(kept)


_FOREIGN = {
    "month_day_nano_interval": "to a number of days or seconds, or to text",
    "decimal256": "to DECIMAL of up to 38 digits",
    "union": "to one of its types",
    "run_end_encoded": "to the values themselves",
    "list_view": "to a list",
}


def _foreign_type(dtype: pa.DataType) -> str | None:
    """The type among a column's that nothing here can hold, as Arrow calls it; None if there is none."""
    match dtype:
        case _ if pa.types.is_interval(dtype):
            return "month_day_nano_interval"
        case _ if pa.types.is_decimal256(dtype):
            return str(dtype)
        case _ if pa.types.is_union(dtype):
            return "union"
        case _ if pa.types.is_run_end_encoded(dtype):
            return "run_end_encoded"
        case _ if pa.types.is_list_view(dtype) or pa.types.is_large_list_view(dtype):
            return "list_view"
        case _ if pa.types.is_nested(dtype):
            parts = (dtype.field(number).type for number in range(dtype.num_fields))
            return next((found for part in parts if (found := _foreign_type(part)) is not None), None)
    return None


def _inferred(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Dictionaries as a frame whose columns are of the types that their values have."""
    try:
        return pl.DataFrame([dict(row) for row in rows], strict=False, infer_schema_length=None)
    except (pl.exceptions.PolarsError, TypeError) as error:
        raise DataError(f"the rows do not form a table: {error}") from error


def _from_dicts(rows: Sequence[Mapping[str, Any]], columns: Sequence[Column]) -> pl.DataFrame:
    """Dictionaries as the declared columns. A field that is missing is NULL; one that no row has is a mistake."""
    try:
        folded = [{str(name).casefold(): value for name, value in row.items()} for row in rows]
    except AttributeError as error:
        raise DataError("the rows are not all dictionaries") from error
    have = {name for row in folded for name in row}
    chosen = []
    for column in columns:
        name = column.name.casefold()
        if rows and name not in have:
            raise _no_column(column, sorted(have))
        array = _values_of(column, [row.get(name) for row in folded])
        chosen.append(_converted(array, column, Reading.WRITTEN))
    return pl.DataFrame(chosen)


def _values_of(column: Column, values: list[Any]) -> pa.Array:
    """Python's values as an array of the type that they have; InputError if they have none in common."""
    kinds = {type(value) for value in values}
    try:
        if dt.date in kinds and len(kinds - {dt.date, type(None)}):
            raise TypeError("dates and other values do not mix")
        if pa.types.is_decimal(column.type) and kinds <= {int, Decimal, type(None)}:
            # Whole numbers may be longer than other types have room for.
            values = [None if value is None else Decimal(value) for value in values]
        return pa.array(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"column {column.name} is declared {spark_name(column.type)} and has other values: {error}",
            remedy=f"give values of one type, or declare {column.name} with another",
        ) from error


def _from_frame(frame: pl.DataFrame, columns: Sequence[Column]) -> pl.DataFrame:
    have = {name.casefold(): name for name in frame.columns}
    chosen = []
    for column in columns:
        name = column.name if column.name in frame.columns else have.get(column.name.casefold())
        if name is None:
            raise _no_column(column, frame.columns)
        series = frame[name]
        if series.dtype == polars_type(column.type):
            chosen.append(series.alias(column.name))
            continue
        try:
            array = series.to_arrow(compat_level=pl.CompatLevel.oldest())
        except (pa.ArrowException, pl.exceptions.PolarsError) as error:
            raise InputError(
                f"column {column.name} is declared {spark_name(column.type)} but is {series.dtype}",
                remedy=_REMEDY.format(column.name),
            ) from error
        chosen.append(_converted(array, column, Reading.EXACT))
    return pl.DataFrame(chosen)


def _no_column(column: Column, names: Sequence[str]) -> DataError:
    return DataError(f"the data has no column {column.name}", remedy=f"it has {', '.join(names)}")


_REMEDY = "convert it in the data, or declare {} with another type"


def _converted(array: pa.Array, column: Column, reading: Reading) -> pl.Series:
    """A column in its declared type, in which every value is what it was."""
    reason = mismatch(array.type, column.type, column.name, reading)
    if reason is not None:
        raise InputError(reason, remedy=_REMEDY.format(column.name))
    series, failed = conformed(array, column, None, reading)
    if failed is not None and failed.any():
        row = int(failed.argmax())
        raise DataError(
            f"row {row + 1}, column {column.name}: {unfit_reason(array[row], column)}",
            remedy=f"the column is {spark_name(array.type)}: {_REMEDY.format(column.name)}",
        )
    return series


def columns_of(frame: pl.DataFrame) -> tuple[Column, ...]:
    """A frame's columns in Headgate's types."""
    schema = frame.head(0).to_arrow().schema
    return tuple(Column(field.name, plain_type(field.type)) for field in schema)


def plain_type(dtype: pa.DataType) -> pa.DataType:
    """Arrow's many spellings of one type as the one that Headgate uses."""
    if pa.types.is_large_string(dtype) or dtype == pa.string_view():
        return pa.string()
    if pa.types.is_large_binary(dtype) or dtype == pa.binary_view():
        return pa.binary()
    if pa.types.is_timestamp(dtype):
        return pa.timestamp("us", tz="UTC")
    if pa.types.is_duration(dtype):
        return pa.duration("us")
    if pa.types.is_unsigned_integer(dtype):
        return pa.int64()
    if pa.types.is_large_list(dtype):
        return pa.list_(plain_type(dtype.value_type))
    if pa.types.is_struct(dtype):
        return pa.struct([(field.name, plain_type(field.type)) for field in dtype])
    return dtype


@dataclass(frozen=True)
class Result:
    """A query's output rows and what the run did."""

    query: str
    table: pa.Table
    metrics: Metrics

    def to_arrow(self) -> pa.Table:
        return self.table

    def to_polars(self) -> pl.DataFrame:
        frame = pl.from_arrow(self.table)
        assert isinstance(frame, pl.DataFrame)
        return frame

    def to_pandas(self) -> Any:
        return self.table.to_pandas()

    def to_dicts(self) -> list[dict[str, Any]]:
        return self.to_polars().to_dicts()

    def __repr__(self) -> str:
        return f"{self.query}: {self.table.num_rows} rows\n{self.to_polars()}"

    def _repr_html_(self) -> str:
        return self.to_polars()._repr_html_()
