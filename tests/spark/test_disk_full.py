"""A disk that is full: a clear refusal, no wrong answer, and the run goes on once there is room."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import headgate as hg
from headgate.model.errors import SetupError
from headgate.runtime.io.source import Slice
from headgate.runtime.spark.options import SparkOptions
from headgate.runtime.spark.run import RunTarget, run_to_folder
from headgate.runtime.spark.sources.file_log import START, FileLog
from headgate.runtime.spark.sources.splits import FileSplit

QUERY = """
CREATE STREAM s (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts USING parquet OPTIONS (path 's');
CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE 4 SECONDS] GROUP BY k;
"""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few megabytes."""
    folder = tmp_path / "small"
    folder.mkdir()
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("mounting a small file system needs root")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no small file system: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def add_file(folder: Path, number: int) -> None:
    instants = [number * 10 + second for second in range(10)]
    frame = pl.DataFrame({"ts": instants, "k": [second % 3 for second in range(10)]})
    folder.mkdir(exist_ok=True)
    stamped = frame.with_columns(pl.from_epoch("ts", time_unit="s").dt.replace_time_zone("UTC"))
    stamped.write_parquet(folder / f"{number}.parquet")


def session_in(folder: Path) -> hg.Session:
    session = hg.Session()
    session.base = folder
    session.sql(QUERY)
    return session


def run(spark: Any, folder: Path, output: str, checkpoint: Path, *, drain: bool) -> None:
    options = SparkOptions(drain=drain, shards=2, batch_rows=10)
    queries = session_in(folder).compile(None)
    run_to_folder(spark, queries, folder, options, RunTarget(folder / output, checkpoint))


def answer(folder: Path) -> pl.DataFrame:
    files = sorted((folder / "q").glob("*.parquet"))
    return pl.concat([pl.read_parquet(file) for file in files]).sort("_time", "_op", "k", "n")


def fill(disk: Path, left: int) -> None:
    """Leaves so many bytes free."""
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    (disk / "ballast").write_bytes(bytes(max(0, free - left)))


@pytest.mark.parametrize("left", [0, 65_536], ids=["nothing left", "room for part of a micro-batch"])
def test_a_full_disk_stops_the_run_and_spoils_nothing(
    spark: Any, tmp_path: Path, small_disk: Path, left: int
) -> None:
    state = small_disk / "state"
    add_file(tmp_path / "s", 0)
    run(spark, tmp_path, "out", state, drain=False)
    for number in (1, 2, 3):
        add_file(tmp_path / "s", number)
    whole = pl.DataFrame(session_in(tmp_path).run()["q"].table).sort("_time", "_op", "k", "n")

    fill(small_disk, left)
    with pytest.raises(SetupError, match="there is no space left") as refused:
        run(spark, tmp_path, "out", state, drain=True)
    assert "run it again" in str(refused.value)
    given = answer(tmp_path / "out")
    assert given.join(whole, on=given.columns, how="anti", nulls_equal=True).is_empty()
    assert given.height < whole.height

    (small_disk / "ballast").unlink()
    run(spark, tmp_path, "out", state, drain=True)
    assert answer(tmp_path / "out").equals(whole)


def test_a_plan_that_found_no_room_is_made_later(tmp_path: Path, small_disk: Path) -> None:
    """All of it or none: what there was room for is no line of the log."""
    splits = [[FileSplit("s", Slice(tmp_path / f"s{number}"), 1)] for number in range(100)]
    FileLog(small_disk / "files", ["s"], 2).add(splits[:1], end=False)
    fill(small_disk, 4_096)
    with pytest.raises(SetupError, match="there is no space left"):
        FileLog(small_disk / "files", ["s"], 2).add(splits[1:], end=True)
    (small_disk / "ballast").unlink()
    log = FileLog(small_disk / "files", ["s"], 2)
    assert log.known() == {str(tmp_path / "s0")}
    log.add(splits[1:], end=True)
    found = FileLog(small_disk / "files", ["s"], 2).between(START, log.last)
    assert [file for each in found for _, file in each.files] == [str(tmp_path / f"s{n}") for n in range(100)]
    assert [each.ends for each in found] == [False] * 99 + [True]
