"""The local engine: a loop in this process over one shard of each query, until the input ends.

Each stream has a clock: the largest instant seen minus its slack. Rows at or after it may still come, so what lies
before the smallest clock of a query's streams is complete and can be answered:

```
bids    ──x──x─x───────x─┤ clock of bids
items   ───x─────x─┤ clock of items
step    ═══════════╡ all rows up to here, sorted; the rest waits
```
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

import polars as pl

from headgate.kernels.emit.lazy_rows import LazyRows
from headgate.model.time import BEGINNING, NEVER
from headgate.physical.horizon import is_timeless
from headgate.physical.program import Program
from headgate.plan.catalog import StreamDef
from headgate.runtime.build_stages import whole_stage
from headgate.runtime.io.changes import require_static
from headgate.runtime.local.stream_reader import StreamReader
from headgate.runtime.query import QueryState
from headgate.runtime.shard import (
    Answer,
    Piece,
    ShardState,
    arrive,
    drain,
    end_stream,
    last_instant,
    safe_instant,
    step,
)
from headgate.runtime.stage import Stage


@dataclass(frozen=True)
class Progress:
    """Where a run stands after a clock step."""

    clock: int | None
    """How far the slowest query has come whose streams go on; None before the first answer."""
    rows: int
    """Rows that were read, late ones too."""
    state_rows: int
    state_bytes: int


class Stop(Enum):
    """How far the clock runs when the input has ended."""

    DRAINED = "until no announced death, tick or change of a table is due"
    CERTAIN = (
        "until just before the clock of the slowest input: rows that may still come change nothing before it"
    )
    LAST_ROW = "until the last row"


@dataclass
class LocalShard:
    """The only shard of a query: it gets all rows of its streams."""

    stage: Stage
    state: ShardState
    stop: Stop

    @property
    def goes_on(self) -> bool:
        """Whether more rows may come."""
        return any(not clock.ended for clock in self.state.clocks.values())

    def take(self, stream: str, piece: Piece | None, answer: Answer) -> None:
        """Takes the next piece of a stream, or its end."""
        if piece is not None:
            feed = self.stage.feeds_of(stream)[0]
            mine = [replace(piece, feed=feed)]
            self.state = arrive(self.stage, 0, self.state, stream, mine, None, answer)
        elif self.stop is not Stop.CERTAIN:
            self.state = end_stream(self.state, stream)

    def advance(self, height: int, answer: Answer) -> None:
        """Goes as far as is safe, if that is worth a step after a piece of so many rows.

        Streams that are read in turn end their pieces at slightly different times; if every step were taken, every
        other would bring the few rows between two such ends.
        """
        upto = self._safe()
        if upto is not None and upto > self.state.query.clock:
            ready = sum(buffer.ready(upto) for buffer in self.state.waiting)
            if ready and 2 * ready >= height:
                self.state = step(self.stage, 0, self.state, upto, answer)

    def finish(self, answer: Answer) -> None:
        """Goes on to the last row, or as far as is certain."""
        upto = self._safe() if self.stop is Stop.CERTAIN else last_instant(self.stage, self.state)
        self.state = step(self.stage, 0, self.state, upto, answer)

    def drain(self, answer: Answer) -> None:
        """Goes on until nothing is due, if that is meant; a query over tables that never change answers then."""
        if self.stop is Stop.DRAINED or is_timeless(self.stage.plan):
            self.state = drain(self.stage, 0, self.state, answer)

    def _safe(self) -> int | None:
        """The last instant up to which all is known that counts."""
        if self.stop is not Stop.CERTAIN:
            return safe_instant(self.stage, self.state)
        safe = safe_instant(self.stage, self.state) if self.stage.streams else NEVER
        changing = {table.name for table in self.stage.changing}
        if safe is None or not (self.stage.streams or changing):
            return None
        # Changes that have not been told yet may come at the instant of the last one.
        last = self.stage.last_changes
        return min([safe, *(last[name] - 1 if name in last else BEGINNING for name in changing)])


class _Delivery(Answer):
    """An answer whose rows go on at once: a long one is never held whole."""

    def __init__(self, query: str, on_output: Callable[[str, pl.DataFrame], None]) -> None:
        super().__init__()
        self._query, self._on_output = query, on_output
        self.spoken = False

    def say(self, rows: LazyRows) -> None:
        self.spoken = True
        for frame in rows.frames:
            self._on_output(self._query, frame)


@dataclass
class LocalRun:
    """A program over finite inputs: `run` calls back with every piece of output, in order."""

    program: Program
    streams: Sequence[tuple[StreamDef, Iterator[pl.DataFrame]]]
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    """Table changes in order of time, with `_born` and `_sign`; a static table's are before all time."""
    stop: Stop = Stop.DRAINED
    future_us: int | None = None
    """Rows further ahead of the wall clock than this are set aside, and do not move the clock."""
    shards: dict[str, LocalShard] = field(init=False)

    def __post_init__(self) -> None:
        for table in self.program.tables:
            require_static(table, self.tables[table.name])
        self.shards = {}
        for query in self.program:
            stage = whole_stage(query, self.tables)
            self.shards[query.name] = LocalShard(stage, ShardState.initial(stage), self.stop)

    @property
    def states(self) -> dict[str, QueryState]:
        """The state of each query."""
        return {name: shard.state.query for name, shard in self.shards.items()}

    def run(
        self,
        on_output: Callable[[str, pl.DataFrame], None],
        on_late: Callable[[str, str, pl.DataFrame], None],
        on_progress: Callable[[Progress], None] = lambda progress: None,
    ) -> None:
        """Processes all input, until the clock has come to where `stop` says.

        Late rows come with the query that does not see them, and their stream. Each stream is read only as far as the
        slowest of them demands.
        """
        readers = [StreamReader(stream, chunks, self.future_us) for stream, chunks in self.streams]
        rows = 0

        def tell_late(query: str, answer: _Delivery) -> bool:
            for stream, frames in answer.late.items():
                for frame in frames:
                    on_late(query, stream, frame)
            return answer.spoken or bool(answer.late)

        while unread := [each for each in readers if not each.ended]:
            reader = min(unread, key=lambda each: each.clock)
            piece, name = reader.read(), reader.stream.name
            rows += 0 if piece is None else piece.read
            moved = False
            for query, shard in self.shards.items():
                if name in shard.state.clocks:
                    answer = _Delivery(query, on_output)
                    shard.take(name, piece, answer)
                    shard.advance(reader.height, answer)
                    moved |= tell_late(query, answer)
            if moved:
                on_progress(self._progress(rows))
        for finish in (LocalShard.finish, LocalShard.drain):
            moved = False
            for query, shard in self.shards.items():
                answer = _Delivery(query, on_output)
                finish(shard, answer)
                moved |= tell_late(query, answer)
            if moved and finish is LocalShard.finish:
                on_progress(self._progress(rows))

    def _progress(self, rows: int) -> Progress:
        metrics = [state.metrics for state in self.states.values()]
        clocks = {name: state.clock for name, state in self.states.items() if state.clock > BEGINNING}
        going = [clock for name, clock in clocks.items() if self.shards[name].goes_on]
        clock = min(going) if going else max(clocks.values(), default=None)
        return Progress(
            clock, rows, sum(each.state_rows for each in metrics), sum(each.state_bytes for each in metrics)
        )
