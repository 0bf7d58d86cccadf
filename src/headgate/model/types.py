"""Data types: Arrow's, with Spark SQL's names. One type system from the catalog to the kernels."""

from __future__ import annotations

import pyarrow as pa

from headgate.model import decimals

BOOLEAN = pa.bool_()
INT = pa.int32()
BIGINT = pa.int64()
DOUBLE = pa.float64()
STRING = pa.string()
DATE = pa.date32()
TIMESTAMP = pa.timestamp("us", tz="UTC")
TIMESTAMP_NTZ = pa.timestamp("us")
INTERVAL = pa.duration("us")
NULL = pa.null()

_NAMES: dict[pa.DataType, str] = {
    BOOLEAN: "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    INT: "INT",
    BIGINT: "BIGINT",
    pa.float32(): "FLOAT",
    DOUBLE: "DOUBLE",
    STRING: "STRING",
    pa.binary(): "BINARY",
    DATE: "DATE",
    TIMESTAMP: "TIMESTAMP",
    TIMESTAMP_NTZ: "TIMESTAMP_NTZ",
    INTERVAL: "INTERVAL",
    NULL: "NULL",
}


def spark_name(dtype: pa.DataType) -> str:
    """The Spark SQL spelling of a type, as messages and rendered statements show it."""
    if dtype in _NAMES:
        return _NAMES[dtype]
    if pa.types.is_decimal(dtype):
        return f"DECIMAL({dtype.precision}, {dtype.scale})"
    if pa.types.is_large_string(dtype) or dtype == pa.string_view():
        return _NAMES[STRING]
    if pa.types.is_large_binary(dtype) or dtype == pa.binary_view():
        return _NAMES[pa.binary()]
    if pa.types.is_list(dtype) or pa.types.is_large_list(dtype):
        return f"ARRAY<{spark_name(dtype.value_type)}>"
    if pa.types.is_map(dtype):
        return f"MAP<{spark_name(dtype.key_type)}, {spark_name(dtype.item_type)}>"
    if pa.types.is_struct(dtype):
        fields = ", ".join(f"{field.name}: {spark_name(field.type)}" for field in dtype)
        return f"STRUCT<{fields}>"
    return str(dtype).upper()


def is_integer(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_signed_integer(dtype))


def is_numeric(dtype: pa.DataType) -> bool:
    return is_integer(dtype) or bool(pa.types.is_floating(dtype) or pa.types.is_decimal(dtype))


def is_timestamp(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(dtype))


def is_nested(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_nested(dtype))


def is_orderable(dtype: pa.DataType) -> bool:
    """Whether <, MIN, MAX and sorting make sense."""
    return not is_nested(dtype) and dtype != NULL


_INTEGER_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The type both sides are read as when they meet in a comparison, UNION or CASE; None if there is none.

    Numbers widen as in Spark SQL, NULL yields to anything, dates widen to timestamps. Text never turns into
    a number on its own: that is where silent wrong answers come from.
    """
    if left == right:
        return left
    if left == NULL:
        return right
    if right == NULL:
        return left
    if is_numeric(left) and is_numeric(right):
        return _common_numeric(left, right)
    temporal = {left, right}
    if temporal == {DATE, TIMESTAMP} or temporal == {TIMESTAMP, TIMESTAMP_NTZ}:
        return TIMESTAMP
    if temporal == {DATE, TIMESTAMP_NTZ}:
        return TIMESTAMP_NTZ
    return None


def _common_numeric(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if pa.types.is_floating(left) or pa.types.is_floating(right):
        return DOUBLE
    if pa.types.is_decimal(left) or pa.types.is_decimal(right):
        return pa.decimal128(*decimals.met(digits(left), digits(right)))
    return left if left.bit_width >= right.bit_width else right


def digits(dtype: pa.DataType) -> decimals.Digits:
    """The digits of a decimal, or of a whole number among decimals."""
    if pa.types.is_decimal(dtype):
        return decimals.Digits(dtype.precision, dtype.scale)
    return decimals.Digits(_INTEGER_DIGITS[dtype], 0)
