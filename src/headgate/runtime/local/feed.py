"""Feed: several streams merged into clock steps, in event-time order.

Each stream has a clock: the largest instant seen minus its slack. Rows at or after it may still come, so what lies
before the smallest of all clocks is complete and can be answered:

```
bids    ──x──x─x───────x─┤ clock of bids
items   ───x─────x─┤ clock of items
step    ═══════════╡ all rows up to here, sorted; the rest waits
```
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from headgate.model.batch import BORN
from headgate.model.time import BEGINNING, NEVER
from headgate.plan.catalog import StreamDef
from headgate.runtime.lateness import Arrivals
from headgate.runtime.sources.arrival import Arrival, without_future
from headgate.runtime.waiting import Waiting


@dataclass(frozen=True)
class FeedStep:
    """The rows of every stream up to an instant, in order of time, and the rows that came too late or too early."""

    upto: int
    rows: Mapping[str, pl.DataFrame]
    late: Mapping[str, pl.DataFrame]
    ahead: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    """Rows whose time is too far ahead of the wall clock."""


@dataclass
class _StreamState:
    stream: StreamDef
    chunks: Iterator[pl.DataFrame]
    arrival: Arrival
    waiting: Waiting = field(default_factory=Waiting.empty)
    clock: int = BEGINNING
    last: int | None = None
    exhausted: bool = False
    height: int = 0
    """How many rows the chunk had that was read last."""


class Feed:
    """Merges the chunks of streams; each stream is read only as far as the slowest of them demands."""

    def __init__(
        self, streams: Sequence[tuple[StreamDef, Iterator[pl.DataFrame]]], future_us: int | None = None
    ) -> None:
        self._streams = [_StreamState(stream, chunks, Arrival(stream)) for stream, chunks in streams]
        self._future_us = future_us
        self.arrivals = Arrivals()

    @property
    def last(self) -> dict[str, int]:
        """The largest instant of each stream that has had a row on time."""
        return {each.stream.name: each.last for each in self._streams if each.last is not None}

    def certain(self, streams: Collection[str]) -> int:
        """The last instant up to which all rows of some streams are known, whatever may still come of them."""
        clocks = [each.clock for each in self._streams if each.stream.name in streams]
        return max(BEGINNING, min(clocks, default=NEVER) - 1)

    def steps(self) -> Iterator[FeedStep]:
        """Clock steps until all streams are exhausted; the last one holds everything that was left."""
        done = BEGINNING
        late: dict[str, pl.DataFrame] = {}
        ahead: dict[str, pl.DataFrame] = {}
        while True:
            behind = [each for each in self._streams if not each.exhausted]
            if not behind:
                break
            slowest = min(behind, key=lambda each: each.clock)
            self._read(slowest, late, ahead)
            safe = min((each.clock for each in self._streams if not each.exhausted), default=NEVER) - 1
            aside = bool(late or ahead)
            if safe > done and safe < NEVER - 1 and (aside or self._worth_a_step(safe, slowest.height)):
                rows = self._ready(safe)
                if aside or any(not frame.is_empty() for frame in rows.values()):
                    yield FeedStep(safe, rows, late, ahead)
                    done, late, ahead = safe, {}, {}
        rows = self._ready(NEVER)
        upto = max(self.last.values(), default=done)
        if late or ahead or any(not frame.is_empty() for frame in rows.values()):
            yield FeedStep(max(upto, done), rows, late, ahead)

    def _ready(self, upto: int) -> dict[str, pl.DataFrame]:
        """Every stream's rows up to an instant."""
        return {each.stream.name: _take(each, upto) for each in self._streams}

    def _worth_a_step(self, safe: int, height: int) -> bool:
        """Whether the rows up to an instant are at least half as many as were just read.

        Streams that are read in turn end their chunks at slightly different times; without this, every other step
        would bring the few rows between two such ends.
        """
        ready = 0
        for each in self._streams:
            ready += each.waiting.ready(safe)
            if 2 * ready >= height:
                return True
        return False

    def _read(
        self, state: _StreamState, late: dict[str, pl.DataFrame], ahead: dict[str, pl.DataFrame]
    ) -> None:
        """Reads the next chunk of a stream; adds to the rows that come too late or too early."""
        chunk, name = next(state.chunks, None), state.stream.name
        if chunk is None:
            state.exhausted = True
            return
        state.height = chunk.height
        chunk, early = without_future(chunk, state.stream, self._future_us)
        admitted = state.arrival.admit(chunk)
        state.clock = admitted.clock
        if not admitted.rows.is_empty():
            state.waiting = state.waiting.adding(admitted.rows)
            newest = admitted.rows[BORN].max()
            assert isinstance(newest, int)
            state.last = newest if state.last is None else max(state.last, newest)
        self.arrivals.note(name, chunk.height, admitted.late_by)
        for aside, rows in ((late, admitted.late), (ahead, early)):
            if not rows.is_empty():
                aside[name] = pl.concat([aside[name], rows]) if name in aside else rows


def _take(state: _StreamState, upto: int) -> pl.DataFrame:
    """The waiting rows up to an instant, sorted by time and then by arrival."""
    state.waiting, ready = state.waiting.take(upto)
    return pl.DataFrame() if ready is None else ready
