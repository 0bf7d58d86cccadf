"""Rows from and to the outside world: pandas, Polars, Arrow and plain dictionaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
import pyarrow as pa

from headgate.kernels.expressions import polars_type
from headgate.model.errors import DataError
from headgate.model.schema import Column
from headgate.model.types import spark_name
from headgate.runtime.query import Metrics


def frame_of(data: Any, columns: Sequence[Column] | None = None) -> pl.DataFrame:
    """Rows as a Polars frame: from Polars, anything that speaks Arrow (pandas, pyarrow, …) or a list of dicts.

    With `columns`, exactly these, in their declared types; DataError if a column is missing or does not convert.
    """
    match data:
        case pl.DataFrame():
            frame = data
        case pl.LazyFrame():
            frame = data.collect()
        case [] | [Mapping(), *_]:
            schema = {column.name: polars_type(column.type) for column in columns} if columns else None
            frame = _from_dicts(data, schema)
        case _ if hasattr(data, "__arrow_c_stream__"):
            frame = pl.DataFrame(data)
        case _:
            raise DataError(
                f"rows cannot be read from {type(data).__name__}",
                remedy="give a Polars or pandas DataFrame, an Arrow table, or a list of dictionaries",
            )
    return frame if columns is None else _conform(frame, columns)


def _from_dicts(rows: Sequence[Mapping[str, Any]], schema: Mapping[str, pl.DataType] | None) -> pl.DataFrame:
    try:
        return pl.DataFrame(
            [dict(row) for row in rows], schema=schema, strict=False, infer_schema_length=None
        )
    except (pl.exceptions.PolarsError, TypeError) as error:
        raise DataError(f"the rows do not form a table: {error}") from error


def _conform(frame: pl.DataFrame, columns: Sequence[Column]) -> pl.DataFrame:
    have = {name.casefold(): name for name in frame.columns}
    chosen = []
    for column in columns:
        name = have.get(column.name.casefold())
        if name is None:
            raise DataError(
                f"the data has no column {column.name}", remedy=f"it has {', '.join(frame.columns)}"
            )
        chosen.append(_converted(frame[name], column))
    return pl.DataFrame(chosen)


def _converted(series: pl.Series, column: Column) -> pl.Series:
    target = polars_type(column.type)
    if series.dtype == target:
        return series.alias(column.name)
    try:
        if isinstance(target, pl.Datetime) and isinstance(series.dtype, pl.Datetime):
            zoned = series.dt.cast_time_unit("us")
            return (
                zoned.dt.convert_time_zone(target.time_zone).alias(column.name)
                if (target.time_zone and series.dtype.time_zone)
                else zoned.dt.replace_time_zone(target.time_zone).alias(column.name)
            )
        return series.cast(target).alias(column.name)
    except pl.exceptions.PolarsError as error:
        raise DataError(
            f"column {column.name} is {series.dtype} and does not convert to {spark_name(column.type)}: {error}"
        ) from error


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
