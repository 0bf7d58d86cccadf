"""Polars types for Arrow types and for the type names that a CAST can hold."""

from __future__ import annotations

import polars as pl
import pyarrow as pa
from sqlglot import exp

from headgate.model.errors import UnsupportedError
from headgate.model.types import spark_name

TIMESTAMP = pl.Datetime("us", "UTC")
TIMESTAMP_NTZ = pl.Datetime("us")
INTERVAL = pl.Duration("us")
INTEGERS = (pl.Int8, pl.Int16, pl.Int32, pl.Int64)
FLOATS = (pl.Float32, pl.Float64)

_FLAT: dict[pa.DataType, pl.DataType] = {
    pa.null(): pl.Null(),
    pa.bool_(): pl.Boolean(),
    pa.int8(): pl.Int8(),
    pa.int16(): pl.Int16(),
    pa.int32(): pl.Int32(),
    pa.int64(): pl.Int64(),
    pa.float32(): pl.Float32(),
    pa.float64(): pl.Float64(),
    pa.string(): pl.String(),
    pa.large_string(): pl.String(),
    pa.binary(): pl.Binary(),
    pa.large_binary(): pl.Binary(),
    pa.date32(): pl.Date(),
}


def polars_type(dtype: pa.DataType) -> pl.DataType:
    """The Polars type that holds the values of an Arrow type."""
    if dtype in _FLAT:
        return _FLAT[dtype]
    if pa.types.is_timestamp(dtype):
        return pl.Datetime("us", dtype.tz)
    if pa.types.is_duration(dtype):
        return INTERVAL
    if pa.types.is_decimal(dtype):
        return pl.Decimal(dtype.precision, dtype.scale)
    if pa.types.is_list(dtype) or pa.types.is_large_list(dtype):
        return pl.List(polars_type(dtype.value_type))
    if pa.types.is_map(dtype):
        return _map(polars_type(dtype.key_type), polars_type(dtype.item_type))
    if pa.types.is_struct(dtype):
        return pl.Struct([pl.Field(field.name, polars_type(field.type)) for field in dtype])
    raise UnsupportedError(f"columns of type {dtype} are not supported")


def arrow_type(dtype: pl.DataType) -> pa.DataType:
    """The Arrow type whose values a Polars type holds."""
    return _spelled(pl.Series([], dtype=dtype).to_arrow(compat_level=pl.CompatLevel.oldest()).type)


def _spelled(dtype: pa.DataType) -> pa.DataType:
    """The type as the catalog has it, where Arrow has several."""
    if pa.types.is_large_string(dtype):
        return pa.string()
    if pa.types.is_large_binary(dtype):
        return pa.binary()
    return dtype


_NAMED: dict[object, pl.DataType] = {
    exp.DataType.Type.NULL: pl.Null(),
    exp.DataType.Type.BOOLEAN: pl.Boolean(),
    exp.DataType.Type.TINYINT: pl.Int8(),
    exp.DataType.Type.SMALLINT: pl.Int16(),
    exp.DataType.Type.INT: pl.Int32(),
    exp.DataType.Type.BIGINT: pl.Int64(),
    exp.DataType.Type.FLOAT: pl.Float32(),
    exp.DataType.Type.DOUBLE: pl.Float64(),
    exp.DataType.Type.TEXT: pl.String(),
    exp.DataType.Type.VARCHAR: pl.String(),
    exp.DataType.Type.CHAR: pl.String(),
    exp.DataType.Type.BINARY: pl.Binary(),
    exp.DataType.Type.VARBINARY: pl.Binary(),
    exp.DataType.Type.DATE: pl.Date(),
    # TIMESTAMP of Spark SQL is an instant; sqlglot spells it in three ways, depending on where it stood.
    exp.DataType.Type.TIMESTAMP: TIMESTAMP,
    exp.DataType.Type.TIMESTAMPTZ: TIMESTAMP,
    exp.DataType.Type.TIMESTAMPLTZ: TIMESTAMP,
    exp.DataType.Type.TIMESTAMPNTZ: TIMESTAMP_NTZ,
    exp.DataType.Type.INTERVAL: INTERVAL,
}


def named_type(name: exp.DataType) -> pl.DataType:
    """The Polars type that a written type name means, as in `CAST(x AS DECIMAL(10, 2))`."""
    kind = name.this
    if isinstance(kind, exp.Interval):
        return INTERVAL
    if kind in _NAMED:
        return _NAMED[kind]
    parts = name.expressions
    if kind == exp.DataType.Type.DECIMAL:
        shape = [int(part.name) for part in parts] or [10]
        return pl.Decimal(shape[0], shape[1] if len(shape) > 1 else 0)
    if kind == exp.DataType.Type.ARRAY and parts:
        return pl.List(named_type(parts[0]))
    if kind == exp.DataType.Type.MAP and len(parts) == 2:
        return _map(named_type(parts[0]), named_type(parts[1]))
    if kind == exp.DataType.Type.STRUCT:
        return pl.Struct([pl.Field(part.name, named_type(part.args["kind"])) for part in parts])
    raise UnsupportedError(f"the type {name.sql(dialect='spark')} is not supported")


def type_name(dtype: pl.DataType) -> str:
    """The Spark SQL spelling of a Polars type, for messages."""
    for kind, known in _NAMED.items():
        if known == dtype:
            return exp.DataType(this=kind).sql(dialect="spark")
    if isinstance(dtype, pl.Decimal):
        return f"DECIMAL({dtype.precision}, {dtype.scale})"
    if isinstance(dtype, (pl.List, pl.Struct)):
        return spark_name(arrow_type(dtype))
    return str(dtype).upper()


def _map(key: pl.DataType, value: pl.DataType) -> pl.DataType:
    return pl.List(pl.Struct([pl.Field("key", key), pl.Field("value", value)]))
