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
from headgate.runtime.spark.run import Place, SparkOptions, run_to_folder

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
    place = Place(folder / f"out-{name}", folder / f"state-{name}")
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
    lost = [each for each in (tmp_path / "state-one" / "q" / "state" / "0").rglob("1*") if each.is_file()]
    assert lost
    for each in lost:
        each.unlink()
    with pytest.raises(HeadgateError, match="Spark stopped the query"):
        run(spark, tmp_path, "one", drain=True)


def test_damaged_metadata_is_refused(spark: Any, tmp_path: Path) -> None:
    add_file(tmp_path / "s", 0)
    run(spark, tmp_path, "one", drain=False)
    (tmp_path / "state-one" / "q" / "metadata").write_text("no JSON")
    with pytest.raises(SetupError, match="Spark does not start the query") as refused:
        run(spark, tmp_path, "one", drain=True)
    assert str(tmp_path / "state-one" / "q") in str(refused.value)
    assert "\n\tat " not in str(refused.value)
