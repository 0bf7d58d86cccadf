"""`--follow`: files that come are read, an interrupt ends the run in order, and a later run goes on."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from headgate.runtime.spark.cluster import why_not_spark

pytestmark = [
    pytest.mark.skipif(why_not_spark() is not None, reason=str(why_not_spark())),
    pytest.mark.long,
]

QUERY = """
CREATE STREAM s (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts USING parquet OPTIONS (path 's');
CREATE QUERY q AS SELECT ISTREAM(k) FROM s [RANGE 5 SECONDS];
"""


def add_file(folder: Path, number: int) -> None:
    frame = pl.DataFrame({"ts": [number * 10, number * 10 + 1], "k": [number, 100 + number]})
    beside = folder / f".{number}"
    frame.with_columns(pl.from_epoch("ts", time_unit="s").dt.replace_time_zone("UTC")).write_parquet(beside)
    beside.rename(folder / f"{number}.parquet")


def seen(folder: Path) -> list[int]:
    files = sorted((folder / "out" / "q").glob("*.parquet"))
    return sorted(pl.concat([pl.read_parquet(file) for file in files])["k"]) if files else []


def until(folder: Path, wanted: list[int]) -> None:
    for _ in range(600):
        if seen(folder) == wanted:
            return
        time.sleep(0.2)
    raise AssertionError(f"{seen(folder)}, not {wanted}")


def test_new_files_are_followed(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "q.cql").write_text(QUERY)
    words = [
        "run",
        "q.cql",
        "-o",
        "out",
        "--engine",
        "spark",
        "--master",
        "local[2]",
        "--checkpoint",
        "state",
    ]
    for start in (0, 2):
        add_file(tmp_path / "s", start)
        running = subprocess.Popen(
            [sys.executable, "-m", "headgate.cli.main", *words, "--follow", "--quiet"], cwd=tmp_path
        )
        try:
            # The last row of all waits for the clock to pass it.
            until(tmp_path, sorted(each for n in range(start + 1) for each in (n, 100 + n))[:-1])
            add_file(tmp_path / "s", start + 1)
            until(tmp_path, sorted(each for n in range(start + 2) for each in (n, 100 + n))[:-1])
            running.send_signal(signal.SIGINT)
            assert running.wait(timeout=60) == 0
        finally:
            running.kill()
