"""The stateful processor that runs the kernels of a job's queries inside Spark, place by place.

When a query starts, Spark makes the processor once in a process of its own, only to ask for its state variables. So
the job travels as bytes, and what it needs is imported when rows come.
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
    from headgate.runtime.spark.job import JobStage
    from headgate.runtime.spark.messages import Message, Reply
    from headgate.runtime.spark.store import Loaded, Saved
    from headgate.runtime.stage import Stage


class SparkMap:
    """The durable map of a place in Spark's state store."""

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
    """Messages to a place in, its shards' answers out; state in the state store and, decoded, in this worker."""

    def __init__(self, job: JobStage, labels: tuple[int, ...]) -> None:
        self.packed, self.labels = pickle.dumps(job), labels

    def init(self, handle: Any) -> None:
        self.store = SparkMap(
            handle.getValueState("facts", "facts string"),
            handle.getMapState("chunks", "name string", "chunk binary"),
        )

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
        is_last, replies, sent = self._answer(key, rows, timerValues)
        if is_last:
            for reply in replies:
                yield Row(**reply.columns())
            return
        for target, message in sent:
            yield Row(shard=self.labels[target], **message.columns())
        for message in _relays(replies):
            yield Row(shard=int(key[0]), **message.columns())

    def _answer(
        self, key: Any, rows: Iterator[Any], timers: Any
    ) -> tuple[bool, Iterator[Reply], list[tuple[int, Message]]]:
        """Whether the stage is the last, what is said to the sinks, and what to places of the next stage."""
        from pyspark import SparkFiles

        from headgate.runtime.spark.job_shard import advance_place
        from headgate.runtime.spark.local_state_cache import LocalStateCache
        from headgate.runtime.spark.messages import message_of
        from headgate.runtime.spark.store import load, save, unpickled
        from headgate.runtime.spark.worker_memory import leave_out_imports

        begun = perf_counter()
        job = unpickled(self.packed)
        place = self.labels.index(int(key[0]))
        here = list(job.at(place))
        stages = {query: stage for query, stage, _ in here}
        messages = [message_of(row) for row in rows]
        received = perf_counter()
        local_cache = LocalStateCache(Path(SparkFiles.getRootDirectory()))
        before = load(stages, self.store, local_cache)
        loaded = perf_counter()
        # Batches that are replayed have the same time, so they go the same way.
        now = None if job.idle_ms is None else timers.getCurrentProcessingTimeInMs()
        outcome = advance_place(job, place, before.states, messages, now)
        advanced = perf_counter()
        saved = save(stages, self.store, before, outcome.states, local_cache)
        # What is done for all queries at once is divided among those that had anything to do.
        active = max(1, len(outcome.seconds))
        times = {
            "receive": (received - begun) / active,
            "load": (loaded - received) / active,
            "save": (perf_counter() - advanced) / active,
        }
        reports = [
            metrics_report(
                query,
                stage,
                shard,
                outcome.states[query],
                before,
                saved,
                times | {"advance": outcome.seconds[query]},
            )
            for query, stage, shard in here
            if query in outcome.seconds
        ]
        leave_out_imports("shard")
        return job.onward is None, chain(outcome.replies, reports), outcome.sent

    def close(self) -> None:
        """Nothing is held open."""


class RowsProcessor(ShardProcessor):
    """The same for a job of one query, but its rows come out as rows, and nothing else does.

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


def _relays(replies: Iterator[Reply]) -> Iterator[Message]:
    """What is meant for a sink, on its way through the next stage."""
    from headgate.runtime.spark.messages import relay

    return map(relay, replies)


def metrics_report(
    query: int,
    stage: Stage,
    shard: int,
    state: ShardState,
    before: Loaded,
    saved: Saved,
    times: dict[str, float],
) -> Reply:
    """What a shard has done since the beginning, and in this micro-batch."""
    from headgate.runtime.shard import clock_of
    from headgate.runtime.spark.messages import Reply

    chunks, size = saved.written[query]
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
            "written_bytes": size,
            "written_chunks": chunks,
            "seconds": {name: round(spent, 6) for name, spent in times.items()},
        },
    }
    if stage.number > 1:
        # Operators are known by their places in the stage.
        for key in ("seconds", "operators"):
            found[key] = {f"{stage.number}.{name}": value for name, value in found[key].items()}
    return Reply("metrics", stage.graph.query, 0, json.dumps(found).encode(), query)
