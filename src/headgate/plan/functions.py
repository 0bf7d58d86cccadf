"""The scalar functions of the language: what each takes and gives. A function that is not here is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
from sqlglot import exp

from headgate.model import types

Result: TypeAlias = "pa.DataType | Callable[[Sequence[pa.DataType]], pa.DataType]"


@dataclass(frozen=True)
class Signature:
    """Kinds of the arguments by sqlglot's argument name, and the type of the result.

    Kinds: `string`, `number`, `double`, `integer`, `date`, `timestamp`, `boolean`, `any`, and `same` (all
    arguments of that kind meet in one type). `name` is the spelling that users know.
    """

    name: str
    arguments: Mapping[str, str]
    result: Result


def _first(dtypes: Sequence[pa.DataType]) -> pa.DataType:
    return dtypes[0]


def _rounded(dtypes: Sequence[pa.DataType]) -> pa.DataType:
    """FLOOR and CEIL: BIGINT, except that decimals keep their digits before the point."""
    dtype = dtypes[0]
    if pa.types.is_decimal(dtype):
        return pa.decimal128(min(38, dtype.precision - dtype.scale + 1), 0)
    return types.BIGINT


def _string(name: str, *more: str) -> Signature:
    return Signature(name, {"this": "string", **dict.fromkeys(more, "string")}, types.STRING)


def _math(name: str) -> Signature:
    return Signature(name, {"this": "double"}, types.DOUBLE)


def _part(name: str) -> Signature:
    return Signature(name, {"this": "timestamp"}, types.INT)


BY_CLASS: Mapping[type[exp.Expr], Signature] = {
    exp.Upper: _string("upper"),
    exp.Lower: _string("lower"),
    exp.Reverse: _string("reverse"),
    exp.Trim: _string("trim", "expression"),
    exp.Replace: _string("replace", "expression", "replacement"),
    exp.RegexpReplace: _string("regexp_replace", "expression", "replacement"),
    exp.RegexpExtract: Signature(
        "regexp_extract", {"this": "string", "expression": "string", "group": "integer"}, types.STRING
    ),
    exp.Length: Signature("length", {"this": "string"}, types.INT),
    exp.Substring: Signature(
        "substring", {"this": "string", "start": "integer", "length": "integer"}, types.STRING
    ),
    exp.StrPosition: Signature("instr", {"this": "string", "substr": "string"}, types.INT),
    exp.StartsWith: Signature("startswith", {"this": "string", "expression": "string"}, types.BOOLEAN),
    exp.EndsWith: Signature("endswith", {"this": "string", "expression": "string"}, types.BOOLEAN),
    exp.Contains: Signature("contains", {"this": "string", "expression": "string"}, types.BOOLEAN),
    exp.Pad: Signature(
        "lpad", {"this": "string", "expression": "integer", "fill_pattern": "string"}, types.STRING
    ),
    exp.Abs: Signature("abs", {"this": "number"}, _first),
    exp.Sign: Signature("sign", {"this": "double"}, types.DOUBLE),
    exp.Round: Signature("round", {"this": "number", "decimals": "integer"}, _first),
    exp.Floor: Signature("floor", {"this": "number"}, _rounded),
    exp.Ceil: Signature("ceil", {"this": "number"}, _rounded),
    exp.Sqrt: _math("sqrt"),
    exp.Exp: _math("exp"),
    exp.Ln: _math("ln"),
    exp.Log: Signature("log10", {"this": "double", "expression": "double"}, types.DOUBLE),
    exp.Pow: Signature("pow", {"this": "double", "expression": "double"}, types.DOUBLE),
    exp.Year: _part("year"),
    exp.Month: _part("month"),
    exp.Day: _part("day"),
    exp.Hour: _part("hour"),
    exp.Minute: _part("minute"),
    exp.Second: _part("second"),
    exp.TimestampTrunc: Signature("date_trunc", {"this": "timestamp"}, types.TIMESTAMP),
    exp.DateDiff: Signature("datediff", {"this": "date", "expression": "date"}, types.INT),
    exp.TsOrDsToDate: Signature("to_date", {"this": "any"}, types.DATE),
    exp.Greatest: Signature("greatest", {"this": "same", "expressions": "same"}, _first),
    exp.Least: Signature("least", {"this": "same", "expressions": "same"}, _first),
    exp.Coalesce: Signature("coalesce", {"this": "same", "expressions": "same"}, _first),
    exp.Nullif: Signature("nullif", {"this": "same", "expression": "same"}, _first),
    exp.Concat: Signature("concat", {"expressions": "string"}, types.STRING),
    exp.DPipe: Signature("||", {"this": "string", "expression": "string"}, types.STRING),
}

BY_NAME: Mapping[str, Signature] = {
    "pmod": Signature("pmod", {"expressions": "same"}, _first),
}
"""Functions that sqlglot has no class for, by lower-case name."""

AGGREGATES = ("COUNT", "SUM", "AVG", "MIN", "MAX", "MEDIAN", "QUANTILE", "TOP")


def known_names() -> list[str]:
    """Every function name that a suggestion may offer."""
    scalar = [signature.name for signature in (*BY_CLASS.values(), *BY_NAME.values())]
    return sorted({*scalar, *(name.lower() for name in AGGREGATES), "cast", "if", "nvl"})
