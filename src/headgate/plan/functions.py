"""The scalar functions of the language: what each takes and gives. A function that is not here is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
from sqlglot import exp

from headgate.model import decimals, types
from headgate.model.aggregates import aggregate_names

Result: TypeAlias = "pa.DataType | Callable[[Sequence[pa.DataType]], pa.DataType]"


@dataclass(frozen=True)
class Signature:
    """Kinds of the arguments by sqlglot's argument name, and the type of the result.

    Kinds: `string`, `number`, `double`, `integer`, `date`, `timestamp`, `boolean`, `array`, `moment` (a date, a
    timestamp or text that is one), `any` and `same` (all arguments of that kind meet in one type). Several with
    commas between them are for one argument of a list each. `name` is the spelling that users know.
    """

    name: str
    arguments: Mapping[str, str]
    result: Result


def _first(dtypes: Sequence[pa.DataType]) -> pa.DataType:
    return dtypes[0]


def _element(dtypes: Sequence[pa.DataType]) -> pa.DataType:
    return dtypes[0].value_type


def _last(dtypes: Sequence[pa.DataType]) -> pa.DataType:
    return dtypes[-1]


def _rounded(dtypes: Sequence[pa.DataType]) -> pa.DataType:
    """FLOOR and CEIL: BIGINT, except that decimals keep their digits before the point."""
    dtype = dtypes[0]
    if pa.types.is_decimal(dtype) and dtype.scale == 0:
        return dtype
    if pa.types.is_decimal(dtype):
        return pa.decimal128(*decimals.rounded(types.digits(dtype), 0))
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
    exp.StrPosition: Signature(
        "instr", {"this": "string", "substr": "string", "position": "integer"}, types.INT
    ),
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
    exp.TsOrDsToDate: Signature("to_date", {"this": "moment"}, types.DATE),
    exp.Greatest: Signature("greatest", {"this": "same", "expressions": "same"}, _first),
    exp.Least: Signature("least", {"this": "same", "expressions": "same"}, _first),
    exp.Coalesce: Signature("coalesce", {"this": "same", "expressions": "same"}, _first),
    exp.Concat: Signature("concat", {"expressions": "text"}, types.STRING),
    exp.Nvl2: Signature("nvl2", {"this": "any", "true": "same", "false": "same"}, _last),
    exp.IsNan: Signature("isnan", {"this": "double"}, types.BOOLEAN),
    exp.Nanvl: Signature("nanvl", {"this": "double", "expression": "double"}, types.DOUBLE),
    exp.EqualNull: Signature("equal_null", {"this": "same", "expression": "same"}, types.BOOLEAN),
    exp.Negative: Signature("negative", {"this": "number"}, _first),
    exp.Rint: _math("rint"),
    exp.Cbrt: _math("cbrt"),
    exp.Sin: _math("sin"),
    exp.Cos: _math("cos"),
    exp.Tan: _math("tan"),
    exp.Asin: _math("asin"),
    exp.Acos: _math("acos"),
    exp.Atan: _math("atan"),
    exp.Atan2: Signature("atan2", {"this": "double", "expression": "double"}, types.DOUBLE),
    exp.Degrees: _math("degrees"),
    exp.Radians: _math("radians"),
    exp.Pi: Signature("pi", {}, types.DOUBLE),
    exp.ConcatWs: Signature("concat_ws", {"expressions": "text"}, types.STRING),
    exp.Initcap: _string("initcap"),
    exp.Left: Signature("left", {"this": "string", "expression": "integer"}, types.STRING),
    exp.Right: Signature("right", {"this": "string", "expression": "integer"}, types.STRING),
    exp.Translate: _string("translate", "from_", "to"),
    exp.Repeat: Signature("repeat", {"this": "string", "times": "integer"}, types.STRING),
    exp.Space: Signature("space", {"this": "integer"}, types.STRING),
    exp.RegexpSplit: Signature("split", {"this": "string", "expression": "string"}, pa.list_(types.STRING)),
    exp.SplitPart: Signature(
        "split_part", {"this": "string", "delimiter": "string", "part_index": "integer"}, types.STRING
    ),
    exp.Quarter: _part("quarter"),
    exp.DayOfMonth: Signature("dayofmonth", {"this": "date"}, types.INT),
    exp.DayOfWeek: Signature("dayofweek", {"this": "date"}, types.INT),
    exp.DayOfYear: Signature("dayofyear", {"this": "date"}, types.INT),
    exp.WeekOfYear: Signature("weekofyear", {"this": "date"}, types.INT),
    exp.DateTrunc: Signature("trunc", {"this": "date"}, types.DATE),
    exp.StrToTime: Signature("to_timestamp", {"this": "string"}, types.TIMESTAMP),
    exp.StrToUnix: Signature("unix_timestamp", {"this": "moment"}, types.BIGINT),
    exp.UnixSeconds: Signature("unix_seconds", {"this": "timestamp"}, types.BIGINT),
    exp.UnixMillis: Signature("unix_millis", {"this": "timestamp"}, types.BIGINT),
    exp.UnixMicros: Signature("unix_micros", {"this": "timestamp"}, types.BIGINT),
    exp.UnixDate: Signature("unix_date", {"this": "date"}, types.INT),
    exp.DateFromUnixDate: Signature("date_from_unix_date", {"this": "integer"}, types.DATE),
    exp.UnixToStr: Signature("from_unixtime", {"this": "integer"}, types.STRING),
    exp.TimeToStr: Signature("date_format", {"this": "timestamp"}, types.STRING),
    exp.TimeStrToTime: Signature("timestamp", {"this": "timestamp"}, types.TIMESTAMP),
    exp.TimestampDiff: Signature(
        "timestampdiff", {"this": "timestamp", "expression": "timestamp"}, types.BIGINT
    ),
    exp.TimestampAdd: Signature("timestampadd", {"this": "timestamp", "expression": "integer"}, _first),
    exp.TsOrDsAdd: Signature("date_add", {"this": "date", "expression": "integer"}, types.DATE),
    exp.AddMonths: Signature("add_months", {"this": "date", "expression": "integer"}, types.DATE),
    exp.LastDay: Signature("last_day", {"this": "date"}, types.DATE),
    exp.ArraySize: Signature("size", {"this": "array"}, types.INT),
    exp.DPipe: Signature("||", {"this": "text", "expression": "text"}, types.STRING),
}

BY_NAME: Mapping[str, Signature] = {
    "isnull": Signature("isnull", {"expressions": "any"}, types.BOOLEAN),
    "isnotnull": Signature("isnotnull", {"expressions": "any"}, types.BOOLEAN),
    "positive": Signature("positive", {"expressions": "number"}, _first),
    "bround": Signature("bround", {"expressions": "number,integer"}, _first),
    "get": Signature("get", {"expressions": "array,integer"}, _element),
    "log1p": Signature("log1p", {"expressions": "double"}, types.DOUBLE),
    "e": Signature("e", {}, types.DOUBLE),
    "btrim": Signature("btrim", {"expressions": "string"}, types.STRING),
    "weekday": Signature("weekday", {"expressions": "timestamp"}, types.INT),
    "timestamp_seconds": Signature("timestamp_seconds", {"expressions": "integer"}, types.TIMESTAMP),
    "timestamp_millis": Signature("timestamp_millis", {"expressions": "integer"}, types.TIMESTAMP),
    "timestamp_micros": Signature("timestamp_micros", {"expressions": "integer"}, types.TIMESTAMP),
    "make_date": Signature("make_date", {"expressions": "integer"}, types.DATE),
    "cardinality": Signature("cardinality", {"expressions": "array"}, types.INT),
}
"""Functions that sqlglot has no class for, by lower-case name."""

LIKE_OPERATORS: Mapping[type[exp.Expr] | str, tuple[str, type[exp.Binary]]] = {
    exp.SafeAdd: ("try_add", exp.Add),
    exp.SafeSubtract: ("try_subtract", exp.Sub),
    exp.SafeMultiply: ("try_multiply", exp.Mul),
    exp.SafeDivide: ("try_divide", exp.Div),
    "try_mod": ("try_mod", exp.Mod),
    "pmod": ("pmod", exp.Mod),
}
"""Functions of two numbers, by sqlglot's class or lower-case name, with the operator whose types they have."""


PARTS_OF_TIME: Mapping[str, type[exp.Func]] = {
    "YEAR": exp.Year,
    "QUARTER": exp.Quarter,
    "MONTH": exp.Month,
    "WEEK": exp.WeekOfYear,
    "DAY": exp.Day,
    "DAYOFWEEK": exp.DayOfWeek,
    "DOW": exp.DayOfWeek,
    "DOY": exp.DayOfYear,
    "HOUR": exp.Hour,
    "MINUTE": exp.Minute,
}
"""What EXTRACT takes out of an instant, and the function that does the same; seconds have a fraction, and none."""


_AS_DECIMAL = {pa.float32(): decimals.Digits(14, 7), types.DOUBLE: decimals.Digits(30, 15)}


def decimal_type(dtype: pa.DataType) -> pa.DataType:
    """The DECIMAL that a number becomes for FLOOR and CEIL to digits behind the point."""
    return pa.decimal128(*(_AS_DECIMAL.get(dtype) or types.digits(dtype)))


def rounded_type(dtype: pa.DataType, places: int) -> pa.DataType:
    """What ROUND to so many digits behind the point gives: a digit more in front of it for decimals."""
    if not pa.types.is_decimal(dtype):
        return dtype
    return pa.decimal128(*decimals.rounded(types.digits(dtype), places))


def known_names() -> list[str]:
    """Every function name that a suggestion may offer."""
    scalar = [signature.name for signature in (*BY_CLASS.values(), *BY_NAME.values())]
    more = ("cast", "if", "nvl", "nullif", *(name for name, _ in LIKE_OPERATORS.values()))
    return sorted({*scalar, *(name.lower() for name in aggregate_names()), *more})
