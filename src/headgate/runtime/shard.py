"""Shard: one shard's part of a query between two batches, and what a batch makes of it. The only engine: on Spark a
query has many shards, in this process one.

Every shard hears of all pieces of all streams, also of those that have no rows for it, so all shards have the same
clock:

```
piece of bids   instants 10 … 19   rows for shard 0: some   for shard 1: none
piece of items  instants 12 … 17   rows for shard 0: none   for shard 1: some
slack 0         clock of bids 19, of items 17: both shards answer up to 16, the rest waits
```
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import polars as pl

from headgate.kernels.emit.lazy_rows import LazyRows
from headgate.kernels.state.store import prefixed, under
from headgate.model.batch import BORN, Batch
from headgate.model.time import BEGINNING
from headgate.physical.graph import KernelStep, SourceStep
from headgate.physical.horizon import EPOCH, horizon, is_timeless
from headgate.runtime.io.changes import signed
from headgate.runtime.lateness import LATE_BY
from headgate.runtime.promise_checker import PromiseChecker, PromiseState
from headgate.runtime.query import Metrics, QueryState
from headgate.runtime.reorder_buffer import ReorderBuffer
from headgate.runtime.stage import Stage
from headgate.safety.promise import Promise


@dataclass(frozen=True, eq=False)
class Piece:
    """Rows of a stream that came together, as one shard gets them.

    Pieces of a stream are ordered by the partition and by the place in it from which they come. `low` and `high` are
    the instants of the piece over all shards, None if it has no rows; `rows` are those for this shard, with `_born`;
    `aside` those that were behind their own partition's clock already, by as much as `_late_by` says, or too far
    ahead of the wall clock, where that is NULL. `read` is how many rows the piece had but for those ahead.
    """

    feed: int
    part: int
    seq: int
    low: int | None
    high: int | None
    rows: pl.DataFrame | None
    aside: pl.DataFrame | None = None
    read: int = 0


@dataclass(frozen=True)
class StreamClock:
    """What a shard knows of a stream: its largest instant, when (wall clock, ms) it had rows, and if it has ended."""

    latest: int | None = None
    seen: int | None = None
    ended: bool = False


@dataclass(frozen=True, eq=False)
class ShardState:
    """All that a shard remembers; never changed, only followed by another."""

    query: QueryState
    waiting: tuple[ReorderBuffer, ...]
    """By feed."""
    closed: tuple[PromiseState, ...]
    """By feed and promise, as `promises_on` counts them."""
    clocks: Mapping[str, StreamClock]
    """By stream, or by number of the sender."""
    earliest: int | None = None
    """The first instant on any stream, until the clock has passed it."""
    ended: bool = False

    @staticmethod
    def initial(stage: Stage) -> ShardState:
        sources = map(str, range(stage.senders)) if stage.senders else (each.name for each in stage.streams)
        clocks = {name: StreamClock() for name in sources}
        closed = tuple(
            PromiseState() for number in range(len(stage.feeds)) for _ in stage.promises_on(number)
        )
        waiting = tuple(ReorderBuffer.empty() for _ in stage.feeds)
        return ShardState(QueryState(stage.graph), waiting, closed, clocks)

    def chunks(self) -> dict[str, pl.DataFrame]:
        """Everything that is rows, by name; a name is never used for anything else again."""
        chunks = prefixed(self.query.emit_state.chunks(), "emit/")
        for number, state in self.query.states.items():
            chunks |= prefixed(state.chunks(), f"{number}/")
        for number, waiting in enumerate(self.waiting):
            chunks |= prefixed(waiting.chunks(), f"wait/{number}/")
        for number, closed in enumerate(self.closed):
            chunks |= prefixed(closed.chunks(), f"promise/{number}/")
        return chunks

    def facts(self) -> dict[str, Any]:
        """Everything that is not rows, as JSON has it."""
        return {
            "clock": self.query.clock,
            "start": self.query.start,
            "metrics": asdict(self.query.metrics),
            "waiting": [each.next for each in self.waiting],
            "closed": [each.version for each in self.closed],
            "clocks": {name: asdict(clock) for name, clock in self.clocks.items()},
            "earliest": self.earliest,
            "ended": self.ended,
        }

    @staticmethod
    def restored(stage: Stage, facts: Mapping[str, Any], chunks: Mapping[str, pl.DataFrame]) -> ShardState:
        """The state that had these facts and chunks."""
        query = QueryState(stage.graph)
        query.clock, query.start = facts["clock"], facts["start"]
        # Checkpoints of older versions have the rows from the future beside the other metrics.
        query.metrics = Metrics(**{"future_rows": facts.get("future_rows", 0), **facts["metrics"]})
        for number, step in enumerate(stage.graph.steps):
            if isinstance(step, KernelStep):
                query.states[number] = step.kernel.restore(under(chunks, f"{number}/"))
        query.emit_state = stage.graph.emit.restore(under(chunks, "emit/"))
        waiting = tuple(
            ReorderBuffer.restored(under(chunks, f"wait/{number}/"), following)
            for number, following in enumerate(facts["waiting"])
        )
        closed = tuple(
            PromiseState.restored(under(chunks, f"promise/{number}/"), version)
            for number, version in enumerate(facts["closed"])
        )
        clocks = {name: StreamClock(**each) for name, each in facts["clocks"].items()}
        return ShardState(query, waiting, closed, clocks, facts["earliest"], facts["ended"])


@dataclass
class Answer:
    """What a shard says about a batch, gathered piece by piece."""

    rows: list[LazyRows] = field(default_factory=list)
    late: dict[str, list[pl.DataFrame]] = field(default_factory=dict)
    exported: list[list[Batch]] = field(default_factory=list)
    """For the next stage: by clock step, or part of one, and by feed there."""

    def say(self, rows: LazyRows) -> None:
        """Takes the next rows of the query's output."""
        self.rows.append(rows)

    def set_aside(self, stream: str, frame: pl.DataFrame) -> None:
        if not frame.is_empty():
            self.late.setdefault(stream, []).append(frame)


def advance_streams(
    stage: Stage,
    shard: int,
    state: ShardState,
    pieces: Sequence[Piece],
    now_ms: int | None,
    answer: Answer,
    *,
    ended: bool,
) -> ShardState:
    """The state of a shard that reads streams after a batch; `ended`: it is the last one of all streams."""
    for stream in stage.streams:
        feeds = stage.feeds_of(stream.name)
        mine = [each for each in pieces if each.feed in feeds]
        state = arrive(stage, shard, state, stream.name, mine, now_ms, answer)
    upto = last_instant(stage, state) if ended else safe_instant(stage, state, now_ms)
    state = step(stage, shard, state, upto, answer)
    if ended:
        state = drain(stage, shard, state, answer)
        state = replace(state, ended=True)
    return state


def drain(stage: Stage, shard: int, state: ShardState, answer: Answer) -> ShardState:
    """The state after all that is due when no more rows come."""
    return step(stage, shard, state, _end(stage, state), answer)


def end_stream(state: ShardState, stream: str) -> ShardState:
    """The state after the end of one stream, which holds the others up no more."""
    clock = replace(state.clocks[stream], ended=True)
    return replace(state, clocks={**state.clocks, stream: clock})


def arrive(
    stage: Stage,
    shard: int,
    state: ShardState,
    stream: str,
    pieces: Sequence[Piece],
    now_ms: int | None,
    answer: Answer,
) -> ShardState:
    """Puts the new rows of a stream into their buffers, without those that come too late."""
    definition = next(each for each in stage.streams if each.name == stream)
    clock, earliest = state.clocks[stream], state.earliest
    first = stage.feeds_of(stream)[0]
    waiting = list(state.waiting)
    latest, before = clock.latest, clock.latest
    metrics = state.query.metrics
    seen = clock.seen
    for place in sorted({(each.part, each.seq) for each in pieces}):
        reference = latest if stage.in_order(definition) else before
        # What the query has answered already cannot be answered anew.
        bound = state.query.clock + 1
        if reference is not None:
            bound = max(bound, reference - definition.slack)
        for piece in (each for each in pieces if (each.part, each.seq) == place):
            counts = piece.feed == first and stage.is_primary(piece.feed, shard)
            if piece.aside is not None:
                late_by = piece.aside[LATE_BY]
                answer.set_aside(stream, piece.aside.drop(LATE_BY))
                metrics.late_rows += piece.aside.height - late_by.null_count()
                metrics.future_rows += late_by.null_count()
                metrics.streams.note(stream, 0, late_by.drop_nulls())
            metrics.streams.note(stream, piece.read)
            if piece.low is None or piece.high is None:
                continue
            if piece.rows is not None:
                frame = piece.rows
                if piece.low < bound:
                    late = frame.filter(pl.col(BORN) < bound)
                    frame = frame.filter(pl.col(BORN) >= bound)
                    if counts:
                        answer.set_aside(stream, late.drop(BORN))
                        metrics.late_rows += late.height
                        metrics.streams.note(stream, 0, bound + definition.slack - late[BORN])
                waiting[piece.feed] = waiting[piece.feed].adding(frame)
            if piece.high >= bound and stage.begins(stream):
                opening = max(piece.low, bound)
                earliest = opening if earliest is None else min(earliest, opening)
            latest = piece.high if latest is None else max(latest, piece.high)
    if pieces or seen is None:
        seen = now_ms
    return replace(
        state,
        waiting=tuple(waiting),
        clocks={**state.clocks, stream: replace(clock, latest=latest, seen=seen)},
        earliest=earliest,
    )


def safe_instant(stage: Stage, state: ShardState, now_ms: int | None = None) -> int | None:
    """The instant up to which no more rows come in time; None if that is not known yet."""
    clocks = []
    for stream in stage.streams:
        clock = state.clocks[stream.name]
        if clock.ended or _is_idle(stage, clock, now_ms):
            continue
        if clock.latest is None:
            return None
        clocks.append(max(BEGINNING + 1, clock.latest - stream.slack))
    return min(clocks) - 1 if clocks else last_instant(stage, state)


def _is_idle(stage: Stage, clock: StreamClock, now_ms: int | None) -> bool:
    timeout = stage.clock.idle_ms
    if timeout is None or now_ms is None or clock.seen is None:
        return False
    return now_ms - clock.seen > timeout


def _end(stage: Stage, state: ShardState) -> int | None:
    """How far the clock runs on when all streams have ended; None if nothing is due."""
    if is_timeless(stage.plan):
        state.query.start = EPOCH
        return EPOCH
    return horizon(stage.plan, {**_latest(stage, state), **stage.last_changes})


def last_instant(stage: Stage, state: ShardState) -> int | None:
    """The largest instant of all streams whose rows count as a query's last; None before the first."""
    return max(_latest(stage, state).values(), default=None)


def _latest(stage: Stage, state: ShardState) -> dict[str, int]:
    """The largest instant of each stream that has had rows, and of each table that has had changes."""
    return {
        name: each.latest
        for name, each in state.clocks.items()
        if each.latest is not None and stage.begins(name)
    }


def step(stage: Stage, shard: int, state: ShardState, upto: int | None, answer: Answer) -> ShardState:
    """One clock step of the query over what was waiting for it; none if the clock is there already."""
    query = state.query
    if upto is None or upto <= query.clock:
        return state
    # A shard that gets all rows sees by itself which is the first.
    if not stage.is_whole and query.start is None and state.earliest is not None and state.earliest <= upto:
        query.start = state.earliest
    rows: dict[str, pl.DataFrame] = {}
    waiting: list[ReorderBuffer] = []
    closed: list[PromiseState] = []
    counted = 0
    for number, (feed, buffer) in enumerate(zip(stage.feeds, state.waiting, strict=True)):
        rest, ready = buffer.take(upto)
        waiting.append(rest)
        promises = stage.promises_on(number)
        known = state.closed[len(closed) : len(closed) + len(promises)]
        if ready is not None:
            kept, broken, after = _check(promises, known, ready)
            closed += after
            rows[feed.name] = kept if feed.op is None else signed(kept, feed.op, feed.name)
            reports = number == stage.feeds_of(feed.stream)[0] and stage.is_primary(number, shard)
            if broken.height and reports:
                answer.set_aside(feed.stream, broken.drop(BORN))
                query.metrics.late_rows += broken.height
            if not stage.senders and stage.is_primary(number, shard):
                counted += kept.height * _readers(stage, feed.name)
        else:
            closed += known
    for name, table in stage.tables.items():
        first, end = (table[BORN].search_sorted(at, side="right") for at in (query.clock, upto))
        changes = rows[name] = table.slice(first, end - first)
        counted += changes.height * _readers(stage, name) if shard == 0 else 0
    before = query.metrics.rows_in
    if stage.onward is None:
        for said in query.parts(rows, upto):
            answer.say(said)
    else:
        answer.exported += query.export(rows, upto, stage.exports)
    query.metrics.rows_in = before + counted
    return replace(state, waiting=tuple(waiting), closed=tuple(closed))


def _check(
    promises: Sequence[Promise], known: Sequence[PromiseState], rows: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame, list[PromiseState]]:
    """A feed's next rows as those that keep its promises and those that break one, and what is closed then."""
    checker = PromiseChecker(promises, states=[replace(each) for each in known])
    kept, broken = checker.split(rows)
    return kept, broken, checker.states


def _readers(stage: Stage, relation: str) -> int:
    return sum(isinstance(step, SourceStep) and step.relation == relation for step in stage.graph.steps)


def clock_of(state: ShardState) -> int | None:
    """How far the shard has answered; None before its first step."""
    return None if state.query.clock == BEGINNING else state.query.clock
