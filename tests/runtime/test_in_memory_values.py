"""Rows given in Python take the declared types if every value fits; nothing is lost on the way."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from headgate.model import types
from headgate.model.errors import DataError, HeadgateError, InputError
from headgate.model.schema import Column
from headgate.runtime.data import frame_of
from headgate.runtime.io.conform import Reading, mismatch
from headgate.session import Session

UTC = dt.UTC
NOON = dt.datetime(2026, 1, 1, 12, tzinfo=UTC)
FLOAT = pa.float32()
MONEY = pa.decimal128(10, 2)
NANOSECONDS = pa.timestamp("ns", tz="UTC")


def typed(declared: pa.DataType, values: list[Any], found: pa.DataType | None = None) -> list[Any]:
    """Values of an Arrow table's column in a declared type."""
    return frame_of(pa.table({"x": pa.array(values, found)}), [Column("x", declared)])["x"].to_list()


def written(declared: pa.DataType, *values: Any) -> list[Any]:
    """Values in dictionaries in a declared type."""
    return frame_of([{"x": each} for each in values], [Column("x", declared)])["x"].to_list()


@pytest.mark.parametrize(
    ("declared", "found", "values", "expected"),
    [
        (types.INT, types.BIGINT, [1, None, -(2**31)], [1, None, -(2**31)]),
        (types.INT, types.DOUBLE, [1.0, None], [1, None]),
        (types.INT, pa.null(), [None], [None]),
        (types.BIGINT, pa.uint64(), [2**63 - 1], [2**63 - 1]),
        (types.DOUBLE, types.BIGINT, [2**53], [2.0**53]),
        (types.DOUBLE, FLOAT, [0.5], [0.5]),
        (types.DOUBLE, pa.decimal128(5, 2), [Decimal("1.25")], [1.25]),
        (FLOAT, types.DOUBLE, [0.5, float("inf"), float("-inf")], [0.5, float("inf"), float("-inf")]),
        (MONEY, types.INT, [3], [Decimal("3.00")]),
        (MONEY, types.DOUBLE, [3.1], [Decimal("3.10")]),
        (MONEY, pa.decimal128(20, 4), [Decimal("1.2500")], [Decimal("1.25")]),
        (types.TIMESTAMP, NANOSECONDS, [NOON], [NOON]),
        (types.TIMESTAMP, pa.timestamp("ms", tz="Asia/Tokyo"), [NOON], [NOON]),
        (types.TIMESTAMP, pa.timestamp("us"), [NOON.replace(tzinfo=None)], [NOON]),
        (types.TIMESTAMP, types.DATE, [dt.date(2026, 1, 1)], [NOON.replace(hour=0)]),
        (types.TIMESTAMP_NTZ, types.TIMESTAMP, [NOON], [NOON.replace(tzinfo=None)]),
        (types.INTERVAL, pa.duration("ns"), [dt.timedelta(seconds=1)], [dt.timedelta(seconds=1)]),
        (types.STRING, pa.dictionary(pa.int32(), pa.string()), ["a", "a"], ["a", "a"]),
        (pa.list_(types.INT), pa.list_(types.BIGINT), [[1, None], None], [[1, None], None]),
        (
            pa.struct([("a", types.INT), ("b", types.STRING)]),
            pa.struct([("B", types.STRING), ("a", types.BIGINT)]),
            [{"B": "x", "a": 1}],
            [{"a": 1, "b": "x"}],
        ),
    ],
)
def test_values_that_fit_are_taken(
    declared: pa.DataType, found: pa.DataType, values: list[Any], expected: list[Any]
) -> None:
    assert typed(declared, values, found) == expected


@pytest.mark.parametrize(
    ("declared", "found", "values"),
    [
        (types.INT, types.DOUBLE, [1.0, 1.5]),
        (types.INT, types.BIGINT, [1, 2**31]),
        (types.INT, types.DOUBLE, [1.0, float("nan")]),
        (types.BIGINT, pa.uint64(), [1, 2**63]),
        (types.DOUBLE, types.BIGINT, [1, 2**53 + 1]),
        (FLOAT, types.DOUBLE, [1.0, 1e300]),
        (FLOAT, types.DOUBLE, [1.0, 0.1]),
        (FLOAT, types.INT, [1, 2**24 + 1]),
        (MONEY, pa.decimal128(10, 4), [Decimal("1.0000"), Decimal("1.2356")]),
        (MONEY, types.DOUBLE, [1.0, 1.239]),
        (MONEY, types.BIGINT, [1, 10**9]),
        (types.TIMESTAMP, NANOSECONDS, [0, 1_767_225_600_000_000_999]),
        (types.INTERVAL, pa.duration("ns"), [0, 999]),
        (pa.list_(types.INT), pa.list_(types.BIGINT), [[1], [1, 2**40]]),
    ],
)
def test_a_value_that_does_not_fit_is_named(
    declared: pa.DataType, found: pa.DataType, values: list[Any]
) -> None:
    with pytest.raises(DataError, match="row 2, column x: ") as refused:
        typed(declared, values, found)
    assert f"is not of type {types.spark_name(declared)}" in refused.value.cause
    assert "declare" in (refused.value.remedy or "")


@pytest.mark.parametrize(
    ("declared", "found", "values"),
    [
        (types.TIMESTAMP, types.BIGINT, [1_767_225_600]),
        (types.TIMESTAMP, types.STRING, ["2026-01-01T00:00:00Z"]),
        (types.BOOLEAN, types.DOUBLE, [0.5]),
        (types.BOOLEAN, types.INT, [1]),
        (types.INT, types.BOOLEAN, [True]),
        (types.INT, types.STRING, ["12"]),
        (types.STRING, types.INT, [1]),
        (types.DATE, types.TIMESTAMP, [NOON]),
        (types.DATE, types.INT, [1]),
    ],
)
def test_types_of_another_kind_are_refused(
    declared: pa.DataType, found: pa.DataType, values: list[Any]
) -> None:
    names = f"column x is declared {types.spark_name(declared)} but is {types.spark_name(found)}"
    with pytest.raises(InputError, match=names) as refused:
        typed(declared, values, found)
    assert "declare" in (refused.value.remedy or "")
    with pytest.raises(InputError, match="column x is declared"):
        written(declared, *values)


@pytest.mark.parametrize(
    ("declared", "values", "expected"),
    [
        (types.INT, [1, None, 2.0], [1, None, 2]),
        (types.DOUBLE, [1, 2.5], [1.0, 2.5]),
        (types.DOUBLE, [None], [None]),
        (MONEY, [Decimal("1.20"), 1], [Decimal("1.20"), Decimal("1.00")]),
        (MONEY, [3.1], [Decimal("3.10")]),
        (pa.decimal128(38, 0), [2**70], [Decimal(2**70)]),
        (types.TIMESTAMP, [NOON, NOON.astimezone(dt.timezone(dt.timedelta(hours=5)))], [NOON, NOON]),
        (types.TIMESTAMP, [NOON.replace(tzinfo=None)], [NOON]),
        (types.BOOLEAN, [True, None], [True, None]),
        (pa.list_(types.INT), [[1], []], [[1], []]),
        (pa.map_(types.STRING, types.INT), [[{"key": "a", "value": 1}]], [[{"key": "a", "value": 1}]]),
        (pa.struct([("a", types.INT), ("b", types.INT)]), [{"a": 1, "c": 0}], [{"a": 1, "b": None}]),
    ],
)
def test_values_of_python(declared: pa.DataType, values: list[Any], expected: list[Any]) -> None:
    assert written(declared, *values) == expected


def test_a_number_of_python_is_the_nearest_float() -> None:
    """Python has no number of single precision to write instead."""
    assert written(FLOAT, 0.1, float("inf"))[0] == pytest.approx(0.1)
    assert written(pa.list_(FLOAT), [0.1])[0][0] == pytest.approx(0.1)
    with pytest.raises(DataError, match=r"row 2, column x: '1e\+300' is not of type FLOAT"):
        written(FLOAT, 0.1, 1e300)


@pytest.mark.parametrize(
    ("declared", "values"),
    [
        (types.INT, [1, 1.5]),
        (types.INT, [2**70]),
        (types.INT, [1, "a"]),
        (types.STRING, [1, "a"]),
        (types.DOUBLE, [1.5, 2**53 + 1]),
        (types.DATE, [dt.date(2026, 1, 1), NOON]),
        (pa.map_(types.STRING, types.INT), [{"a": 1}]),
        (types.STRING, [object()]),
    ],
)
def test_values_of_python_that_do_not_fit(declared: pa.DataType, values: list[Any]) -> None:
    with pytest.raises(HeadgateError, match="column x"):
        written(declared, *values)


def test_names_of_dictionaries_ignore_case_and_must_be_there() -> None:
    columns = [Column("x", types.INT), Column("y", types.INT)]
    assert frame_of([{"X": 1, "Y": 2, "z": object()}, {"x": 3}], columns).rows() == [(1, 2), (3, None)]
    assert frame_of([], columns).rows() == []
    with pytest.raises(DataError, match="the data has no column y"):
        frame_of([{"x": 1}], columns)


def test_frames_of_pandas_and_polars() -> None:
    pd = pytest.importorskip("pandas")
    columns = [Column("ts", types.TIMESTAMP), Column("x", types.INT), Column("s", types.STRING)]
    stamps = pd.to_datetime(["2026-01-01T12:00:00Z", "2026-01-01T12:00:01Z"])
    pandas = pd.DataFrame({"ts": stamps, "x": [1, None], "s": pd.Series(["a", None], dtype=object)})
    assert frame_of(pandas, columns).rows()[0] == (NOON, 1, "a")
    assert frame_of(pandas, columns).rows()[1][1:] == (None, None)
    polars = pl.DataFrame({"ts": [NOON], "x": [1], "s": ["a"]}).with_columns(pl.col("s").cast(pl.Categorical))
    assert frame_of(polars, columns).rows() == [(NOON, 1, "a")]
    with pytest.raises(InputError, match="column s"):
        frame_of(polars.with_columns(s=pl.Series([object()], dtype=pl.Object)), columns)


def test_a_session_refuses_rows_that_would_lose_something() -> None:
    session = Session()
    session.sql("CREATE STREAM a (ts TIMESTAMP, x INT) TIMESTAMP BY ts")
    with pytest.raises(DataError, match=r"row 1, column x: '1\.5' is not of type INT"):
        session.stream("a", [{"ts": NOON, "x": 1.5}])
    with pytest.raises(InputError, match="column ts is declared TIMESTAMP but is BIGINT"):
        session.stream("a", [{"ts": 1_767_225_600, "x": 1}])


@pytest.mark.parametrize(
    ("found", "declared", "fits"),
    [
        (types.INT, types.BIGINT, True),
        (types.BIGINT, types.INT, False),
        (types.INT, types.DOUBLE, True),
        (types.BIGINT, types.DOUBLE, False),
        (pa.int16(), FLOAT, True),
        (types.INT, FLOAT, False),
        (types.INT, pa.decimal128(12, 2), True),
        (types.INT, pa.decimal128(11, 2), False),
        (types.BIGINT, pa.decimal128(19, 0), True),
        (FLOAT, types.DOUBLE, True),
        (types.DOUBLE, FLOAT, False),
        (types.DOUBLE, types.INT, False),
        (types.DOUBLE, types.BOOLEAN, False),
        (types.DOUBLE, MONEY, False),
        (MONEY, pa.decimal128(12, 4), True),
        (MONEY, pa.decimal128(12, 1), False),
        (pa.decimal128(10, 4), MONEY, False),
        (MONEY, types.DOUBLE, False),
        (types.DATE, types.TIMESTAMP, True),
        (types.TIMESTAMP, types.DATE, False),
        (types.TIMESTAMP_NTZ, types.TIMESTAMP, True),
        (types.BIGINT, types.TIMESTAMP, False),
        (pa.binary(), types.STRING, False),
        (types.NULL, types.INT, True),
        (pa.list_(types.INT), pa.list_(types.BIGINT), True),
        (pa.list_(types.BIGINT), pa.list_(types.INT), False),
        (pa.struct([("a", types.BIGINT)]), pa.struct([("a", types.INT)]), False),
        (pa.map_(types.STRING, types.INT), pa.map_(types.STRING, types.BIGINT), True),
        (types.INTERVAL, types.INTERVAL, True),
    ],
)
def test_what_a_type_alone_lets_pass(found: pa.DataType, declared: pa.DataType, fits: bool) -> None:
    assert fits == (mismatch(found, declared, "x", Reading.WIDENED) is None)


INTERVALS = pa.array([pa.MonthDayNano([1, 2, 3])], pa.month_day_nano_interval())


@pytest.mark.parametrize(
    ("foreign", "name"),
    [
        (INTERVALS, "month_day_nano_interval"),
        (pa.StructArray.from_arrays([INTERVALS], ["x"]), "month_day_nano_interval"),
        (pa.ListArray.from_arrays([0, 1], INTERVALS), "month_day_nano_interval"),
        (pa.nulls(1, pa.decimal256(50, 2)), "decimal256"),
        (pa.RunEndEncodedArray.from_arrays([1], [5]), "run_end_encoded"),
        (pa.array([[1]], pa.list_view(pa.int64())), "list_view"),
    ],
)
@pytest.mark.parametrize("declared", [False, True])
def test_a_type_of_arrow_without_a_place_is_named_with_its_column(
    foreign: pa.Array, name: str, declared: bool
) -> None:
    rows = pa.table({"ts": pa.array([0], pa.timestamp("us", "UTC")), "k": [1], "span": foreign})
    session = Session()
    if declared:
        session.sql("CREATE STREAM s (ts TIMESTAMP, k BIGINT, span STRING) TIMESTAMP BY ts;")
    with pytest.raises(InputError, match=f"column span has Arrow's type {name}") as caught:
        session.stream("s", rows, time=None if declared else "ts")
    assert "leave span out" in str(caught.value)


def test_an_undeclared_column_of_such_a_type_is_not_read() -> None:
    session = Session()
    session.sql(
        "CREATE STREAM s (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts; CREATE QUERY q AS SELECT k FROM s;"
    )
    session.stream(
        "s", pa.table({"ts": pa.array([0], pa.timestamp("us", "UTC")), "k": [1], "span": INTERVALS})
    )
    assert [row["k"] for row in session.run()["q"].to_dicts()] == [1]
