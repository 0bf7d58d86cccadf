"""Windows give rows the lifetimes of docs/lifetimes.md, however the stream is cut into steps."""

from __future__ import annotations

from collections import Counter, defaultdict
from random import Random
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernels.stepping import CUTS, INSTANTS, LAST, rows, run, stream, timeline

from headgate.kernels.window.retain import Retain
from headgate.kernels.window.time_window import Now, Range, Rows, Unbounded, Window, WindowSpec
from headgate.model.batch import BORN, DIES, SIGN, Batch
from headgate.model.time import BEGINNING, NEVER, Clock, tick_at_or_after

PAYLOAD: dict[str, pl.DataType] = {"k": pl.Int64(), "v": pl.Int64()}
Row = tuple[Any, ...]


def expected_lifetimes(spec: WindowSpec, data: list[Row]) -> list[tuple[Row, int, int]]:
    """(payload, born, dies) of every row, straight from the definition."""
    found = []
    groups: dict[Any, list[int]] = defaultdict(list)
    for number, (k, _, _) in enumerate(data):
        groups[k if isinstance(spec, Rows) and spec.partition else None].append(number)
    for members in groups.values():
        for place, number in enumerate(members):
            *payload, ts = data[number]
            match spec:
                case Range(length, None):
                    life = (ts, ts + length)
                case Range(length, slide):
                    life = (tick_at_or_after(ts, slide), tick_at_or_after(ts + length, slide))
                case Rows(count, _):
                    later = members[place + count :]
                    life = (ts, data[later[0]][2] if later else NEVER)
                case Now():
                    life = (ts, ts + 1)
                case Unbounded():
                    life = (ts, NEVER)
            found.append((tuple(payload), *life))
    return found


SPECS = [
    Range(1), Range(7), Range(10, 5), Range(3, 5), Range(5, 5), Range(12, 7), Now(), Unbounded(),
    Rows(1), Rows(2), Rows(5), Rows(100), Rows(1, ("k",)), Rows(2, ("k",)), Rows(3, ("k",)), Rows(100, ("k",)),
]  # fmt: skip

DATA = st.lists(
    st.tuples(st.one_of(st.none(), st.integers(0, 3)), st.integers(0, 2), st.integers(-3, LAST - 1)),
    max_size=25,
).map(lambda data: sorted(data, key=lambda row: row[2]))


def check_contents(spec: WindowSpec, data: list[Row], cuts: list[int], restore: bool, explicit: bool) -> None:
    kernel = Window(spec, PAYLOAD, "endings" if explicit else "deaths")
    _, output = run(kernel, [stream(PAYLOAD, data)], cuts, restore=restore)
    if explicit:
        assert set(output[DIES].to_list()) <= {NEVER}
    lifetimes = expected_lifetimes(spec, data)
    for instant, found in zip(INSTANTS, timeline(output), strict=True):
        alive = Counter(payload for payload, born, dies in lifetimes if born <= instant < dies)
        assert found == alive, f"at {instant}"


@settings(max_examples=60, deadline=None)
@given(spec=st.sampled_from(SPECS), data=DATA, cuts=CUTS, restore=st.booleans(), explicit=st.booleans())
def test_contents_at_every_instant(
    spec: WindowSpec, data: list[Row], cuts: list[int], restore: bool, explicit: bool
) -> None:
    check_contents(spec, data, cuts, restore, explicit)


@pytest.mark.parametrize("spec", SPECS, ids=str)
@pytest.mark.parametrize("seed", range(6))
def test_contents_of_busy_windows(spec: WindowSpec, seed: int) -> None:
    random = Random(seed)
    keys = [None, 0, 1][: 1 + seed % 3]
    data = sorted(
        ((random.choice(keys), random.randrange(3), random.randrange(30)) for _ in range(40)),
        key=lambda row: row[2],
    )
    check_contents(spec, data, random.sample(range(35), 8), seed % 2 == 0, seed % 3 == 0)


@pytest.mark.parametrize("spec", [s for s in SPECS if not isinstance(s, Rows)], ids=str)
def test_time_windows_announce_deaths_and_end_nothing(spec: WindowSpec) -> None:
    _, output = run(Window(spec, PAYLOAD), [stream(PAYLOAD, [(1, 1, t) for t in range(30)])], [7, 20])
    assert set(output[SIGN].to_list()) <= {1}


def test_rows_with_equal_times_push_each_other_out_in_order_of_arrival() -> None:
    _, output = run(Window(Rows(2), PAYLOAD), [stream(PAYLOAD, [(0, v, 5) for v in range(5)])], [])
    assert output.select("v", BORN, DIES).rows() == [(3, 5, NEVER), (4, 5, NEVER)]


def test_a_partitioned_window_keeps_the_order_of_arrival() -> None:
    data = [(v % 3, v, 5) for v in range(9)]
    _, output = run(Window(Rows(2, ("k",)), PAYLOAD), [stream(PAYLOAD, data)], [])
    assert output["v"].to_list() == [3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("births", [(6, 6, 2, 5, 5, 7, 1), (1, 6, 2, 5)])
@pytest.mark.parametrize("spec", [Rows(2), Rows(2, ("k",))], ids=str)
def test_rows_count_in_order_of_birth_even_if_a_batch_is_not_in_it(
    spec: Rows, births: tuple[int, ...]
) -> None:
    data = [(0, v, t) for v, t in enumerate(births)]
    shuffled = rows(PAYLOAD, [(*row, NEVER, 1) for row in data])
    _, output = run(Window(spec, PAYLOAD), [shuffled], [])
    _, expected = run(Window(spec, PAYLOAD), [stream(PAYLOAD, data)], [])
    assert timeline(output) == timeline(expected)


def test_a_row_ends_when_the_nth_later_row_comes_in_a_later_step() -> None:
    _, output = run(Window(Rows(2), PAYLOAD), [stream(PAYLOAD, [(0, t, t) for t in (1, 2, 3)])], [1, 2])
    assert output.select("v", BORN, DIES, SIGN).rows() == [
        (1, 1, NEVER, 1), (2, 2, NEVER, 1), (3, 3, NEVER, 1), (1, 3, NEVER, -1),
    ]  # fmt: skip


def test_a_row_waits_for_its_tick_and_is_born_in_the_step_that_has_it() -> None:
    kernel = Window(Range(20, 10), PAYLOAD)
    state, first = kernel.advance(
        kernel.initial(), [Batch(stream(PAYLOAD, [(0, 0, 3), (0, 1, 10)]))], Clock(BEGINNING, 12, 3)
    )
    assert first.frame.select("v", BORN, DIES).rows() == [(0, 10, 30), (1, 10, 30)]
    state, second = kernel.advance(state, [Batch(stream(PAYLOAD, [(0, 2, 13)]))], Clock(12, 19, 3))
    assert second.height == 0
    assert state.rows == 1
    state, third = kernel.advance(state, [Batch(rows(PAYLOAD, []))], Clock(19, 20, 3))
    assert third.frame.select("v", BORN, DIES).rows() == [(2, 20, 40)]
    assert state.rows == 0


@pytest.mark.parametrize("spec", [s for s in SPECS if not isinstance(s, Rows | Unbounded)], ids=str)
@pytest.mark.parametrize("announce", ["deaths", "endings"])
def test_a_time_window_forgets_everything_in_the_end(spec: WindowSpec, announce: Any) -> None:
    data = [(t % 3, t, t) for t in range(40)]
    state, _ = run(Window(spec, PAYLOAD, announce), [stream(PAYLOAD, data)], range(0, 90, 4))
    assert state.rows == 0
    assert state.chunks() == {}


@pytest.mark.parametrize(("spec", "most"), [(Rows(5), 10), (Rows(5, ("k",)), 3 * (2 * 5 + 2))])
def test_a_row_window_holds_what_can_still_be_pushed_out(spec: Rows, most: int) -> None:
    kernel = Window(spec, PAYLOAD)
    state = kernel.initial()
    for t in range(0, 400, 4):
        data = stream(PAYLOAD, [(i % 3, i, i) for i in range(t + 1, t + 5)])
        state, _ = kernel.advance(state, [Batch(data)], Clock(t, t + 4, 1))
        assert state.rows <= most


def test_a_large_row_window_is_kept_in_few_chunks() -> None:
    kernel = Window(Rows(20_000), PAYLOAD)
    state = kernel.initial()
    total = 0
    for t in range(0, 30_000, 100):
        frame = pl.DataFrame(
            {"k": pl.repeat(0, 100, dtype=pl.Int64, eager=True), "v": pl.int_range(t, t + 100, eager=True)}
        ).with_columns(
            pl.col("v").alias(BORN) + 1, pl.lit(NEVER).alias(DIES), pl.lit(1, dtype=pl.Int8).alias(SIGN)
        )
        state, output = kernel.advance(state, [Batch(frame)], Clock(t, t + 100, 1))
        total += output.frame[SIGN].cast(pl.Int64).sum()
        assert len(state.chunks()) < 40
        assert state.rows <= 2 * 20_000
    assert total == 20_000


def test_nothing_is_built_for_nothing() -> None:
    for spec in SPECS:
        kernel = Window(spec, PAYLOAD)
        state, output = kernel.advance(kernel.initial(), [Batch(rows(PAYLOAD, []))], Clock(0, 10, None))
        assert output.height == 0
        assert state.chunks() == {}


def test_a_row_is_retained_for_its_own_instant_at_least() -> None:
    with pytest.raises(ValueError, match="at least for its own instant"):
        Retain(0)


@pytest.mark.parametrize("wrong", [lambda: Range(0), lambda: Range(5, 0), lambda: Rows(0)])
def test_a_window_holds_something(wrong: Any) -> None:
    with pytest.raises(ValueError, match="window"):
        wrong()
