"""The rows that can still be the extreme of their group."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from headgate.kernels.aggregate.frontier import DIES, GROUP, VALUE, Frontier


def rows(*groups: int) -> pl.DataFrame:
    """A row for each, that dies at 100 and has the number of its group as value."""
    return pl.DataFrame({GROUP: groups, DIES: [100] * len(groups), VALUE: groups})


@pytest.mark.parametrize(
    ("gone", "left"), [([4], [0, 1, 2, 3]), ([0, 1, 2, 3], [4]), ([1, 4], [0, 2, 3]), ([0, 1, 2, 3, 4], [])]
)
def test_groups_go_from_all_runs_or_some(gone: list[int], left: list[int]) -> None:
    frontier = Frontier(largest=False).advance(rows(0, 1, 2, 3), 1).advance(rows(4), 2)
    assert len(frontier.runs) == 2
    after = frontier.without(np.array(gone), 3)
    assert [group for run in after.runs for group in run.group.tolist()] == left
