"""Runs a query through pack, shards and store as Spark does, without Spark: micro-batches, partitions, shards."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import polars as pl
import pyarrow as pa
from tests.differential.local import _changes, mark_changing, table_rows
from tests.oracle.inputs import EPOCH, TimedRow
from tests.oracle.values import Change, change_key

from headgate.optimize.statistics import read_statistics
from headgate.physical.compile import compile_query
from headgate.physical.stages import cut, ways
from headgate.runtime.build_stages import build_stages
from headgate.runtime.data import frame_of
from headgate.runtime.io.changes import changes_of
from headgate.runtime.query import Metrics
from headgate.runtime.spark.changes import with_changes
from headgate.runtime.spark.codec import decode
from headgate.runtime.spark.job import JobStage
from headgate.runtime.spark.job_shard import advance_place
from headgate.runtime.spark.local_state_cache import LocalStateCache
from headgate.runtime.spark.messages import Message, Reply, decode_table, relay
from headgate.runtime.spark.pack import Packer, pack_end
from headgate.runtime.spark.store import load, save
from headgate.runtime.stage import ClockOptions, Stage
from headgate.session import Session

CHANGE = ("changed_at", "change_op")
"""The columns that say when a table's row comes or goes, and which of it."""


@dataclass
class Memory:
    """A durable map in memory."""

    text: str | None = None
    held: dict[str, bytes] = field(default_factory=dict)

    def facts(self) -> str | None:
        return self.text

    def put_facts(self, facts: str) -> None:
        self.text = facts

    def chunks(self) -> Iterator[tuple[str, bytes]]:
        return iter(self.held.items())

    def put(self, name: str, chunk: bytes) -> None:
        assert name not in self.held, f"chunk {name} is written twice"
        self.held[name] = chunk

    def remove(self, name: str) -> None:
        del self.held[name]


def stage_of(
    text: str,
    query: str,
    tables: Mapping[str, pa.Table | Sequence[TimedRow]],
    *,
    shards: int,
    clock: ClockOptions | None = None,
    way: int | None = None,
    narrow: bool = False,
    statistics: str | None = None,
) -> Stage:
    """The first stage of a query, as it arrives in a worker: the cheapest way to cut it, or another one."""
    session = Session()
    session.sql(text)
    mark_changing(session, tables)
    if statistics is not None:
        session.statistics = read_statistics(statistics, "statistics", session.catalog)
    found = session.query(query)
    ready = compile_query(found.planned, allow_unbounded=True)
    best = found.optimized.best
    read = ready.tables
    told = [changes_of(each, *CHANGE) for each in read if not isinstance(tables[each.name], pa.Table)]
    streamed = {each.stream.name for each in told}
    given = {
        each.name: table_rows(tables[each.name], each.columns) for each in read if each.name not in streamed
    }
    # All shards hear of a table's changes, which only the first stage reads.
    staged = next(ways(ready.graph, best, shards)) if told else cut(ready.graph, best, shards)
    if way is not None and not told:
        all_ways = list(ways(ready.graph, best, shards))
        staged = all_ways[way % len(all_ways)]
    clock = clock or ClockOptions(ordered=True)
    built = with_changes(build_stages(ready.plan, staged, given, clock, narrow=narrow), told)
    stage: Stage = pickle.loads(pickle.dumps(built))
    return stage


def arriving(
    stage: Stage | JobStage,
    arrivals: Sequence[Mapping[str, pa.Table]],
    tables: Mapping[str, pa.Table | Sequence[TimedRow]],
) -> list[dict[str, pa.Table]]:
    """The arrivals of streams with the changes of tables spread over them."""
    whole = list(arrivals) or [{}]
    found = [dict(arrival) for arrival in whole]
    for stream in stage.streams:
        rows = tables.get(stream.name)
        if rows is None or isinstance(rows, pa.Table):
            continue
        at, op = CHANGE
        told = [
            {**row, at: EPOCH + timedelta(microseconds=time), op: sign}
            for time, sign, row in sorted(rows, key=lambda row: row[0])
        ]
        changes = frame_of(told, stream.columns).to_arrow()
        for number, arrival in enumerate(found):
            first, end = (len(told) * place // len(found) for place in (number, number + 1))
            arrival[stream.name] = changes.slice(first, end - first)
    return found


@dataclass
class Cluster:
    """The shards of queries that run as one job, and their stores."""

    stage: Stage
    others: Sequence[Stage] = ()
    """First stages of further queries."""
    stores: list[list[Memory]] = field(default_factory=list)
    """By stage and place."""
    answers: dict[int, list[pl.DataFrame]] = field(default_factory=dict)
    """By query."""
    late: dict[str, int] = field(default_factory=dict)
    """By stream, of the first query."""
    nearby: LocalStateCache | None = None

    def __post_init__(self) -> None:
        job: JobStage = pickle.loads(pickle.dumps(JobStage.of([self.stage, *self.others])))
        self.job = job
        self.stores = [[Memory() for _ in range(job.places)] for _ in job.chain]

    def batch(self, arrival: Mapping[str, Sequence[pa.Table]], *, now_ms: int | None = None) -> None:
        """A micro-batch: for every stream the partitions of its new rows."""
        inboxes: list[list[Message]] = [[] for _ in self.stores[0]]
        for stream in self.job.streams:
            for part, table in enumerate(arrival.get(stream.name, ())):
                for piece in Packer(self.job, stream).messages(table.to_batches(), part):
                    for place, message in piece:
                        inboxes[place].append(message)
        self._deliver(inboxes, now_ms)

    def end(self) -> None:
        """The end of all streams."""
        inboxes: list[list[Message]] = [[] for _ in self.stores[0]]
        for piece in pack_end(self.job, [pa.record_batch({"end": [1]})]):
            for place, message in piece:
                inboxes[place].append(message)
        self._deliver(inboxes, None)

    def _deliver(self, inboxes: list[list[Message]], now_ms: int | None) -> None:
        for job, stores in zip(self.job.chain, self.stores, strict=True):
            following: list[list[Message]] = [[] for _ in stores]
            for place, (inbox, store) in enumerate(zip(inboxes, stores, strict=True)):
                if not inbox:
                    continue
                stages = {query: stage for query, stage, _ in job.at(place)}
                before = load(stages, store, self.nearby)
                outcome = advance_place(job, place, before.states, inbox, now_ms)
                save(stages, store, before, outcome.states, self.nearby)
                for target, message in outcome.sent:
                    following[target].append(message)
                if job.onward is None:
                    self._hear(outcome.replies)
                else:
                    following[place] += map(relay, outcome.replies)
            inboxes = following

    def _hear(self, replies: Iterable[Reply]) -> None:
        for reply in replies:
            if reply.kind == "rows":
                frame = pl.from_arrow(decode_table(reply.blob))
                assert isinstance(frame, pl.DataFrame)
                self.answers.setdefault(reply.query, []).append(frame)
            elif reply.query == 0:
                self.late[reply.name] = self.late.get(reply.name, 0) + decode(reply.blob).height

    @property
    def rows(self) -> list[pl.DataFrame]:
        """What the first query has said."""
        return self.answers.get(0, [])

    @property
    def metrics(self) -> list[Metrics]:
        """What each shard of the first query has measured in its first stage."""
        found = []
        for place, store in enumerate(self.stores[0]):
            stages = {query: stage for query, stage, _ in self.job.at(place)}
            found += [state.query.metrics for state in load(stages, store, None).states.values()]
        return found

    def changes(self, query: int = 0) -> list[Change]:
        """All output of a query so far, as the oracle writes it."""
        stamped = [
            frame.with_columns(pl.col("_time").dt.epoch("us")) for frame in self.answers.get(query, [])
        ]
        return sorted((change for frame in stamped for change in _changes(frame)), key=change_key)
