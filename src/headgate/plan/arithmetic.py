"""Result types of arithmetic, as in Spark SQL."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from headgate.model import decimals, types
from headgate.model.scalar import Scalar
from headgate.plan import intervals

_WRITTEN: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%"}


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
    if a == types.DATE and b == types.INTERVAL and intervals.is_of_days(right.expression):
        return OperandTypes(a, b, a) if operator in (exp.Add, exp.Sub) else None
    if b == types.DATE and a == types.INTERVAL and intervals.is_of_days(left.expression):
        return OperandTypes(a, b, b) if operator is exp.Add else None
    return _temporal(operator, a, b)


def _operand_type(value: Scalar, other: Scalar) -> pa.DataType:
    """The operand's type; a whole constant beside a DECIMAL has no more digits than it is written with."""
    literal = value.expression
    while isinstance(literal, (exp.Cast, exp.Neg)):
        literal = literal.this
    written = isinstance(literal, exp.Literal) and not literal.is_string
    if written and types.is_integer(value.type) and pa.types.is_decimal(other.type):
        return pa.decimal128(max(1, len(str(literal.this).lstrip("0"))), 0)
    return value.type


def _numeric(operator: type[exp.Expr], a: pa.DataType, b: pa.DataType) -> OperandTypes | None:
    common = types.common_type(a, b)
    assert common is not None
    if operator in (exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor):
        return OperandTypes(common, common, common) if types.is_integer(common) else None
    if operator is exp.IntDiv:
        return OperandTypes(common, common, types.BIGINT)
    if pa.types.is_decimal(common):
        return _decimal(operator, a, b)
    if operator is exp.Div:
        return OperandTypes(types.DOUBLE, types.DOUBLE, types.DOUBLE)
    return OperandTypes(common, common, common)


def _decimal(operator: type[exp.Expr], a: pa.DataType, b: pa.DataType) -> OperandTypes:
    left, right = types.digits(a), types.digits(b)
    result = decimals.operated(_WRITTEN[operator], left, right)
    return OperandTypes(pa.decimal128(*left), pa.decimal128(*right), pa.decimal128(*result))


def _temporal(operator: type[exp.Expr], a: pa.DataType, b: pa.DataType) -> OperandTypes | None:
    if operator in (exp.Mul, exp.Div):
        scaled = a == types.INTERVAL and types.is_numeric(b)
        scaled = scaled or (operator is exp.Mul and types.is_numeric(a) and b == types.INTERVAL)
        return OperandTypes(a, b, types.INTERVAL) if scaled else None
    if operator not in (exp.Add, exp.Sub):
        return None
    if a == types.DATE and types.is_integer(b):
        return OperandTypes(a, b, a)
    if operator is exp.Add and types.is_integer(a) and b == types.DATE:
        return OperandTypes(a, b, b)
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
    if operator is exp.Sub and _is_moment(a) and _is_moment(b):
        common = types.TIMESTAMP if types.DATE == a == b else types.common_type(a, b)
        return OperandTypes(common, common, types.INTERVAL)
    return None


def _is_moment(dtype: pa.DataType) -> bool:
    return types.is_timestamp(dtype) or dtype == types.DATE
