"""Result types of arithmetic, as in Spark SQL."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from headgate.model import types
from headgate.model.scalar import Scalar

_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
_MOST_DIGITS, _LEAST_SCALE = 38, 6


@dataclass(frozen=True)
class OperandTypes:
    """What the operands are converted to, and what comes out."""

    left: pa.DataType
    right: pa.DataType
    result: pa.DataType


def arithmetic_type(operator: type[exp.Expr], left: Scalar, right: Scalar) -> OperandTypes | None:
    """How an operator combines two operands; None if it does not."""
    a, b = _operand_type(left, right), _operand_type(right, left)
    if a == types.NULL and b == types.NULL:
        a = b = types.DOUBLE
    elif types.NULL in (a, b):
        other = b if a == types.NULL else a
        if not types.is_numeric(other):
            return None
        a = b = other
    if types.is_numeric(a) and types.is_numeric(b):
        return _numeric(operator, a, b)
    return _temporal(operator, a, b)


def _operand_type(value: Scalar, other: Scalar) -> pa.DataType:
    """The operand's type; a whole constant beside a DECIMAL has no more digits than it is written with."""
    literal = value.expression.this if isinstance(value.expression, exp.Cast) else value.expression
    if types.is_integer(value.type) and pa.types.is_decimal(other.type) and isinstance(literal, exp.Literal):
        return pa.decimal128(max(1, len(str(literal.this).lstrip("0"))), 0)
    return value.type


def _numeric(operator: type[exp.Expr], a: pa.DataType, b: pa.DataType) -> OperandTypes:
    common = types.common_type(a, b)
    assert common is not None
    if operator is exp.IntDiv:
        return OperandTypes(common, common, types.BIGINT)
    if pa.types.is_decimal(common):
        return _decimal(operator, a, b)
    if operator is exp.Div:
        return OperandTypes(types.DOUBLE, types.DOUBLE, types.DOUBLE)
    return OperandTypes(common, common, common)


def _decimal(operator: type[exp.Expr], a: pa.DataType, b: pa.DataType) -> OperandTypes:
    (p1, s1), (p2, s2) = _shape(a), _shape(b)
    if operator is exp.Mul:
        precision, scale = p1 + p2 + 1, s1 + s2
    elif operator is exp.Div:
        scale = max(_LEAST_SCALE, s1 + p2 + 1)
        precision = p1 - s1 + s2 + scale
    elif operator is exp.Mod:
        scale = max(s1, s2)
        precision = min(p1 - s1, p2 - s2) + scale
    else:
        scale = max(s1, s2)
        precision = max(p1 - s1, p2 - s2) + scale + 1
    if precision > _MOST_DIGITS:
        # Digits before the point are kept; those after it give way, down to a least number.
        scale = max(min(scale, _LEAST_SCALE), _MOST_DIGITS - (precision - scale))
        precision = _MOST_DIGITS
    return OperandTypes(pa.decimal128(p1, s1), pa.decimal128(p2, s2), pa.decimal128(max(precision, 1), scale))


def _shape(dtype: pa.DataType) -> tuple[int, int]:
    if pa.types.is_decimal(dtype):
        return dtype.precision, dtype.scale
    return _DIGITS[dtype], 0


def _temporal(operator: type[exp.Expr], a: pa.DataType, b: pa.DataType) -> OperandTypes | None:
    if operator not in (exp.Add, exp.Sub):
        return None
    if operator is exp.Add and a == types.INTERVAL and b != types.INTERVAL:
        turned = _temporal(operator, b, a)
        return turned and OperandTypes(turned.right, turned.left, turned.result)
    if b == types.INTERVAL:
        if types.is_timestamp(a):
            return OperandTypes(a, b, a)
        if a == types.DATE:
            return OperandTypes(types.TIMESTAMP, b, types.TIMESTAMP)
        if a == types.INTERVAL:
            return OperandTypes(a, b, a)
    if operator is exp.Sub and types.is_timestamp(a) and types.is_timestamp(b):
        common = types.common_type(a, b)
        return OperandTypes(common, common, types.INTERVAL)
    return None
