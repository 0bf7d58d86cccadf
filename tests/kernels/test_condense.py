"""Rows of a group that were added up apart make the same aggregate, to the last bit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kernels.aggregate_reference import Row, batch_of, run
from tests.kernels.test_aggregate_random import END, KEYS, VALUES, calls_over, cuts, fewer, in_order, rows

from headgate.kernels.aggregate import Aggregate, AggregateCall, AggregateState, Function
from headgate.kernels.aggregate.condense import Condense, is_mergeable, merging
from headgate.kernels.stateless import EmptyState
from headgate.model.batch import Batch
from headgate.model.time import Clock

SHARDS = 3
SECOND = AggregateCall(Function.SUM, "x", "sum")


@dataclass(frozen=True)
class InParts(Aggregate):
    """The aggregate over rows that three shards have condensed, each its own."""

    def advance(
        self, state: AggregateState, inputs: Sequence[Batch], clock: Clock
    ) -> tuple[AggregateState, Batch]:
        [batch] = inputs
        parts = [
            Condense(self).advance(EmptyState(), [Batch(batch.frame[shard::SHARDS])], clock)[1]
            for shard in range(SHARDS)
        ]
        return merging(self).advance(state, [Batch.concat(parts)], clock)


@pytest.mark.parametrize("dtype", VALUES, ids=str)
@fewer
@given(st.data())
def test_parts_together_say_what_all_rows_say(dtype: pl.DataType, data: st.DataObject) -> None:
    key = data.draw(st.sampled_from(list(KEYS)))
    endings, keys = data.draw(st.booleans()), data.draw(st.sampled_from([(), ("k",)]))
    schema = {"k": key, "x": dtype}
    mergeable = [
        call
        for call in calls_over(dtype, key)
        if is_mergeable(Aggregate(schema, keys, (call,), endings=endings))
    ]
    calls = data.draw(st.lists(st.sampled_from(mergeable), min_size=1, max_size=4, unique=True))
    kernel = Aggregate(schema, keys, tuple(calls), endings=endings)
    given_rows = data.draw(rows(VALUES[dtype], KEYS[key], endings=endings))
    whole, _ = run(kernel, given_rows, until=END)
    parts = InParts(kernel.schema, kernel.keys, kernel.calls, endings=endings)
    said, _ = run(parts, given_rows, cuts=data.draw(cuts), until=END, restoring=data.draw(st.booleans()))
    assert in_order(said) == in_order(whole)


def test_rows_that_live_and_die_together_are_one() -> None:
    kernel = Aggregate({"k": pl.Int64(), "x": pl.Float64()}, ("k",), (SECOND,))
    many = [Row((each % 2, 0.1), 5, 9) for each in range(1_000)]
    _, said = Condense(kernel).advance(EmptyState(), [batch_of(kernel.schema, many)], Clock(0, 9, 0))
    assert said.height == 2
    assert said.frame["+rows"].to_list() == [500, 500]


def test_a_negative_zero_is_condensed_as_zero() -> None:
    kernel = Aggregate({"k": pl.Float64(), "x": pl.Float64()}, ("k",), (SECOND,))
    rows = [Row((key, 1.0), 5, 9) for key in (-0.0, 7.0, None, 0.0, float("nan"))]
    _, said = Condense(kernel).advance(EmptyState(), [batch_of(kernel.schema, rows)], Clock(0, 9, 0))
    # By their text, because -0.0 == 0.0.
    assert sorted(map(str, said.frame["k"])) == ["0.0", "7.0", "None", "nan"]


def test_what_single_values_matter_to_cannot_be_condensed() -> None:
    def mergeable(call: AggregateCall, *, endings: bool = False) -> bool:
        return is_mergeable(Aggregate({"x": pl.Int64()}, (), (call,), endings=endings))

    assert mergeable(SECOND, endings=True)
    assert mergeable(AggregateCall(Function.MIN, "x", "least"))
    assert not mergeable(AggregateCall(Function.MIN, "x", "least"), endings=True)
    assert not mergeable(AggregateCall(Function.MEDIAN, "x", "middle"))
    assert not mergeable(AggregateCall(Function.COUNT, "x", "values", distinct=True))
