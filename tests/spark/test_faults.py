"""Kill -9 of a Python worker, an executor and the driver in a local cluster: nothing lost, nothing twice."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import polars as pl
import pytest
from tests.spark.faults import VICTIMS, command, run_with_kills, write_input

from headgate.runtime.spark.cluster import why_not_spark

pytestmark = pytest.mark.skipif(why_not_spark() is not None, reason=str(why_not_spark()))


def rows(folder: Path) -> pl.DataFrame:
    """All output rows, in an order that does not depend on who wrote them."""
    frame = pl.concat([pl.read_parquet(file) for file in sorted(folder.glob("*.parquet"))])
    return frame.sort("_time", "_op", "k", "n", "total")


def check(folder: Path, victims: list[str], seed: int) -> None:
    query = write_input(folder)
    subprocess.run(command(query, folder / "local", "--engine", "local", "--quiet"), check=True, timeout=120)
    kills = run_with_kills(query, folder / "out", folder / "checkpoint", victims, seed)
    assert kills == len(victims)
    expected, found = rows(folder / "local" / "q"), rows(folder / "out" / "q")
    assert found.equals(expected), f"{found.height} rows, not {expected.height}"
    local, spark = (
        json.loads((folder / name / "q" / "metrics.json").read_text()) for name in ("local", "out")
    )
    assert [spark[name] for name in ("rows_in", "rows_out", "late_rows")] == [
        local[name] for name in ("rows_in", "rows_out", "late_rows")
    ]


def test_a_worker_an_executor_and_the_driver_die(tmp_path: Path) -> None:
    check(tmp_path, list(VICTIMS), seed=0)


@pytest.mark.faults
@pytest.mark.parametrize("seed", range(20))
def test_many_deaths(tmp_path: Path, seed: int) -> None:
    check(tmp_path, [VICTIMS[seed % 3]], seed)
