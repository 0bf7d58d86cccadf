"""Runs that go on from a checkpoint, and checkpoints that are damaged: refused, never a wrong answer."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import headgate as hg
from headgate.model.errors import HeadgateError, InputError, SetupError
from headgate.runtime.spark.options import SparkOptions
from headgate.runtime.spark.run import RunTarget, run_to_folder
from headgate.runtime.spark.sources.file_log import FileLog

QUERY = """
CREATE STREAM s (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts USING parquet OPTIONS (path 's');
CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE {seconds} SECONDS] GROUP BY k;
"""


def add_file(folder: Path, number: int) -> None:
    instants = [number * 10 + second for second in range(10)]
    frame = pl.DataFrame({"ts": instants, "k": [second % 3 for second in range(10)]})
    folder.mkdir(exist_ok=True)
    frame.with_columns(pl.from_epoch("ts", time_unit="s").dt.replace_time_zone("UTC")).write_parquet(
        folder / f"{number}.parquet"
    )


def run(spark: Any, folder: Path, name: str, *, drain: bool, seconds: int = 4) -> pl.DataFrame:
    """Runs the query to the end of its files; all rows of the output so far."""
    session = hg.Session()
    session.base = folder
    session.sql(QUERY.format(seconds=seconds))
    place = RunTarget(folder / f"out-{name}", folder / f"state-{name}")
    run_to_folder(spark, session.compile(None), folder, SparkOptions(drain=drain, shards=2), place)
    files = sorted((folder / f"out-{name}" / "q").glob("*.parquet"))
    return pl.concat([pl.read_parquet(file) for file in files]).sort("_time", "_op", "k", "n")


def test_a_run_goes_on_or_is_refused(spark: Any, tmp_path: Path) -> None:
    add_file(tmp_path / "s", 0)
    run(spark, tmp_path, "one", drain=False)
    shutil.copytree(tmp_path / "state-one", tmp_path / "kept")
    add_file(tmp_path / "s", 1)

    whole = run(spark, tmp_path, "whole", drain=True)
    assert run(spark, tmp_path, "one", drain=True).equals(whole)
    metrics = json.loads((tmp_path / "out-one" / "q" / "metrics.json").read_text())
    assert (metrics["rows_in"], metrics["rows_out"]) == (20, whole.height)

    with pytest.raises(InputError, match=r"length=4000000(.|\n)*length=5000000"):
        run(spark, tmp_path, "one", drain=True, seconds=5)

    shutil.rmtree(tmp_path / "state-one")
    shutil.copytree(tmp_path / "kept", tmp_path / "state-one")
    lost = [each for each in (tmp_path / "state-one" / "state" / "0").rglob("1*") if each.is_file()]
    assert lost
    for each in lost:
        each.unlink()
    with pytest.raises(HeadgateError, match="Spark stopped the query"):
        run(spark, tmp_path, "one", drain=True)


def test_damaged_metadata_is_refused(spark: Any, tmp_path: Path) -> None:
    add_file(tmp_path / "s", 0)
    run(spark, tmp_path, "one", drain=False)
    (tmp_path / "state-one" / "metadata").write_text("no JSON")
    with pytest.raises(SetupError, match="Spark does not start the query") as refused:
        run(spark, tmp_path, "one", drain=True)
    assert str(tmp_path / "state-one") in str(refused.value)
    assert "\n\tat " not in str(refused.value)


def cut_last_line(log: Path) -> None:
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-1]))


def edit(log: Path) -> None:
    log.write_bytes(log.read_bytes().replace(b"1.parquet", b"0.parquet"))


def drop_first_line(log: Path) -> None:
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[1:]))


def drop_name(log: Path) -> None:
    """Takes the name of a file out of the compacted line."""
    name = f'"{log.parents[3] / "s" / "0.parquet"}"'.encode()
    content = log.read_bytes()
    assert content.count(name) == 1
    log.write_bytes(content.replace(name, b'"/nowhere"'))


@pytest.mark.parametrize("compacted", [False, True], ids=["as added", "compacted"])
def test_a_damaged_log_of_files_is_refused(spark: Any, tmp_path: Path, compacted: bool) -> None:
    """Whatever is done to it: the run ends in a sentence, never in another answer."""
    for number in range(3):
        add_file(tmp_path / "s", number)
        run(spark, tmp_path, "one", drain=False)
    log = tmp_path / "state-one" / "headgate" / "files" / "log.jsonl"
    if compacted:
        found = FileLog(log.parent, ["s"], 2)
        found.compact(2, least=1)
        assert log.read_bytes().startswith(b'{"base"')
    for each in ("state-one", "out-one"):
        shutil.copytree(tmp_path / each, tmp_path / f"kept-{each}")
    add_file(tmp_path / "s", 3)
    damages = [Path.unlink, cut_last_line, drop_first_line, drop_name if compacted else edit]
    for damage in damages:
        damage(log)
        with pytest.raises(SetupError, match=r"the log of files .*/log\.jsonl is damaged") as refused:
            run(spark, tmp_path, "one", drain=True)
        assert refused.value.remedy == "restore the checkpoint or choose another"
        for each in ("state-one", "out-one"):
            shutil.rmtree(tmp_path / each)
            shutil.copytree(tmp_path / f"kept-{each}", tmp_path / each)
    assert run(spark, tmp_path, "one", drain=True).equals(run(spark, tmp_path, "whole", drain=True))


def test_a_plan_that_spark_has_not_taken_up_is_carried_out_once(spark: Any, tmp_path: Path) -> None:
    """A run may be killed after it has written to the log and before Spark has written its offset, or behind that."""
    for number in range(2):
        add_file(tmp_path / "s", number)
        run(spark, tmp_path, "one", drain=False)
    whole = run(spark, tmp_path, "whole", drain=True)
    state = tmp_path / "state-one"
    for lost in (["commits"], ["commits", "offsets"]):
        for folder in lost:
            last = max((int(each.name), each) for each in (state / folder).glob("[0-9]*"))[1]
            last.unlink()
            (last.parent / f".{last.name}.crc").unlink(missing_ok=True)
        run(spark, tmp_path, "one", drain=False)
    assert run(spark, tmp_path, "one", drain=True).equals(whole)


def test_one_large_text_file_is_read_in_several_micro_batches(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    session = hg.Session()
    session.base = tmp_path
    session.sql(
        """
        CREATE STREAM s (ts TIMESTAMP, k BIGINT, t STRING) TIMESTAMP BY ts USING csv OPTIONS (path 's');
        CREATE QUERY q AS SELECT ISTREAM(k, t) FROM s [RANGE 4 SECONDS];
        """
    )
    lines = [
        f'2026-01-01T{n // 3600:02d}:{n // 60 % 60:02d}:{n % 60:02d},{n % 3},"a\n{"b" * 40}"\n'
        for n in range(10_000)
    ]
    lines[7_000] = '2026-01-01T01:56:40,x,"y"\n'
    (tmp_path / "s" / "a.csv").write_text("".join(lines))
    options = SparkOptions(shards=2, batch_rows=2_000, rejects=str(tmp_path / "bad"))
    place = RunTarget(tmp_path / "out", tmp_path / "state")
    summary = run_to_folder(spark, session.compile(None), tmp_path, options, place)
    assert summary.metrics["q"]["batches"] > 3
    assert summary.metrics["q"]["late_rows"] == 0
    assert summary.metrics["q"]["rows_out"] == 9_999
    (bad,) = [json.loads(each.read_text()) for each in (tmp_path / "bad" / "s").glob("*.json")]
    assert (bad["row"], bad["line"], bad["column"]) == (7_001, 14_001, "k")


def test_rows_from_the_far_future_are_set_aside_from_files_too(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "a.csv").write_text(
        "2026-01-01T00:00:00,1\n2999-01-01T00:00:00,2\n2026-01-01T00:00:01,3\n"
    )
    session = hg.Session()
    session.base = tmp_path
    session.sql(QUERY.format(seconds=4).replace("parquet", "csv"))
    options = SparkOptions(shards=2, future_us=86_400_000_000)
    summary = run_to_folder(spark, session.compile(None), tmp_path, options, RunTarget(tmp_path / "out"))
    assert (summary.metrics["q"]["future_rows"], summary.metrics["q"]["late_rows"]) == (1, 0)
    assert set(pl.read_parquet(tmp_path / "out" / "q" / "*.parquet")["k"]) == {1, 3}
