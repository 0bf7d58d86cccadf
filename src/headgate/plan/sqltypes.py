"""SQL type names to Arrow types."""

from __future__ import annotations

from functools import cache

import pyarrow as pa
from sqlglot import exp

from headgate.language.parse import Statement
from headgate.model import types
from headgate.model.decimals import MOST_DIGITS
from headgate.model.errors import UnsupportedError

_T = exp.DType

_PLAIN: dict[exp.DType, pa.DataType] = {
    _T.BOOLEAN: types.BOOLEAN,
    _T.TINYINT: pa.int8(),
    _T.SMALLINT: pa.int16(),
    _T.INT: types.INT,
    _T.BIGINT: types.BIGINT,
    _T.FLOAT: pa.float32(),
    _T.DOUBLE: types.DOUBLE,
    _T.TEXT: types.STRING,
    _T.VARCHAR: types.STRING,
    _T.CHAR: types.STRING,
    _T.BINARY: pa.binary(),
    _T.VARBINARY: pa.binary(),
    _T.DATE: types.DATE,
    _T.TIMESTAMPTZ: types.TIMESTAMP,
    _T.TIMESTAMPLTZ: types.TIMESTAMP,
    _T.TIMESTAMP: types.TIMESTAMP_NTZ,
    _T.TIMESTAMPNTZ: types.TIMESTAMP_NTZ,
    _T.NULL: types.NULL,
}


def arrow_type(statement: Statement, node: exp.Expr, *, place: exp.Expr | None = None) -> pa.DataType:
    """The Arrow type that a SQL type means; raises, pointing at `place`, on one that Headgate does not have."""
    dtype = from_sql(node)
    if dtype is None:
        raise UnsupportedError(
            f"there is no type {node.sql()}",
            remedy="types are those of Spark SQL: BIGINT, DOUBLE, STRING, TIMESTAMP, DECIMAL(p, s), ARRAY<…>, …",
            place=statement.place(place or node),
        )
    return dtype


def from_sql(node: exp.Expr) -> pa.DataType | None:
    """The Arrow type that a SQL type means; None if Headgate does not have it."""
    assert isinstance(node, exp.DataType)
    kind = node.this
    inner = node.expressions
    if kind in _PLAIN:
        return _PLAIN[kind] if all(each.name.isdigit() for each in inner) else None
    match kind:
        case _T.DECIMAL:
            digits = [each.name for each in inner]
            if len(digits) > 2 or not all(each.isdigit() and len(each) < 5 for each in digits):
                return None
            numbers = [int(each) for each in digits]
            precision, scale = (*numbers, 0)[:2] if numbers else (10, 0)
            if 1 <= precision <= MOST_DIGITS and 0 <= scale <= precision:
                return pa.decimal128(precision, scale)
        case _T.ARRAY if len(inner) == 1:
            item = from_sql(inner[0])
            return None if item is None else pa.list_(item)
        case _T.MAP if len(inner) == 2:
            key, value = (from_sql(each) for each in inner)
            return None if key is None or value is None else pa.map_(key, value)
        case _T.STRUCT if inner and all(isinstance(each, exp.ColumnDef) for each in inner):
            fields = [(each.this.name, from_sql(each.args["kind"])) for each in inner]
            return None if any(dtype is None for _, dtype in fields) else pa.struct(fields)
    return None


def sql_type(dtype: pa.DataType) -> exp.DataType:
    """The SQL type for an Arrow type, for explicit casts."""
    return _parsed(types.spark_name(dtype)).copy()


@cache
def _parsed(name: str) -> exp.DataType:
    return exp.DataType.build(name, dialect="spark")
