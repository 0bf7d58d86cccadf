"""Bound scalars as Polars expressions with the behaviour of Spark SQL 4 in ANSI mode."""

from headgate.kernels.expressions import (
    arithmetic,
    calendar,
    logic,
    nested,
    numbers,
    patterns,
    temporal,
    text,
)
from headgate.kernels.expressions.dtypes import polars_type
from headgate.kernels.expressions.evaluate import compile_scalar, evaluate, keep_rows
from headgate.kernels.expressions.supported import SUPPORTED_FUNCTIONS

# Imported because importing them registers their functions.
_FAMILIES = (arithmetic, calendar, logic, nested, numbers, patterns, temporal, text)

__all__ = ["SUPPORTED_FUNCTIONS", "compile_scalar", "evaluate", "keep_rows", "polars_type"]
