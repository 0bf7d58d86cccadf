"""A run that is looked at after every step: what it keeps while rows come, and what rows cost in its second half."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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


def watch(
    compiled: CompiledQuery,
    tables: Mapping[str, pa.Table],
    step_rows: int,
    look: Callable[[QueryState], Mapping[str, int]],
) -> WatchedRun:
    """Runs a query until the last row in steps of so many rows of all streams; `look` says what it keeps."""
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
        rows.append(progress.rows)
        sizes.append(look(state))
        results.append(state.metrics.rows_out)
        spent.append(process_time() - begun)

    run.run(lambda name, frame: None, lambda query, stream, late: None, note)
    half = len(rows) // 2
    seconds = (spent[-1] - spent[half]) / max(1, rows[-1] - rows[half]) * 1_000
    named = {name: tuple(each[name] for each in sizes) for name in sizes[0]}
    return WatchedRun(tuple(rows), named, tuple(results), seconds)


def growth(sizes: Sequence[int]) -> float:
    """How much more is kept in the last quarter of a run than in the second, on average; 2.3 if all is kept."""
    quarter = len(sizes) // 4
    last, second = sizes[3 * quarter :], sizes[quarter : 2 * quarter]
    return sum(last) / len(last) / max(1.0, sum(second) / len(second))
