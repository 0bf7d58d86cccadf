"""Window contents: their definitions by example, and against the lifetimes that the documentation gives."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracle.contents import UNBOUNDED, Stream, Window, WindowContents, tick_from

NEVER = 2**63 - 1


def stream(*times: int, keys: list[int | None] | None = None, orderless: bool = False) -> Stream:
    values = pa.array(keys if keys is not None else list(range(len(times))), pa.int64())
    return Stream(pa.table({"k": values}), times, orderless)


def test_range_holds_its_own_instant_but_not_the_one_a_length_ago() -> None:
    contents = WindowContents(Window("RANGE", length=5), stream(10, 12))
    assert contents.at(9) == []
    assert contents.at(10) == [0]
    assert contents.at(14) == [0, 1]
    assert contents.at(15) == [1]


def test_slide_looks_as_of_the_last_tick() -> None:
    contents = WindowContents(Window("RANGE", length=5, slide=4), stream(10, 12))
    assert contents.at(11) == []
    assert contents.at(12) == contents.at(15) == [0, 1]
    assert contents.at(16) == [1]
    assert contents.at(20) == []


def test_rows_counts_equal_instants_in_order() -> None:
    contents = WindowContents(Window("ROWS", rows=2), stream(1, 1, 1, 4))
    assert contents.at(1) == [1, 2]
    assert contents.at(4) == [2, 3]


def test_partitions_count_apart_and_null_is_one() -> None:
    window = Window("ROWS", rows=1, partition=("k",))
    contents = WindowContents(window, stream(1, 2, 3, 4, keys=[7, None, None, 8]))
    assert contents.at(2) == [0, 1]
    assert contents.at(4) == [0, 2, 3]


def test_now_and_unbounded() -> None:
    times = stream(1, 1, 3)
    assert [WindowContents(Window("NOW"), times).at(t) for t in (0, 1, 2, 3)] == [[], [0, 1], [], [2]]
    assert [WindowContents(UNBOUNDED, times).at(t) for t in (0, 1, 2, 3)] == [[], [0, 1], [0, 1], [0, 1, 2]]


@pytest.mark.parametrize(("instant", "tick"), [(-7, -5), (-5, -5), (-1, 0), (0, 0), (1, 5), (5, 5)])
def test_ticks_are_multiples_of_the_slide_also_before_the_epoch(instant: int, tick: int) -> None:
    assert tick_from(instant, 5) == tick


def test_row_windows_over_orderless_streams_tell_when_they_had_to_pick() -> None:
    window = Window("ROWS", rows=1)
    assert WindowContents(window, stream(1, 1, orderless=True)).ambiguous()
    assert not WindowContents(window, stream(1, 1)).ambiguous()
    assert not WindowContents(window, stream(1, 2, orderless=True)).ambiguous()
    assert not WindowContents(window, stream(1, 1, keys=[7, 7], orderless=True)).ambiguous()
    assert not WindowContents(Window("RANGE", length=3), stream(1, 1, orderless=True)).ambiguous()


def lifetime(window: Window, position: int, times: tuple[int, ...]) -> tuple[int, int]:
    """A row's lifetime as the table of docs/lifetimes.md has it."""
    ts = times[position]
    match window:
        case Window(kind="RANGE", length=int(length), slide=None):
            return ts, ts + length
        case Window(kind="RANGE", length=int(length), slide=int(slide)):
            return tick_from(ts, slide), tick_from(ts + length, slide)
        case Window(kind="NOW"):
            return ts, ts + 1
        case Window(kind="ROWS", rows=int(rows)):
            return ts, times[position + rows] if position + rows < len(times) else NEVER
        case _:
            return ts, NEVER


WINDOWS = st.one_of(
    st.builds(Window, st.just("RANGE"), st.integers(1, 9)),
    st.builds(Window, st.just("RANGE"), st.integers(1, 9), st.integers(1, 6)),
    st.builds(lambda rows: Window("ROWS", rows=rows), st.integers(1, 4)),
    st.sampled_from([Window("NOW"), UNBOUNDED]),
)


@given(WINDOWS, st.lists(st.integers(-10, 15), max_size=8))
def test_contents_are_the_rows_alive(window: Window, times: list[int]) -> None:
    contents = WindowContents(window, stream(*sorted(times)))
    ordered = contents.stream.times
    lives = [lifetime(window, position, ordered) for position in range(len(ordered))]
    for instant in range(-12, 30):
        alive = [position for position, (born, dies) in enumerate(lives) if born <= instant < dies]
        assert contents.at(instant) == alive


@given(WINDOWS, st.lists(st.integers(-10, 15), max_size=8))
def test_contents_change_at_no_other_instant_than_announced(window: Window, times: list[int]) -> None:
    contents = WindowContents(window, stream(*sorted(times)))
    changes = contents.changes()
    for instant in range(-12, 30):
        assert instant in changes or contents.at(instant) == contents.at(instant - 1)
