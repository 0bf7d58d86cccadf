"""Moments: variances, covariances and correlations from exact sums of numbers and of their products.

`n·Σxy − Σx·Σy` is computed with all its digits and rounded once, so nothing cancels, and a window that returns to the
same rows returns to the same answer.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from headgate.kernels.aggregate import digits
from headgate.kernels.aggregate.digits import Digits, Floats, Ints
from headgate.model.aggregates import Term


def of_terms(terms: tuple[Term, ...], x: Floats, y: Floats) -> dict[Term, Digits]:
    """What rows with these finite numbers add to some of the terms."""
    factors = {Term.XX: (x, x), Term.YY: (y, y), Term.XY: (x, y)}
    alone = {Term.X: x, Term.Y: y}
    return {
        term: digits.of_floats(alone[term]) if term in alone else digits.of_products(*factors[term])
        for term in terms
    }


def variance(sums: Mapping[Term, Digits], count: Ints, *, sample: bool, root: bool) -> pl.Series:
    """The variance of `count` numbers, or its square root; NULL where a sample is too small."""
    spread = _spread(sums[Term.XX], sums[Term.X], sums[Term.X], count)
    found = spread / _pairs(count, sample)
    return _where_enough(np.sqrt(found) if root else found, count, sample)


def covariance(sums: Mapping[Term, Digits], count: Ints, *, sample: bool) -> pl.Series:
    """The covariance of `count` pairs; NULL where a sample is too small."""
    spread = _spread(sums[Term.XY], sums[Term.X], sums[Term.Y], count)
    return _where_enough(spread / _pairs(count, sample), count, sample)


def correlation(sums: Mapping[Term, Digits], count: Ints) -> pl.Series:
    """Pearson's correlation of `count` pairs; NULL for fewer than two, NaN where one side does not vary."""
    both = _spread(sums[Term.XY], sums[Term.X], sums[Term.Y], count)
    x = _spread(sums[Term.XX], sums[Term.X], sums[Term.X], count)
    y = _spread(sums[Term.YY], sums[Term.Y], sums[Term.Y], count)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.clip(both / np.sqrt(x) / np.sqrt(y), -1.0, 1.0)
    # Also where it varies by less than a double can tell.
    found = np.where((x == 0) | (y == 0), np.nan, found)
    return _where_enough(found, count, sample=True)


def _spread(products: Digits, left: Digits, right: Digits, count: Ints) -> Floats:
    """`n·Σxy − Σx·Σy`, rounded once."""
    whole = digits.times(products, np.maximum(count, 0))
    for position, part in digits.product(left, right, count.size).items():
        whole[position] = whole[position] - part if position in whole else -part
    return digits.to_floats(whole, count.size)


def _pairs(count: Ints, sample: bool) -> Floats:
    number = np.maximum(count, 2 if sample else 1).astype(np.float64)
    return number * (number - 1) if sample else number * number


def _where_enough(found: Floats, count: Ints, sample: bool) -> pl.Series:
    enough = pl.Series(count >= (2 if sample else 1))
    return pl.select(pl.when(enough).then(pl.Series(found))).to_series()
