"""AggregateCall: one aggregate function over columns of the input, and the type of what it gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

import polars as pl

from headgate.kernels.expressions.dtypes import arrow_type, polars_type
from headgate.model import aggregates
from headgate.model.aggregates import Accumulator, Distinct, Function, Parameter, Reading, Second, Structure


@dataclass(frozen=True)
class AggregateCall:
    """`function` over the column `argument` (none: COUNT(*)), whose result is the column `output`.

    `parameter` is the share of a quantile, in [0, 1], and the number of values of TOP, at least 1; `second` is the
    column that some functions read besides.
    """

    function: Function
    argument: str | None
    output: str
    distinct: bool = False
    parameter: float | int | None = None
    second: str | None = None

    def __post_init__(self) -> None:
        traits, given = self.function.traits, self.parameter
        if self.argument is None and (self.accumulator is not Accumulator.COUNT or self.distinct):
            raise ValueError(f"{self.function} needs an argument")
        if (self.second is None) is not (traits.second is Second.NOTHING):
            raise ValueError(f"{self.function} has another number of arguments")
        if self.distinct and traits.distinct is Distinct.REFUSED:
            raise ValueError(f"{self.function} has no DISTINCT")
        match traits.parameter:
            case Parameter.NONE:
                pass
            case Parameter.SHARE:
                if given is None or not 0 <= given <= 1:
                    raise ValueError(f"{self.function} needs a share from 0 to 1, not {given}")
            case Parameter.SIZE:
                if not isinstance(given, int) or given < 1:
                    raise ValueError(f"{self.function} needs a number of values, not {given}")
            case never:
                assert_never(never)

    @property
    def accumulator(self) -> Accumulator:
        return self.function.traits.accumulator

    @property
    def reading(self) -> Reading:
        return self.function.traits.reading

    @property
    def reads(self) -> str | None:
        """A name for what is read of a row: calls of the same name share what is kept of it."""
        if self.argument is None or self.reading is Reading.VALUE:
            return self.argument
        # No column of a query begins with this mark.
        return f"\x1f{self.reading.name} {self.argument} {self.second or ''}"

    @property
    def of_distinct(self) -> bool:
        """Whether each different value counts once. For MIN and MAX it makes no difference."""
        return self.distinct and self.function.traits.distinct is Distinct.ONCE_EACH

    @property
    def structure(self) -> Structure:
        """Where what it needs is kept."""
        return Structure.PRESENCES if self.of_distinct else self.accumulator.structure

    @property
    def share(self) -> float:
        """The share of a quantile."""
        return 0.5 if self.parameter is None else float(self.parameter)

    def result_type(self, schema: Mapping[str, pl.DataType]) -> pl.DataType:
        """The type of the result over columns of these types, as Spark SQL has it."""
        given = [arrow_type(schema[name]) if name else None for name in (self.argument, self.second)]
        found = aggregates.result_type(self.function, *given)
        if found is None:
            raise ValueError(f"{self.function} of a column of type {schema[str(self.argument)]}")
        return polars_type(found)
