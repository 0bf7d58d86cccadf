"""AggregateCall: one aggregate function over one column, and the type of what it gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import polars as pl

from headgate.kernels.aggregate import frequent


class Function(StrEnum):
    """The aggregate functions, by their SQL names."""

    COUNT = "COUNT"
    SUM = "SUM"
    AVG = "AVG"
    MIN = "MIN"
    MAX = "MAX"
    MEDIAN = "MEDIAN"
    QUANTILE = "QUANTILE"
    TOP = "TOP"


_ADDING = (Function.SUM, Function.AVG)
_NUMERIC = (*_ADDING, Function.MEDIAN, Function.QUANTILE)
_COUNTING_DISTINCT = (Function.COUNT, *_ADDING)

_LONGEST_DECIMAL = 38


@dataclass(frozen=True)
class AggregateCall:
    """`function` over the column `argument` (none: COUNT(*)), whose result is the column `output`.

    `parameter` is the share of QUANTILE, in [0, 1], and the number of values of TOP, at least 1.
    """

    function: Function
    argument: str | None
    output: str
    distinct: bool = False
    parameter: float | int | None = None

    def __post_init__(self) -> None:
        if self.argument is None and (self.function != Function.COUNT or self.distinct):
            raise ValueError(f"{self.function} needs an argument")
        if self.distinct and self.function not in (*_COUNTING_DISTINCT, Function.MIN, Function.MAX):
            raise ValueError(f"{self.function} has no DISTINCT")
        given = self.parameter
        if self.function == Function.QUANTILE and (given is None or not 0 <= given <= 1):
            raise ValueError(f"QUANTILE needs a share from 0 to 1, not {given}")
        if self.function == Function.TOP and (not isinstance(given, int) or given < 1):
            raise ValueError(f"TOP needs a number of values, not {given}")

    @property
    def adds(self) -> bool:
        """Whether the values themselves are added up."""
        return self.function in _ADDING

    @property
    def of_distinct(self) -> bool:
        """Whether each different value counts once. For MIN and MAX it makes no difference."""
        return self.distinct and self.function in _COUNTING_DISTINCT

    @property
    def share(self) -> float:
        """The share of a quantile."""
        return 0.5 if self.parameter is None else float(self.parameter)

    def result_type(self, schema: Mapping[str, pl.DataType]) -> pl.DataType:
        """The type of the result over columns of these types, as Spark SQL has it."""
        if self.argument is None:
            return pl.Int64()
        dtype = schema[self.argument]
        if self.function in _NUMERIC and not dtype.is_numeric():
            raise ValueError(f"{self.function} of a column of type {dtype}")
        match self.function:
            case Function.COUNT:
                return pl.Int64()
            case Function.SUM if isinstance(dtype, pl.Decimal):
                return pl.Decimal(min(_LONGEST_DECIMAL, dtype.precision + 10), dtype.scale)
            case Function.SUM:
                return pl.Float64() if dtype.is_float() else pl.Int64()
            case Function.AVG if isinstance(dtype, pl.Decimal):
                longest = _LONGEST_DECIMAL
                return pl.Decimal(min(longest, dtype.precision + 4), min(longest, dtype.scale + 4))
            case Function.AVG | Function.MEDIAN | Function.QUANTILE:
                return pl.Float64()
            case Function.MIN | Function.MAX:
                return dtype
            case Function.TOP:
                return frequent.result_type(dtype)
