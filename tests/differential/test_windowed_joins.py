"""Joins of windows that drop rows before they die, by what their streams promise: the same answers, in less."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.differential.local import compiled, output_of
from tests.differential.punctuated import tables
from tests.differential.test_cases import row_by_row
from tests.differential.test_punctuated import pieces
from tests.differential.windowed_joins import SHAPES, WindowedJoin
from tests.oracle.oracle import Oracle
from tests.oracle.values import same_output
from tests.spark.shards import Cluster, stage_of

from headgate.kernels.join import settle_early
from headgate.kernels.join.join import Join
from headgate.physical.graph import KernelStep

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
