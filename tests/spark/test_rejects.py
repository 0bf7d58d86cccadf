"""`--rejects` on Spark: bad rows are set aside once, with their reasons, and counted; without it the first stops."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from tests.spark.shards import stage_of

from headgate.model.errors import DataError, InputError, UnsupportedError
from headgate.runtime.io.rejects import BadRow
from headgate.runtime.io.source import Slice
from headgate.runtime.spark import rejects
from headgate.runtime.spark.job import JobStage
from headgate.runtime.spark.local_folder import LocalFolder
from headgate.runtime.spark.messages import RELAY, Reply, relayed
from headgate.runtime.spark.options import SparkOptions
from headgate.runtime.spark.rejects import RejectSink, TaskRejects
from headgate.runtime.spark.run import RunTarget, run_to_folder
from headgate.runtime.spark.sources.file_log import TaskSplits
from headgate.runtime.spark.sources.split_reader import SplitReader
from headgate.runtime.stage import Stage
from headgate.session import Session

QUERY = """
CREATE STREAM s (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts USING json OPTIONS (path 's');
CREATE TABLE names (k BIGINT, name STRING) USING csv OPTIONS (path 'names.csv', header 'true');
CREATE QUERY q AS SELECT ISTREAM(s.k, names.name) FROM s [RANGE 5 SECONDS], names WHERE s.k = names.k;
CREATE QUERY r AS SELECT ISTREAM(k) FROM s [RANGE 5 SECONDS];
"""
GOOD = '{"ts": "2026-01-01T00:00:0%d", "k": %d}'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "s").mkdir()
    (tmp_path / "q.cql").write_text(QUERY)
    (tmp_path / "names.csv").write_text("k,name\n1,one\nx,two\n3,three\n")
    (tmp_path / "s" / "a.json").write_text(f'{GOOD % (1, 1)}\n{{"ts": "soon", "k": 2}}\n{GOOD % (2, 3)}\n')
    (tmp_path / "s" / "b.json").write_text(f'{GOOD % (3, 1)}\nnothing\n{{"ts": null, "k": 2}}\n')
    return tmp_path


def reads(file: Path, *, order: int = 0) -> TaskSplits:
    return TaskSplits(order, "s", (Slice(file),))


def packed(stage: Stage, task: TaskSplits, *, keeps: bool = False) -> list[Any]:
    reader = SplitReader.of(JobStage.of([stage]), stage.streams, (0,), keeps=keeps)
    return [message for piece in reader.messages(task, 0) for _, message in piece]


def bad_of(stage: Stage, task: TaskSplits) -> list[Reply]:
    return [relayed(each) for each in packed(stage, task, keeps=True) if each.feed == RELAY]


def rejected(folder: Path, name: str) -> list[dict[str, Any]]:
    files = sorted((folder / "bad" / name).glob("*.json"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def run(spark: Any, folder: Path, **options: Any) -> Any:
    session = Session.from_file(folder / "q.cql")
    place = RunTarget(folder / options.pop("output", "out"), options.pop("checkpoint", None))
    return run_to_folder(spark, session.compile(None), folder, SparkOptions(**options), place)


@pytest.mark.spark
def test_bad_rows_are_set_aside_with_their_reasons(spark: Any, folder: Path) -> None:
    summary = run(spark, folder, rejects=str(folder / "bad"), checkpoint=folder / "state", shards=2)
    found = rejected(folder, "s")
    assert [(Path(each["file"]).name, each["row"], each["column"]) for each in found] == [
        ("a.json", 2, "ts"),
        ("b.json", 2, None),
        ("b.json", 3, "ts"),
    ]
    assert "'soon' is not of type TIMESTAMP" in found[0]["reason"]
    assert [each["row"] for each in rejected(folder, "names")] == [2]
    # Two queries read the stream and count its bad rows, which are there once.
    assert [summary.metrics[name]["rejected_rows"] for name in "qr"] == [4, 3]
    assert summary.rejected_rows == 4
    rows = pl.read_parquet(folder / "out" / "q" / "*.parquet").sort("_time")
    assert rows.select("k", "name").rows() == [(1, "one"), (3, "three"), (1, "one")]
    # A run that goes on from its checkpoint adds what is new; a new run does not mix with an old one.
    (folder / "s" / "c.json").write_text(f"{GOOD % (9, 1)}\n[]\n")
    summary = run(spark, folder, rejects=str(folder / "bad"), checkpoint=folder / "state", shards=2)
    assert summary.rejected_rows == 5
    with pytest.raises(InputError, match="rejects of an earlier run"):
        run(spark, folder, rejects=str(folder / "bad"), checkpoint=folder / "other", output="other_out")


@pytest.mark.spark
def test_the_first_bad_row_stops_the_run(spark: Any, folder: Path) -> None:
    (folder / "names.csv").write_text("k,name\n1,one\n")
    # Files are read side by side: of two bad ones either may be the first.
    (folder / "s" / "b.json").write_text(f"{GOOD % (3, 1)}\n")
    with pytest.raises(DataError, match=r"a\.json, row 2.*'soon'.*") as stopped:
        run(spark, folder)
    assert stopped.value.remedy is not None
    assert "--rejects" in stopped.value.remedy


def test_a_second_attempt_leaves_bad_rows_once(folder: Path) -> None:
    stage = stage_of(QUERY, "r", {}, shards=1)
    task = reads(folder / "s" / "b.json", order=7)
    sink = RejectSink(LocalFolder(folder / "bad"), frozenset(["s"]), "run")
    for _ in range(2):
        sink.put(7, [SimpleNamespace(name="s", content=each.blob) for each in bad_of(stage, task)])
        assert len(rejected(folder, "s")) == 2
    (folder / "bad" / "s" / ".left-by-a-killed-run").touch()
    sink.take({})
    assert sorted(each.name for each in (folder / "bad" / "s").iterdir()) == [
        ".run",
        "rejects-00007-000.json",
    ]
    # An attempt at a source that has changed may find nothing bad.
    sink.put(7, [])
    assert rejected(folder, "s") == []


class CountingFolder(LocalFolder):
    """A folder that counts how often it is looked through."""

    looked = 0

    def __truediv__(self, name: str) -> LocalFolder:
        return CountingFolder(self.path / name)

    def names(self) -> list[str]:
        CountingFolder.looked += 1
        return super().names()


def test_a_folder_is_looked_through_only_where_an_attempt_may_have_left_something(tmp_path: Path) -> None:
    """At an address each look is a request; many micro-batches and many files must not make it many."""
    refused = TaskRejects.of("s", keeps=True)
    refused.refuse([BadRow("f", "bad")])
    bad = [SimpleNamespace(name="s", content=blob) for _, blob in refused.take()]
    sink = RejectSink(CountingFolder(tmp_path / "bad"), frozenset(["s", "t"]), "run")
    for batch in range(5, 30):
        sink.put(batch, bad if batch % 2 else [])
    assert CountingFolder.looked == 2
    assert len(rejected(tmp_path, "s")) == 13
    sink.put(29, [])
    assert CountingFolder.looked == 4
    assert len(rejected(tmp_path, "s")) == 12
    # Another process may begin with a micro-batch that was tried before.
    RejectSink(LocalFolder(tmp_path / "bad"), frozenset(["s"]), "run").put(27, [])
    assert len(rejected(tmp_path, "s")) == 11


def test_many_bad_rows_are_several_messages_and_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rejects, "_MESSAGE_BYTES", 1_000)
    monkeypatch.setattr(rejects, "_FILE_BYTES", 5_000)
    refused = TaskRejects.of("s", keeps=True)
    refused.refuse([BadRow("f", "bad", row) for row in range(1, 201)])
    found = refused.take()
    assert len(found) > 5
    assert sum(rows for rows, _ in found) == 200
    sink = RejectSink(LocalFolder(tmp_path / "bad"), frozenset(["s"]), "run")
    sink.put(0, [SimpleNamespace(name="s", content=blob) for _, blob in reversed(found)])
    assert [each["row"] for each in rejected(tmp_path, "s")] == [*range(1, 201)]
    assert len(list((tmp_path / "bad" / "s").glob("*.json"))) > 2


def test_a_file_that_cannot_be_read_is_set_aside_too(folder: Path) -> None:
    stage = stage_of(QUERY.replace("USING json", "USING parquet"), "r", {}, shards=1)
    task = reads(folder / "s" / "b.json", order=0)
    assert [each.rows for each in bad_of(stage, task)] == [1]
    with pytest.raises(InputError, match="Parquet magic"):
        packed(stage, task)


def test_a_file_with_another_schema_is_named(folder: Path) -> None:
    """A column of another type in a Parquet file, or a field that no row of a JSON file has any more."""
    stage = stage_of(QUERY.replace("USING json", "USING parquet"), "r", {}, shards=1)
    file = folder / "s" / "c.parquet"
    instants = pl.Series("ts", [0], dtype=pl.Datetime("us", "UTC"))
    pl.DataFrame([instants, pl.Series("k", ["seven"])]).write_parquet(file)
    task = reads(file)
    with pytest.raises(DataError, match=r"c\.parquet.*column k is declared BIGINT but is STRING"):
        packed(stage, task)
    assert [each.rows for each in bad_of(stage, task)] == [1]
    stage = stage_of(QUERY, "r", {}, shards=1)
    file = folder / "s" / "d.json"
    file.write_text('{"ts": "2026-01-01T00:00:00", "kk": 1}\n')
    with pytest.raises(DataError, match="no row of s has a field k"):
        packed(stage, reads(file), keeps=True)


@pytest.mark.spark
def test_a_function_gets_rows_and_a_folder_the_bad_ones(spark: Any, folder: Path) -> None:
    session = Session(spark)
    session.base = folder
    session.sql(QUERY)
    rows: list[int] = []
    query = session.query("r").start(
        lambda frame, batch: rows.extend(row.k for row in frame.collect()),
        checkpoint=folder / "state",
        finite=True,
        rejects=str(folder / "bad"),
    )
    query.awaitTermination()
    assert sorted(rows) == [1, 1, 3]
    assert [each["row"] for each in rejected(folder, "s")] == [2, 2, 3]
    for refuse in (
        lambda: session.query("r").to_df(rejects=str(folder / "bad")),
        lambda: session.query("r").start("memory", rejects=str(folder / "bad")),
    ):
        with pytest.raises(UnsupportedError, match="bad rows cannot be kept beside"):
            refuse()
