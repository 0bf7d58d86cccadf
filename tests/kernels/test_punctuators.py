"""How far a stream or the clock has come, and how old a row must be for a stream's rows to have followed it."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import polars as pl
from hypothesis import example, given
from hypothesis import strategies as st

from headgate.kernels.punctuation.age import AgePunctuator
from headgate.kernels.punctuation.order import OrderPunctuator
from headgate.kernels.punctuation.watermark import WatermarkPunctuator
from headgate.model.batch import BORN, DIES, SIGN, Batch
from headgate.model.time import NEVER, Clock

Values = list[int | None]


def batch(values: Values, start: int) -> Batch:
    return Batch(
        pl.DataFrame(
            {
                "a": pl.Series(values, dtype=pl.Int64),
                BORN: pl.Series(range(start, start + len(values)), dtype=pl.Int64),
                DIES: pl.Series([NEVER] * len(values), dtype=pl.Int64),
                SIGN: pl.Series([1] * len(values), dtype=pl.Int8),
            }
        )
    )


@given(
    values=st.lists(st.none() | st.integers(0, 50), max_size=30),
    cuts=st.sets(st.integers(0, 30)),
    within=st.integers(0, 5),
)
def test_an_order_closes_what_is_less_than_a_value_that_enough_rows_have_followed(
    values: Values, cuts: set[int], within: int
) -> None:
    kernel = OrderPunctuator("a", pl.Int64(), within)
    state = kernel.initial()
    assert not state.chunks()
    places = sorted({0, len(values), *(cut for cut in cuts if cut <= len(values))})
    for before, after in pairwise(places):
        state = kernel.restore(state.chunks())
        clock = Clock(before - 1, after - 1, 0)
        state, said = kernel.advance(state, [batch(values[before:after], before)], clock)
        followed = [value for value in values[: max(0, after - within)] if value is not None]
        assert said.frame.select("a", BORN).rows() == ([(max(followed), after - 1)] if followed else [])
        assert state.rows <= within + 1


@given(
    count=st.integers(0, 30),
    cuts=st.sets(st.integers(0, 30)),
    within=st.integers(0, 5),
)
@example(count=3, cuts={1, 2}, within=0)
def test_a_row_is_aged_when_so_many_have_come_after_its_instant(
    count: int, cuts: set[int], within: int
) -> None:
    kernel = AgePunctuator("aged", within)
    state = kernel.initial()
    assert not state.chunks()
    places = sorted({0, count, *(cut for cut in cuts if cut <= count)})
    for before, after in pairwise(places):
        state = kernel.restore(state.chunks())
        clock = Clock(before - 1, after - 1, 0)
        state, said = kernel.advance(state, [batch([None] * (after - before), before)], clock)
        instant = next(iter(said.frame["aged"]), -1)
        for other in range(after):
            followed = sum(row > other for row in range(after))
            assert (other < instant) == (followed >= within)
        said.check(clock)
        assert state.rows <= within


def test_a_step_without_rows_says_nothing_of_age() -> None:
    kernel = AgePunctuator("aged", 2)
    state, said = kernel.advance(kernel.initial(), [batch([None, None], 0)], Clock(-1, 1, 0))
    assert said.frame.select("aged", BORN).rows() == [(0, 1)]
    state, said = kernel.advance(state, [batch([], 0)], Clock(1, 9, 0))
    assert said.height == 0


@given(
    upto=st.integers(-(10**17), 10**17),
    scale=st.fractions(Fraction(1, 1000), 10**12),
    lag=st.integers(0, 10**9),
    dtype=st.sampled_from(
        [(pl.Int8(), 7), (pl.Int16(), 15), (pl.Int32(), 31), (pl.Date(), 31), (pl.Int64(), 63)]
    ),
)
def test_the_clock_closes_the_values_whose_instants_are_past(
    upto: int, scale: Fraction, lag: int, dtype: tuple[pl.DataType, int]
) -> None:
    """The value that is told is the first that may still come, as far as the type has such values."""
    kernel = WatermarkPunctuator("a", dtype[0], scale, lag)
    _, said = kernel.advance(kernel.initial(), [], Clock(upto - 1, upto, None))
    [value] = said.frame["a"].to_physical().to_list()
    largest = 2 ** dtype[1] - 1
    if value > -largest:
        assert (value - 1) * scale + lag < upto + 1
    if value < largest:
        assert value * scale + lag >= upto + 1
    _, said = kernel.advance(kernel.initial(), [], Clock(upto, upto, None))
    assert said.height == 0
