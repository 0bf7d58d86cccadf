"""A run that goes on from its checkpoint: with another number of tasks, and to the end of what was left open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from headgate.runtime.spark import run as running
from headgate.runtime.spark.options import SparkOptions
from headgate.runtime.spark.run import RunTarget, run_to_folder
from headgate.session import Session

QUERY = """
CREATE STREAM s (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts USING json OPTIONS (path 's');
CREATE QUERY q AS SELECT ISTREAM(k) FROM s [RANGE 5 SECONDS];
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "s").mkdir()
    (tmp_path / "q.cql").write_text(QUERY)
    return tmp_path


def add_file(folder: Path, number: int, *lines: str) -> None:
    row = f'{{"ts": "2026-01-01T00:00:{number:02d}", "k": {number}}}'
    (folder / "s" / f"{number:02d}.json").write_text("\n".join([row, *lines]) + "\n")


def run(spark: Any, folder: Path, *, drain: bool | None = None) -> dict[str, Any]:
    options = SparkOptions(shards=1, drain=drain, rejects=str(folder / "bad"))
    place = RunTarget(folder / "out", folder / "state")
    found = run_to_folder(spark, Session.from_file(folder / "q.cql").compile(None), folder, options, place)
    return dict(found.metrics["q"])


def answer(folder: Path) -> list[int]:
    return sorted(pl.read_parquet(folder / "out" / "q" / "*.parquet")["k"])


def planned(folder: Path) -> str:
    return (folder / "state" / "headgate" / "files" / "log.jsonl").read_text()


def test_another_number_of_tasks_makes_no_row_late_and_loses_no_bad_row(
    spark: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(8):
        add_file(folder, number, "nothing")
    monkeypatch.setattr(running, "cores", lambda _: 8)
    run(spark, folder, drain=False)
    for number in range(8, 16):
        add_file(folder, number, "nothing")
    monkeypatch.setattr(running, "cores", lambda _: 3)
    metrics = run(spark, folder)
    assert answer(folder) == [*range(16)]
    assert metrics["late_rows"] == 0
    assert metrics["rejected_rows"] == 16


def test_a_run_without_new_files_ends_what_an_earlier_one_left_open(spark: Any, folder: Path) -> None:
    for number in range(3):
        add_file(folder, number)
    run(spark, folder, drain=False)
    assert answer(folder) == [0, 1], "the last row waits for the clock to pass it"
    run(spark, folder)
    assert answer(folder) == [0, 1, 2]
    before = planned(folder)
    run(spark, folder)
    assert planned(folder) == before, "it ends once"
    # As after every end: the clock has run on by the window, and rows before that are late.
    for number in (4, 20):
        add_file(folder, number)
    metrics = run(spark, folder)
    assert answer(folder) == [0, 1, 2, 20]
    assert metrics["late_rows"] == 1
