"""Shard: one shard's part of a query between two micro-batches, and what a micro-batch makes of it.

Every shard hears of all pieces of all streams, also of those that have no rows for it, so all shards have the same
clock:

```
piece of bids   instants 10 … 19   rows for shard 0: some   for shard 1: none
piece of items  instants 12 … 17   rows for shard 0: none   for shard 1: some
slack 0         clock of bids 19, of items 17: both shards answer up to 16, the rest waits
```
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import polars as pl

from headgate.kernels.pieces import Pieces
from headgate.kernels.state.store import prefixed, under
from headgate.model.batch import BORN, Batch
from headgate.model.time import BEGINNING
from headgate.physical.graph import KernelStep, SourceStep
from headgate.physical.horizon import EPOCH, horizon, is_timeless
from headgate.runtime.lateness import LATE_BY
from headgate.runtime.output import arrow_schema, to_arrow
from headgate.runtime.query import Metrics, QueryState
from headgate.runtime.sources.changes import signed
from headgate.runtime.sources.kept_promises import KeptPromises, PromiseState
from headgate.runtime.spark.compact import decode, encode
from headgate.runtime.spark.messages import END, Message, Reply
from headgate.runtime.spark.pack import with_time
from headgate.runtime.spark.stage import Stage
from headgate.runtime.waiting import Waiting
from headgate.safety.promise import Promise

_ROWS_PER_REPLY = 1_000_000


@dataclass(frozen=True)
class StreamClock:
    """What a shard knows of a stream: its largest instant, and when (wall clock, ms) it last had rows."""

    latest: int | None = None
    seen: int | None = None


@dataclass(frozen=True, eq=False)
class Closed:
    """The values that a promise has closed on a feed, and how often they have changed."""

    values: pl.DataFrame | None = None
    version: int = 0


@dataclass(frozen=True, eq=False)
class ShardState:
    """All that a shard remembers; never changed, only followed by another."""

    query: QueryState
    waiting: tuple[Waiting, ...]
    """By feed."""
    closed: tuple[Closed, ...]
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
        closed = tuple(Closed() for number in range(len(stage.feeds)) for _ in stage.promises_on(number))
        waiting = tuple(Waiting.empty() for _ in stage.feeds)
        return ShardState(QueryState(stage.graph), waiting, closed, clocks)

    def chunks(self) -> dict[str, pl.DataFrame]:
        """Everything that is rows, by name; a name is never used for anything else again."""
        chunks = prefixed(self.query.emit_state.chunks(), "emit/")
        for number, state in self.query.states.items():
            chunks |= prefixed(state.chunks(), f"{number}/")
        for number, waiting in enumerate(self.waiting):
            chunks |= prefixed(waiting.chunks(), f"wait/{number}/")
        for number, closed in enumerate(self.closed):
            if closed.values is not None:
                chunks[f"closed/{number}/{closed.version}"] = closed.values
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
            Waiting.restored(under(chunks, f"wait/{number}/"), following)
            for number, following in enumerate(facts["waiting"])
        )
        closed = tuple(
            Closed(chunks.get(f"closed/{number}/{version}"), version)
            for number, version in enumerate(facts["closed"])
        )
        clocks = {name: StreamClock(**each) for name, each in facts["clocks"].items()}
        return ShardState(query, waiting, closed, clocks, facts["earliest"], facts["ended"])


@dataclass
class Answer:
    """What a shard says about a micro-batch, gathered piece by piece."""

    rows: list[Pieces] = field(default_factory=list)
    late: dict[str, list[pl.DataFrame]] = field(default_factory=dict)
    exported: list[list[Batch]] = field(default_factory=list)
    """For the next stage: by clock step and by feed there."""

    def set_aside(self, stream: str, frame: pl.DataFrame) -> None:
        if not frame.is_empty():
            self.late.setdefault(stream, []).append(frame)


def advance_streams(
    stage: Stage,
    shard: int,
    state: ShardState,
    messages: Sequence[Message],
    now_ms: int | None,
    answer: Answer,
) -> ShardState:
    """The state of a shard that reads streams after a micro-batch."""
    for stream in stage.streams:
        feeds = stage.feeds_of(stream.name)
        mine = [each for each in messages if each.feed in feeds]
        state = _arrive(stage, shard, state, stream.name, mine, now_ms, answer)
    ended = any(message.feed == END for message in messages)
    upto = _last(stage, state) if ended else _safe(stage, state, now_ms)
    if upto is not None and upto > state.query.clock:
        state = step(stage, shard, state, upto, answer)
    if ended:
        end = _end(stage, state)
        if end is not None and end > state.query.clock:
            state = step(stage, shard, state, end, answer)
        state = replace(state, ended=True)
    return state


def _arrive(
    stage: Stage,
    shard: int,
    state: ShardState,
    stream: str,
    messages: Sequence[Message],
    now_ms: int | None,
    answer: Answer,
) -> ShardState:
    """Puts the new rows of a stream into their queues, without those that come too late."""
    definition = next(each for each in stage.streams if each.name == stream)
    clock, earliest = state.clocks[stream], state.earliest
    first = stage.feeds_of(stream)[0]
    waiting = list(state.waiting)
    latest, before = clock.latest, clock.latest
    metrics = state.query.metrics
    seen = clock.seen
    for place in sorted({(each.part, each.seq) for each in messages}):
        reference = latest if stage.clock.ordered else before
        # What the query has answered already cannot be answered anew.
        bound = state.query.clock + 1
        if reference is not None:
            bound = max(bound, reference - definition.slack)
        for message in (each for each in messages if (each.part, each.seq) == place):
            counts = message.feed == first and stage.is_primary(message.feed, shard)
            if message.late is not None:
                aside = decode(message.late)
                late_by = aside[LATE_BY]
                answer.set_aside(stream, aside.drop(LATE_BY))
                metrics.late_rows += aside.height - late_by.null_count()
                metrics.future_rows += late_by.null_count()
                metrics.streams.note(stream, 0, late_by.drop_nulls())
            metrics.streams.note(stream, message.read)
            if message.low is None or message.high is None:
                continue
            if message.blob is not None:
                frame = with_time(decode(message.blob), definition)
                if message.low < bound:
                    late = frame.filter(pl.col(BORN) < bound)
                    frame = frame.filter(pl.col(BORN) >= bound)
                    if counts:
                        answer.set_aside(stream, late.drop(BORN))
                        metrics.late_rows += late.height
                        metrics.streams.note(stream, 0, bound + definition.slack - late[BORN])
                waiting[message.feed] = waiting[message.feed].adding(frame)
            if message.high >= bound and stage.begins(stream):
                opening = max(message.low, bound)
                earliest = opening if earliest is None else min(earliest, opening)
            latest = message.high if latest is None else max(latest, message.high)
    if messages or seen is None:
        seen = now_ms
    return replace(
        state,
        waiting=tuple(waiting),
        clocks={**state.clocks, stream: StreamClock(latest, seen)},
        earliest=earliest,
    )


def _safe(stage: Stage, state: ShardState, now_ms: int | None) -> int | None:
    """The instant before which no more rows come in time; None if that is not known yet."""
    clocks = []
    for stream in stage.streams:
        clock = state.clocks[stream.name]
        if _is_idle(stage, clock, now_ms):
            continue
        if clock.latest is None:
            return None
        clocks.append(clock.latest - stream.slack)
    return min(clocks) - 1 if clocks else _last(stage, state)


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
    return horizon(stage.plan, _latest(stage, state))


def _last(stage: Stage, state: ShardState) -> int | None:
    return max(_latest(stage, state).values(), default=None)


def _latest(stage: Stage, state: ShardState) -> dict[str, int]:
    """The largest instant of each stream that has had rows, and of each table that has had changes."""
    return {
        name: each.latest
        for name, each in state.clocks.items()
        if each.latest is not None and stage.begins(name)
    }


def step(stage: Stage, shard: int, state: ShardState, upto: int, answer: Answer) -> ShardState:
    """One clock step of the query over what was waiting for it."""
    query = state.query
    if query.start is None and state.earliest is not None and state.earliest <= upto:
        query.start = state.earliest
    rows: dict[str, pl.DataFrame] = {}
    waiting: list[Waiting] = []
    closed: list[Closed] = []
    counted = 0
    for number, (feed, queue) in enumerate(zip(stage.feeds, state.waiting, strict=True)):
        rest, ready = queue.take(upto)
        waiting.append(rest)
        promises = stage.promises_on(number)
        known = state.closed[len(closed) : len(closed) + len(promises)]
        if ready is not None:
            kept, broken, heard = _sift(promises, known, ready)
            closed += heard
            rows[feed.name] = kept if feed.op is None else signed(kept, feed.op, feed.name)
            reports = number == stage.feeds_of(feed.stream)[0] and stage.is_primary(number, shard)
            if broken.height and reports:
                answer.set_aside(feed.stream, broken.drop(BORN))
                query.metrics.late_rows += broken.height
            if not stage.senders and stage.is_primary(number, shard):
                counted += kept.height * _readers(stage, feed.name)
        else:
            closed += known
    born = pl.col(BORN)
    for name, table in stage.tables.items():
        changes = table.filter((born > query.clock) & (born <= upto))
        rows[name] = changes
        counted += changes.height * _readers(stage, name) if shard == 0 else 0
    before = query.metrics.rows_in
    if stage.onward is None:
        answer.rows.append(query.answer(rows, upto))
    else:
        answer.exported += query.export(rows, upto, stage.exports)
    query.metrics.rows_in = before + counted
    return replace(state, waiting=tuple(waiting), closed=tuple(closed))


def _sift(
    promises: Sequence[Promise], known: Sequence[Closed], rows: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame, list[Closed]]:
    """A feed's next rows as those that keep its promises and those that break one, and what is closed then."""
    sieve = KeptPromises(promises, states=[PromiseState(each.values) for each in known])
    kept, broken = sieve.sift(rows)
    heard = [
        before if state.closed is before.values else Closed(state.closed, before.version + 1)
        for before, state in zip(known, sieve.states, strict=True)
    ]
    return kept, broken, heard


def _readers(stage: Stage, relation: str) -> int:
    return sum(isinstance(step, SourceStep) and step.relation == relation for step in stage.graph.steps)


def replies_of(stage: Stage, answer: Answer) -> Iterator[Reply]:
    """A shard's answer as replies, each made when it is asked for."""
    graph = stage.graph
    schema = arrow_schema(graph.columns, change_log=graph.is_change_log)
    for pieces in answer.rows:
        for frame in pieces.frames:
            for piece in frame.iter_slices(_ROWS_PER_REPLY):
                if piece.height:
                    yield Reply("rows", graph.query, piece.height, to_arrow(piece, schema))
    for stream, frames in answer.late.items():
        late = pl.concat(frames)
        yield Reply("late", stream, late.height, encode(late))


def clock_of(state: ShardState) -> int | None:
    """How far the shard has answered; None before its first step."""
    return None if state.query.clock == BEGINNING else state.query.clock
