"""APPROX_COUNT_DISTINCT: how far its estimates are from the numbers of values."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from headgate.kernels.aggregate.coupons import coupons, estimate

PER_CENT = 0.011
"""The error that the documents state, on average."""


@pytest.mark.parametrize("count", [1_000, 20_000, 200_000])
def test_errors_are_as_large_as_is_said(count: int) -> None:
    errors = []
    for first in range(0, 8 * count, count):
        cells = coupons(pl.Series(range(first, first + count), dtype=pl.Int64)).unique()
        assert cells.is_between(0, 64 * 4_096 - 1).all()
        errors.append(estimate(np.array([cells.len()])).item() / count - 1)
    assert np.sqrt(np.mean(np.square(errors))) < 2 * PER_CENT
