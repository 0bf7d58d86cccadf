"""`--output-format`: results as any format of files, each row once, and files that Spark and Headgate share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema
from tests.runtime.test_formats import VALUES, written

import headgate as hg
from headgate.model.errors import HeadgateError, InputError, SetupError, UnsupportedError
from headgate.plan.catalog import Source, StreamDef
from headgate.runtime.io import FileSource, RejectPolicy
from headgate.runtime.io.registry import FILE_FORMATS, FormatName, file_format
from headgate.runtime.output import as_declared
from headgate.runtime.spark.options import SparkOptions
from headgate.runtime.spark.query_output import QueryOutput
from headgate.runtime.spark.remote_folder import OTHER_FORMATS
from headgate.runtime.spark.run import RunTarget, run_to_folder
from headgate.runtime.spark.sources.connectors import require_files

pytestmark = pytest.mark.spark

TEXT = """
CREATE STREAM s (ts TIMESTAMP, k BIGINT, t STRING) TIMESTAMP BY ts USING csv OPTIONS (path 's');
CREATE QUERY q AS SELECT ISTREAM(k, t) FROM s [RANGE 4 SECONDS];
"""


@pytest.fixture
def root(spark: Any, tmp_path: Path) -> Iterator[str]:
    """An address that only Spark's file systems know, of a folder with one file of the stream."""
    (tmp_path / "s").mkdir()
    add(tmp_path, 0)
    settings = spark.sparkContext._jsc.hadoopConfiguration()
    key = "fs.viewfs.mounttable.formats.link./d"
    settings.set(key, tmp_path.as_uri())
    settings.set("fs.viewfs.impl.disable.cache", "true")
    yield "viewfs://formats/d"
    settings.unset(key)


def add(folder: Path, number: int, *, late: int | None = None) -> None:
    """A file with one row for each of ten seconds, and a late one before them."""
    keys = [*([] if late is None else [late]), *range(10 * number, 10 * number + 10)]
    lines = [f'2026-01-01T00:00:{key:02d}.000001,{key},"a\n""b"", {key}"\n' for key in keys]
    (folder / "s" / f"{number}.csv").write_text("".join(lines))


def run(spark: Any, folder: Path, format: str, **how: Any) -> Any:
    session = hg.Session()
    session.sql(TEXT)
    output = how.pop("output", folder / format)
    place = RunTarget(output, folder / f"state-{format}", format=format)
    return run_to_folder(spark, session.compile(None), folder, SparkOptions(shards=2, **how), place)


def rows(
    spark: Any, format: str, folder: Path | str, time: str = "_time", columns: str = "k bigint, t string, {}"
) -> list[tuple[int, str, int]]:
    """The rows of a folder as Spark reads them, with the microseconds of their time."""
    options = file_format(format).spark_options if format in FILE_FORMATS else OTHER_FORMATS
    reader = spark.read.format(format).options(
        recursiveFileLookup="true", multiLine=str(format in ("csv", "xml"))
    )
    reader = reader.options(**options).schema(columns.format(f"{time} timestamp"))
    frame = reader.load(f"{folder}", pathGlobFilter="part-*").selectExpr("k", "t", f"unix_micros({time})")
    return sorted(map(tuple, frame.collect()))


def expected(count: int) -> list[tuple[int, str, int]]:
    first = 1_767_225_600_000_001
    return [(key, f'a\n"b", {key}', first + 1_000_000 * key) for key in range(count)]


def fails_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next micro-batch is written, and the run ends before it is noted."""
    note = QueryOutput.note

    def failing(self: QueryOutput, *told: Any) -> None:
        monkeypatch.setattr(QueryOutput, "note", note)
        raise OSError("killed")

    monkeypatch.setattr(QueryOutput, "note", failing)


@pytest.mark.parametrize("format", ["orc", "csv", "json", "xml"])
def test_each_row_is_there_once(
    spark: Any, root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    # A format that only Spark writes goes the same way to a folder here as others to an address.
    far = format == "csv"
    output = f"{root}/out" if far else tmp_path / format
    run(spark, tmp_path, format, output=output, drain=False)
    add(tmp_path, 1, late=1)
    fails_once(monkeypatch)
    with pytest.raises(HeadgateError, match="killed"):
        run(spark, tmp_path, format, output=output)
    summary = run(spark, tmp_path, format, output=output)
    assert rows(spark, format, f"{output}/q" if far else f"file:{output}/q") == expected(20)
    folder = f"{output}/_late/s" if far else f"file:{output}/_late/s"
    assert rows(spark, format, folder, "ts", "{}, k bigint, t string") == expected(2)[1:]
    assert summary.metrics["q"]["late_rows"] == 1
    with pytest.raises(InputError, match=f"has results as {format}"):
        session_with(spark, tmp_path, format, output)


def session_with(spark: Any, folder: Path, format: str, output: Any) -> None:
    """The same run, which would go on in another format."""
    session = hg.Session()
    session.sql(TEXT)
    place = RunTarget(output, folder / f"state-{format}", format="parquet")
    run_to_folder(spark, session.compile(None), folder, SparkOptions(shards=2), place)


def test_what_cannot_be_written_is_refused_before_anything_is(spark: Any, root: str, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="does not write jdbc as files"):
        run(spark, tmp_path, "jdbc")
    with pytest.raises(SetupError, match="Spark has no format nothing"):
        run(spark, tmp_path, "nothing")
    with pytest.raises(SetupError, match="no connector for avro") as failure:
        require_files(spark, "avro")
    assert "spark-avro_2.13" in str(failure.value.remedy)
    session = hg.Session()
    session.sql(
        "CREATE STREAM n (ts TIMESTAMP, ks ARRAY<BIGINT>) TIMESTAMP BY ts USING json OPTIONS (path 's');"
        "CREATE QUERY r AS SELECT ISTREAM(ks) FROM n [RANGE 1 SECOND];"
    )
    for output in (tmp_path / "out", f"{root}/out"):
        place = RunTarget(output, tmp_path / "state", format="csv")
        with pytest.raises(InputError, match="column ks of rows is ARRAY<BIGINT>, which csv cannot hold"):
            run_to_folder(spark, session.compile(["r"]), tmp_path, SparkOptions(), place)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", FILE_FORMATS)
def test_spark_reads_what_headgate_writes_and_the_other_way_round(
    spark: Any, tmp_path: Path, name: FormatName
) -> None:
    stream, format = written(tmp_path, name), file_format(name)
    schema = pa.schema([(column.name, column.type) for column in stream.columns])
    table = pa.table(
        {column.name: pa.array(VALUES[column.name][1], column.type) for column in stream.columns}
    )
    frame = spark.createDataFrame(table, from_arrow_schema(schema))
    file = tmp_path / f"a{format.suffix}"
    more = {"multiLine": "true"} if name == "csv" else {}
    read = (
        spark.read.format(name)
        .options(**format.spark_options, **more)
        .schema(frame.schema)
        .load(f"file:{file}")
    )
    assert read.toArrow().cast(schema).to_pylist() == table.to_pylist()
    folder = tmp_path / "by_spark"
    frame.coalesce(1).write.format(name).options(**format.spark_options).save(f"file:{folder}")
    options = {key: value for key, value in format.spark_options.items() if key in ("header", "escape")}
    again = StreamDef("s", stream.columns, source=Source(name, (("path", "by_spark"), *options.items())))
    source = FileSource(again, tmp_path, rows_per_chunk=10, on_bad_row=RejectPolicy.stop())
    assert as_declared(pl.concat(source.chunks()), schema).to_pylist() == table.to_pylist()
