"""Joins of windows that drop rows before they die, by what their streams promise: the same answers, in less."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.differential.local import compiled, output_of, ran
from tests.differential.punctuated import tables
from tests.differential.test_cases import row_by_row
from tests.differential.test_punctuated import pieces
from tests.differential.windowed_joins import SHAPES, WindowedJoin
from tests.oracle.oracle import Oracle
from tests.oracle.values import same_output
from tests.spark.shards import Cluster, stage_of

from headgate.kernels.join import settle_early
from headgate.kernels.join.join import Join
from headgate.model import monitoring
from headgate.model.monitoring import Monitoring
from headgate.physical.graph import KernelStep
from headgate.runtime.query import Metrics

JOINS = st.builds(WindowedJoin, st.sampled_from(sorted(SHAPES)), st.integers(0, 100_000), st.just(24))


@pytest.fixture(autouse=True)
def looking_often(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Looks at what is stored in every step in which as much came as is stored."""
    monkeypatch.setattr(settle_early, "_FEW", 1)
    return


@given(join=JOINS, often=st.booleans())
def test_dropping_rows_early_changes_no_answer(join: WindowedJoin, often: bool) -> None:
    rows = tables(join.text, join.rows)
    found = output_of(join.text, "q", pieces(rows, Random(join.seed)), {}, restore_every_step=often)
    assert same_output(found, output_of(join.plain, "q", [rows], {}))


@given(join=JOINS, way=st.integers(0, 3))
def test_dropping_rows_early_in_shards_changes_no_answer(join: WindowedJoin, way: int) -> None:
    rows = tables(join.text, join.rows)
    cluster = Cluster(stage_of(join.text, "q", {}, shards=4, way=way))
    for piece in pieces(rows, Random(join.seed)):
        cluster.batch({stream: [table] for stream, table in piece.items() if table.num_rows})
    cluster.end()
    assert not any(cluster.late.values())
    assert same_output(cluster.changes(), output_of(join.plain, "q", [rows], {}))


@pytest.fixture
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Monitors that find a k soon, and see every distance that is greater."""
    monkeypatch.setattr(monitoring, "DEFAULT", Monitoring(window=3, sampled=1.0))


@pytest.mark.usefixtures("small_windows")
@given(join=JOINS, often=st.booleans())
def test_what_is_observed_changes_no_answer_while_rows_keep_to_it(join: WindowedJoin, often: bool) -> None:
    rows = tables(join.text, join.rows)
    arrivals = pieces(rows, Random(join.seed))
    found, metrics = ran(join.observed, "q", arrivals, {}, restore_every_step=often)
    if not violations(metrics):
        assert same_output(found, output_of(join.plain, "q", [rows], {}))


@pytest.mark.usefixtures("small_windows")
@given(join=JOINS, way=st.integers(0, 3))
def test_each_shard_observes_its_own_rows(join: WindowedJoin, way: int) -> None:
    rows = tables(join.text, join.rows)
    cluster = Cluster(stage_of(join.observed, "q", {}, shards=4, way=way))
    for piece in pieces(rows, Random(join.seed)):
        cluster.batch({stream: [table] for stream, table in piece.items() if table.num_rows})
    cluster.end()
    if not any(violations(metrics) for metrics in cluster.metrics):
        assert same_output(cluster.changes(), output_of(join.plain, "q", [rows], {}))


def violations(metrics: Metrics) -> int:
    """How often rows have strayed from what was in use."""
    return sum(each["violations"] for each in metrics.constraints.values())


@pytest.mark.usefixtures("small_windows")
def test_many_of_them_find_a_k_and_keep_to_it() -> None:
    found = []
    for join in (WindowedJoin(shape, seed, 24) for shape in SHAPES for seed in range(8)):
        _, metrics = ran(join.observed, "q", [tables(join.text, join.rows)], {})
        known = metrics.constraints.values()
        found.append(any(each["k"] is not None for each in known) and not violations(metrics))
    assert sum(found) > 0.1 * len(found)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_oracle_agrees(shape: str) -> None:
    for seed in range(2):
        join = WindowedJoin(shape, seed, 9)
        rows = tables(join.text, join.rows)
        assert same_output(
            output_of(join.text, "q", row_by_row(rows), {}), Oracle(join.text, rows, {}).output("q")
        )


def test_nearly_all_of_them_drop_rows_early() -> None:
    drops = [_drops_early(WindowedJoin(shape, seed)) for shape in SHAPES for seed in range(6)]
    assert sum(drops) > 0.8 * len(drops)


def _drops_early(join: WindowedJoin) -> bool:
    steps = [step for step in compiled(join.text, "q", {}).graph.steps if isinstance(step, KernelStep)]
    return any(isinstance(step.kernel, Join) and step.kernel.early is not None for step in steps)
