"""Metrics of a run on Spark: in its folder, what Spark reports of itself among them, and for whoever scrapes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import polars as pl

import headgate as hg
from headgate.runtime.exposition import exposition
from headgate.runtime.metrics_registry import MetricsRegistry
from headgate.runtime.metrics_server import serve_metrics
from headgate.runtime.spark.options import SparkOptions
from headgate.runtime.spark.run import RunTarget, run_to_folder

QUERY = """
CREATE STREAM s (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts USING parquet OPTIONS (path 's');
CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE 15 SECONDS] GROUP BY k;
"""
BATCHES = 3


def write(folder: Path) -> None:
    folder.mkdir()
    for number in range(BATCHES):
        instants = [number * 10 + second for second in range(10)]
        # One row of the last file comes too late.
        instants[5] = 0 if number == BATCHES - 1 else instants[5]
        frame = pl.DataFrame({"ts": instants, "k": [second % 3 for second in range(10)]})
        stamped = frame.with_columns(pl.from_epoch("ts", time_unit="s").dt.replace_time_zone("UTC"))
        stamped.write_parquet(folder / f"{number}.parquet")


def session_in(folder: Path) -> hg.Session:
    session = hg.Session()
    session.base = folder
    session.sql(QUERY)
    return session


def test_a_run_is_measured_and_scraped(spark: Any, tmp_path: Path) -> None:
    write(tmp_path / "s")
    board, scrapes = MetricsRegistry(), list[str]()

    def on_batch(metrics: Mapping[str, Any]) -> None:
        board.put(metrics)
        with urlopen(address, timeout=30) as response:
            scrapes.append(response.read().decode())

    place = RunTarget(tmp_path / "out", tmp_path / "state", on_batch=on_batch)
    options = SparkOptions(shards=2, batch_rows=10, drain=False)
    with serve_metrics(lambda: exposition(board.all()), 0) as address:
        run_to_folder(spark, session_in(tmp_path).compile(None), tmp_path, options, place)

    assert len(scrapes) == BATCHES
    assert [f'headgate_batches_total{{query="q"}} {n + 1}' in scrapes[n] for n in range(BATCHES)] == [
        True
    ] * 3
    assert 'headgate_late_rows_total{query="q"} 1\n' in scrapes[-1]
    assert 'headgate_clock_seconds{query="q"} 28.999999\n' in scrapes[-1]

    found = json.loads((tmp_path / "out" / "q" / "metrics.json").read_text())
    local = session_in(tmp_path).run(drain=False)["q"].metrics.as_dict()
    assert local.keys() <= found.keys()
    assert {name.partition(":")[2] for name in found["operators"]} == {"window", "aggregate", "relation"}
    assert sum(each["state_rows"] for each in found["operators"].values()) == found["state_rows"] > 0
    for name, sizes in found["operators"].items():
        assert f'headgate_state_rows{{query="q",operator="{name}"}} {sizes["state_rows"]}\n' in scrapes[-1]
    assert found["peak_state_rows"] >= found["state_rows"]
    assert found["late_rows"] == 1
    assert found["cache_hits"] + found["cache_misses"] == 2 * BATCHES
    assert found["stage_seconds"].keys() == {"receive", "load", "advance", "save"}
    phases = found["spark"]["seconds"]
    assert phases["triggerExecution"] >= phases["addBatch"] > 0
    assert found["spark"]["state_memory_bytes"] > 0

    # What Spark reports is counted on by the next process.
    (tmp_path / "s" / "9.parquet").write_bytes((tmp_path / "s" / "0.parquet").read_bytes())
    later = RunTarget(tmp_path / "out", tmp_path / "state")
    run_to_folder(spark, session_in(tmp_path).compile(None), tmp_path, options, later)
    again = json.loads((tmp_path / "out" / "q" / "metrics.json").read_text())
    assert again["batches"] == BATCHES + 1
    assert again["late_rows"] == 11
    assert again["spark"]["seconds"]["addBatch"] > phases["addBatch"]
