"""Spark's own progress of queries: a listener that adds up what Spark reports of each micro-batch."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from headgate.runtime.spark.failures import ignore_dead_jvm


@dataclass
class SparkProgress:
    """What Spark has reported of one query: seconds by phase over all micro-batches, and its newest state store."""

    seconds: dict[str, float] = field(default_factory=dict)
    state: dict[str, int] = field(default_factory=dict)
    seen: set[tuple[str, int]] = field(default_factory=set)
    """Run and number of the micro-batches that are in it; the newest are enough."""
    lock: Lock = field(default_factory=Lock)

    def go_on_from(self, facts: Mapping[str, Any]) -> None:
        """Counts on from what an earlier process had come to."""
        self.seconds = dict(facts.get("seconds", {}))

    def absorb(self, progress: Mapping[str, Any]) -> None:
        """Adds a micro-batch, once."""
        with self.lock:
            self._absorb(progress)

    def _absorb(self, progress: Mapping[str, Any]) -> None:
        number = (str(progress["runId"]), int(progress["batchId"]))
        if number in self.seen:
            return
        self.seen = {each for each in self.seen if each[1] > number[1] - 1_000} | {number}
        for phase, spent in progress["durationMs"].items():
            self.seconds[phase] = round(self.seconds.get(phase, 0.0) + spent / 1000, 3)
        operators = progress["stateOperators"]
        if operators:
            self.state = {
                "state_memory_bytes": sum(int(each["memoryUsedBytes"]) for each in operators),
                "state_file_bytes": sum(
                    int(each.get("customMetrics", {}).get("rocksdbSstFileSize", 0)) for each in operators
                ),
            }

    def facts(self) -> dict[str, Any]:
        """As `metrics.json` has it."""
        with self.lock:
            return {"seconds": dict(self.seconds), **self.state}


class ProgressListener(StreamingQueryListener):  # type: ignore[misc]
    """Hears of all queries of a session; keeps the progress of those that were asked for, by name."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._queries: dict[str, SparkProgress] = {}

    def of(self, name: str) -> SparkProgress:
        """The progress of the query that Spark knows by a name."""
        with self._lock:
            return self._queries.setdefault(name, SparkProgress())

    def absorb(self, progress: Mapping[str, Any]) -> None:
        """Adds a micro-batch of one of the queries."""
        with self._lock:
            found = self._queries.get(str(progress.get("name")))
        if found is not None:
            found.absorb(progress)

    # Spark calls these from a thread of its own, in camel case.

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """A query is there before its first micro-batch; nothing to count."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        self.absorb(json.loads(event.progress.json))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """No rows, no work."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """What it has done stays counted."""


@contextmanager
def listening(spark: SparkSession) -> Iterator[ProgressListener]:
    """A listener that hears of a session's queries within the block."""
    listener = ProgressListener()
    spark.streams.addListener(listener)
    try:
        yield listener
    finally:
        with ignore_dead_jvm():
            spark.streams.removeListener(listener)
