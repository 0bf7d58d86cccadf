"""Scalars mean what Spark SQL 4 in ANSI mode means by them."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
from collections.abc import Callable
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from headgate.kernels.expressions import SUPPORTED_FUNCTIONS, compile_scalar, evaluate, keep_rows, polars_type
from headgate.kernels.expressions.dtypes import named_type
from headgate.model import types
from headgate.model.errors import DataError, UnsupportedError
from headgate.model.scalar import Scalar

D = decimal.Decimal
NAN, INF = math.nan, math.inf
BIG = 2**63 - 1


def scalar(text: str, dtype: pa.DataType) -> Scalar:
    """A Spark SQL expression over flat columns, as the binder would hand it over."""

    def flat(node: exp.Expr) -> exp.Expr:
        return Scalar.column(node.name, types.NULL).expression if isinstance(node, exp.Column) else node

    return Scalar(sqlglot.parse_one(text, read="spark").transform(flat), dtype)


def utc(*parts: int) -> dt.datetime:
    return dt.datetime(*parts, tzinfo=dt.UTC)


COLUMNS: dict[str, tuple[pa.DataType, Any]] = {
    "i": (types.INT, 7),
    "n": (types.INT, -7),
    "z": (types.INT, 0),
    "l": (types.BIGINT, BIG),
    "x": (types.DOUBLE, 2.5),
    "nan": (types.DOUBLE, NAN),
    "p": (types.BOOLEAN, True),
    "f": (types.BOOLEAN, False),
    "u": (types.BOOLEAN, None),
    "m": (types.INT, None),
    "s": (types.STRING, "héllo wörld"),
    "e": (types.STRING, None),
    "c": (pa.decimal128(10, 2), D("1.25")),
    "d": (types.DATE, dt.date(2024, 1, 31)),
    "ts": (types.TIMESTAMP, utc(2024, 2, 29, 13, 45, 59, 123456)),
    "a": (pa.list_(types.INT), [1, None, 3]),
    "r": (pa.struct([("k", types.INT), ("v", types.STRING)]), {"k": 1, "v": "one"}),
    "g": (pa.list_(pa.struct([("k", types.INT), ("v", types.STRING)])), [{"k": 1, "v": "one"}]),
    "h": (pa.map_(types.STRING, types.INT), [{"key": "one", "value": 1}]),
    "doubles": (pa.list_(types.DOUBLE), [0.1, 1e10]),
    "large": (pa.list_(types.INT), [1, 300]),
    "no_struct": (pa.struct([("k", types.INT), ("v", types.STRING)]), None),
    "b": (pa.binary(), "hé".encode()),
    "cut": (pa.binary(), "hé".encode()[:-1]),
}
A_AND_B = pa.struct([("a", types.STRING), ("b", types.STRING)])
ROW = pl.DataFrame(
    {name: [value] for name, (_, value) in COLUMNS.items()},
    schema={name: polars_type(dtype) for name, (dtype, _) in COLUMNS.items()},
)


def value(text: str, dtype: pa.DataType) -> Any:
    return evaluate(ROW, {"value": scalar(text, dtype)})["value"].item()


def same(actual: Any, expected: Any) -> bool:
    if isinstance(expected, float) and math.isnan(expected):
        return isinstance(actual, float) and math.isnan(actual)
    if isinstance(expected, pl.Series | list):
        return list(actual) == list(expected)
    return type(actual) is type(expected) and bool(actual == expected)


B, N, L, X, S = types.BOOLEAN, types.INT, types.BIGINT, types.DOUBLE, types.STRING
DEC = pa.decimal128

EXAMPLES: dict[str, list[tuple[str, pa.DataType, Any]]] = {
    "arithmetic": [
        ("i + 1", N, 8),
        ("i - n", N, 14),
        ("i * n", N, -49),
        ("i % 4", N, 3),
        ("n % 4", N, -3),
        ("n % -4", N, -3),
        ("i % -4", N, 3),
        ("pmod(n, 4)", N, 1),
        ("pmod(n, -4)", N, -3),
        ("n DIV 2", L, -3),
        ("i DIV 2", L, 3),
        ("i DIV -2", L, -3),
        ("-x DIV 2D", L, -1),
        ("c DIV CAST(-0.5 AS DECIMAL(2, 1))", L, -2),
        ("-i", N, -7),
        ("CAST(i AS DOUBLE) / CAST(2 AS DOUBLE)", X, 3.5),
        ("m / 0", X, None),
        ("m + 1", N, None),
        ("NULL + 1", N, None),
        ("NULL DIV 2", L, None),
        ("i DIV NULL", L, None),
        ("-5.3D % 0.1D", X, math.fmod(-5.3, 0.1)),
        ("1e17 % 3.0D", X, 1.0),
        ("c + c", DEC(11, 2), D("2.50")),
        ("c * c", DEC(21, 4), D("1.5625")),
        ("c / CAST(3 AS DECIMAL(10, 0))", DEC(21, 11), D("0.41666666667")),
        ("c % CAST(0.50 AS DECIMAL(10, 2))", DEC(10, 2), D("0.25")),
        ("try_add(l, 1L)", L, None),
        ("try_divide(x, 0D)", X, None),
        ("try_divide(x, 2D)", X, 1.25),
        ("try_multiply(l, 2L)", L, None),
        ("l - 1", L, BIG - 1),
    ],
    "comparison": [
        ("i > n", B, True),
        ("m = 1", B, None),
        ("m <=> NULL", B, True),
        ("m IS NOT DISTINCT FROM NULL", B, True),
        ("i IS DISTINCT FROM m", B, True),
        ("nan = nan", B, True),
        ("nan > 1e300", B, True),
        ("nan < 1e300", B, False),
        ("x = -0.0D + x", B, True),
        ("0.0D = -0.0D", B, True),
        ("i BETWEEN 7 AND 8", B, True),
        ("i NOT BETWEEN 7 AND m", B, None),
        ("n BETWEEN 0 AND m", B, False),
        ("i IN (1, 7)", B, True),
        ("i IN (1, NULL)", B, None),
        ("i NOT IN (1, 2)", B, True),
        ("m IN (1, 2)", B, None),
        ("i IN (1, 2, 3, 4, 5, 6, 8, 9, 10)", B, False),
        ("i IN (1, 2, 3, 4, 5, 6, NULL, 9, 10)", B, None),
        ("i IN (1, 2, 3, 4, 5, 6, NULL, 7, 10)", B, True),
        ("d < DATE '2024-02-01'", B, True),
        ("ts >= TIMESTAMP '2024-02-29 13:45:59.123456'", B, True),
        ("i IS NULL", B, False),
        ("e IS NULL", B, True),
        ("u IS TRUE", B, False),
        ("u IS NOT TRUE", B, True),
    ],
    "logic": [
        ("p AND u", B, None),
        ("f AND u", B, False),
        ("u AND f", B, False),
        ("p OR u", B, True),
        ("u OR p", B, True),
        ("f OR u", B, None),
        ("NOT u", B, None),
        ("NOT p", B, False),
    ],
    "choice": [
        ("CASE WHEN u THEN 1 WHEN p THEN 2 ELSE 3 END", N, 2),
        ("CASE WHEN u THEN 1 END", N, None),
        ("CASE i WHEN 1 THEN 'one' WHEN 7 THEN 'seven' END", S, "seven"),
        ("IF(u, 1, 2)", N, 2),
        ("COALESCE(m, i)", N, 7),
        ("COALESCE(m, NULL)", N, None),
        ("NVL(m, 3)", N, 3),
        ("NVL2(m, 1, 2)", N, 2),
        ("NULLIF(i, 7)", N, None),
        ("NULLIF(i, m)", N, 7),
        ("GREATEST(x, nan)", X, NAN),
        ("LEAST(x, nan)", X, 2.5),
        ("LEAST(nan, nan, CAST(NULL AS DOUBLE))", X, NAN),
        ("GREATEST(CAST(NULL AS DOUBLE), x)", X, 2.5),
        ("GREATEST(m, i, n)", N, 7),
        ("LEAST(m, i, n)", N, -7),
        ("NANVL(nan, x)", X, 2.5),
        ("CASE WHEN z <> 0 THEN i / z ELSE 0D END", X, 0.0),
        ("IF(z = 0, -1D, i / z)", X, -1.0),
        ("z <> 0 AND i / z > 1", B, False),
        ("z = 0 OR i / z > 1", B, True),
        ("COALESCE(i, i DIV z)", L, 7),
        ("i / NULLIF(z, 0)", X, None),
    ],
    "literals": [
        ("1", N, 1),
        ("3000000000", L, 3000000000),
        ("1.50", DEC(3, 2), D("1.50")),
        ("1e3", X, 1000.0),
        ("'it''s'", S, "its"),
        ('"it\'s"', S, "it's"),
        ("TRUE", B, True),
        ("NULL", S, None),
        ("DATE '2020-02-29'", types.DATE, dt.date(2020, 2, 29)),
        ("TIMESTAMP '2020-02-29 01:02:03.5'", types.TIMESTAMP, utc(2020, 2, 29, 1, 2, 3, 500000)),
        ("TIMESTAMP '2020-02-29T01:02:03+02:00'", types.TIMESTAMP, utc(2020, 2, 28, 23, 2, 3)),
        ("INTERVAL 5 MINUTES", types.INTERVAL, dt.timedelta(minutes=5)),
        ("INTERVAL '-1.5' SECOND", types.INTERVAL, dt.timedelta(seconds=-1.5)),
    ],
    "casts": [
        ("CAST(a AS ARRAY<TINYINT>)", pa.list_(pa.int8()), [1, None, 3]),
        ("CAST(doubles AS ARRAY<STRING>)", pa.list_(S), ["0.1", "1.0E10"]),
        ("TRY_CAST(large AS ARRAY<TINYINT>)", pa.list_(pa.int8()), [1, None]),
        ("CAST(r AS STRUCT<a: STRING, b: STRING>)", A_AND_B, {"a": "1", "b": "one"}),
        ("CAST(g AS ARRAY<STRUCT<a: STRING, b: STRING>>)", pa.list_(A_AND_B), [{"a": "1", "b": "one"}]),
        ("CAST(no_struct AS STRUCT<a: STRING, b: STRING>)", A_AND_B, None),
        ("CAST(h AS MAP<STRING, STRING>)", pa.map_(S, S), [{"key": "one", "value": "1"}]),
        ("CAST(CAST(NULL AS ARRAY<INT>) AS ARRAY<TINYINT>)", pa.list_(pa.int8()), None),
        ("CAST(b AS STRING)", S, "hé"),
        ("TRY_CAST(cut AS STRING)", S, None),
        ("CAST(s AS BINARY)", pa.binary(), "héllo wörld".encode()),
        ("CAST('0.00000000025' AS DECIMAL(20, 10))", DEC(20, 10), D("0.0000000003")),
        ("CAST('0.00000000035' AS DECIMAL(20, 10))", DEC(20, 10), D("0.0000000004")),
        ("CAST('1.5' AS DECIMAL)", DEC(10, 0), D("2")),
        *(
            (
                f"CAST('{a}1e20' AS DECIMAL(38, 10)) * CAST('{b}1e9' AS DECIMAL(38, 10))",
                DEC(38, 6),
                D(f"{sign}1e29"),
            )
            for a, b, sign in (("", "", ""), ("-", "", "-"), ("", "-", "-"), ("-", "-", ""))
        ),
        ("CAST('12' AS INT)", N, 12),
        ("CAST(' -12 ' AS BIGINT)", L, -12),
        ("CAST(x AS INT)", N, 2),
        ("CAST(-x AS INT)", N, -2),
        ("CAST(c AS INT)", N, 1),
        ("CAST(c AS DECIMAL(10, 1))", DEC(10, 1), D("1.3")),
        ("CAST(-c AS DECIMAL(10, 1))", DEC(10, 1), D("-1.3")),
        ("CAST(0.125D AS DECIMAL(10, 2))", DEC(10, 2), D("0.13")),
        ("CAST('1.005' AS DECIMAL(10, 2))", DEC(10, 2), D("1.01")),
        ("CAST(c AS DOUBLE)", X, 1.25),
        ("CAST(i AS STRING)", S, "7"),
        ("CAST(c AS STRING)", S, "1.25"),
        ("CAST(p AS STRING)", S, "true"),
        ("CAST(p AS INT)", N, 1),
        ("CAST(z AS BOOLEAN)", B, False),
        ("CAST('Yes' AS BOOLEAN)", B, True),
        ("CAST(' 0 ' AS BOOLEAN)", B, False),
        ("CAST(x AS STRING)", S, "2.5"),
        ("CAST(1e7 AS STRING)", S, "1.0E7"),
        ("CAST(9999999D AS STRING)", S, "9999999.0"),
        ("CAST(1.25e-5 AS STRING)", S, "1.25E-5"),
        ("CAST(0.001D AS STRING)", S, "0.001"),
        ("CAST(1.5e300 AS STRING)", S, "1.5E300"),
        ("CAST(123456789.125D AS STRING)", S, "1.23456789125E8"),
        ("CAST(nan AS STRING)", S, "NaN"),
        ("CAST('-Infinity' AS DOUBLE)", X, -INF),
        ("CAST(CAST('-Infinity' AS DOUBLE) AS STRING)", S, "-Infinity"),
        ("CAST('2024-1-5' AS DATE)", types.DATE, dt.date(2024, 1, 5)),
        ("CAST('2024-01-05 10:00:00' AS DATE)", types.DATE, dt.date(2024, 1, 5)),
        ("CAST('2024' AS DATE)", types.DATE, dt.date(2024, 1, 1)),
        ("CAST('2024-02' AS TIMESTAMP)", types.TIMESTAMP, utc(2024, 2, 1)),
        ("CAST('2024-02-01 1:2' AS TIMESTAMP)", types.TIMESTAMP, utc(2024, 2, 1, 1, 2)),
        (
            "CAST('2024-02-01 01:02:03.123456789Z' AS TIMESTAMP)",
            types.TIMESTAMP,
            utc(2024, 2, 1, 1, 2, 3, 123456),
        ),
        ("CAST(d AS TIMESTAMP)", types.TIMESTAMP, utc(2024, 1, 31)),
        ("CAST(ts AS DATE)", types.DATE, dt.date(2024, 2, 29)),
        ("CAST(ts AS STRING)", S, "2024-02-29 13:45:59.123456"),
        ("CAST(TIMESTAMP '2024-01-01 00:00:10.500' AS STRING)", S, "2024-01-01 00:00:10.5"),
        ("CAST(TIMESTAMP '2024-01-01 00:00:10' AS STRING)", S, "2024-01-01 00:00:10"),
        ("CAST(ts AS BIGINT)", L, 1709214359),
        ("CAST(TIMESTAMP '1969-12-31 23:59:59.5' AS BIGINT)", L, -1),
        ("CAST(i AS TIMESTAMP)", types.TIMESTAMP, utc(1970, 1, 1, 0, 0, 7)),
        (
            "CAST(ts AS TIMESTAMP_NTZ)",
            types.TIMESTAMP_NTZ,
            utc(2024, 2, 29, 13, 45, 59, 123456).replace(tzinfo=None),
        ),
        ("CAST(d AS STRING)", S, "2024-01-31"),
        ("CAST(m AS STRING)", S, None),
        ("TRY_CAST('x' AS INT)", N, None),
        ("TRY_CAST(p AS DECIMAL(1, 1))", DEC(1, 1), None),
        ("TRY_CAST('2024-02-30' AS DATE)", types.DATE, None),
        ("TRY_CAST('0000-01-01' AS DATE)", types.DATE, None),
        ("TRY_CAST('0000-01-01 10:00:00' AS TIMESTAMP)", types.TIMESTAMP, None),
        ("CAST('0001-01-01' AS DATE)", types.DATE, dt.date(1, 1, 1)),
        ("make_date(9999, 12, 31)", types.DATE, dt.date(9999, 12, 31)),
        ("TRY_CAST('2024-02-01 24:00:00' AS TIMESTAMP)", types.TIMESTAMP, None),
        ("TRY_CAST(3000000000 AS INT)", N, None),
        ("TRY_CAST(253402300800 AS TIMESTAMP)", types.TIMESTAMP, None),
        ("TRY_CAST(-62135596801 AS TIMESTAMP)", types.TIMESTAMP, None),
        ("TRY_CAST(1e30 AS TIMESTAMP)", types.TIMESTAMP, None),
        ("TRY_CAST(CAST(253402300800 AS DECIMAL(38, 0)) AS TIMESTAMP)", types.TIMESTAMP, None),
        ("TRY_CAST(CAST(1e37D AS DECIMAL(38, 0)) AS TIMESTAMP)", types.TIMESTAMP, None),
        # So many seconds have 0 microseconds in 128 bits.
        *(
            (f"TRY_CAST(CAST('{sign}{2**122}' AS DECIMAL(38, 0)) AS TIMESTAMP)", types.TIMESTAMP, None)
            for sign in ("", "-")
        ),
        ("TRY_CAST(CAST(253402300800 AS DECIMAL(30, 9)) AS TIMESTAMP)", types.TIMESTAMP, None),
        ("TRY_CAST(nan AS INT)", N, None),
        ("TRY_CAST(c AS DECIMAL(2, 2))", DEC(2, 2), None),
        ("3L", L, 3),
    ],
    "time": [
        ("year(ts)", N, 2024),
        ("month(d)", N, 1),
        ("day(d)", N, 31),
        ("hour(ts)", N, 13),
        ("hour(d)", N, 0),
        ("minute(ts)", N, 45),
        ("second(ts)", N, 59),
        ("quarter(ts)", N, 1),
        ("dayofweek(ts)", N, 5),
        ("weekday(ts)", N, 3),
        ("dayofyear(ts)", N, 60),
        ("weekofyear(ts)", N, 9),
        ("extract(SECOND FROM ts)", DEC(8, 6), D("59.123456")),
        ("date_trunc('HOUR', ts)", types.TIMESTAMP, utc(2024, 2, 29, 13)),
        ("date_trunc('WEEK', ts)", types.TIMESTAMP, utc(2024, 2, 26)),
        ("date_trunc('MON', d)", types.TIMESTAMP, utc(2024, 1, 1)),
        ("trunc(d, 'YEAR')", types.DATE, dt.date(2024, 1, 1)),
        ("to_date('2024-02-03')", types.DATE, dt.date(2024, 2, 3)),
        ("to_date('03/02/2024', 'dd/MM/yyyy')", types.DATE, dt.date(2024, 2, 3)),
        ("to_date('2024-02', 'yyyy-MM')", types.DATE, dt.date(2024, 2, 1)),
        ("to_date('99', 'yy')", types.DATE, dt.date(2099, 1, 1)),
        ("to_date('70', 'yy')", types.DATE, dt.date(2070, 1, 1)),
        ("to_date('24-02-29', 'yy-MM-dd')", types.DATE, dt.date(2024, 2, 29)),
        ("to_date('1999', 'yyyy')", types.DATE, dt.date(1999, 1, 1)),
        ("to_timestamp('2024-02-03 04:05:06')", types.TIMESTAMP, utc(2024, 2, 3, 4, 5, 6)),
        (
            "to_timestamp('2024-02-03 04:05:06.789', 'yyyy-MM-dd HH:mm:ss.SSS')",
            types.TIMESTAMP,
            utc(2024, 2, 3, 4, 5, 6, 789000),
        ),
        ("unix_timestamp(ts)", L, 1709214359),
        ("unix_timestamp('1970-01-02', 'yyyy-MM-dd')", L, 86400),
        ("unix_millis(ts)", L, 1709214359123),
        ("timestamp_millis(1500L)", types.TIMESTAMP, utc(1970, 1, 1, 0, 0, 1, 500000)),
        ("from_unixtime(0L)", S, "1970-01-01 00:00:00"),
        ("date_format(ts, 'yyyy-MM-dd HH:mm:ss.SSS')", S, "2024-02-29 13:45:59.123"),
        ("ts + INTERVAL 1 DAY", types.TIMESTAMP, utc(2024, 3, 1, 13, 45, 59, 123456)),
        ("ts - INTERVAL '90' MINUTE", types.TIMESTAMP, utc(2024, 2, 29, 12, 15, 59, 123456)),
        ("INTERVAL 1 HOUR + ts", types.TIMESTAMP, utc(2024, 2, 29, 14, 45, 59, 123456)),
        ("d + INTERVAL 1 DAY", types.DATE, dt.date(2024, 2, 1)),
        ("d + INTERVAL 1 HOUR", types.TIMESTAMP, utc(2024, 1, 31, 1)),
        ("d + INTERVAL 1 MONTH", types.DATE, dt.date(2024, 2, 29)),
        ("d - INTERVAL 1 YEAR", types.DATE, dt.date(2023, 1, 31)),
        ("d + 1", types.DATE, dt.date(2024, 2, 1)),
        ("d - 31", types.DATE, dt.date(2023, 12, 31)),
        (
            "ts - TIMESTAMP '2024-02-29 13:45:00'",
            types.INTERVAL,
            dt.timedelta(seconds=59, microseconds=123456),
        ),
        ("2 * INTERVAL 5 MINUTES", types.INTERVAL, dt.timedelta(minutes=10)),
        ("INTERVAL 5 MINUTES / 2", types.INTERVAL, dt.timedelta(minutes=2.5)),
        ("-INTERVAL 5 MINUTES", types.INTERVAL, dt.timedelta(minutes=-5)),
        ("datediff(DATE '2024-03-01', d)", N, 30),
        ("datediff(d, ts)", N, -29),
        ("timestampdiff(HOUR, ts, TIMESTAMP '2024-03-01 00:00:00')", L, 10),
        ("timestampdiff(HOUR, TIMESTAMP '2024-03-01 00:00:00', ts)", L, -10),
        ("timestampadd(MONTH, 1, ts)", types.TIMESTAMP, utc(2024, 3, 29, 13, 45, 59, 123456)),
        ("date_add(d, 1)", types.DATE, dt.date(2024, 2, 1)),
        ("date_sub(d, 1)", types.DATE, dt.date(2024, 1, 30)),
        ("add_months(d, 1)", types.DATE, dt.date(2024, 2, 29)),
        ("last_day(ts)", types.DATE, dt.date(2024, 2, 29)),
        ("make_date(2024, 2, 29)", types.DATE, dt.date(2024, 2, 29)),
    ],
    "text": [
        ("concat('a', s)", S, "ahéllo wörld"),
        ("concat(s)", S, "héllo wörld"),
        ("'a' || e", S, None),
        ("concat_ws('-', 'a', e, 'b')", S, "a-b"),
        ("upper(s)", S, "HÉLLO WÖRLD"),
        ("initcap('hello x-ray WORLD')", S, "Hello X-ray World"),
        ("length(s)", N, 11),
        ("substring(s, 2, 3)", S, "éll"),
        ("substring(s, 0, 2)", S, "hé"),
        ("substring(s, -5)", S, "wörld"),
        ("substring(s, -5, 2)", S, "wö"),
        ("substring('abc', -5, 3)", S, "a"),
        ("substring('abc', -5)", S, "abc"),
        ("substring(s, 2, -1)", S, ""),
        ("left(s, 2)", S, "hé"),
        ("right(s, 2)", S, "ld"),
        ("right(s, 0)", S, ""),
        ("trim('  a b ')", S, "a b"),
        ("ltrim('  a ')", S, "a "),
        ("btrim('  a ')", S, "a"),
        ("btrim('xyaxbyx', 'xy')", S, "axb"),
        ("rtrim('  a ')", S, "  a"),
        ("trim(BOTH 'xy' FROM 'xyaxy')", S, "a"),
        ("replace(s, 'l', 'L')", S, "héLLo wörLd"),
        ("replace('a.b', '.', '$1')", S, "a$1b"),
        ("replace('aaa', 'a')", S, ""),
        ("replace(s, 'l', e)", S, None),
        ("instr('éa', 'a')", N, 2),
        ("translate('AaBbCc', 'abc', '12')", S, "A1B2C"),
        ("split('a1b22c', '[0-9]')", pa.list_(S), ["a", "b", "", "c"]),
        ("split('a,b', ',', 0)", pa.list_(S), ["a", "b"]),
        ("split_part('a,b,c', ',', -1)", S, "c"),
        ("split_part('a,b,c', ',', 4)", S, ""),
        ("split_part('abc', '', 1)", S, "abc"),
        ("split_part('abc', '', -1)", S, "abc"),
        ("split_part('abc', '', 2)", S, ""),
        ("split_part(e, '', 1)", S, None),
        ("instr(s, 'w')", N, 7),
        ("instr(s, 'zz')", N, 0),
        ("instr(e, 'z')", N, None),
        ("locate('o', s)", N, 5),
        ("startswith(s, 'hé')", B, True),
        ("endswith(s, 'x')", B, False),
        ("contains(s, 'o w')", B, True),
        ("lpad('hi', 5, 'xyz')", S, "xyzhi"),
        ("lpad('hello', 3, 'x')", S, "hel"),
        ("rpad('hi', 4)", S, "hi  "),
        ("repeat('ab', 3)", S, "ababab"),
        ("repeat(e, 3)", S, None),
        ("reverse(s)", S, "dlröw olléh"),
        ("regexp_replace('a1b2', '([0-9])', '<$1>')", S, "a<1>b<2>"),
        ("regexp_replace('a1b2', '([0-9])', '$1x')", S, "a1xb2x"),
        ("regexp_extract('foo123bar', '([a-z]+)([0-9]+)', 2)", S, "123"),
        ("regexp_extract('foo', '([0-9]+)', 1)", S, ""),
        ("s LIKE 'h_llo%'", B, True),
        ("s LIKE 'h_llo'", B, False),
        ("s LIKE 'HÉLLO%'", B, False),
        ("'a%b' LIKE 'a\\\\%b'", B, True),
        ("'axb' LIKE 'a\\\\%b'", B, False),
        ("'a.b' LIKE 'a.b'", B, True),
        ("'axb' LIKE 'a.b'", B, False),
        ("'a\nb' LIKE 'a%b'", B, True),
        ("s ILIKE 'HÉLLO%'", B, True),
        ("s RLIKE 'l+o'", B, True),
        ("e LIKE '%'", B, None),
    ],
    "numbers": [
        ("abs(n)", N, 7),
        ("round(2.5D)", X, 3.0),
        ("round(-2.5D)", X, -3.0),
        ("round(2.675D, 2)", X, 2.68),
        ("round(0.29D, 2)", X, 0.29),
        ("round(1e300, 2)", X, 1e300),
        ("round(4503599627370498D)", X, 4503599627370498.0),
        ("bround(-4503599627370498D)", X, -4503599627370498.0),
        ("round(nan, 1)", X, NAN),
        ("round(125, -1)", N, 130),
        ("round(n, 2)", N, -7),
        ("round(c, 1)", DEC(10, 1), D("1.3")),
        ("bround(2.5D)", X, 2.0),
        ("bround(125, -1)", N, 120),
        ("floor(-1.5D)", L, -2),
        ("ceil(-1.5D)", L, -1),
        ("floor(9223372036854774784D)", L, 9223372036854774784),
        ("floor(nan)", L, 0),
        ("floor(c)", DEC(9, 0), D("1")),
        ("ceil(c)", DEC(9, 0), D("2")),
        ("sqrt(-1D)", X, NAN),
        ("ln(0D)", X, None),
        ("log10(1000D)", X, 3.0),
        ("log(CAST(10 AS DOUBLE), 1000D)", X, 3.0),
        ("log2(8D)", X, 3.0),
        ("log(2D, -1D)", X, None),
        ("pow(2, 10)", X, 1024.0),
        ("sign(n)", X, -1.0),
        ("5 & 6", N, 4),
        ("5 | 6", N, 7),
        ("5 ^ 6", N, 3),
        ("~5", N, -6),
    ],
    "nested": [
        ("a[0]", N, 1),
        ("a[1]", N, None),
        ("element_at(a, -1)", N, 3),
        ("g[0].v", S, "one"),
        ("get(a, 5)", N, None),
        ("size(a)", N, 3),
        ("array_contains(a, 3)", B, True),
        ("array_contains(a, 4)", B, None),
        ("(r).v", S, "one"),
    ],
}


@pytest.mark.parametrize(
    ("text", "dtype", "expected"),
    [
        pytest.param(*example, id=f"{family}: {example[0]}")
        for family, all_ in EXAMPLES.items()
        for example in all_
    ],
)
def test_value_is_the_one_spark_gives(text: str, dtype: pa.DataType, expected: Any) -> None:
    actual = value(text, dtype)
    assert same(actual, expected), f"{text} is {actual!r}, not {expected!r}"


@pytest.mark.parametrize(
    ("text", "dtype", "expected"),
    [pytest.param(*example, id=example[0]) for all_ in EXAMPLES.values() for example in all_],
)
def test_compiled_expression_agrees_with_evaluate(text: str, dtype: pa.DataType, expected: Any) -> None:
    compiled = ROW.select(pl.col("i").alias("_"), compile_scalar(scalar(text, dtype)).alias("value"))["value"]
    assert compiled.dtype == polars_type(dtype)
    assert same(compiled.item(), expected)


@pytest.mark.parametrize("call", SUPPORTED_FUNCTIONS.values())
def test_every_function_that_is_announced_runs(call: str) -> None:
    columns = {
        **{name: pl.Series([1], dtype=pl.Int32) for name in "ik"}, "j": pl.Series([2], dtype=pl.Int32),
        "b": [True], "x": [1.5], "y": [2.5], "s": ["2020-01-01"], "t": ["a"], "d": [dt.date(2020, 1, 1)],
        "ts": [utc(2020, 1, 1)], "a": pl.Series([[1]], dtype=pl.List(pl.Int32)),
    }  # fmt: skip
    if call == "int(s)":
        columns["s"] = ["1"]
    result = evaluate(pl.DataFrame(columns), {"value": scalar(call, types.NULL)})
    assert result.height == 1
    assert result["value"].null_count() == 0


@pytest.mark.parametrize(
    ("text", "dtype", "complaint"),
    [
        ("i / z", X, "`i / z` divides by zero, at i = 7, z = 0"),
        ("x / 0D", X, "divides by zero"),
        ("i % z", N, "divides by zero"),
        ("i DIV z", L, "divides by zero"),
        ("INTERVAL 4 HOURS / z", types.INTERVAL, "divides by zero"),
        ("pmod(i, z)", N, "divides by zero"),
        ("c / CAST(0 AS DECIMAL(10, 2))", DEC(38, 6), "divides by zero"),
        ("l + 1L", L, "`l + 1` is too large for BIGINT"),
        ("floor(1e30)", L, "`FLOOR(1e30)` is too large for BIGINT"),
        ("1e30 DIV 1D", L, "too large for BIGINT"),
        ("-(-l - 1L)", L, "is too large for BIGINT"),
        ("abs(-l - 1L)", L, "is too large for BIGINT"),
        ("CAST(cut AS STRING)", S, "`cut` has a value that is not a valid STRING"),
        ("-l - 2L", L, "too large for BIGINT"),
        ("l * 2L", L, "too large for BIGINT"),
        ("2147483647 + i", N, "too large for INT"),
        ("-(-2147483647 - 1)", N, "too large for INT"),
        ("abs(-2147483647 - 1)", N, "too large for INT"),
        ("-CAST(-128 AS TINYINT)", pa.int8(), "too large for TINYINT"),
        ("-CAST(-32768 AS SMALLINT)", pa.int16(), "too large for SMALLINT"),
        ("(-l - 1L) DIV -1", L, "too large for BIGINT"),
        ("1e30 DIV 2D", L, "too large for BIGINT"),
        ("CAST(s AS INT)", N, "`s` has a value that is not a valid INT, at s = 'héllo wörld'"),
        ("CAST(l AS INT)", N, "not a valid INT"),
        ("CAST(large AS ARRAY<TINYINT>)", pa.list_(pa.int8()), "not a valid ARRAY<TINYINT>"),
        ("CAST(r AS STRUCT<a: INT, b: INT>)", types.NULL, "not a valid STRUCT<a: INT, b: INT>"),
        ("CAST(g AS ARRAY<STRUCT<a: INT, b: INT>>)", types.NULL, "at g = [{'k': 1, 'v': 'one'}]"),
        ("CAST(h AS MAP<INT, INT>)", types.NULL, "`h` has a value that is not a valid"),
        ("CAST(nan AS BIGINT)", L, "not a valid BIGINT"),
        ("CAST('2023-02-29' AS DATE)", types.DATE, "not a valid DATE"),
        ("CAST(c AS DECIMAL(2, 2))", DEC(2, 2), "not a valid DECIMAL(2, 2)"),
        ("to_date('2024', 'yyyy-MM')", types.DATE, "does not have the form"),
        ("make_date(2023, 2, 29)", types.DATE, "not a day of the calendar"),
        ("make_date(0, 1, 1)", types.DATE, "not a day of the calendar"),
        ("make_date(-1, 1, 1)", types.DATE, "not a day of the calendar"),
        ("a[3]", N, "does not have"),
        ("element_at(a, 0)", N, "does not have"),
        ("CASE WHEN z = 0 THEN i / z END", X, "divides by zero"),
        ("COALESCE(m, i DIV z)", L, "divides by zero"),
        ("p AND i / z > 1", B, "divides by zero"),
        ("u OR i / z > 1", B, "divides by zero"),
        ("u AND i / z > 1", B, "divides by zero"),
        (
            "repeat(s, 2000000000)",
            S,
            "`REPEAT(s, 2000000000)` would make more than 1,000,000 characters, at s = 'h",
        ),
        ("repeat(s, i * 15000)", S, "would make more than 1,000,000 characters"),
        ("repeat('ab', 500001)", S, "would make more than 1,000,000 characters"),
        ("repeat(s, l)", S, "would make more than 1,000,000 characters"),
        ("repeat(repeat(s, 90000), 90000)", S, "would make more than 1,000,000 characters"),
        ("space(1000001)", S, "would make more than 1,000,000 characters"),
        ("lpad(s, 2000000000)", S, "would make more than 1,000,000 characters"),
        ("rpad(s, 2000000000, 'ü')", S, "would make more than 1,000,000 characters"),
        ("replace(repeat('a', 1001), 'a', repeat('b', 1001))", S, "would make more than 1,000,000"),
        ("replace(repeat('a', 500001), 'a', 'bbb')", S, "would make more than 1,000,000 characters"),
        ("regexp_replace(repeat('a', 500001), 'a', 'bb')", S, "would make more than 1,000,000 characters"),
    ],
)
def test_what_has_no_value_is_an_error_with_the_reason(text: str, dtype: pa.DataType, complaint: str) -> None:
    asked = scalar(text, dtype)
    for ask in (lambda: evaluate(ROW, {"value": asked}), lambda: ROW.select(compile_scalar(asked))):
        with pytest.raises(DataError) as failure:
            ask()
        assert complaint in failure.value.cause


def test_a_message_shows_the_first_row_without_a_value() -> None:
    frame = pl.DataFrame({"i": [7, 8, 9, 10], "z": [1, 2, 0, 0]}, schema={"i": pl.Int32, "z": pl.Int32})
    with pytest.raises(DataError) as failure:
        evaluate(frame, {"value": scalar("i / z", X)})
    assert failure.value.cause == "`i / z` divides by zero, at i = 9, z = 0"


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("repeat('ab', 500000)", 1_000_000),
        ("repeat('', l)", 0),
        ("repeat(s, n)", 0),
        ("space(1000000)", 1_000_000),
        ("lpad(s, 1000000, 'ü')", 1_000_000),
        ("lpad(s, 2000000000, '')", 11),
        ("lpad(e, 2000000000)", None),
        ("repeat(s, m)", None),
        ("repeat(e, 2000000000)", None),
        ("IF(i < 7, repeat(s, 2000000000), s)", 11),
        ("CASE WHEN p THEN s ELSE lpad(s, 2000000000) END", 11),
        ("replace(repeat('a', 1000), 'a', repeat('b', 1001))", 1_001_000),
        ("regexp_replace(repeat('a', 500000), 'a', 'bb')", 1_000_000),
        ("replace(repeat('a', 1000000), 'a', 'b')", 1_000_000),
        ("replace(repeat('a', 1000000), '.', 'bbb')", 1_000_000),
    ],
)
def test_text_may_be_as_long_as_the_limit_where_it_is_asked_for(text: str, length: int | None) -> None:
    found = value(text, S)
    assert (None if found is None else len(found)) == length


def test_a_step_makes_no_more_text_than_a_column_holds() -> None:
    frame = pl.DataFrame({"s": ["x"] * 2148})
    with pytest.raises(DataError, match="more than 2 GB of text in one step") as failure:
        evaluate(frame, {"value": scalar("repeat(s, 1000000)", S)})
    assert "--batch-rows" in str(failure.value.remedy)
    assert (
        evaluate(frame, {"value": scalar("repeat(s, 1000)", S)})["value"].str.len_bytes().sum() == 2_148_000
    )


def test_letters_of_a_filling_count_as_the_longest_of_them() -> None:
    frame = pl.DataFrame({"s": ["x"] * 1100})
    with pytest.raises(DataError, match="more than 2 GB of text in one step"):
        evaluate(frame, {"value": scalar("rpad(s, 1000000, 'aü')", S)})


def test_a_message_does_not_show_all_of_a_long_value() -> None:
    frame = pl.DataFrame({"s": ["x" * 10_000]})
    with pytest.raises(DataError) as failure:
        evaluate(frame, {"value": scalar("repeat(s, 1000000)", S)})
    assert len(failure.value.cause) < 300


@pytest.mark.parametrize(("length", "shown"), [(100, "'" + "x" * 98 + "'"), (101, "'" + "x" * 98 + "…")])
def test_a_message_shows_a_hundred_characters_of_a_value(length: int, shown: str) -> None:
    # Two of them are quotes.
    with pytest.raises(DataError) as failure:
        evaluate(pl.DataFrame({"s": ["x" * (length - 2)]}), {"value": scalar("repeat(s, 1000000)", S)})
    assert failure.value.cause.endswith(f"s = {shown}")


@pytest.mark.parametrize(
    "text",
    [
        "d + 2147483647",
        "d - 800000",
        "date_add(d, -2147483647)",
        "add_months(d, 2147483647)",
        "d + INTERVAL 9000 YEARS",
        "add_months(DATE '9999-12-31', 1)",
        "add_months(DATE '0001-01-31', -1)",
        "timestampadd(YEAR, 2147483647, ts)",
        "timestampadd(MICROSECOND, 9223372036854775807, ts)",
        "timestampadd(WEEK, -9223372036854775807, ts)",
        "timestampadd(DAY, 1, TIMESTAMP '9999-12-31 00:00:00')",
        "timestampadd(SECOND, -1, TIMESTAMP '0001-01-01 00:00:00')",
    ],
)
def test_what_leaves_the_calendar_is_an_error(text: str) -> None:
    with pytest.raises(DataError, match="is outside of the years 1 to 9999"):
        value(text, types.TIMESTAMP)


@pytest.mark.parametrize(
    "text",
    [
        "uuid()",
        "nonsense(i)",
        "current_timestamp()",
        "s RLIKE '(?=a)'",
        "s LIKE s",
        "s LIKE NULL",
        "regexp_replace(s, NULL, 'x')",
        "h[0]",
        "p DIV i",
        "s || i",
        "INTERVAL 1 MONTH",
        "to_date(s, 'yyyy ww')",
        "date_format(ts, 'ddd')",
        "'a' LIKE 'a\\\\x'",
        "regexp_extract(s, '(l)', 2)",
        "regexp_extract(s, '(l)', -1)",
        "extract(MINUTE FROM ts)",
        "date_trunc('NEVER', ts)",
        "timestampdiff(CENTURY, ts, ts)",
        "timestampadd(CENTURY, 1, ts)",
        "split_part(s, ',', 0)",
        "lpad(s, 'x')",
    ],
)
def test_what_cannot_run_is_refused_before_it_runs(text: str) -> None:
    with pytest.raises(UnsupportedError):
        value(text, S)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ARRAY<INT>", pl.List(pl.Int32())),
        ("MAP<STRING, INT>", pl.List(pl.Struct({"key": pl.String(), "value": pl.Int32()}))),
        ("STRUCT<k: INT, v: ARRAY<STRING>>", pl.Struct({"k": pl.Int32(), "v": pl.List(pl.String())})),
        ("DECIMAL(12, 2)", pl.Decimal(12, 2)),
        ("DECIMAL(12)", pl.Decimal(12, 0)),
    ],
)
def test_a_written_type_has_parts(name: str, expected: pl.DataType) -> None:
    assert named_type(exp.DataType.build(name, dialect="spark")) == expected


@pytest.mark.parametrize(
    "text", ["2 / INTERVAL 1 DAY", "INTERVAL 1 DAY * INTERVAL 1 DAY", "INTERVAL 1 DAY / INTERVAL 1 DAY"]
)
def test_an_interval_is_scaled_by_a_number(text: str) -> None:
    with pytest.raises(UnsupportedError, match="multiply or divide an interval by a number"):
        value(text, types.INTERVAL)


@pytest.mark.parametrize("text", ["h[0]", "i[0]"])
def test_only_arrays_have_elements(text: str) -> None:
    with pytest.raises(UnsupportedError, match="is not an element of an array or a field of a struct"):
        value(text, types.NULL)


def test_a_column_whose_type_is_not_known_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="columns of type time32"):
        polars_type(pa.time32("s"))


@pytest.mark.parametrize("name", ["VARIANT", "ARRAY", "MAP"])
def test_a_type_that_is_not_supported_is_named(name: str) -> None:
    with pytest.raises(UnsupportedError, match=f"the type {name} is not supported"):
        value(f"CAST(s AS {name})", S)


@pytest.mark.parametrize("limit", [1, 2])
def test_split_takes_no_limit(limit: int) -> None:
    with pytest.raises(UnsupportedError, match="SPLIT with a limit is not supported"):
        value(f"split(s, 'l', {limit})", pa.list_(S))


def test_a_regular_expression_that_cannot_run_is_said_to_in_one_line() -> None:
    with pytest.raises(UnsupportedError, match=r"'\(\?=a\)' cannot run: look-around"):
        value("s RLIKE '(?=a)'", B)


def test_an_error_reaches_the_caller_of_a_compiled_expression() -> None:
    expression = compile_scalar(scalar("i / z", X))
    for query in (ROW.lazy().select(expression).collect, lambda: ROW.filter(expression > 1)):
        with pytest.raises(DataError) as failure:
            query()
        assert failure.value.cause == "`i / z` divides by zero, at i = 7, z = 0"
        assert failure.value.remedy is not None


def test_long_sums_compile_in_time_that_follows_their_length() -> None:
    terms = 150
    assert value(" + ".join(["i"] * terms), N) == 7 * terms
    assert value("ts" + " + INTERVAL 1 SECOND" * terms, types.TIMESTAMP) == utc(
        2024, 2, 29, 13, 48, 29, 123456
    )


def test_constants_are_as_tall_as_the_frame() -> None:
    frame = pl.DataFrame({"i": [1, 2, 3]})
    assert evaluate(frame, {"one": scalar("1", N)})["one"].to_list() == [1, 1, 1]
    assert evaluate(frame.clear(), {"one": scalar("1", N)}).height == 0
    assert frame.with_columns(compile_scalar(scalar("1 + 1", N)).alias("two"))["two"].to_list() == [2, 2, 2]


def test_rows_with_unknown_predicate_are_dropped() -> None:
    frame = pl.DataFrame({"i": [1, 2, None, 4]}, schema={"i": pl.Int32})
    assert keep_rows(frame, scalar("i > 1", B))["i"].to_list() == [2, 4]
    assert keep_rows(frame, scalar("4 DIV i > 1", B))["i"].to_list() == [1, 2]


def test_failing_rows_that_another_predicate_guards_do_not_fail() -> None:
    frame = pl.DataFrame({"i": [0, 2, None]}, schema={"i": pl.Int32})
    assert keep_rows(frame, scalar("i <> 0 AND 4 DIV i > 1", B))["i"].to_list() == [2]


@pytest.mark.parametrize(
    ("arrow", "polars"),
    [
        (types.INT, pl.Int32()),
        (types.TIMESTAMP, pl.Datetime("us", "UTC")),
        (types.TIMESTAMP_NTZ, pl.Datetime("us")),
        (pa.decimal128(10, 2), pl.Decimal(10, 2)),
        (pa.struct([("x", pa.list_(types.STRING))]), pl.Struct({"x": pl.List(pl.String)})),
        (pa.map_(types.STRING, types.INT), pl.List(pl.Struct({"key": pl.String, "value": pl.Int32}))),
        (pa.large_list(types.INT), pl.List(pl.Int32())),
    ],
)
def test_arrow_types_have_polars_types(arrow: pa.DataType, polars: pl.DataType) -> None:
    assert polars_type(arrow) == polars


INTEGERS = st.one_of(
    st.integers(-(2**63), BIG), st.sampled_from([-(2**63), BIG, -1, 0, 1, 2**32, 3037000500])
)
MEANING: dict[str, Callable[[int, int], int]] = {
    "l + k": lambda a, b: a + b,
    "l - k": lambda a, b: a - b,
    "l * k": lambda a, b: a * b,
    "l DIV k": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "l % k": lambda a, b: abs(a) % abs(b) * (1 if a >= 0 else -1),
}


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(MEANING)), INTEGERS, INTEGERS)
def test_whole_numbers_are_exact_or_an_error(text: str, a: int, b: int) -> None:
    frame = pl.DataFrame({"l": [a], "k": [b]}, schema={"l": pl.Int64, "k": pl.Int64})
    exact = None if b == 0 and ("DIV" in text or "%" in text) else MEANING[text](a, b)
    if exact is None or not -(2**63) <= exact <= BIG:
        with pytest.raises(DataError):
            evaluate(frame, {"value": scalar(text, L)})
    else:
        assert evaluate(frame, {"value": scalar(text, L)})["value"].item() == exact


@settings(max_examples=150, deadline=None)
@given(
    st.floats(allow_nan=False, allow_infinity=False, width=64).map(lambda x: x % 1e6)
    | st.integers(0, 2_000_000).map(lambda n: n / 2),
    st.integers(-4, 6),
    st.sampled_from([("round", decimal.ROUND_HALF_UP), ("bround", decimal.ROUND_HALF_EVEN)]),
)
def test_round_follows_the_written_number(x: float, places: int, rounds: tuple[str, str]) -> None:
    function, mode = rounds
    written = D(repr(x)).quantize(D(1).scaleb(-places), rounding=mode)
    # With several rows Polars divides in another way than with one.
    frame = pl.DataFrame({"x": [x, x]})
    found = evaluate(frame, {"value": scalar(f"{function}(x, {places})", X)})["value"]
    assert found.to_list() == [float(written)] * 2


@pytest.mark.parametrize("divisor", [3.0, 7.0, 10.0, 1e6])
def test_a_quotient_is_the_nearest_number_whatever_the_divisor_is(divisor: float) -> None:
    values = [n / 100 for n in range(-500, 500)]
    frame = pl.DataFrame({"x": values, "y": divisor})
    for text in (f"x / {divisor}D", "x / y"):
        found = evaluate(frame, {"value": scalar(text, X)})["value"]
        assert found.to_list() == [x / divisor for x in values]


@settings(max_examples=150, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_text_of_a_double_reads_back_and_has_the_form_of_java(x: float) -> None:
    frame = pl.DataFrame({"x": [x]})
    text = evaluate(frame, {"value": scalar("CAST(x AS STRING)", S)})["value"].item()
    assert float(text) == x
    assert re.fullmatch(r"-?\d+\.\d+" if 1e-3 <= abs(x) < 1e7 or x == 0 else r"-?[1-9]\.\d+E-?\d+", text)


CONDITIONS = st.recursive(
    st.sampled_from(
        ["p", "q", "i < j", "i = j", "i IS NULL", "i BETWEEN j AND 2", "i IN (1, j)", "TRUE", "p IS NOT TRUE"]
    ),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        inner.map(lambda t: f"(NOT {t})"),
        st.tuples(inner, inner, inner).map(lambda t: f"(CASE WHEN {t[0]} THEN {t[1]} ELSE {t[2]} END)"),
    ),
    max_leaves=6,
)
GRID = [
    {"p": p, "q": q, "i": i, "j": j}
    for p in (True, False, None)
    for q in (True, False, None)
    for i in (1, 2, None)
    for j in (1, 3, None)
]
LOGIC = pl.DataFrame(GRID, schema={"p": pl.Boolean, "q": pl.Boolean, "i": pl.Int32, "j": pl.Int32})


@settings(max_examples=60, deadline=None)
@given(CONDITIONS)
def test_three_valued_logic_is_that_of_sql(text: str) -> None:
    expected = duckdb.sql(f"SELECT {text} AS value FROM LOGIC").pl()["value"].to_list()
    assert evaluate(LOGIC, {"value": scalar(text, B)})["value"].to_list() == expected
    assert (
        LOGIC.select(pl.col("p").alias("_"), compile_scalar(scalar(text, B)).alias("v"))["v"].to_list()
        == expected
    )
