"""Few values: a condition that leaves a column finitely many values, as a placeholder for the real ones."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

FEW = 1000
"""How many values a proposed range leaves to a column."""

LISTED = ("value 1", "value 2")
"""What stands for the values of text."""


def few_values(column: exp.Expr, dtype: pa.DataType) -> tuple[exp.Expr, str] | None:
    """The condition and how it is said; None for types whose values cannot be listed or counted."""
    if pa.types.is_integer(dtype):
        low, high = exp.Literal.number(0), exp.Literal.number(FEW - 1)
        return exp.Between(this=column, low=low, high=high), f"from 0 to {FEW - 1} (a placeholder)"
    if pa.types.is_string(dtype):
        values: list[exp.Expr] = [exp.Literal.string(each) for each in LISTED]
        return exp.In(this=column, expressions=values), "among the listed values (placeholders)"
    return None
