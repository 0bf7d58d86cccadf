"""How much an aggregate remembers, and that its states are values."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.kernels.aggregate import Aggregate, AggregateCall, AggregateState, Function
from headgate.kernels.aggregate.extremes import NONE, least_cover
from headgate.kernels.aggregate.frontier import undominated
from headgate.model.batch import BORN, DIES, SIGN, Batch
from headgate.model.time import BEGINNING, NEVER, Clock

Ints = npt.NDArray[np.int64]

SCHEMA = {"k": pl.Int64(), "x": pl.Float64()}


def kernel(function: Function, *, distinct: bool = False, endings: bool = False) -> Aggregate:
    call = AggregateCall(function, "x", "y", distinct)
    return Aggregate(SCHEMA, ("k",), (call,), slide=None, append=False, endings=endings)


def batch(key: Ints, x: Ints, born: Ints, dies: Ints | int, sign: int = 1) -> Batch:
    columns = {"k": key, "x": x.astype(float), BORN: born, DIES: np.broadcast_to(dies, born.shape)}
    return Batch(pl.DataFrame(columns).with_columns(pl.lit(sign, pl.Int8).alias(SIGN)))


def windows(aggregate: Aggregate, length: int, steps: int, size: int, x: str = "random") -> AggregateState:
    """The state after steps of `size` rows, one an instant, each of which lives for `length` instants."""
    random = np.random.default_rng(0)
    state = aggregate.initial()
    for step in range(steps):
        born = np.arange(step * size, (step + 1) * size)
        values = {"random": random.integers(0, 10**6, size), "rising": born, "falling": -born}[x]
        clock = Clock(BEGINNING if step == 0 else int(born[0]) - 1, int(born[-1]), 0)
        state, _ = aggregate.advance(state, [batch(born % 10, values, born, born + length)], clock)
    return state


class TestSize:
    def test_a_sum_keeps_one_row_for_a_group_and_a_death(self) -> None:
        aggregate = kernel(Function.SUM)
        born = np.repeat(np.arange(0, 100, 10), 50)
        rows = batch(np.arange(500) % 5, np.arange(500), born, born + 40)
        state, _ = aggregate.advance(aggregate.initial(), [rows], Clock(-1, 95, 0))
        # Five groups, four ticks ahead.
        assert state.pending.rows == 20

    def test_a_window_holds_as_many_announced_deaths_as_it_has_rows(self) -> None:
        state = windows(kernel(Function.SUM), length=1_000, steps=40, size=100)
        assert state.pending.live == -1_000
        assert 1_000 <= state.pending.rows <= 2 * 1_000 + 1_024

    @pytest.mark.parametrize(("function", "x"), [(Function.MAX, "rising"), (Function.MIN, "falling")])
    def test_a_new_extreme_makes_the_rest_forgotten(self, function: Function, x: str) -> None:
        state = windows(kernel(function), length=1_000, steps=40, size=100, x=x)
        (frontier,) = state.frontiers.values()
        assert frontier.rows <= 3 * 10

    def test_random_extremes_keep_few_rows(self) -> None:
        state = windows(kernel(Function.MAX), length=4_000, steps=60, size=100)
        (frontier,) = state.frontiers.values()
        # Of 400 rows in a group about ln 400 matter.
        assert frontier.rows <= 3 * 10 * np.log(400)

    def test_rows_that_all_matter_are_all_kept_and_leave_when_they_die(self) -> None:
        state = windows(kernel(Function.MAX), length=1_000, steps=40, size=100, x="falling")
        (frontier,) = state.frontiers.values()
        assert 1_000 <= frontier.rows <= 2_500

    def test_an_old_frontier_is_forgotten_when_new_rows_beat_it(self) -> None:
        aggregate = kernel(Function.MAX)
        state = windows(aggregate, length=10**9, steps=10, size=100, x="falling")
        (before,) = state.frontiers.values()
        assert before.rows == 1_000
        for step in range(10, 30):
            born = np.arange(step * 100, (step + 1) * 100)
            rows = batch(born % 10, born, born, born + 10**9)
            state, _ = aggregate.advance(state, [rows], Clock(int(born[0]) - 1, int(born[-1]), 0))
        (after,) = state.frontiers.values()
        assert after.rows <= 30

    @pytest.mark.parametrize("function", [Function.SUM, Function.MEDIAN])
    def test_announced_deaths_that_are_taken_back_do_not_pile_up(self, function: Function) -> None:
        aggregate = kernel(function, endings=True)
        state = aggregate.initial()
        key = np.arange(100)
        for step in range(60):
            now = np.full(100, step)
            rows = [batch(key, key, now, 10**6 + step)]
            if step:
                rows.append(batch(key, key, now, 10**6 + step - 1, sign=-1))
            state, _ = aggregate.advance(state, [Batch.concat(rows)], Clock(step - 1, step, 0))
        assert state.pending.live == -100
        assert state.pending.rows <= 2 * 100 + 1_024
        assert all(bag.pending.rows <= 2 * 100 + 1_024 for bag in state.bags.values())
        assert all(bag.tally.rows <= 2 * 100 for bag in state.bags.values())

    @pytest.mark.parametrize("endings", [False, True])
    @pytest.mark.parametrize("function", [Function.SUM, Function.MIN, Function.MEDIAN])
    def test_a_group_that_is_gone_leaves_nothing_behind(self, function: Function, endings: bool) -> None:
        aggregate = kernel(function, endings=endings)
        state = aggregate.initial()
        for step in range(50):
            born = np.full(20, step)
            rows = batch(np.arange(20) + 20 * step, np.arange(20), born, step + 3)
            state, _ = aggregate.advance(state, [rows], Clock(step - 1, step, 0))
        # Sixty groups are alive; a thousand have been.
        assert state.groups.rows <= 4 * 60
        state, _ = aggregate.advance(state, [Batch.empty(SCHEMA)], Clock(49, 60, 0))
        assert state.rows == 0
        assert state.chunks() == {}


class TestValues:
    @pytest.mark.parametrize("function", [Function.SUM, Function.MAX, Function.MEDIAN])
    def test_a_step_shares_what_it_does_not_change(self, function: Function) -> None:
        aggregate = kernel(function)
        state = windows(aggregate, length=10**6, steps=30, size=1_000)
        one = np.array([40_000])
        following, _ = aggregate.advance(
            state, [batch(one % 10, one, one, one + 10**6)], Clock(29_999, 40_000, 0)
        )
        before, after = state.chunks(), following.chunks()
        new = sum(frame.height for name, frame in after.items() if before.get(name) is not frame)
        assert new < state.rows / 3

    def test_a_state_can_be_advanced_twice(self) -> None:
        aggregate = kernel(Function.AVG, distinct=True, endings=True)
        state = windows(aggregate, length=500, steps=10, size=100)
        chunks = {name: frame.clone() for name, frame in state.chunks().items()}
        now = np.arange(1_000, 1_100)
        clock = Clock(999, 1_099, 0)
        first, one = aggregate.advance(state, [batch(now % 10, now, now, NEVER)], clock)
        second, other = aggregate.advance(state, [batch(now % 10, now, now, NEVER)], clock)
        assert one.frame.equals(other.frame)
        assert all(frame.equals(state.chunks()[name]) for name, frame in chunks.items())
        assert all(frame.equals(second.chunks()[name]) for name, frame in first.chunks().items())

    def test_an_empty_step_leaves_the_state_alone(self) -> None:
        aggregate = kernel(Function.SUM)
        state = windows(aggregate, length=500, steps=2, size=100)
        same, output = aggregate.advance(state, [Batch.empty(SCHEMA)], Clock(199, 199, 0))
        assert same is state
        assert output.height == 0

    def test_bytes_are_counted(self) -> None:
        state = windows(kernel(Function.SUM), length=10**6, steps=2, size=1_000)
        assert state.nbytes >= 2_000 * 8
        assert kernel(Function.SUM).initial().nbytes == 0


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 31), st.integers(-5, 5)), max_size=12))
def test_the_least_cover_is_the_least_of_all_covers(spans: list[tuple[int, int, int]]) -> None:
    low, high, key = (
        (np.array(column, dtype=np.int64) for column in zip(*spans, strict=True))
        if spans
        else (np.empty(0, dtype=np.int64),) * 3
    )
    high = low + high
    least = least_cover(low, high, key, 62)
    for point in range(62):
        covers = [k for a, b, k in zip(low, high, key, strict=True) if a <= point < b]
        assert least[point] == min(covers, default=NONE)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 6), st.integers(0, 6)), max_size=14))
def test_what_is_undominated_has_the_least_key_at_every_instant(rows: list[tuple[int, int, int]]) -> None:
    columns = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    kept = undominated(*columns)
    assert [rows[row][:2] for row in kept] == sorted({rows[row][:2] for row in kept})
    for group in range(3):
        for instant in range(7):
            of_all = [key for owner, dies, key in rows if owner == group and dies > instant]
            of_kept = [rows[row][2] for row in kept if rows[row][0] == group and rows[row][1] > instant]
            assert of_kept[:1] == ([min(of_all)] if of_all else [])
            assert sorted(set(of_kept)) == of_kept
