"""Every column is given its type once, whatever it comes from."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from tests.runtime.reading import csv, declare, jsonl, parquet, source

import headgate as hg
from headgate.runtime import data
from headgate.runtime.io import conform, fitting

COLUMNS = "ts TIMESTAMP, k BIGINT, n INT, x DOUBLE, d DECIMAL(9, 2), t STRING, b BOOLEAN, day DATE"
TIMED = "TIMESTAMP BY ts"
NAMES = ["ts", "k", "n", "x", "d", "t", "b", "day"]
LINE = "2025-01-31 23:59:58,7,3,1.5,2.25,text,true,2025-01-31\n"
DOCUMENT = (
    '{"ts": "2025-01-31 23:59:58", "k": 7, "n": 3, "x": 1.5, "d": 2.25, "t": "text", "b": true, '
    '"day": "2025-01-31"}\n'
)
ONCE = dict.fromkeys(NAMES, 5)
"""Five values of each column, converted once."""


@pytest.fixture
def converted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many values of each column have been converted."""
    counts: Counter[str] = Counter()
    plain = conform.conformed

    def counting(array: pa.Array, column: Any, *others: Any) -> Any:
        counts[column.name] += len(array)
        return plain(array, column, *others)

    for module in (fitting, data):
        monkeypatch.setattr(module, "conformed", counting)
    return counts


def write(folder: Path, format: str) -> str:
    """Five rows in a file of a format, and how a stream reads them."""
    if format == "csv":
        (folder / "a.csv").write_text(LINE * 5)
        return csv()
    if format == "json":
        (folder / "a.json").write_text(DOCUMENT * 5)
        return jsonl()
    (folder / "b.json").write_text(DOCUMENT * 5)
    pl.concat(source(folder, COLUMNS, f"{TIMED} {jsonl('b.json')}").chunks()).write_parquet(
        folder / "a.parquet"
    )
    return parquet()


@pytest.mark.parametrize("format", ["csv", "json", "parquet"])
def test_a_column_of_a_file_is_converted_once_and_not_again_where_it_is_packed(
    format: str, tmp_path: Path, converted: Counter[str]
) -> None:
    using = f"{TIMED} {write(tmp_path, format)}"
    converted.clear()
    rows = pl.concat(source(tmp_path, COLUMNS, using, chunk=2).chunks())
    assert converted == ONCE
    # On Spark, rows cross from the reader to the packer as Arrow batches.
    packed = data.frame_of(pl.from_arrow(rows.to_arrow()), declare(COLUMNS, using).columns)
    assert packed.equals(rows)
    assert converted == ONCE


@pytest.mark.parametrize("format", ["csv", "json", "parquet"])
def test_a_query_over_a_file_converts_nothing_besides(
    format: str, tmp_path: Path, converted: Counter[str]
) -> None:
    using = write(tmp_path, format)
    converted.clear()
    (tmp_path / "q.cql").write_text(
        f"CREATE STREAM s ({COLUMNS}) {TIMED} {using};\n"
        "CREATE QUERY q AS SELECT ISTREAM(k, n, x, d, t, b, day) FROM s [NOW];\n"
        "CREATE QUERY again AS SELECT ISTREAM(k, SUM(x) AS x) FROM s [RANGE 1 HOUR] GROUP BY k;"
    )
    assert hg.Session.from_file(tmp_path / "q.cql").query("q").run().table.num_rows == 5
    assert converted == ONCE


ROW = {"ts": "2025-01-31T23:59:58", "k": 7, "n": 3, "x": 1.5, "t": "text"}


def declaring(columns: str) -> hg.Session:
    session = hg.Session()
    session.sql(f"CREATE STREAM s ({columns}) TIMESTAMP BY ts")
    return session


def frame() -> pl.DataFrame:
    return pl.DataFrame([ROW] * 5).with_columns(pl.col("ts").str.to_datetime(time_zone="UTC"))


@pytest.mark.parametrize("declared", [True, False])
def test_a_frame_that_has_the_types_is_taken_as_it_is(declared: bool, converted: Counter[str]) -> None:
    columns = "ts TIMESTAMP, k BIGINT, n BIGINT, x DOUBLE, t STRING"
    session = declaring(columns) if declared else hg.Session()
    session.stream("s", frame(), time="ts")
    assert session.sql("SELECT ISTREAM(k, n) FROM s [NOW]").run().table.num_rows == 5
    assert not converted


def test_columns_of_a_frame_in_other_types_are_converted_once(converted: Counter[str]) -> None:
    session = declaring("ts TIMESTAMP, k INT, n BIGINT, x FLOAT, t STRING")
    session.stream("s", frame())
    assert session.sql("SELECT ISTREAM(k, n) FROM s [NOW]").run().table.num_rows == 5
    assert converted == {"k": 5, "x": 5}


def test_dictionaries_are_converted_once(converted: Counter[str]) -> None:
    session = declaring("ts TIMESTAMP, k INT, n BIGINT, x FLOAT, t STRING")
    session.stream("s", frame().to_dicts())
    assert session.sql("SELECT ISTREAM(k, n) FROM s [NOW]").run().table.num_rows == 5
    assert converted == dict.fromkeys(ROW, 5)


def test_a_stream_of_arrow_batches_is_read_once() -> None:
    table = frame().to_arrow()
    session = hg.Session()
    session.stream("s", pa.RecordBatchReader.from_batches(table.schema, table.to_batches()), time="ts")
    assert session.sql("SELECT ISTREAM(k, n) FROM s [NOW]").run().table.num_rows == 5


def test_a_lazy_frame_is_carried_out_once() -> None:
    carried_out = 0

    def counted(rows: pl.DataFrame) -> pl.DataFrame:
        nonlocal carried_out
        carried_out += 1
        return rows

    session = hg.Session()
    session.stream("s", frame().lazy().map_batches(counted), time="ts")
    assert session.sql("SELECT ISTREAM(k, n) FROM s [NOW]").run().table.num_rows == 5
    assert carried_out == 1
