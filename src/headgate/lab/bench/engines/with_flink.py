"""Workloads in Flink SQL: interval joins and windows, heap state, all cores of this machine.

Flink reads the same rows as CSV, the format that its distribution brings, and adds up what it finds. It knows no
micro-batches, so its one batch is the whole run, the start of its cluster included. Its event time has milliseconds;
where that is too coarse, rows are compared by the microseconds that they bring along.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from headgate.lab.bench.engines.outcome import Outcome
from headgate.lab.bench.workload import WINDOW_SECONDS, Workload, batch_rows
from headgate.model.errors import SetupError

PYTHON = "HEADGATE_FLINK_PYTHON"
_WINDOW_US = WINDOW_SECONDS * 1_000_000
_SETTINGS = {
    # So that what adds up the results does not speak of every one of them.
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "1 s",
    "table.exec.mini-batch.size": "100000",
    "taskmanager.memory.process.size": "6g",
}


def python_with_flink() -> str | None:
    """A Python that has Flink's package: the one that the environment names, or this one."""
    if os.environ.get(PYTHON):
        return os.environ[PYTHON]
    return sys.executable if importlib.util.find_spec("pyflink") is not None else None


def run(name: str, workload: Workload, folder: Path, scratch: Path) -> Outcome:
    """Runs a workload over all its rows."""
    python = python_with_flink()
    if python is None:
        raise SetupError(
            "apache-flink is not installed",
            remedy=f"install it in an environment of its own, and name that one's Python in {PYTHON}",
        )
    rows, place = sum(batch_rows(workload, folder)), scratch / "flink"
    place.mkdir()
    job, result = place / "job.json", place / "result.json"
    sums = "".join(f", SUM({each})" for each in workload.sums)
    spec = {
        "settings": {**_SETTINGS, "parallelism.default": str(os.cpu_count() or 1)},
        "tables": [_table(each, _as_csv(each, folder, place)) for each in workload.streams],
        "query": f"SELECT COUNT(*){sums} FROM ({QUERIES[workload.name]})",
        "result": str(result),
    }
    job.write_text(json.dumps(spec))
    script = Path(__file__).with_name("flink_job.py")
    subprocess.run([python, str(script), str(job)], check=True, cwd=place)
    found = json.loads(result.read_text())
    [row] = found["rows"] or [[0] * (1 + len(workload.sums))]
    results, *totals = [int(each or 0) for each in row]
    return Outcome(
        name, [(rows, found["seconds"])], None, results, dict(zip(workload.sums, totals, strict=True))
    )


def _as_csv(stream: str, folder: Path, place: Path) -> Path:
    """The rows of a stream in one file, with their times as microseconds."""
    path = place / f"{stream}.csv"
    rows = pl.scan_parquet(sorted((folder / stream).iterdir()))
    rows.select(pl.col("ts").dt.epoch("us").alias("us"), "k", "m", "v").sink_csv(path, include_header=False)
    return path


def _table(stream: str, path: Path) -> str:
    return f"""
    CREATE TABLE {stream} (
      us BIGINT, k BIGINT, m BIGINT, v BIGINT,
      ts AS TO_TIMESTAMP_LTZ(us / 1000, 3),
      WATERMARK FOR ts AS ts - INTERVAL '0.001' SECOND
    ) WITH ('connector' = 'filesystem', 'path' = 'file://{path}', 'format' = 'csv')
    """


def _near(one: str, other: str) -> str:
    """Within a window of each other: as Flink needs it to forget rows, and exactly."""
    window = f"INTERVAL '{WINDOW_SECONDS}' SECOND"
    return (
        f"{one}.ts BETWEEN {other}.ts - {window} AND {other}.ts + {window} "
        f"AND {one}.us < {other}.us + {_WINDOW_US} AND {other}.us < {one}.us + {_WINDOW_US}"
    )


_WINDOWED = (
    f"TABLE(TUMBLE(TABLE R, DESCRIPTOR(ts), INTERVAL '{WINDOW_SECONDS}' SECOND)) WHERE k >= 0 "
    "GROUP BY window_start, window_end, k"
)

_THREE = (
    "SELECT R.k, R.v, S.v AS w, T.v AS x FROM R, S, T WHERE R.k = S.k AND S.m = T.m "
    f"AND {_near('R', 'S')} AND {_near('S', 'T')} AND {_near('R', 'T')}"
)

QUERIES: Mapping[str, str] = {
    "join": f"SELECT R.k, R.v, S.v AS w FROM R, S WHERE R.k = S.k AND {_near('R', 'S')}",
    "interval": (
        "SELECT R.k, R.v, S.v AS w FROM R, S WHERE R.k = S.k "
        f"AND S.ts BETWEEN R.ts AND R.ts + INTERVAL '{WINDOW_SECONDS}' SECOND "
        f"AND S.us BETWEEN R.us AND R.us + {_WINDOW_US}"
    ),
    "multijoin": _THREE,
    "many-one": _THREE,
    "distinct": f"SELECT k FROM {_WINDOWED}",
    "aggregate": f"SELECT k, COUNT(*) AS n, SUM(v) AS total FROM {_WINDOWED}",
}
