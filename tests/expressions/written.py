"""Expressions over one table of many types, written by templates: every operator and function on every type.

The values that Spark gives them are in `spark_values.tsv`, one line for each expression that Headgate has. To write
that file anew, with Spark: `python -m tests.expressions.written`.
"""

from __future__ import annotations

import json
import logging
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
from tests.expressions.edges import edges

from headgate.kernels.expressions import evaluate, polars_type
from headgate.model.errors import HeadgateError
from headgate.model.types import spark_name
from headgate.plan.nodes import Project
from headgate.session import Session

GROUP = 64
"""So many expressions are asked for at once."""
VALUES = Path(__file__).parent / "spark_values.tsv"
D = Decimal


def _utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc, arg-type]


COLUMNS: dict[str, tuple[str, pa.DataType, list[Any]]] = {
    "y": ("TINYINT", pa.int8(), [1, -3, 5, None, 2, -7, 3]),
    "h": ("SMALLINT", pa.int16(), [12, -35, 7, 3, None, 100, -1]),
    "i": ("INT", pa.int32(), [7, -7, 1250, 2, 15, None, -25]),
    "l": ("BIGINT", pa.int64(), [70, -71, 4, 99999, 3, -1, None]),
    "g": ("FLOAT", pa.float32(), [0.5, -2.25, 3.0, 1.5, None, 100.125, -0.75]),
    "x": ("DOUBLE", pa.float64(), [2.5, -3.5, 0.125, 12.345, 1e10, None, -0.05]),
    "c": (
        "DECIMAL(10, 2)",
        pa.decimal128(10, 2),
        [D("1.25"), D("-1.35"), D("99.99"), D("0.05"), None, D("12.50"), D("-7.00")],
    ),
    "n": ("DECIMAL(5, 0)", pa.decimal128(5, 0), [D(3), D(-4), D(12345), None, D(7), D(1), D(-25)]),
    "w": (
        "DECIMAL(38, 10)",
        pa.decimal128(38, 10),
        [D("1.5"), D("-2.25"), D("123456789.0123456789"), D("0.3"), D("7"), None, D("-9")],
    ),
    "v": (
        "DECIMAL(20, 18)",
        pa.decimal128(20, 18),
        [D("0.5"), D("-1.25"), D("3.141592653589793238"), D("1"), D("99"), D("-0.75"), None],
    ),
    "s": ("STRING", pa.string(), ["héllo wörld", "a,b,,c", "", " Trim ", None, "42", "x.y|z 7"]),
    "o": ("STRING", pa.string(), ["l", ",", "b", None, "T", "4", "."]),
    "u": ("STRING", pa.string(), ["12", "-3", " 7 ", "0", None, "100", "9"]),
    "p": ("BOOLEAN", pa.bool_(), [True, False, None, True, False, None, True]),
    "q": ("BOOLEAN", pa.bool_(), [True, True, True, False, False, None, None]),
    "d": (
        "DATE",
        pa.date32(),
        [
            date(2024, 1, 31),
            date(2023, 12, 31),
            date(2024, 2, 29),
            None,
            date(1969, 7, 20),
            date(2021, 1, 3),
            date(2025, 6, 15),
        ],
    ),
    "b": (
        "DATE",
        pa.date32(),
        [
            date(2024, 3, 1),
            date(2024, 1, 1),
            None,
            date(2020, 2, 29),
            date(1970, 1, 1),
            date(2020, 12, 28),
            date(2025, 6, 15),
        ],
    ),
    "t": (
        "TIMESTAMP",
        pa.timestamp("us", tz="UTC"),
        [
            _utc(2024, 2, 29, 13, 45, 59, 123456),
            _utc(2023, 12, 31, 23, 59, 59, 999999),
            _utc(1969, 12, 31, 23, 59, 59, 500000),
            _utc(2024, 1, 1),
            None,
            _utc(2021, 1, 3, 0, 0, 1),
            _utc(2025, 6, 15, 12),
        ],
    ),
    "r": (
        "TIMESTAMP",
        pa.timestamp("us", tz="UTC"),
        [
            _utc(2024, 3, 1, 13, 45, 59),
            _utc(2024, 1, 1),
            _utc(1970, 1, 1, 0, 0, 0, 1),
            None,
            _utc(2000, 1, 1),
            _utc(2021, 1, 3, 0, 0, 1),
            _utc(2024, 6, 15, 12),
        ],
    ),
}
ROWS = 7
NUMBERS = "yhilgxcnwv"
WHOLE = "yhil"
TYPES = (
    *("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(12, 3)", "DECIMAL(6, 1)"),
    *("STRING", "BOOLEAN", "DATE", "TIMESTAMP"),
)


def written() -> Iterator[str]:
    """All expressions."""
    yield from dict.fromkeys(each for part in (_numbers, _texts, _times, _logic, edges) for each in part())


def _numbers() -> Iterator[str]:
    for a, b in product(NUMBERS, NUMBERS):
        yield from (f"{a} {operator} {b}" for operator in ("+", "-", "*", "/", "%", "DIV", "<", "<=>"))
        yield from (f"{function}({a}, {b})" for function in ("greatest", "coalesce"))
        yield f"pmod({a}, {b})"
    for a in NUMBERS:
        yield from (f"CAST({a} AS {dtype})" for dtype in TYPES)
        for function in (
            "abs",
            "ceil",
            "floor",
            "sign",
            "negative",
            "positive",
            "round",
            "bround",
            "sqrt(abs",
            "string",
        ):
            yield f"{function}({a})" + (")" if "(" in function else "")
        yield from (f"{name}({a}, {places})" for name in ("round", "bround") for places in (-2, -1, 0, 1, 3))
        yield from (
            f"{name}({a}, {other})"
            for name in ("try_add", "try_subtract", "try_multiply")
            for other in (1, "1.5", "x")
        )
        yield from (
            f"{name}({a}, {other})" for name in ("try_divide", "try_mod") for other in (0, 2, "c", "0D")
        )
        yield from (
            f"{a} {op} {other}"
            for op in ("+", "*", "/", "%", "DIV")
            for other in ("3", "2.5", "-0.25", "2.5D", "4L")
        )
        yield from (f"{other} {op} {a}" for op in ("-", "/", "DIV") for other in ("10", "0.1", "1D"))
        yield from (f"round({a}, {places})" for places in ("(1)", "1L", "-(1)"))
        yield f"nullif({a}, 7)"
        yield from (f"{a} {op} 2" for op in ("/", "%"))
        yield f"{a} / CAST(8 AS DECIMAL(3, 0))"
        yield f"least({a}, 3, x)"
        yield f"-{a}"
        yield f"{a} BETWEEN -3 AND 12.5"
        yield f"{a} IN (1, 7, 99.99, NULL)"
        yield f"{a} NOT IN (3, 2.5)"
        yield f"if({a} > 2, {a}, 1)"
        yield f"CASE WHEN {a} > 10 THEN {a} WHEN {a} < 0 THEN 0.5 END"
        yield f"nanvl(x / 2, {a})"
        yield f"power({a}, 2)"
        yield f"CAST(CAST({a} AS STRING) AS DOUBLE)"
    for function in (
        "exp(g)",
        "ln(abs(x))",
        "log10(abs(x) + 1)",
        "log2(abs(x))",
        "log1p(abs(x))",
        "log(2, abs(x))",
    ):
        yield function
    for function in ("sin", "cos", "tan", "atan", "degrees", "radians", "cbrt", "rint", "isnan", "signum"):
        yield from (f"{function}({a})" for a in "ixg")
    for value in ("0.5", "-1", "1"):
        yield from (f"{function}({value}D)" for function in ("asin", "acos"))
    yield from ("atan2(x, g)", "pi()", "e()", "log(abs(x))", "x = -0.0D", "nanvl(CAST('NaN' AS DOUBLE), x)")
    yield from ("CAST('NaN' AS DOUBLE) > x", "CAST('Infinity' AS DOUBLE) * x", "isnan(CAST('NaN' AS FLOAT))")
    for text in (
        "1e3",
        "-1.5E-7",
        "12345678.9",
        "1e-5",
        "1234567890",
        "0.001",
        "1e7",
        "9999999",
        "0",
        "-0.0",
    ):
        yield f"CAST({text}D AS STRING)"
        # Of a FLOAT with many digits, Java before 19 writes more of them than it takes.
        if text != "1234567890":
            yield f"CAST(CAST({text}D AS FLOAT) AS STRING)"
        yield f"round({text}D, 2)"
        yield f"bround({text}D, -1)"


def _texts() -> Iterator[str]:
    for a in "so":
        for function in (
            "upper",
            "lower",
            "initcap",
            "reverse",
            "length",
            "trim",
            "ltrim",
            "rtrim",
            "btrim",
            "char_length",
        ):
            yield f"{function}({a})"
        for start, count in ((1, 3), (0, 2), (-3, 2), (2, 100), (-100, 98), (3, 0), (4, -1)):
            yield f"substring({a}, {start}, {count})"
        yield from (f"substring({a}, {start})" for start in (1, 0, 3, -2, 50))
        yield from (f"{side}({a}, {count})" for side in ("left", "right") for count in (0, 2, 50, -1))
        yield from (
            f"{side}({a}, {size}, {pad})"
            for side in ("lpad", "rpad")
            for size in (0, 3, 14)
            for pad in ("'xy'", "''")
        )
        yield from (f"{side}({a}, 13)" for side in ("lpad", "rpad"))
        yield from (
            f"trim({side} {letters} FROM {a})"
            for side in ("BOTH", "LEADING", "TRAILING")
            for letters in ("'ha '", "'d7'")
        )
        yield from (
            f"btrim({a}, 'hdT7 ')",
            f"repeat({a}, 2)",
            f"repeat({a}, 0)",
            f"translate({a}, 'lo,', '01')",
        )
        yield from (f"replace({a}, {old}, 'ZZ')" for old in ("'l'", "','", "''", "'.'"))
        yield from (f"split_part({a}, ',', {part})" for part in (1, 2, -1, 9))
        yield from (
            f"{a} {word} '{pattern}'"
            for word in ("LIKE", "ILIKE", "NOT LIKE")
            for pattern in ("%l%", "_,%", "h_llo%", "%.y|%", "", "HÉL%")
        )
        yield from (f"{a} RLIKE '{pattern}'" for pattern in ("l+", "^a", "[0-9]$", "\\\\."))
        yield from (f"regexp_extract({a}, '([a-z]+)[ ,.]([a-z]*)', {group})" for group in (0, 1, 2))
        yield from (f"regexp_replace({a}, '{pattern}', '<$0>')" for pattern in ("[lo]+", "[.]", "^"))
        yield from (f"{function}({a}, 'l')" for function in ("contains", "startswith", "endswith", "instr"))
        yield from (f"locate('l', {a}, {start})" for start in (1, 4, 5, 0, 99))
        yield from (
            f"{a} || 'é'",
            f"concat({a}, i, '-')",
            f"concat_ws('+', {a}, NULL, o, i)",
            f"space(3) || {a}",
        )
        yield from (
            f"position('o' IN {a})",
            f"{a} < 'b'",
            f"{a} <=> o",
            f"{a} IN ('l', '42', NULL)",
            f"{a} > 'héllo'",
        )
        yield from (
            f"nullif({a}, '')",
            f"coalesce({a}, 'none')",
            f"nvl2({a}, 1, 0)",
            f"greatest({a}, 'm')",
            f"least({a}, o)",
        )
    yield from (
        "instr(s, o)",
        "locate(o, s)",
        "replace(s, o, '')",
        "contains(s, o)",
        "startswith(s, o)",
        "s LIKE o",
        "split_part(s, o, 2)",
    )
    for dtype in (*TYPES[:8], "BOOLEAN"):
        yield from (f"CAST(u AS {dtype})", f"TRY_CAST(s AS {dtype})")
    for text in ("true", "T", " yes ", "0", "n", "maybe"):
        yield f"TRY_CAST('{text}' AS BOOLEAN)"
    for text in (
        "1.5",
        "1e2",
        " 7",
        "0x1F",
        "1_000",
        "",
        "+4",
        "9223372036854775808",
        "NaN",
        "1.",
        ".5",
        "-",
    ):
        yield from (
            f"TRY_CAST('{text}' AS {dtype})" for dtype in ("INT", "BIGINT", "DOUBLE", "DECIMAL(6, 2)")
        )
    for text in (
        "2024-02-29",
        "2024-2-9",
        "2024-02-30",
        "2024",
        "2024-02",
        "2024-02-29 10:11:12",
        "2024-02-29T10:11:12.5Z",
    ):
        yield from (f"TRY_CAST('{text}' AS {dtype})" for dtype in ("DATE", "TIMESTAMP"))


def _times() -> Iterator[str]:
    parts = (
        "year",
        "month",
        "day",
        "quarter",
        "hour",
        "minute",
        "second",
        "dayofweek",
        "dayofyear",
        "weekday",
        "weekofyear",
    )
    for a in "dbtr":
        yield from (f"{part}({a})" for part in parts)
        for part in (
            "YEAR",
            "QUARTER",
            "MONTH",
            "WEEK",
            "DAY",
            "DOW",
            "DOW_ISO",
            "DOY",
            "HOUR",
            "MINUTE",
            "SECOND",
        ):
            yield f"EXTRACT({part} FROM {a})"
        for unit in ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND"):
            yield f"date_trunc('{unit}', {a})"
        yield from (f"trunc({a}, '{unit}')" for unit in ("year", "quarter", "month", "week"))
        yield from (f"add_months({a}, {count})" for count in (-13, -1, 0, 1, 12))
        yield from (
            f"{function}({a}, {count})" for function in ("date_add", "date_sub") for count in (0, 1, -40)
        )
        yield from (f"CAST({a} AS {dtype})" for dtype in ("STRING", "DATE", "TIMESTAMP"))
        yield from (
            f"last_day({a})",
            f"date({a})",
            f"{a} < r",
            f"{a} <=> d",
            f"greatest({a}, r)",
            f"to_date({a})",
        )
        for interval in ("1 DAY", "2 WEEKS", "-3 HOURS", "90 MINUTES", "1500 MILLISECONDS"):
            yield from (f"{a} + INTERVAL {interval}", f"{a} - INTERVAL {interval}")
        for pattern in (
            "yyyy-MM-dd",
            "dd/MM/yy HH:mm",
            "EEE, d MMM",
            "yyyyMMddHHmmss",
            "D",
            "hh:mm a",
            "SSS",
            "H:m:s",
            "MMMM EEEE",
            "SSSSSS",
        ):
            yield f"date_format({a}, '{pattern}')"
        yield f"date_format({a}, \"yyyy-MM-dd'T'HH:mm:ss.SSS\")"
        yield from (f"datediff({a}, {b})" for b in "dbtr")
    for unit in (
        "MICROSECOND",
        "MILLISECOND",
        "SECOND",
        "MINUTE",
        "HOUR",
        "DAY",
        "WEEK",
        "MONTH",
        "QUARTER",
        "YEAR",
    ):
        yield from (
            f"timestampdiff({unit}, t, r)",
            f"datediff({unit}, r, d)",
            f"timestampadd({unit}, 3, t)",
            f"timestampadd({unit}, -1, d)",
        )
    for function in ("unix_micros", "unix_millis", "unix_seconds", "unix_timestamp", "to_unix_timestamp"):
        yield f"{function}(t)"
    for function in (
        "timestamp_seconds",
        "timestamp_millis",
        "timestamp_micros",
        "date_from_unix_date",
        "from_unixtime",
    ):
        yield from (f"{function}({a})" for a in "ilh")
    yield from (
        "timestamp_seconds(x)",
        "unix_date(d)",
        "make_date(2000 + i % 20, 2, 28)",
        "t - r",
        "d - b",
        "t - d",
    )
    yield from ("to_timestamp('2024-02-29 10:11', 'yyyy-MM-dd HH:mm')", "to_date('29.02.2024', 'dd.MM.yyyy')")
    yield from (
        "CAST(CAST(t AS STRING) AS TIMESTAMP)",
        "t BETWEEN r - INTERVAL 2 DAYS AND r",
        "d + 1",
        "d - 3",
        "d IN (b, DATE '2024-01-31')",
    )
    yield from (f"CAST(t AS {dtype})" for dtype in ("BIGINT", "DOUBLE", "DECIMAL(20, 6)", "DECIMAL(12, 1)"))
    yield from (f"CAST({number} AS TIMESTAMP)" for number in "cnwv")


def _logic() -> Iterator[str]:
    conditions = ("p", "q", "i > 2", "s = ''", "NULL", "NOT p")
    for one, two in product(conditions, conditions):
        yield from (f"({one}) AND ({two})", f"({one}) OR ({two})", f"({one}) <=> ({two})")
    yield from (
        f"({one}) IS {words}"
        for one in conditions
        for words in ("NULL", "NOT NULL", "TRUE", "NOT TRUE", "FALSE")
    )
    yield from (
        "CASE WHEN p THEN 1 WHEN q THEN 2L ELSE 3.5 END",
        "CASE i WHEN 7 THEN 'a' WHEN 2 THEN 'b' END",
        "if(p, d, t)",
    )
    yield from (
        "p = q",
        "p < q",
        "NOT (p AND q)",
        "CAST(p AS INT)",
        "CAST(p AS STRING)",
        "nvl(p, q)",
        "equal_null(p, q)",
        "ifnull(i, l)",
    )
    yield from (
        "i IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)",
        "i IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, NULL)",
        "p IN (TRUE)",
        "i IN (l, h)",
    )


@dataclass(frozen=True)
class Known:
    """An expression, its type and its values in the rows of the table, as Spark has them."""

    text: str
    dtype: str
    values: list[Any]


def known() -> list[Known]:
    """What the file says."""
    lines = VALUES.read_text(encoding="utf-8").splitlines()
    return [
        Known(text, dtype, json.loads(values)) for text, dtype, values in (line.split("\t") for line in lines)
    ]


def shown(value: Any) -> Any:
    """A value as JSON has it: numbers that are not whole, and instants, as text."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return repr(value)
        case datetime():
            return value.astimezone(UTC).isoformat()
        case date():
            return value.isoformat()
        case timedelta():
            return f"{value // timedelta(microseconds=1)} µs"
        case Decimal():
            return format(value, "f")
        case _:
            return [shown(each) for each in value]


def near(actual: Any, expected: Any) -> bool:
    """Whether two shown floating-point numbers are equal in all digits but the last."""
    if actual is None or expected is None:
        return actual is expected
    one, two = float(actual), float(expected)
    return math.isclose(one, two, rel_tol=1e-14) or (math.isnan(one) and math.isnan(two))


def on_spark(spark: Any, texts: Sequence[str]) -> list[Known]:
    """What Spark makes of expressions over the table; without those that it cannot do."""
    table = pa.table({name: pa.array(values, dtype) for name, (_, dtype, values) in COLUMNS.items()})
    table = table.append_column("id", pa.array(range(ROWS), pa.int32()))
    spark.createDataFrame(table).createOrReplaceTempView("expressions")

    def ask(some: Sequence[str]) -> list[Known]:
        chosen = ", ".join(f"{text} AS `{number}`" for number, text in enumerate(some))
        try:
            found = spark.sql(f"SELECT {chosen} FROM expressions ORDER BY id").toArrow()
        except Exception as error:
            if not type(error).__module__.startswith(("py4j", "pyspark")):
                raise
            half = len(some) // 2
            return [] if len(some) == 1 else [*ask(some[:half]), *ask(some[half:])]
        return [
            Known(text, spark_name(field.type), [shown(each) for each in column.to_pylist()])
            for text, field, column in zip(some, found.schema, found.columns, strict=True)
        ]

    return [each for start in range(0, len(texts), GROUP) for each in ask(texts[start : start + GROUP])]


def declared() -> str:
    """The table as a stream."""
    columns = ", ".join(f"{name} {dtype}" for name, (dtype, _, _) in COLUMNS.items())
    return f"CREATE STREAM e (id INT, at TIMESTAMP, {columns}) TIMESTAMP BY at;"


def by_headgate(texts: Sequence[str]) -> list[Known]:
    """What Headgate makes of expressions: as a query binds them, and as its projection computes them."""
    query = Session().sql(f"{declared()} CREATE QUERY q AS {_query(texts)};")
    assert query is not None
    [projection] = [node for node in query.plan.walk() if isinstance(node, Project)]
    frame = pl.DataFrame(
        {
            f"e.{name}": pl.Series(values, dtype=polars_type(dtype))
            for name, (_, dtype, values) in COLUMNS.items()
        }
    )
    scalars = {each.name: each.scalar for each in projection.outputs}
    found = evaluate(frame, scalars)
    return [
        Known(text, spark_name(scalar.type), [shown(each) for each in found[name].to_list()])
        for text, (name, scalar) in zip(texts, scalars.items(), strict=True)
    ]


def _query(texts: Sequence[str]) -> str:
    chosen = ", ".join(f"{text} AS v{number}" for number, text in enumerate(texts))
    return f"SELECT ISTREAM({chosen}) FROM e [NOW]"


def _supported(texts: Sequence[str]) -> Iterator[str]:
    """Those expressions that Headgate has a value for."""
    try:
        by_headgate(texts)
    except HeadgateError as error:
        if len(texts) == 1:
            sys.stdout.write(f"not there: {texts[0]}: {str(error).splitlines()[0]}\n")
            return
        half = len(texts) // 2
        yield from (*_supported(texts[:half]), *_supported(texts[half:]))
    else:
        yield from texts


def _write() -> None:
    from headgate.runtime.spark.cluster import open_spark  # noqa: PLC0415 - only here is there need of Spark

    texts = list(written())
    supported = [
        text for start in range(0, len(texts), GROUP) for text in _supported(texts[start : start + GROUP])
    ]
    spark = open_spark("local[2]")
    logging.disable(logging.CRITICAL)
    found = on_spark(spark, supported)
    spark.stop()
    lines = [f"{each.text}\t{each.dtype}\t{json.dumps(each.values, ensure_ascii=False)}\n" for each in found]
    VALUES.write_text("".join(lines), encoding="utf-8")
    sys.stdout.write(f"{len(lines)} expressions of {len(texts)}\n")


if __name__ == "__main__":
    _write()
