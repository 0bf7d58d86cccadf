"""When kernels that forget closed values look through what they keep: often enough, and no more often."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
import pytest

from headgate.kernels.aggregate import (
    Aggregate,
    AggregateCall,
    ClosedArgument,
    ClosingAggregate,
    ClosingValues,
    Function,
)
from headgate.kernels.distinct.closing_difference import ClosingDifference
from headgate.kernels.distinct.closing_distinct import ClosingDistinct
from headgate.kernels.distinct.difference import Difference
from headgate.kernels.distinct.distinct import Distinct
from headgate.kernels.kernel import Kernel
from headgate.kernels.settled import Settled
from headgate.model.batch import LIFETIME_SCHEMA, Batch
from headgate.model.time import NEVER, Clock

ROW = {"k": pl.Int64(), "x": pl.Int64()}
KEY = {"k": pl.Int64()}
X = {"x": pl.Int64()}

COUNT = AggregateCall(Function.COUNT, None, "n")
COUNT_K = AggregateCall(Function.COUNT, "k", "ks", distinct=True)
COUNT_X = AggregateCall(Function.COUNT, "x", "xs", distinct=True)


def batch(schema: Mapping[str, pl.DataType], values: Sequence[Sequence[int | None]], at: int) -> Batch:
    rows = [(*value, at, NEVER, 1) for value in values]
    return Batch(pl.DataFrame(rows, schema={**schema, **LIFETIME_SCHEMA}, orient="row"))


def kernels(below: bool) -> list[Kernel[Any]]:
    """Each kernel that forgets values of `k` that one input, or each side, has closed."""
    return [
        ClosingAggregate(Aggregate(ROW, ("k",), (COUNT,), endings=False), ("k",), (below,)),
        ClosingValues(
            Aggregate(ROW, (), (COUNT_K,), endings=False), (ClosedArgument("k", ("k",), (below,)),)
        ),
        ClosingDistinct(Distinct(ROW), ("k",), (below,)),
        ClosingDifference(Difference(ROW), ("k",), (below, below)),
        Settled(ROW, ("k",), ("k",), (below,)),
    ]


def advanced(kernel: Kernel[Any], state: Any, at: int, keys: Sequence[int], closed: Sequence[int]) -> Any:
    """The state after a step with rows of some keys and closings of some."""
    sides = 2 if isinstance(kernel, ClosingDifference) else 1
    inputs = [batch(ROW, [(key, 0) for key in keys], at)] * sides
    closings = [batch(KEY, [(key,) for key in closed], at)] * sides
    return kernel.advance(state, [*inputs, *closings], Clock(at - 1, at, 1))[0]


@pytest.mark.parametrize("kernel", kernels(below=False), ids=lambda kernel: type(kernel).__name__)
def test_a_sweep_waits_for_as_many_closings_as_are_kept(kernel: Kernel[Any]) -> None:
    state = advanced(kernel, kernel.initial(), 1, range(2_000), range(10_000, 10_200))
    assert (state.closings.since, state.closings.kept >= 2_000) == (0, True)
    for step in range(4):
        state = advanced(kernel, state, 2 + step, (), range(400 * step, 400 * step + 200))
        assert state.closings.since > 0, "what is kept was looked through for a tenth of it"


@pytest.mark.parametrize("kernel", kernels(below=True), ids=lambda kernel: type(kernel).__name__)
def test_values_that_one_closing_closes_are_forgotten_as_rows_come(kernel: Kernel[Any]) -> None:
    state = kernel.initial()
    for step in range(1, 21):
        keys = range(100 * step, 100 * step + 100)
        state = advanced(kernel, state, step, keys, [keys[-1]])
    assert state.rows <= 1_000


@pytest.mark.parametrize("value", [None, 7])
@pytest.mark.parametrize("function", [Function.MEDIAN, Function.MAX, Function.SUM])
def test_nothing_is_left_of_groups_that_are_closed(function: Function, value: int | None) -> None:
    call = AggregateCall(function, "x", "y")
    kernel = ClosingAggregate(Aggregate(ROW, ("k",), (call,), endings=False), ("k",), (False,))
    keys = range(200)
    closings = batch(KEY, [(key,) for key in keys], 1)
    inputs = [batch(ROW, [(key, value) for key in keys], 1), closings]
    state, said = kernel.advance(kernel.initial(), inputs, Clock(0, 1, 1))
    assert said.height == 200
    assert state.rows == 0


def test_one_argument_whose_values_are_closed_one_by_one_does_not_delay_the_other() -> None:
    kernel = ClosingValues(
        Aggregate(ROW, (), (COUNT_K, COUNT_X), endings=False),
        (ClosedArgument("k", ("k",), (True,)), ClosedArgument("x", ("x",), (False,))),
    )
    state = kernel.initial()
    for step in range(1, 21):
        keys = range(100 * step, 100 * step + 100)
        inputs = [
            batch(ROW, [(key, 0) for key in keys], step),
            batch(KEY, [keys[-1:]], step),
            batch(X, [], step),
        ]
        state, _ = kernel.advance(state, inputs, Clock(step - 1, step, 1))
    assert state.values.bags["k"].rows <= 500
