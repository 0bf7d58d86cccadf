"""Declared types: what text and stored values become, and which of them do not."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runtime.reading import csv, jsonl, parquet, read, refusal, rows

from headgate.kernels.expressions.dtypes import polars_type
from headgate.model import types
from headgate.model.errors import UnsupportedError
from headgate.runtime.io.conform import conform, mismatch
from headgate.runtime.io.datepattern import strftime_patterns
from headgate.runtime.io.literals import TextForms, read_literals

BAD = object()
"""Stands for a value that does not convert."""


def series(array: pa.Array) -> pl.Series:
    found = pl.from_arrow(array)
    assert isinstance(found, pl.Series)
    return found


def literal(text: str, dtype: pa.DataType, forms: TextForms | None = None) -> Any:
    """What a text becomes, among neighbours that are NULL."""
    array, failed = read_literals(pa.array([None, text], pa.string()), dtype, forms or TextForms())
    assert series(array).dtype == polars_type(dtype)
    if failed is not None:
        assert failed.tolist() == [False, True]
        return BAD
    return series(array).to_list()[1]


def at(year: int, month: int, day: int, *rest: int) -> datetime:
    hour, minute, second, microsecond = (*rest, 0, 0, 0, 0)[:4]
    return datetime(year, month, day, hour, minute, second, microsecond, UTC)


INSTANTS = [
    ("2025-01-31T23:59:58Z", at(2025, 1, 31, 23, 59, 58)),
    ("2025-01-31 23:59:58", at(2025, 1, 31, 23, 59, 58)),
    ("2025-01-31 23:59:58.5", at(2025, 1, 31, 23, 59, 58, 500_000)),
    ("2025-01-31 23:59:58.123456", at(2025, 1, 31, 23, 59, 58, 123_456)),
    ("2025-01-31 23:59:58.123456789", at(2025, 1, 31, 23, 59, 58, 123_456)),
    ("2025-01-31 23:59:58.", at(2025, 1, 31, 23, 59, 58)),
    ("2025-01-31T23:59:58+02:00", at(2025, 1, 31, 21, 59, 58)),
    ("2025-01-31T23:59:58-0230", at(2025, 2, 1, 2, 29, 58)),
    ("2025-01-31T23:59:58+02", at(2025, 1, 31, 21, 59, 58)),
    ("2025-01-31 23:59:58 UTC", at(2025, 1, 31, 23, 59, 58)),
    ("2025-01-31 23:59", at(2025, 1, 31, 23, 59)),
    ("2025-1-3 1:2:3", at(2025, 1, 3, 1, 2, 3)),
    ("2025-01-31", at(2025, 1, 31)),
    (" 2025-01-31 ", at(2025, 1, 31)),
    ("0001-01-01 00:00:00", at(1, 1, 1)),
    ("9999-12-31 23:59:59.999999", at(9999, 12, 31, 23, 59, 59, 999_999)),
    ("1969-12-31 23:59:59.999999", at(1969, 12, 31, 23, 59, 59, 999_999)),
    ("2024-02-29", at(2024, 2, 29)),
    ("2025-02-29", BAD),
    ("2025-02-29 00:00:00", BAD),
    ("2025-01-31 24:00:00", BAD),
    ("2025-01-31 23:60:00", BAD),
    ("2025-01-31 23:59:60", BAD),
    ("2025-01-31T23:59:58+24:00", BAD),
    ("2025-01-31T23:59:58+01:60", BAD),
    ("2025-01-31 2359", BAD),
    ("2025-01-31 23", BAD),
    ("20250131", BAD),
    ("10000-01-01 00:00:00", BAD),
    ("0000-12-31 23:59:59", BAD),
    ("9999-12-31 23:59:59-01:00", BAD),
    ("999999-01-01 00:00:00", BAD),
    ("-0001-01-01 00:00:00", BAD),
    ("٢٠٢٥-٠١-٣١ ٢٣:٥٩:٥٨", BAD),
    ("2025-01-31 23:59:٥٨", BAD),
    ("now", BAD),
    ("1735689600", BAD),
    ("", BAD),
]


@pytest.mark.parametrize(("text", "instant"), INSTANTS)
def test_text_as_a_timestamp(text: str, instant: Any) -> None:
    assert literal(text, types.TIMESTAMP) == instant


@pytest.mark.parametrize(("text", "instant"), INSTANTS)
def test_text_as_a_timestamp_without_zone(text: str, instant: Any) -> None:
    zoned = re.search(r"(Z|UTC|:\d\d[+-][\d:]+)$", text)
    assert literal(text, types.TIMESTAMP_NTZ) == (
        BAD if zoned or instant is BAD else instant.replace(tzinfo=None)
    )


@pytest.mark.parametrize(
    ("text", "dtype", "value"),
    [
        ("7", types.BIGINT, 7),
        (" -7 ", types.BIGINT, -7),
        ("+7", types.BIGINT, 7),
        ("9223372036854775807", types.BIGINT, 2**63 - 1),
        ("9223372036854775808", types.BIGINT, BAD),
        ("7.0", types.BIGINT, BAD),
        ("1e3", types.BIGINT, BAD),
        ("0x1F", types.BIGINT, BAD),
        ("1_000", types.BIGINT, BAD),
        ("", types.BIGINT, BAD),
        ("-129", pa.int8(), BAD),
        ("-128", pa.int8(), -128),
        ("2147483648", types.INT, BAD),
        ("1.5", types.DOUBLE, 1.5),
        (" 1e-3", types.DOUBLE, 0.001),
        ("-Infinity", types.DOUBLE, float("-inf")),
        ("Inf", types.DOUBLE, float("inf")),
        ("1,5", types.DOUBLE, BAD),
        ("nan(7)", types.DOUBLE, BAD),
        ("one", types.DOUBLE, BAD),
        ("0.1", pa.float32(), float(np.float32(0.1))),
        ("true", types.BOOLEAN, True),
        ("FALSE", types.BOOLEAN, False),
        (" True", types.BOOLEAN, True),
        ("1", types.BOOLEAN, BAD),
        ("yes", types.BOOLEAN, BAD),
        ("12.30", pa.decimal128(5, 2), Decimal("12.30")),
        ("12.345", pa.decimal128(5, 2), Decimal("12.35")),
        ("-12.345", pa.decimal128(5, 2), Decimal("-12.35")),
        ("12.3449999999999999999", pa.decimal128(5, 2), Decimal("12.34")),
        ("1e2", pa.decimal128(5, 2), Decimal("100.00")),
        ("999.994", pa.decimal128(5, 2), Decimal("999.99")),
        ("999.995", pa.decimal128(5, 2), BAD),
        ("1000", pa.decimal128(5, 2), BAD),
        ("9" * 38, pa.decimal128(38, 0), Decimal("9" * 38)),
        ("9" * 39, pa.decimal128(38, 0), BAD),
        ("dear", pa.decimal128(5, 2), BAD),
        ("2025-01-31", types.DATE, date(2025, 1, 31)),
        ("2025-1-3", types.DATE, date(2025, 1, 3)),
        ("2025-02-30", types.DATE, BAD),
        ("٢٠٢٥-٠١-٣١", types.DATE, BAD),
        ("٧", types.BIGINT, BAD),
        ("٧", types.DOUBLE, BAD),
        ("٧", pa.decimal128(5, 2), BAD),
        ("0000-01-01", types.DATE, BAD),
        ("2025-01-31 10:00:00", types.DATE, BAD),
        ("x", types.STRING, "x"),
        ("", types.STRING, ""),
        ("é", pa.binary(), "é".encode()),
        ("x", types.NULL, BAD),
    ],
)
def test_text_as_another_type(text: str, dtype: pa.DataType, value: Any) -> None:
    assert literal(text, dtype) == value


def test_nan_is_a_number() -> None:
    assert np.isnan(literal("NaN", types.DOUBLE))


def test_binary_values_are_base64_in_json() -> None:
    assert literal("YWJj", pa.binary(), TextForms(base64=True)) == b"abc"
    assert literal("!", pa.binary(), TextForms(base64=True)) is BAD


@pytest.mark.parametrize(
    ("pattern", "text", "instant"),
    [
        ("dd/MM/yyyy HH:mm", "31/01/2025 23:59", at(2025, 1, 31, 23, 59)),
        ("d/M/yyyy h:mm a", "3/1/2025 11:59 PM", at(2025, 1, 3, 23, 59)),
        (
            "yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
            "2025-01-31T23:59:58.250+01:00",
            at(2025, 1, 31, 22, 59, 58, 250_000),
        ),
        ("yyyy-MM-dd HH:mm:ss[.SSSSSS]", "2025-01-31 23:59:58.000001", at(2025, 1, 31, 23, 59, 58, 1)),
        ("yyyy-MM-dd HH:mm:ss[.SSSSSS]", "2025-01-31 23:59:58", at(2025, 1, 31, 23, 59, 58)),
        ("yyyyMMdd", "20250131", at(2025, 1, 31)),
        ("yyyyMMddHHmmssSSS", "20250131235958007", at(2025, 1, 31, 23, 59, 58, 7_000)),
        ("MMM d, yyyy 'at' HH:mm", "Jan 31, 2025 at 23:59", at(2025, 1, 31, 23, 59)),
        ("yyyy-MM-dd HH:mm", "2025-01-31T23:59", BAD),
        ("yyyy-MM-dd HH:mm", "12025-01-31 23:59", BAD),
    ],
)
def test_timestamps_in_a_form_of_their_own(pattern: str, text: str, instant: Any) -> None:
    forms = TextForms(timestamp=strftime_patterns(pattern, of_date=False))
    assert literal(text, types.TIMESTAMP, forms) == instant


@pytest.mark.parametrize(
    ("text", "unit", "instant"),
    [
        ("1738367998", 1_000_000, at(2025, 1, 31, 23, 59, 58)),
        (" 1738367998.5 ", 1_000_000, at(2025, 1, 31, 23, 59, 58, 500_000)),
        ("1.738367998e9", 1_000_000, at(2025, 1, 31, 23, 59, 58)),
        ("1738367998123", 1_000, at(2025, 1, 31, 23, 59, 58, 123_000)),
        ("1738367998123.4567", 1_000, at(2025, 1, 31, 23, 59, 58, 123_456)),
        ("-0.0000001", 1_000_000, at(1969, 12, 31, 23, 59, 59, 999_999)),
        ("1738367998123", 1_000_000, BAD),
        ("99999999999999999999999", 1, BAD),
        ("9" * 60, 1, BAD),
        ("2025-01-31", 1_000_000, BAD),
        ("NaN", 1_000_000, BAD),
        ("0x1F", 1, BAD),
    ],
)
def test_timestamps_that_count_from_1970(text: str, unit: int, instant: Any) -> None:
    assert literal(text, types.TIMESTAMP, TextForms(epoch=unit)) == instant


@given(
    st.lists(st.integers(-(10**16), 10**17), min_size=1, max_size=5),
    st.sampled_from(["seconds", "millis", "micros"]),
    st.text("0123456789", max_size=12),
)
def test_counts_from_1970_are_read_alike_in_all_texts(
    tmp_path_factory: pytest.TempPathFactory, micros: list[int], unit: str, finer: str
) -> None:
    folder = tmp_path_factory.mktemp("epoch")
    digits = {"seconds": 6, "millis": 3, "micros": 0}[unit]
    # Digits finer than microseconds are cut off downwards.
    exact = [Decimal(f"{each}.{finer}") for each in micros]
    texts = [format(each.scaleb(-digits), "f") for each in exact]
    micros = [math.floor(each) for each in exact]
    (folder / "a.csv").write_text("".join(f"{text},1\n" for text in texts))
    (folder / "a.json").write_text("".join(f'{{"a": {text}, "b": ["{text}"]}}\n' for text in texts))
    options = f"timestampFormat 'epoch_{unit}'"
    expected = [datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=each) for each in micros]
    assert rows(folder, "a TIMESTAMP, b INT", csv(options=options)) == [(each, 1) for each in expected]
    assert rows(folder, "a TIMESTAMP, b ARRAY<TIMESTAMP>", jsonl(options=options)) == [
        (each, [each]) for each in expected
    ]


def test_a_number_where_an_instant_is_declared_is_explained(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1738367998123,1\n")
    (tmp_path / "a.json").write_text('{"a": 1738367998.5}\n')
    said = refusal(tmp_path, "a TIMESTAMP, b INT", csv())
    assert "'1738367998123' is not of type TIMESTAMP" in said
    assert "timestampFormat 'epoch_millis'" in said
    said = refusal(tmp_path, "a TIMESTAMP", jsonl())
    assert "the number '1738367998.5' is not of type TIMESTAMP" in said
    assert "timestampFormat 'epoch_seconds'" in said
    (tmp_path / "a.json").write_text('{"a": "2025-01-31T23:59:58Z"}\n')
    said = refusal(tmp_path, "a TIMESTAMP", jsonl(options="timestampFormat 'epoch_seconds'"))
    assert "the text '2025-01-31T23:59:58Z' is not of type TIMESTAMP" in said
    (tmp_path / "a.json").write_text('{"a": 1738367998123456}\n')
    said = refusal(tmp_path, "a TIMESTAMP", jsonl(options="timestampFormat 'epoch_seconds'"))
    assert "'1738367998123456' is not of type TIMESTAMP (of the years 1 to 9999, such as 1735689600)" in said


def test_forms_are_options_of_the_source(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("31.01.2025 23:59,31/01/25\n")
    options = "timestampFormat 'dd.MM.yyyy HH:mm', dateFormat 'dd/MM/yy'"
    assert "date pattern 'dd/MM/yy'" in str(refusal_of(tmp_path, options))
    options = options.replace("MM/yy'", "MM/yyyy'")
    (tmp_path / "a.csv").write_text("31.01.2025 23:59,31/01/2025\n")
    assert rows(tmp_path, "a TIMESTAMP, b DATE", csv(options=options)) == [
        (at(2025, 1, 31, 23, 59), date(2025, 1, 31))
    ]


def refusal_of(folder: Path, options: str) -> str:
    return refusal(folder, "a TIMESTAMP, b DATE", csv(options=options), UnsupportedError)


def test_what_was_expected_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("2025-01-31 25:00:00\n")
    message = refusal(tmp_path, "a TIMESTAMP", csv())
    assert (
        "'2025-01-31 25:00:00' is not of type TIMESTAMP (of the years 1 to 9999, such as 2025-01-31"
        in message
    )


SCRAPS = st.text(alphabet="0123456789+-.:eE TZxXnaifty(){}_ ", max_size=12)
NEAR = st.sampled_from(
    [
        "2025-01-31 10:11:12",
        "2025-01-31T10:11:12Z",
        "2025-01-31",
        "12",
        "-7",
        "1.5",
        "true",
        "nan",
        "inf",
        "0x1",
        "+5",
    ]
)


@given(
    texts=st.lists(st.none() | NEAR | SCRAPS | st.builds("{}{}".format, NEAR, SCRAPS), max_size=6),
    dtype=st.sampled_from(
        [
            types.BIGINT,
            pa.int8(),
            types.DOUBLE,
            pa.float32(),
            types.BOOLEAN,
            types.DATE,
            types.TIMESTAMP,
            types.TIMESTAMP_NTZ,
            pa.decimal128(6, 2),
        ]
    ),
)
def test_what_a_text_becomes_does_not_depend_on_its_neighbours(
    texts: list[str | None], dtype: pa.DataType
) -> None:
    def read(some: list[str | None]) -> list[Any]:
        array, failed = read_literals(pa.array(some, pa.string()), dtype, TextForms())
        values = [repr(value) for value in series(array).to_list()]
        return [BAD if failed is not None and failed[i] else value for i, value in enumerate(values)]

    assert read(texts) == [read([text])[0] for text in texts]


# -- stored values ----------------------------------------------------------------------------------

STORED = [
    (pa.array([1, None], pa.int16()), types.BIGINT, [1, None]),
    (pa.array([1, 2**40], pa.int64()), types.INT, [1, BAD]),
    (pa.array([2**63 - 1, 2**63], pa.uint64()), types.BIGINT, [2**63 - 1, BAD]),
    (pa.array([2**53, 2**53 + 1]), types.DOUBLE, [2.0**53, BAD]),
    (pa.array([7, 123_456]), pa.decimal128(6, 2), [Decimal("7.00"), BAD]),
    (pa.array([1.5], pa.float32()), types.DOUBLE, [1.5]),
    (
        pa.array([Decimal("1.5"), Decimal("1.25")], pa.decimal128(9, 2)),
        pa.decimal128(9, 1),
        [Decimal("1.5"), BAD],
    ),
    (pa.array([Decimal("1.5")], pa.decimal32(5, 1)), pa.decimal128(9, 3), [Decimal("1.500")]),
    (pa.array(["a", "b"]).dictionary_encode(), types.STRING, ["a", "b"]),
    (pa.array(["a"], pa.large_string()), types.STRING, ["a"]),
    (pa.array(["a"], pa.string_view()), types.STRING, ["a"]),
    (pa.array([b"ok", b"\xff", None]), types.STRING, ["ok", BAD, None]),
    (pa.array([b"ok", b"\xff"]).view(pa.string()), types.STRING, ["ok", BAD]),
    (pa.array([b"ab"], pa.binary(2)), pa.binary(), [b"ab"]),
    (pa.array([True]), types.BOOLEAN, [True]),
    (pa.array([None, None], pa.null()), types.BIGINT, [None, None]),
    (pa.array([1_500], pa.timestamp("ns")), types.TIMESTAMP, [at(1970, 1, 1, 0, 0, 0, 1)]),
    (pa.array([-1], pa.timestamp("ns", "UTC")), types.TIMESTAMP, [at(1969, 12, 31, 23, 59, 59, 999_999)]),
    (
        pa.array([1, 2**60], pa.timestamp("ms")),
        types.TIMESTAMP_NTZ,
        [at(1970, 1, 1, 0, 0, 0, 1_000).replace(tzinfo=None), BAD],
    ),
    (pa.array([0, 253_402_300_800], pa.timestamp("s")), types.TIMESTAMP, [at(1970, 1, 1), BAD]),
    (pa.array([0, -(2**62)], pa.timestamp("us", "UTC")), types.TIMESTAMP, [at(1970, 1, 1), BAD]),
    (pa.array([0], pa.timestamp("us", "Europe/Berlin")), types.TIMESTAMP, [at(1970, 1, 1)]),
    (pa.array([0, 2**30], pa.date32()), types.DATE, [date(1970, 1, 1), BAD]),
    (pa.array([1, 2**30], pa.date32()), types.TIMESTAMP, [at(1970, 1, 2), BAD]),
    (pa.array([[1, 2], None, []], pa.list_(pa.int32())), pa.list_(types.BIGINT), [[1, 2], None, []]),
    (pa.array([[1], [2**40], None]), pa.list_(types.INT), [[1], BAD, None]),
    (pa.array([[1], None, [2]], pa.large_list(pa.int64())), pa.list_(types.INT), [[1], None, [2]]),
    (pa.array([[1, 2]], pa.list_(pa.int64(), 2)), pa.list_(types.BIGINT), [[1, 2]]),
    (
        pa.array([{"B": 2, "a": 1, "c": 3}, None, {"B": None, "a": 2**40, "c": 0}]),
        pa.struct([("a", types.INT), ("b", types.BIGINT)]),
        [{"a": 1, "b": 2}, None, BAD],
    ),
    (
        pa.array([[("x", 1)], None, [], [("y", 2**40)]], pa.map_(pa.string(), pa.int64())),
        pa.map_(types.STRING, types.INT),
        [[{"key": "x", "value": 1}], None, [], BAD],
    ),
    (
        pa.array([[{"k": "x", "v": 1}]]),
        pa.map_(types.STRING, types.BIGINT),
        [[{"key": "x", "value": 1}]],
    ),
    (
        pa.array([[[("x", [1])], None]], pa.list_(pa.map_(pa.string(), pa.list_(pa.int64())))),
        pa.list_(pa.map_(types.STRING, pa.list_(types.INT))),
        [[[{"key": "x", "value": [1]}], None]],
    ),
]


@pytest.mark.parametrize(("array", "declared", "values"), STORED)
@pytest.mark.parametrize("sliced", [False, True])
def test_stored_values_in_declared_types(
    array: pa.Array, declared: pa.DataType, values: list[Any], sliced: bool
) -> None:
    assert mismatch(array.type, declared, "a") is None
    if sliced:
        array, values = array.slice(1), values[1:]
    converted, failed = conform(array, declared, None)
    found = series(converted)
    assert found.cast(polars_type(declared)).dtype == polars_type(declared)
    bad = [False] * len(values) if failed is None else failed.tolist()
    assert bad == [value is BAD for value in values]
    assert [v for v, b in zip(found.to_list(), bad, strict=True) if not b] == [
        v for v in values if v is not BAD
    ]


@pytest.mark.parametrize(
    ("found", "declared", "reason"),
    [
        (pa.string(), types.BIGINT, "column a is declared BIGINT but is STRING"),
        (pa.float64(), types.BIGINT, "column a is declared BIGINT but is DOUBLE"),
        (pa.float64(), pa.float32(), "column a is declared FLOAT but is DOUBLE"),
        (pa.int64(), types.STRING, "column a is declared STRING but is BIGINT"),
        (pa.int64(), types.TIMESTAMP, "column a is declared TIMESTAMP but is BIGINT"),
        (pa.string(), types.TIMESTAMP, "column a is declared TIMESTAMP but is STRING"),
        (types.TIMESTAMP, types.DATE, "column a is declared DATE but is TIMESTAMP"),
        (pa.bool_(), types.INT, "column a is declared INT but is BOOLEAN"),
        (pa.time64("us"), types.TIMESTAMP, "but is TIME64[US]"),
        (pa.decimal256(50, 2), pa.decimal128(38, 2), "but is DECIMAL(50, 2)"),
        (pa.int64(), pa.list_(types.BIGINT), "column a is declared ARRAY<BIGINT> but is BIGINT"),
        (pa.list_(pa.int64()), types.BIGINT, "column a is declared BIGINT but is ARRAY<BIGINT>"),
        (pa.list_(pa.string()), pa.list_(types.BIGINT), "column a.element is declared BIGINT but is STRING"),
        (pa.struct([("x", pa.int64())]), pa.struct([("y", types.BIGINT)]), "column a has no field y"),
        (
            pa.map_(pa.string(), pa.string()),
            pa.map_(types.STRING, types.BIGINT),
            "column a.value is declared BIGINT but is STRING",
        ),
    ],
)
def test_types_that_do_not_fit_are_named(found: pa.DataType, declared: pa.DataType, reason: str) -> None:
    assert reason in str(mismatch(found, declared, "a"))


def test_every_format_gives_the_same_frame(tmp_path: Path) -> None:
    columns = (
        "a TINYINT, b SMALLINT, c INT, d BIGINT, e FLOAT, f DOUBLE, g BOOLEAN, h STRING, i DATE, j TIMESTAMP, "
        "k TIMESTAMP_NTZ, l DECIMAL(10, 2), m BINARY"
    )
    (tmp_path / "a.csv").write_text(
        "1,2,3,4,5.5,6.5,true,x,2025-01-31,2025-01-31 01:02:03,2025-01-31 01:02:03,7.25,abc\n"
    )
    (tmp_path / "a.json").write_text(
        '{"a":1,"b":2,"c":3,"d":4,"e":5.5,"f":6.5,"g":true,"h":"x","i":"2025-01-31","j":"2025-01-31 01:02:03",'
        '"k":"2025-01-31 01:02:03","l":7.25,"m":"YWJj"}\n'
    )
    text = read(tmp_path, columns, csv())
    text.write_parquet(tmp_path / "a.parquet")
    assert text.schema == read(tmp_path, columns, jsonl()).schema == read(tmp_path, columns, parquet()).schema
    assert text.rows() == read(tmp_path, columns, jsonl()).rows() == read(tmp_path, columns, parquet()).rows()
    assert text["j"].dtype == pl.Datetime("us", "UTC")
    assert text["k"].dtype == pl.Datetime("us")
