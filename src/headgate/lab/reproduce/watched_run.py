"""Runs that are looked at after every step: what they keep while rows come, and what rows cost in the second half.

Runs that are compared take turns, a step each over the same rows, so that whatever else the machine does meanwhile
falls on all of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Condition
from time import process_time

import numpy as np
import pyarrow as pa

from headgate.lab.reproduce.traffic import slices
from headgate.physical.program import CompiledQuery, Program
from headgate.runtime.data import frame_of
from headgate.runtime.local.engine import LocalRun, Progress, Stop
from headgate.runtime.query import QueryState


@dataclass(frozen=True)
class WatchedRun:
    """Rows read, sizes by name and results so far after each step, and seconds of the processor per 1,000 rows.

    The seconds are those of the second half of the run.
    """

    rows: tuple[int, ...]
    sizes: Mapping[str, tuple[int, ...]]
    results: tuple[int, ...]
    seconds: float


Look = Callable[[QueryState], Mapping[str, int]]
"""What is said of a state."""


def watch(compiled: CompiledQuery, tables: Mapping[str, pa.Table], step_rows: int, look: Look) -> WatchedRun:
    """Runs a query until the last row in steps of so many rows of all streams; `look` says what it keeps."""
    return _watch(compiled, tables, step_rows, look, lambda: None)


def watch_in_turns(
    compiled: Sequence[CompiledQuery], tables: Mapping[str, pa.Table], step_rows: int, look: Look
) -> tuple[WatchedRun, ...]:
    """Runs queries over the same rows, a step of each in turn."""
    turns = _Turns(len(compiled))

    def one(number: int, query: CompiledQuery) -> WatchedRun:
        with turns.taken_by(number):
            return _watch(query, tables, step_rows, look, lambda: turns.pass_on(number))

    with ThreadPoolExecutor(len(compiled)) as threads:
        return tuple(threads.map(one, range(len(compiled)), compiled))


class _Turns:
    """Which of several threads is at work; the others wait."""

    def __init__(self, count: int) -> None:
        self._changed = Condition()
        self._next = deque(range(count))

    @contextmanager
    def taken_by(self, number: int) -> Iterator[None]:
        """Waits for a thread's first turn, and leaves the rest of them to the others in the end."""
        with self._changed:
            self._wait(number)
        try:
            yield
        finally:
            with self._changed:
                self._next.remove(number)
                self._changed.notify_all()

    def pass_on(self, number: int) -> None:
        """Lets all others have a turn."""
        with self._changed:
            self._next.rotate(-1)
            self._changed.notify_all()
            self._wait(number)

    def _wait(self, number: int) -> None:
        self._changed.wait_for(lambda: self._next[0] == number)


def _watch(
    compiled: CompiledQuery,
    tables: Mapping[str, pa.Table],
    step_rows: int,
    look: Look,
    after_step: Callable[[], None],
) -> WatchedRun:
    times = {name: table["ts"].cast(pa.int64()).to_numpy() for name, table in tables.items()}
    every = np.sort(np.concatenate(list(times.values())))
    cuts = np.append(every[step_rows - 1 :: step_rows], every[-1])
    streams = [
        (stream, slices(frame_of(tables[stream.name], stream.columns), times[stream.name], cuts))
        for stream in compiled.streams
    ]
    run = LocalRun(Program((compiled,)), streams, stop=Stop.LAST_ROW)
    state = run.states[compiled.name]
    rows: list[int] = []
    sizes: list[Mapping[str, int]] = []
    results: list[int] = []
    spent: list[float] = []
    begun = process_time()

    def note(progress: Progress) -> None:
        nonlocal begun
        spent.append(process_time() - begun)
        rows.append(progress.rows)
        sizes.append(look(state))
        results.append(state.metrics.rows_out)
        after_step()
        begun = process_time()

    run.run(lambda name, frame: None, lambda query, stream, late: None, note)
    half = len(rows) // 2
    seconds = sum(spent[half + 1 :]) / max(1, rows[-1] - rows[half]) * 1_000
    named = {name: tuple(each[name] for each in sizes) for name in sizes[0]}
    return WatchedRun(tuple(rows), named, tuple(results), seconds)


def kept_by_operators(state: QueryState) -> Mapping[str, int]:
    """All rows, and their bytes, but those of the answer, which the result words remember until they leave it."""
    states = state.states.values()
    return {"rows": sum(each.rows for each in states), "bytes": sum(each.nbytes for each in states)}


def growth(sizes: Sequence[int]) -> float:
    """How much more is kept in the last quarter of a run than in the second, on average; 2.3 if all is kept."""
    quarter = len(sizes) // 4
    last, second = sizes[3 * quarter :], sizes[quarter : 2 * quarter]
    return sum(last) / len(last) / max(1.0, sum(second) / len(second))
