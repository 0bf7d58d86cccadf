"""How far a stream or the clock has come, and how old a row must be for a stream's rows to have followed it."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import polars as pl
from hypothesis import example, given
from hypothesis import strategies as st

from headgate.kernels.punctuation.age import MARKS, AgePunctuator
from headgate.kernels.punctuation.clusters_in_time import ClusterInTimePunctuator
from headgate.kernels.punctuation.order import OrderPunctuator
from headgate.kernels.punctuation.order_in_time import OrderInTimePunctuator
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


@given(
    values=st.lists(st.integers(0, 900), min_size=1, max_size=600),
    step=st.integers(1, 90),
    within=st.integers(65, 400),
)
def test_of_many_rows_a_few_marks_are_remembered_and_a_few_more_rows_waited_for(
    values: list[int], step: int, within: int
) -> None:
    order, age = OrderPunctuator("a", pl.Int64(), within), AgePunctuator("aged", within)
    states, most = (order.initial(), age.initial()), within + -(-within // MARKS)
    for start in range(0, len(values), step):
        rows, clock = batch(list(values[start : start + step]), start), Clock(start - 1, start + step - 1, 0)
        (ordered, greatest), (aged, instant) = (
            order.advance(states[0], [rows], clock),
            age.advance(states[1], [rows], clock),
        )
        states, seen = (ordered, aged), start + rows.height
        assert max(ordered.rows, aged.rows) <= MARKS + 2
        said = next(iter(greatest.frame["a"]), -1)
        assert (
            max(values[: max(0, seen - most)], default=-1)
            <= said
            <= max(values[: max(0, seen - within)], default=-1)
        )
        assert seen - most < next(iter(instant.frame["aged"]), 0) + 1 <= max(1, seen - within + 1)


def test_a_step_without_rows_says_nothing_of_age() -> None:
    kernel = AgePunctuator("aged", 2)
    state, said = kernel.advance(kernel.initial(), [batch([None, None], 0)], Clock(-1, 1, 0))
    assert said.frame.select("aged", BORN).rows() == [(0, 1)]
    state, said = kernel.advance(state, [batch([], 0)], Clock(1, 9, 0))
    assert said.height == 0


Timed = list[tuple[int, int | None]]
"""Rows in order of time: how long each comes after the one before it, and its value."""

LATEST = 100
timed_rows = st.lists(st.tuples(st.integers(0, 3), st.none() | st.integers(0, 6)), max_size=25)
instants = st.sets(st.integers(0, LATEST - 1))
lengths = st.integers(0, 9)


def placed(rows: Timed) -> list[tuple[int, int | None]]:
    """The instant and the value of each row."""
    found, at = [], 0
    for gap, value in rows:
        at += gap
        found.append((at, value))
    return found


def in_step(rows: Timed, clock: Clock) -> Batch:
    """The rows that come in a step."""
    mine = [(at, value) for at, value in placed(rows) if clock.after < at <= clock.upto]
    frame = batch([value for _, value in mine], 0).frame
    return Batch(frame.with_columns(pl.Series(BORN, [at for at, _ in mine], dtype=pl.Int64)))


def clock_steps(cuts: set[int]) -> list[Clock]:
    return [Clock(after, upto, 0) for after, upto in pairwise(sorted({-1, LATEST, *cuts}))]


@given(rows=timed_rows, cuts=instants, length=lengths)
@example(rows=[(1, 3), (3, 5), (5, 9), (3, 8)], cuts={12, 13}, length=10)
def test_an_order_in_time_closes_what_is_less_than_a_value_so_long_ago(
    rows: Timed, cuts: set[int], length: int
) -> None:
    """A row at `upto` + 1 may be less than those that came up to `length` before it, and no others."""
    kernel = OrderInTimePunctuator("a", pl.Int64(), length)
    state, told = kernel.initial(), None
    assert not state.chunks()
    for clock in clock_steps(cuts):
        state, said = kernel.advance(kernel.restore(state.chunks()), [in_step(rows, clock)], clock)
        said.check(clock)
        assert said.height <= 1
        assert told is None or not said.height or said.frame["a"][0] > told
        told = said.frame["a"][0] if said.height else told
        passed = [value for at, value in placed(rows) if value is not None and clock.upto + 1 - at > length]
        assert told == max(passed, default=None)
        assert state.rows <= 1 + sum(clock.upto - length < at <= clock.upto for at, _ in placed(rows))


def test_the_clock_alone_moves_an_order_in_time_on() -> None:
    kernel = OrderInTimePunctuator("a", pl.Int64(), 10)
    rows: Timed = [(1, 3), (3, 5)]
    state, said = kernel.advance(kernel.initial(), [in_step(rows, Clock(-1, 9, 0))], Clock(-1, 9, 0))
    assert said.height == 0
    told = []
    for upto in range(10, 16):
        clock = Clock(upto - 1, upto, 0)
        state, said = kernel.advance(state, [in_step([], clock)], clock)
        told += said.frame.select("a", BORN).rows()
    assert told == [(3, 11), (5, 14)]
    assert state.rows == 1
    assert kernel.advance(state, [batch([], 0)], Clock(15, 15, 0))[1].height == 0


def test_an_order_in_time_remembers_what_may_yet_be_the_greatest() -> None:
    """Of rows that rise by the second those of the last five, and the one before; what has not risen says nothing."""
    kernel = OrderInTimePunctuator("a", pl.Int64(), 5)
    state, told = kernel.initial(), []
    for at in range(20):
        rows = batch([at, at, at - 1, None], at).frame.with_columns(pl.lit(at, dtype=pl.Int64).alias(BORN))
        state, said = kernel.advance(state, [Batch(rows)], Clock(at - 1, at, 0))
        told += said.frame["a"].to_list()
        assert state.records["a"].to_list() == list(range(max(0, at - 5), at + 1))
    assert told == list(range(15))
    after, said = kernel.advance(state, [batch([], 0)], Clock(19, 19, 0))
    assert after is state
    assert said.height == 0
    after, _ = kernel.advance(state, [batch([19, 3], 20)], Clock(19, 21, 0))
    assert after.records["a"].to_list() == [16, 17, 18, 19]
    settled, _ = kernel.advance(after, [batch([], 0)], Clock(21, 40, 0))
    assert kernel.advance(settled, [batch([], 0)], Clock(40, 41, 0))[0] is settled


@given(rows=timed_rows, cuts=instants, length=lengths)
def test_a_cluster_in_time_is_closed_so_long_after_its_last_row(
    rows: Timed, cuts: set[int], length: int
) -> None:
    kernel = ClusterInTimePunctuator({"a": pl.Int64()}, length)
    state = kernel.initial()
    assert not state.chunks()
    # A value that comes back later than that is late, and does not come here.
    known: dict[int | None, int] = {}
    kept: Timed = []
    at = 0
    for place, value in placed(rows):
        if value is None or place - known.get(value, place) <= length:
            known[value] = place
            kept.append((place - at, value))
            at = place
    told: list[tuple[int, int]] = []
    for clock in clock_steps(cuts):
        state, said = kernel.advance(kernel.restore(state.chunks()), [in_step(kept, clock)], clock)
        said.check(clock)
        told += said.frame.select("a", BORN).rows()
        assert state.rows <= sum(clock.upto - length < at <= clock.upto for at, _ in placed(kept))
    last = {value: place for place, value in placed(kept) if value is not None}
    assert told == sorted(told, key=lambda each: each[1])
    assert sorted(told) == sorted((v, at + length) for v, at in last.items() if at + length <= LATEST)


def test_a_step_of_no_length_leaves_a_cluster_in_time_as_it_is() -> None:
    kernel = ClusterInTimePunctuator({"a": pl.Int64()}, 5)
    state, _ = kernel.advance(kernel.initial(), [batch([7], 0)], Clock(-1, 0, 0))
    after, said = kernel.advance(state, [batch([], 0)], Clock(0, 0, 0))
    assert after is state
    assert said.height == 0
    assert kernel.advance(state, [batch([], 0)], Clock(0, 4, 0))[0] is state
    assert kernel.advance(state, [batch([], 0)], Clock(0, 5, 0))[0].chunks() == {}


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
