"""The questions of the benchmarks mean the same in CQL and to the engine that they are compared with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from headgate import Session
from headgate.lab.bench.engines import with_flink
from headgate.lab.bench.engines.outcome import Outcome
from headgate.lab.bench.engines.process import available
from headgate.lab.bench.streams import StreamBench, _require_same
from headgate.lab.bench.streams import run as run_bench
from headgate.lab.bench.workload import WORKLOADS, batch_rows, by_polars, write
from headgate.model.errors import DisagreementError, InputError, SetupError


@pytest.mark.parametrize("name", WORKLOADS)
def test_the_local_engine_finds_what_one_batch_query_finds(name: str, tmp_path: Path) -> None:
    workload = replace(WORKLOADS[name], keys=40)
    write(workload, tmp_path, rows=1_200, batch=300)
    expected = by_polars(workload, tmp_path).collect()
    session = Session()
    for stream in workload.streams:
        rows = pl.read_parquet(tmp_path / stream / "*.parquet")
        session.stream(stream, rows, time="ts")
    query = session.sql(workload.cql)
    assert query is not None
    found = query.run().to_polars()
    found = found.filter(pl.col("k") >= 0)
    assert found.height == expected.height > 0
    columns = list(workload.sums)
    assert found.select(columns).sort(columns).equals(expected.select(columns).sort(columns))


def test_constraints_of_a_many_one_join_are_true(tmp_path: Path) -> None:
    """Otherwise rows would be late or missing, and what is measured with and without them would not be the same."""
    workload = WORKLOADS["many-one"]
    write(workload, tmp_path, rows=9_000, batch=3_000)
    found = []
    for constrained in (True, False):
        session = Session()
        session.base = tmp_path
        session.sql(workload.statements(constrained=constrained))
        result = session.run()["answer"]
        assert result.metrics.late_rows == 0
        found.append(result.to_polars().select(workload.sums).sort(workload.sums))
    assert found[0].equals(found[1])
    assert found[0].height == 3_000


def test_files_are_read_in_the_order_in_which_they_were_written(tmp_path: Path) -> None:
    write(WORKLOADS["distinct"], tmp_path, rows=1_000, batch=300)
    files = sorted((tmp_path / "R").iterdir())
    times = [file.stat().st_mtime_ns // 1_000_000 for file in files]
    assert times == sorted(set(times))
    assert batch_rows(WORKLOADS["distinct"], tmp_path) == [300, 300, 300, 100, 1, 1]


def test_warm_up_and_closing_batches_do_not_count() -> None:
    outcome = Outcome("any", [(10, 9.0), (10, 9.0), (10, 1.0), (10, 3.0), (1, 7.0), (0, 7.0)], 5, 3)
    assert outcome.rows_per_second == 5.0
    assert outcome.percentile(0.5) == 2.0
    assert Outcome.from_json(outcome.to_json()) == outcome


def test_the_ratio_is_ours_over_theirs() -> None:
    ours, theirs = (Outcome(name, [(10, s)], 5, 3) for name, s in (("headgate-spark", 1.0), ("peer", 4.0)))
    assert StreamBench("join", 10, 10, (ours, theirs)).ratio(theirs) == 4.0


def test_engines_that_disagree_are_not_compared() -> None:
    with pytest.raises(DisagreementError, match="b found 4 results"):
        _require_same([Outcome("a", [], None, 3), Outcome("b", [], None, 4)])


@pytest.mark.parametrize(
    ("engines", "rows", "batch", "message"),
    [
        (("nobody",), 10, 5, "no engine nobody"),
        (("polars",), 10, 50, "cannot be cut"),
        (("polars",), 10, 1, "cut"),
    ],
)
def test_what_cannot_be_measured_is_refused(
    engines: tuple[str, ...], rows: int, batch: int, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        run_bench("join", rows=rows, batch=batch, engines=engines)


def test_flink_is_asked_every_question() -> None:
    assert with_flink.QUERIES.keys() == WORKLOADS.keys()


def test_flink_is_left_out_where_it_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(with_flink.PYTHON, raising=False)
    if with_flink.python_with_flink() is not None:
        pytest.skip("Flink is installed here")
    assert "flink" not in available("join")
    with pytest.raises(SetupError, match="apache-flink is not installed"):
        with_flink.run("flink", WORKLOADS["join"], tmp_path, tmp_path)
    monkeypatch.setenv(with_flink.PYTHON, "elsewhere/bin/python")
    assert "flink" in available("join")
