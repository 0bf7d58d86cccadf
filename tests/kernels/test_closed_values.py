"""What is remembered of the values that a stream has closed."""

from __future__ import annotations

import polars as pl

from headgate.kernels.state.closed_values import ClosedValues
from headgate.model.batch import BORN
from headgate.model.time import Clock


def heard_in_steps(*steps: list[int | None], below: bool) -> ClosedValues:
    heard = ClosedValues.nothing({"k": pl.Int64()}, below=below)
    for number, values in enumerate(steps):
        said = pl.DataFrame({"k": values, BORN: number}, schema={"k": pl.Int64, BORN: pl.Int64})
        heard = heard.observe(said, Clock(number - 1, number, 0))
    return heard


def closed(heard: ClosedValues, *values: int | None) -> list[bool]:
    return heard.closes(pl.DataFrame({"x": values}, schema={"x": pl.Int64}), ["x"]).to_list()


def test_values_are_closed_one_by_one() -> None:
    heard = heard_in_steps([3, None, 7], [5, 3], below=False)
    assert closed(heard, 3, 4, 5, 7, 8, None) == [True, False, True, True, False, False]
    assert heard.frame["k"].to_list() == [3, 7, 5]


def test_of_values_that_close_all_lesser_ones_the_greatest_is_remembered() -> None:
    heard = heard_in_steps([3, None, 7], [5], below=True)
    assert heard.rows == 1
    assert closed(heard, 2, 6, 7, 8, None) == [True, True, False, False, False]


def test_before_anything_is_closed_nothing_is() -> None:
    assert closed(heard_in_steps([None], below=True), 1, None) == [False, False]
