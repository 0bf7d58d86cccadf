"""Exchange: what the shards of one stage send to those of the next, in the same micro-batch.

```
shard 0 of stage 1 ─┬ rows for shard 0, clock 40 ──┬─ shard 0 of stage 2   both senders have answered up to 40,
shard 1 of stage 1 ─┴ rows for shard 0, clock 40 ──┘                       so it does
```

A sender says how far it has answered, also where it has no rows to send; a receiver answers up to the earliest of
its senders' clocks. What is meant for the sink (late rows, metrics) is passed on as it is by one shard.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from headgate.model.time import BEGINNING
from headgate.runtime.output import arrow_schema, to_arrow
from headgate.runtime.shard import Answer, Piece, ShardState, StreamClock, advance_streams, step
from headgate.runtime.spark.codec import decode, encode
from headgate.runtime.spark.messages import END, Message, Reply
from headgate.runtime.spark.pack import with_time
from headgate.runtime.spark.routing import routed
from headgate.runtime.stage import Stage

_ROWS_PER_REPLY = 1_000_000

CLOCK = -2
"""The feed of a message that says how far its sender has answered (`high`), and since when there are rows (`low`)."""


@dataclass
class Outcome:
    """What a shard says about a micro-batch: to the sink, made when it is asked for, and to the next stage."""

    replies: Iterator[Reply] = field(default_factory=lambda: iter(()))
    sent: list[tuple[int, Message]] = field(default_factory=list)


def advance(
    stage: Stage,
    shard: int,
    state: ShardState,
    messages: Sequence[Message],
    now_ms: int | None,
    query: int = 0,
    decoded: Decoded | None = None,
) -> tuple[ShardState, Outcome]:
    """A shard's state after a micro-batch, and what it says, to shards of the next stage by their numbers there."""
    answer = Answer()
    decoded = Decoded() if decoded is None else decoded
    state = replace(state, query=state.query.fork())
    if stage.senders:
        state = _receive(stage, shard, state, messages, answer)
    else:
        pieces = [_piece(stage, each, decoded) for each in messages if each.feed >= 0]
        ended = any(each.feed == END for each in messages)
        state = advance_streams(stage, shard, state, pieces, now_ms, answer, ended=ended)
    outcome = Outcome(replies_of(stage, answer, query))
    if stage.onward is not None:
        outcome.sent += _sent(stage, shard, state, answer, query)
    return state, outcome


class Decoded:
    """Rows of messages that several queries read, decoded once."""

    def __init__(self) -> None:
        self._frames: dict[int, tuple[bytes, pl.DataFrame]] = {}

    def __call__(self, blob: bytes) -> pl.DataFrame:
        """The rows in a blob."""
        found = self._frames.get(id(blob))
        if found is None:
            # The blob is kept with its rows, so that no other one gets its address meanwhile.
            found = self._frames[id(blob)] = (blob, decode(blob))
        return found[1]


def _piece(stage: Stage, message: Message, decoded: Decoded) -> Piece:
    """The rows of a stream that a message brings."""
    stream = stage.stream(stage.feeds[message.feed].stream)
    return Piece(
        message.feed,
        message.part,
        message.seq,
        message.low,
        message.high,
        None if message.blob is None else with_time(decoded(message.blob), stream),
        None if message.late is None else decoded(message.late),
        message.read,
    )


def replies_of(stage: Stage, answer: Answer, query: int) -> Iterator[Reply]:
    """A shard's answer as replies, each made when it is asked for."""
    graph = stage.graph
    schema = arrow_schema(graph.columns, change_log=graph.is_change_log)
    for pieces in answer.rows:
        for frame in pieces.frames:
            for piece in frame.iter_slices(_ROWS_PER_REPLY):
                if piece.height:
                    yield Reply("rows", graph.query, piece.height, to_arrow(piece, schema), query)
    for stream, frames in answer.late.items():
        late = pl.concat(frames)
        yield Reply("late", stream, late.height, encode(late), query)


def _sent(
    stage: Stage, shard: int, state: ShardState, answer: Answer, query: int
) -> Iterator[tuple[int, Message]]:
    """The messages of a sender: its rows by shard of the next stage, and to every shard its clock."""
    onward = stage.onward
    assert onward is not None
    for feed, batches in enumerate(zip(*answer.exported, strict=True)):
        for seq, batch in enumerate(batches):
            if batch.height:
                for targets, rows in routed(onward, feed, batch.frame):
                    message = Message(feed, shard, seq, None, None, encode(rows), query=query)
                    yield from ((target, message) for target in targets)
    if state.query.clock > BEGINNING:
        clock = Message(CLOCK, shard, 0, state.query.start, state.query.clock, None, query=query)
        yield from ((target, clock) for target in range(onward.shards))


def _receive(
    stage: Stage, shard: int, state: ShardState, messages: Sequence[Message], answer: Answer
) -> ShardState:
    """The state after all that came from the stage before."""
    waiting, clocks, starts = list(state.waiting), dict(state.clocks), [state.earliest]
    for message in sorted(messages, key=lambda each: (each.feed, each.part, each.seq)):
        if message.feed == CLOCK:
            clocks[str(message.part)] = StreamClock(message.high)
            starts.append(message.low)
        elif message.feed >= 0 and message.blob is not None:
            waiting[message.feed] = waiting[message.feed].adding(decode(message.blob))
    earliest = min((each for each in starts if each is not None), default=None)
    state = replace(state, waiting=tuple(waiting), clocks=clocks, earliest=earliest)
    heard = [each.latest for each in clocks.values()]
    upto = min((each for each in heard if each is not None), default=None)
    if None in heard:
        return state
    return step(stage, shard, state, upto, answer)
