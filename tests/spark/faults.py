"""Kills processes of a running query and starts it again until it is done."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

QUERY = """
CREATE STREAM r (ts TIMESTAMP, k BIGINT, v BIGINT) TIMESTAMP BY ts WITHIN INTERVAL 1 SECOND
  USING parquet OPTIONS (path 'r');
CREATE STREAM s (ts TIMESTAMP, k BIGINT, v BIGINT) TIMESTAMP BY ts WITHIN INTERVAL 1 SECOND
  USING parquet OPTIONS (path 's');
CREATE QUERY q AS
SELECT r.k, COUNT(*) AS n, SUM(s.v) AS total
FROM r [RANGE 20 SECONDS], s [RANGE 20 SECONDS] WHERE r.k = s.k GROUP BY r.k;
"""
BATCH_ROWS, BATCHES = 1_600, 10
VICTIMS = ("worker", "executor", "driver")


def write_input(folder: Path) -> Path:
    """The streams' files and the query; the path of the query."""
    for salt, name in enumerate("rs"):
        (folder / name).mkdir(parents=True)
        random_numbers = np.random.default_rng(salt)
        for number in range(BATCHES):
            start = number * BATCH_ROWS // 2
            instants = np.arange(start, start + BATCH_ROWS // 2) * 10_000
            instants += random_numbers.integers(0, 500_000, len(instants))
            frame = pl.DataFrame(
                {
                    "ts": pl.Series(instants).cast(pl.Datetime("us", "UTC")),
                    "k": random_numbers.integers(0, 50, len(instants)),
                    "v": random_numbers.integers(0, 9, len(instants)),
                }
            )
            frame.write_parquet(folder / name / f"part-{number}.parquet")
    path = folder / "q.cql"
    path.write_text(QUERY)
    return path


def command(query: Path, output: Path, *options: str) -> list[str]:
    return [
        sys.executable, "-m", "headgate.cli.main", "run", str(query), "-o", str(output),
        "--batch-rows", str(BATCH_ROWS), *options,
    ]  # fmt: skip


def run_with_kills(query: Path, output: Path, checkpoint: Path, victims: list[str], seed: int) -> int:
    """Runs a query in a local cluster, killing one process of each kind named; says how many kills there were."""
    random_moment = random.Random(seed)
    options = ("--engine", "spark", "--master", "local-cluster[2,1,1024]", "--checkpoint", str(checkpoint))
    kills, waiting = 0, list(victims)
    for _ in range(len(victims) + 1):
        running = subprocess.Popen(
            command(query, output, *options), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        try:
            while running.poll() is None and waiting:
                done = len(list((output / "q" / ".batches").glob("*.json")))
                if done >= 1 + 2 * kills:
                    time.sleep(random_moment.uniform(0, 0.5))
                    if _kill(running.pid, waiting[0], random_moment):
                        waiting.pop(0)
                        kills += 1
                time.sleep(0.05)
            _, errors = running.communicate(timeout=900)
        finally:
            for each in [*descendants(running.pid), running.pid]:
                _end(each)
        if running.returncode == 0:
            return kills
        assert running.returncode < 0 or "SparkContext" in errors or kills, errors
    raise AssertionError(f"not done after {kills} kills: {errors}")


def _kill(driver: int, victim: str, random_moment: random.Random) -> bool:
    """Kills a process of that kind; whether there was one."""
    if victim == "driver":
        for each in [*descendants(driver), driver]:
            if each == driver or "PythonGatewayServer" in words(each) or "SparkSubmit" in words(each):
                _end(each)
        return True
    mark = "CoarseGrainedExecutorBackend" if victim == "executor" else "pyspark.daemon"
    found = [each for each in descendants(driver) if mark in words(each)]
    if victim == "worker":
        # The daemon forks workers; they bear its name.
        found = [each for each in found if any(mark in words(parent) for parent in _parents(each))]
    if found:
        _end(random_moment.choice(found))
    return bool(found)


def descendants(pid: int) -> list[int]:
    """All processes below one, by their entries in /proc."""
    parents = {int(entry.name): _parent(entry) for entry in Path("/proc").iterdir() if entry.name.isdigit()}
    below, found = {pid}, []
    while True:
        new = [each for each, parent in parents.items() if parent in below and each not in below]
        if not new:
            return found
        below.update(new)
        found += new


def _parents(pid: int) -> Iterator[int]:
    parent = _parent(Path(f"/proc/{pid}"))
    if parent:
        yield parent


def _parent(entry: Path) -> int:
    try:
        return int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return 0


def words(pid: int) -> str:
    """The command line of a process; nothing if it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def _end(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
