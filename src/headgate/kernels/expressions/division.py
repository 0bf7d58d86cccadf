"""Division of floating-point numbers."""

from __future__ import annotations

import polars as pl


def divided(dividend: pl.Expr, divisor: pl.Expr | float) -> pl.Expr:
    """The floating-point number nearest to a quotient.

    Where all rows have one divisor Polars multiplies by its reciprocal, and 3 / 10 is more than 0.3. With the nothing
    that is added to it in each row that has a dividend, it is a column.
    """
    return dividend / (divisor + dividend.is_null().cast(pl.Float64))
