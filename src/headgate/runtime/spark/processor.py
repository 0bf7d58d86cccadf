"""The stateful processor that runs a stage's kernels inside Spark, shard by shard.

When a query starts, Spark makes the processor once in a process of its own, only to ask for its state variables. So
the stage travels as bytes, and what it needs is imported when rows come.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

if TYPE_CHECKING:
    from headgate.runtime.shard import ShardState
    from headgate.runtime.spark.messages import Message, Reply
    from headgate.runtime.spark.store import Loaded, Saved
    from headgate.runtime.stage import Stage


class SparkMap:
    """A shard's durable map in Spark's state store."""

    def __init__(self, value: Any, chunks: Any) -> None:
        self._value, self._chunks = value, chunks

    def facts(self) -> str | None:
        found = self._value.get()
        return None if found is None else found[0]

    def put_facts(self, facts: str) -> None:
        self._value.update((facts,))

    def chunks(self) -> Iterator[tuple[str, bytes]]:
        for key, value in self._chunks.iterator():
            yield key[0], bytes(value[0])

    def put(self, name: str, chunk: bytes) -> None:
        self._chunks.updateValue((name,), (chunk,))

    def remove(self, name: str) -> None:
        self._chunks.removeKey((name,))


class ShardProcessor(StatefulProcessor):  # type: ignore[misc]
    """Messages to a shard in, its answer out; state in the state store and, decoded, in this worker."""

    def __init__(self, stage: Stage, labels: tuple[int, ...]) -> None:
        self.packed, self.labels = pickle.dumps(stage), labels

    def init(self, handle: Any) -> None:
        self.store = SparkMap(
            handle.getValueState("facts", "facts string"),
            handle.getMapState("chunks", "name string", "chunk binary"),
        )

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
        stage, replies, sent = self._answer(key, rows, timerValues)
        if stage.onward is None:
            for reply in replies:
                yield Row(kind=reply.kind, name=reply.name, rows=reply.rows, blob=bytearray(reply.blob))
            return
        from headgate.runtime.spark.exchange import relay

        for target, message in (*sent, *map(relay, replies)):
            yield Row(shard=self.labels[target], **message.columns())

    def _answer(
        self, key: Any, rows: Iterator[Any], timers: Any
    ) -> tuple[Stage, Iterator[Reply], list[tuple[int, Message]]]:
        """The stage, what the shard says to the sink, and what it says to shards of the next stage."""
        from pyspark import SparkFiles

        from headgate.runtime.spark.exchange import advance
        from headgate.runtime.spark.local_state_cache import LocalStateCache
        from headgate.runtime.spark.messages import message_of
        from headgate.runtime.spark.store import load, save, unpickled

        begun = perf_counter()
        stage = unpickled(self.packed)
        shard = self.labels.index(int(key[0]))
        messages = [message_of(row) for row in rows]
        received = perf_counter()
        local_cache = LocalStateCache(Path(SparkFiles.getRootDirectory()))
        before = load(stage, self.store, local_cache)
        loaded = perf_counter()
        # Batches that are replayed have the same time, so they go the same way.
        asks = stage.clock.idle_ms is not None and not stage.senders
        now = timers.getCurrentProcessingTimeInMs() if asks else None
        following, outcome = advance(stage, shard, before.state, messages, now)
        advanced = perf_counter()
        saved = save(stage, self.store, before, following, local_cache)
        times = {
            "receive": received - begun,
            "load": loaded - received,
            "advance": advanced - loaded,
            "save": perf_counter() - advanced,
        }
        report = metrics_report(stage, shard, following, before, saved, times)
        return stage, chain(outcome.replies, [report]), outcome.sent

    def close(self) -> None:
        """Nothing is held open."""


class FrameProcessor(ShardProcessor):
    """The same for Spark 4.0, which passes messages as pandas frames only."""

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
        from headgate.runtime.spark.messages import pandas_frame, replied, sent_on

        stage, replies, sent = self._answer(key, _each_row(rows), timerValues)
        if stage.onward is None:
            for reply in replies:
                yield pandas_frame(replied(reply))
            return
        from headgate.runtime.spark.exchange import relay

        yield pandas_frame(sent_on([*sent, *map(relay, replies)], self.labels))


class RowsProcessor(ShardProcessor):
    """The same, but the query's rows come out as rows, and nothing else does.

    Spark passes them on as pandas frames. Arrow columns inside these travel without a copy.
    """

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
        from headgate.runtime.spark.messages import pandas_frame

        _, replies, _ = self._answer(key, _each_row(rows), timerValues)
        for reply in replies:
            if reply.kind == "rows":
                yield pandas_frame(reply.content)


def _each_row(frames: Iterator[Any]) -> Iterator[Any]:
    """The rows of pandas frames: messages, of which a shard gets a handful."""
    return (row for frame in frames for row in frame.itertuples(index=False))


def metrics_report(
    stage: Stage, shard: int, state: ShardState, before: Loaded, saved: Saved, times: dict[str, float]
) -> Reply:
    """What a shard has done since the beginning, and in this micro-batch."""
    from headgate.runtime.shard import clock_of
    from headgate.runtime.spark.messages import Reply

    found: dict[str, Any] = {
        "stage": stage.number,
        "shard": shard,
        **state.query.metrics.as_dict(),
        "clock": clock_of(state),
        "waiting_rows": sum(each.rows for each in state.waiting),
        "waiting_bytes": sum(each.nbytes for each in state.waiting),
        "ended": state.ended,
        "batch": {
            "cached": before.found != "store",
            "state_from": before.found,
            "written_bytes": saved.bytes,
            "written_chunks": saved.chunks,
            "seconds": {name: round(spent, 6) for name, spent in times.items()},
        },
    }
    if stage.number > 1:
        # Operators are known by their places in the stage.
        for key in ("seconds", "operators"):
            found[key] = {f"{stage.number}.{name}": value for name, value in found[key].items()}
    return Reply("metrics", stage.graph.query, 0, json.dumps(found).encode())
