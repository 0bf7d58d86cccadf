"""Streaming DataFrames beside declarations: what is refused before a query runs, so that no task fails on it."""

from __future__ import annotations

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StructField

from headgate.model.errors import InputError
from headgate.model.schema import Column
from headgate.plan.catalog import StreamDef
from headgate.runtime.data import plain_type
from headgate.runtime.io.conform import Reading, mismatch


def frame_columns(data: DataFrame, what: str) -> tuple[Column, ...]:
    """A DataFrame's columns in Headgate's types."""
    return tuple(Column(field.name, plain_type(_arrow(field, what))) for field in data.schema)


def require_columns(data: DataFrame, stream: StreamDef, what: str) -> None:
    """Raises InputError unless a DataFrame has the columns of a stream, in types from which nothing can be lost."""
    for column in stream.columns:
        found = [field for field in data.schema if field.name.casefold() == column.name.casefold()]
        if not found:
            raise InputError(
                f"{what} has no column {column.name}", remedy=f"it has {', '.join(data.columns)}"
            )
        if len(found) > 1:
            raise InputError(
                f"{what} has the column {column.name} twice", remedy="give one of them another name"
            )
        reason = mismatch(_arrow(found[0], what), column.type, column.name, Reading.WIDENED)
        if reason is not None:
            raise InputError(
                f"{what}: {reason}",
                remedy=f"CAST it in the DataFrame, where you say what becomes of values that do not fit, or declare "
                f"{column.name} with another type",
            )


def _arrow(field: StructField, what: str) -> pa.DataType:
    try:
        return to_arrow_type(field.dataType, timezone="UTC")
    except PySparkException as error:
        raise InputError(
            f"{what}: column {field.name} is {field.dataType.simpleString().upper()}, which is not supported",
            remedy="leave it out of the DataFrame, or CAST it",
        ) from error
