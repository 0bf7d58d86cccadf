"""Folders belong to runs: no run adds to what another wrote, or takes another's notes for its own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import polars as pl
import pyarrow as pa
import pytest
from tests.cli_runner import headgate
from tests.spark.on_spark import folder_at
from tests.spark.shards import stage_of

from headgate.model.errors import HeadgateError, InputError
from headgate.model.schema import Column
from headgate.runtime.data import frame_of
from headgate.runtime.io.rejects import BadRow
from headgate.runtime.output import as_declared
from headgate.runtime.ownership import MARK
from headgate.runtime.spark import folder as folder_module
from headgate.runtime.spark.checkpoint import Claim, claim
from headgate.runtime.spark.codec import encode
from headgate.runtime.spark.folder import QueryFolder, Staged, write_batch, write_parts
from headgate.runtime.spark.local_folder import LocalFolder
from headgate.runtime.spark.messages import encode_table
from headgate.runtime.spark.options import SparkOptions
from headgate.runtime.spark.query_output import QueryOutput, prepare
from headgate.runtime.spark.rejects import REJECTS, RejectSink, TaskRejects
from headgate.runtime.spark.run import RunTarget, run_to_folder
from headgate.session import Session

pytestmark = pytest.mark.usefixtures("spark")

TEXT = """
CREATE STREAM s (ts TIMESTAMP, k INT) TIMESTAMP BY ts;
CREATE QUERY {query} AS SELECT ISTREAM(k) FROM s [RANGE 1 MINUTE];
"""
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
KILLED = KeyboardInterrupt


class Answer:
    """What the shards of a micro-batch say, without Spark: rows and late rows by their `k`."""

    def __init__(
        self, folder: QueryFolder, rows: Sequence[int], late: Sequence[int] = (), bad: int = 0
    ) -> None:
        times = pl.Series([NOON] * len(rows), dtype=pl.Datetime("us", "UTC"))
        table = pl.DataFrame({"k": pl.Series(rows, dtype=pl.Int32), "_time": times})
        blobs = [("rows", encode_table(as_declared(table, folder.schemas["rows"])))] if rows else []
        if late:
            stream = folder.stage.streams[0]
            frame = frame_of(pl.DataFrame({"ts": [NOON] * len(late), "k": late}), stream.columns)
            blobs.append(("late", encode(frame)))
        refused = TaskRejects.of("s", keeps=True)
        refused.refuse([BadRow("f", "bad")] * bad)
        blobs += [(REJECTS, blob) for _, blob in refused.take()]
        self.batch = pa.RecordBatch.from_pylist(
            [{"query": 0, "kind": kind, "name": "s", "rows": bad, "blob": blob} for kind, blob in blobs],
            schema=pa.schema(
                [
                    ("query", pa.int32()),
                    ("kind", pa.string()),
                    ("name", pa.string()),
                    ("rows", pa.int64()),
                    ("blob", pa.binary()),
                ]
            ),
        )

    def mapInArrow(self, write: Any, ddl: str) -> Any:  # noqa: N802 - Spark's name
        written = [SimpleNamespace(**row) for each in write(iter([self.batch])) for row in each.to_pylist()]
        return SimpleNamespace(collect=lambda: written)


def answered(*how: Any, **more: Any) -> Any:
    return Answer(*how, **more)


def opened(root: Path, checkpoint: str, *, query: str = "q") -> QueryFolder:
    stage = stage_of(TEXT.format(query=query), query, {}, shards=1)
    claimed = claim(folder_at(root / checkpoint / query), [stage])
    return QueryFolder(root / "out", stage, claimed)


def run(
    root: Path,
    checkpoint: str,
    *batches: Sequence[int],
    query: str = "q",
    overwrite: bool = False,
    late: bool = False,
) -> None:
    """Starts a run, or goes on with it, and sees it through these micro-batches, from the first."""
    folder = opened(root, checkpoint, query=query)
    prepare([folder], overwrite=overwrite)
    for number, rows in enumerate(batches):
        write_batch([folder], answered(folder, () if late else rows, rows if late else ()), number)


def found(folder: Path, begins: str = "") -> list[int]:
    files = sorted(folder.glob(f"{begins}*.parquet"))
    return [key for file in files for key in pl.read_parquet(file)["k"].to_list()]


def test_a_refused_start_leaves_the_checkpoint_new(tmp_path: Path) -> None:
    run(tmp_path, "old", [1], [2])
    for _ in range(2):
        with pytest.raises(InputError, match="exists already"):
            run(tmp_path, "new", [100], [200], [300])
    assert found(tmp_path / "out" / "q") == [1, 2]
    run(tmp_path, "new", [100], [200], [300], overwrite=True)
    assert found(tmp_path / "out" / "q") == [100, 200, 300]


def test_a_run_goes_on_in_its_own_folder(tmp_path: Path) -> None:
    run(tmp_path, "state", [1], [2])
    # The second micro-batch comes again.
    run(tmp_path, "state", [1], [2], [3], overwrite=True)
    assert found(tmp_path / "out" / "q") == [1, 2, 3]


def test_the_folder_of_another_checkpoint_is_refused(tmp_path: Path) -> None:
    run(tmp_path, "a", [1])
    (tmp_path / "out").rename(tmp_path / "of_a")
    run(tmp_path, "b", [10], [20])
    for overwrite in (False, True):
        with pytest.raises(InputError, match="a run with another checkpoint"):
            run(tmp_path, "a", [1], [2], overwrite=overwrite)
    assert found(tmp_path / "out" / "q") == [10, 20]
    (tmp_path / "out").rename(tmp_path / "of_b")
    # There is nothing to be mistaken about in an empty folder.
    run(tmp_path, "a", [1], [2])
    assert found(tmp_path / "out" / "q") == [1, 2]


def test_a_run_whose_folder_was_replaced_stops(tmp_path: Path) -> None:
    folder = opened(tmp_path, "a")
    prepare([folder], overwrite=False)
    write_batch([folder], answered(folder, [1]), 0)
    run(tmp_path, "b", [10], overwrite=True)
    with pytest.raises(InputError, match="a run with another checkpoint"):
        write_batch([folder], answered(folder, [2]), 1)
    assert found(tmp_path / "out" / "q") == [10]


@pytest.mark.parametrize("step", ["clear", "keep", "kept", "mark", "marking", "marked"])
def test_a_start_that_is_killed_is_repeated(
    tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path, "old", [1], [2])
    run(tmp_path, "old_late", [7], [8], query="r", late=True)

    def killed(*_: object) -> NoReturn:
        raise KILLED

    keep, take, renamed = Claim.keep, QueryOutput.take, Path.replace
    match step:
        case "clear":
            monkeypatch.setattr(folder_module, "clear", killed)
        case "keep":
            monkeypatch.setattr(Claim, "keep", killed)
        case "kept":
            monkeypatch.setattr(Claim, "keep", lambda claimed: killed(keep(claimed)))
        case "mark":
            monkeypatch.setattr(QueryOutput, "take", killed)
        case "marking":

            def replace(beside: Path, target: Path) -> Path:
                return killed() if target.name == MARK else renamed(beside, target)

            monkeypatch.setattr(Path, "replace", replace)
        case "marked":
            monkeypatch.setattr(QueryOutput, "take", lambda *told: killed(take(*told)))
    with pytest.raises(KILLED):
        run(tmp_path, "new", [100], [200], [300], overwrite=True)
    monkeypatch.undo()
    # Either the old results are still there, and still asked for, or they are gone as was wanted.
    if step == "clear":
        with pytest.raises(InputError, match="exists already"):
            run(tmp_path, "new", [100], [200], [300])
        run(tmp_path, "new", [100], [200], [300], overwrite=True)
    else:
        run(tmp_path, "new", [100], [200], [300])
    assert found(tmp_path / "out" / "q") == [100, 200, 300]
    assert found(tmp_path / "out" / "_late" / "s", "part-r.") == [7, 8]


def test_late_rows_belong_to_their_query(tmp_path: Path) -> None:
    late = tmp_path / "out" / "_late" / "s"
    run(tmp_path, "a", [1], [2], query="qa", late=True)
    run(tmp_path, "b", [9], [], query="qb", late=True)
    assert (found(late, "part-qa."), found(late, "part-qb.")) == ([1, 2], [9])
    run(tmp_path, "c", [], [3], query="qa", late=True, overwrite=True)
    assert (found(late, "part-qa."), found(late, "part-qb.")) == ([3], [9])
    # They are results as others are, even where the answer was removed.
    (tmp_path / "out" / "qa").rename(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=r"_late/s/part-qa\.00001-00000\.parquet exists already"):
        run(tmp_path, "d", [4], query="qa", late=True)
    with pytest.raises(InputError, match="another checkpoint"):
        run(tmp_path, "c", [], [3], [4], query="qa", late=True)


def sink_of(root: Path, folder: QueryFolder) -> RejectSink:
    return RejectSink(LocalFolder(root / "bad"), frozenset("s"), folder.claim.run)


def test_rejects_belong_to_a_run(tmp_path: Path) -> None:
    def reading(checkpoint: str, bad: int, batch: int) -> None:
        folder = opened(tmp_path, checkpoint, query=f"q{checkpoint}")
        sink = sink_of(tmp_path, folder)
        prepare([folder], overwrite=False, rejects=sink)
        write_batch([folder], answered(folder, [], bad=bad), batch, sink)

    reading("a", 0, 1)
    assert not (tmp_path / "bad").exists()
    reading("a", 2, 2)
    reading("a", 1, 3)
    for _ in range(2):
        with pytest.raises(InputError, match="rejects of an earlier run"):
            reading("b", 1, 2)
    assert not (tmp_path / "b").exists()
    assert not (tmp_path / "out" / "qb").exists()
    for each in (tmp_path / "bad" / "s").glob("*"):
        if not each.name.startswith("."):
            each.unlink()
    reading("b", 1, 2)
    with pytest.raises(InputError, match="rejects of an earlier run"):
        reading("a", 1, 4)


def test_a_table_that_is_clean_now_has_no_rejects(tmp_path: Path) -> None:
    sink = RejectSink(LocalFolder(tmp_path), frozenset("t"), "run")
    for bad in (3, 0):
        refused = TaskRejects.of("t", keeps=True)
        refused.refuse([BadRow("f", "bad")] * bad)
        sink.take({"t": refused})
        lines = [line for file in tmp_path.glob("t/*.json") for line in file.read_text().splitlines()]
        assert len(lines) == bad


def test_bad_rows_are_counted_where_no_good_row_came(tmp_path: Path) -> None:
    folder = opened(tmp_path, "state")
    sink = sink_of(tmp_path, folder)
    prepare([folder], overwrite=False, rejects=sink)
    write_batch([folder], answered(folder, [], bad=3), 0, sink)
    assert folder.last_metrics()["rejected_rows"] == 3
    assert json.loads((tmp_path / "out" / "q" / "metrics.json").read_text())["rejected_rows"] == 3
    # A run that goes on counts those before, and a micro-batch that comes again only once.
    folder = opened(tmp_path, "state")
    prepare([folder], overwrite=False, rejects=sink)
    write_batch([folder], answered(folder, [], bad=3), 0, sink)
    write_batch([folder], answered(folder, [], bad=1), 1, sink)
    assert folder.finish()["rejected_rows"] == 4
    assert folder.finish()["batches"] == 2
    names = sorted(each.name for each in (tmp_path / "bad" / "s").glob("*.json"))
    assert names == ["rejects-00000-000.json", "rejects-00001-000.json"]


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (pa.map_(pa.string(), pa.int32()), [("a", 1)]),
        (pa.map_(pa.string(), pa.int32()), None),
        (pa.struct([("x", pa.int32())]), {"x": 1}),
        (pa.list_(pa.int32()), [1, None]),
        (pa.binary(), b"x"),
    ],
)
def test_late_rows_have_any_type(tmp_path: Path, type_: pa.DataType, value: object) -> None:
    schema = pa.schema([("ts", pa.timestamp("us", "UTC")), ("v", type_)])
    rows = pa.Table.from_pylist([{"ts": NOON, "v": value}], schema=schema)
    frame = frame_of(pl.DataFrame(rows), tuple(Column(each.name, each.type) for each in schema))
    late = {"query": 0, "kind": "late", "name": "s", "rows": 1, "blob": encode(frame)}
    batch = pa.RecordBatch.from_pylist([late])
    list(write_parts([Staged(str(tmp_path), {"late/s": schema})], iter([batch])))
    (file,) = tmp_path.glob("*.parquet")
    assert pa.parquet.read_table(file).to_pylist() == rows.to_pylist()


QUERY = """
CREATE STREAM s (ts TIMESTAMP, k BIGINT, m MAP<STRING, INT>) TIMESTAMP BY ts USING json OPTIONS (path 's');
CREATE QUERY qa AS SELECT ISTREAM(k) FROM s [RANGE 5 SECONDS];
CREATE QUERY qb AS SELECT ISTREAM(k + 1 AS k) FROM s [RANGE 5 SECONDS];
"""


@pytest.mark.spark
def test_runs_in_one_folder_do_not_meet(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "q.cql").write_text(QUERY)
    lines = [
        f'{{"ts": "2026-01-01T00:00:0{at}", "k": {key}, "m": {{"a": {key}}}}}\n'
        for at, key in ((5, 1), (1, 2), (6, 3))
    ]
    (tmp_path / "s" / "1.json").write_text("".join(lines))
    (tmp_path / "s" / "2.json").write_text("nothing\n")
    late = tmp_path / "out" / "_late" / "s"

    def on_spark(checkpoint: str | None, *names: str, bad: str, overwrite: bool = False) -> Any:
        queries = Session.from_file(tmp_path / "q.cql").compile(names or None)
        state = None if checkpoint is None else tmp_path / checkpoint
        place = RunTarget(tmp_path / "out", state, overwrite)
        options = SparkOptions(shards=1, rejects=str(tmp_path / bad), batch_rows=1)
        return run_to_folder(spark, queries, tmp_path, options, place)

    assert on_spark(None, "qa", bad="bad").rejected_rows == 1
    on_spark("state", "qb", bad="bad_b")
    assert found(late, "part-qa.") == found(late, "part-qb.") == [2]
    assert (found(tmp_path / "out" / "qa"), found(tmp_path / "out" / "qb")) == ([1, 3], [2, 4])
    with pytest.raises(HeadgateError, match="exists already"):
        on_spark("new", "qa", bad="bad_a")
    (tmp_path / "s" / "3.json").write_text('{"ts": "2026-01-01T00:00:09", "k": 4, "m": null}\n')
    on_spark("new", "qa", bad="bad_a", overwrite=True)
    assert found(tmp_path / "out" / "qa") == [1, 3, 4]
    on_spark("state", "qb", bad="bad_b")
    assert (found(late, "part-qa."), found(late, "part-qb.")) == ([2], [2, 4])


@pytest.mark.parametrize(("stream", "query"), [("s", "../q"), ("s" * 300, "q")])
def test_names_that_cannot_be_folders_are_refused_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stream: str, query: str
) -> None:
    def start(*_: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("headgate.runtime.spark.cluster.open_spark", start)
    (tmp_path / "s.csv").write_text("2026-01-01T00:00:00,1\n")
    (tmp_path / "q.cql").write_text(
        f"CREATE STREAM `{stream}` (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts USING csv OPTIONS (path 's.csv');"
        f"CREATE QUERY `{query}` AS SELECT ISTREAM(k) FROM `{stream}` [RANGE 1 SECOND];"
    )
    done = headgate("run", tmp_path / "q.cql", "--output", tmp_path / "out")
    assert (done.code, done.out) == (2, "")
    assert "cannot name" in done.err
