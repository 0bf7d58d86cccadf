"""Rows that wait for an instant: each comes when it is due, those that cancel never, and a step looks at few."""

from __future__ import annotations

from collections import Counter

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.kernels.state import timer_queue
from headgate.kernels.state.timer_queue import AT, COUNT, TimerQueue
from headgate.model.time import Clock

SCHEMA = {"v": pl.Int64()}
FAR = 10**6

Row = tuple[int, int, int]
"""v, instant, count."""


def frame(rows: list[Row]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema={**SCHEMA, AT: pl.Int64, COUNT: pl.Int64}, orient="row")


def step(queue: TimerQueue, at: int, rows: list[Row]) -> tuple[TimerQueue, pl.DataFrame]:
    return queue.advance(frame(rows), Clock(at - 1, at, 0))


def net(rows: list[Row]) -> Counter[tuple[int, int]]:
    """How many rows there are of each value and instant."""
    counts: Counter[tuple[int, int]] = Counter()
    for v, at, count in rows:
        counts[v, at] += count
    return Counter({key: count for key, count in counts.items() if count})


batches = st.lists(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9), st.sampled_from([1, 1, 2, -1])), max_size=6),
    max_size=20,
)


@pytest.mark.parametrize("summed", [False, True])
@given(steps=batches, slack=st.sampled_from([0, 1024]), restored=st.booleans())
def test_what_is_due_is_what_was_added_for_the_instant(
    summed: bool, steps: list[list[Row]], slack: int, restored: bool
) -> None:
    empty = queue = TimerQueue(SCHEMA, COUNT, summed)
    waiting: list[Row] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timer_queue, "_SLACK", slack)
        for at, rows in enumerate(steps, start=1):
            later = [(v, at + wait, count) for v, wait, count in rows]
            if restored:
                queue = empty.restored(queue.chunks())
            queue, due = step(queue, at, later)
            waiting += later
            assert net(due.select("v", AT, COUNT).rows()) == net([row for row in waiting if row[1] <= at])
            waiting = [row for row in waiting if row[1] > at]
            left = [row for piece in queue.waiting(at) for row in piece.select("v", AT, COUNT).rows()]
            assert net(left) == net(waiting)
            if not waiting:
                assert queue.rows == 0


def test_rows_that_cancel_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timer_queue, "_SLACK", 0)
    queue = TimerQueue(SCHEMA, COUNT)
    for at in range(1, 300):
        rows: list[Row] = [(at, FAR, 1)]
        if at > 20:
            rows.append((at - 20, FAR, -1))
        queue, _ = step(queue, at, rows)
        assert queue.rows <= 3 * 20


@pytest.mark.parametrize("summed", [False, True])
def test_a_step_looks_at_the_rows_that_it_brings(monkeypatch: pytest.MonkeyPatch, summed: bool) -> None:
    queue = TimerQueue(SCHEMA, COUNT, summed)
    queue, _ = step(queue, 1, [(v, FAR + v, 1) for v in range(5_000)])
    looked = 0
    plain = TimerQueue._size

    def counting(self: TimerQueue, rows: pl.DataFrame) -> int:
        nonlocal looked
        looked += rows.height
        return plain(self, rows)

    monkeypatch.setattr(TimerQueue, "_size", counting)
    for at in range(2, 30):
        queue, _ = step(queue, at, [(at, FAR, 1)])
    assert looked == 28
