"""Runs a query through pack, shards and store as Spark does, without Spark: micro-batches, partitions, shards."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import polars as pl
import pyarrow as pa
from tests.differential.local import _changes, _table, mark_changing
from tests.oracle.inputs import EPOCH, TimedRow
from tests.oracle.values import Change, change_key

from headgate.optimize.statistics import read_statistics
from headgate.physical.compile import compile_query
from headgate.physical.stages import cut, ways
from headgate.runtime.local.data import frame_of
from headgate.runtime.sources.changes import changes_of
from headgate.runtime.spark.changes import with_changes
from headgate.runtime.spark.codec import decode
from headgate.runtime.spark.exchange import advance, relay
from headgate.runtime.spark.messages import Message, Reply, decode_table
from headgate.runtime.spark.pack import Packer, pack_end
from headgate.runtime.spark.store import load, save
from headgate.runtime.stage import ClockOptions, Stage, build_stages
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
    given = {each.name: _table(tables[each.name], each.columns) for each in read if each.name not in streamed}
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
    stage: Stage,
    arrivals: Sequence[Mapping[str, pa.Table]],
    tables: Mapping[str, pa.Table | Sequence[TimedRow]],
) -> list[dict[str, pa.Table]]:
    """The arrivals of a stage's streams with the changes of its tables spread over them."""
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
    """The shards of a stage and their stores."""

    stage: Stage
    stores: list[list[Memory]] = field(default_factory=list)
    """By stage and shard."""
    rows: list[pl.DataFrame] = field(default_factory=list)
    late: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.stores = [[Memory() for _ in range(stage.shards)] for stage in self.stage.chain]

    def batch(self, arrival: Mapping[str, Sequence[pa.Table]], *, now_ms: int | None = None) -> None:
        """A micro-batch: for every stream the partitions of its new rows."""
        inboxes: list[list[Message]] = [[] for _ in self.stores[0]]
        for stream in self.stage.streams:
            for part, table in enumerate(arrival.get(stream.name, ())):
                for piece in Packer(self.stage, stream).messages(table.to_batches(), part):
                    for shard, message in piece:
                        inboxes[shard].append(message)
        self._deliver(inboxes, now_ms)

    def end(self) -> None:
        """The end of all streams."""
        inboxes: list[list[Message]] = [[] for _ in self.stores[0]]
        for piece in pack_end(self.stage, [pa.record_batch({"end": [1]})]):
            for shard, message in piece:
                inboxes[shard].append(message)
        self._deliver(inboxes, None)

    def _deliver(self, inboxes: list[list[Message]], now_ms: int | None) -> None:
        for stage, stores in zip(self.stage.chain, self.stores, strict=True):
            following: list[list[Message]] = [[] for _ in range(stage.onward.shards if stage.onward else 0)]
            for shard, (inbox, store) in enumerate(zip(inboxes, stores, strict=True)):
                if not inbox:
                    continue
                before = load(stage, store)
                after, outcome = advance(stage, shard, before.state, inbox, now_ms)
                save(stage, store, before, after)
                sent = [*outcome.sent, *(map(relay, outcome.replies) if stage.onward else ())]
                for target, message in sent:
                    following[target].append(message)
                if stage.onward is None:
                    self._hear(outcome.replies)
            inboxes = following

    def _hear(self, replies: Iterable[Reply]) -> None:
        for reply in replies:
            if reply.kind == "rows":
                frame = pl.from_arrow(decode_table(reply.blob))
                assert isinstance(frame, pl.DataFrame)
                self.rows.append(frame)
            else:
                self.late[reply.name] = self.late.get(reply.name, 0) + decode(reply.blob).height

    def changes(self) -> list[Change]:
        """All output so far, as the oracle writes it."""
        stamped = [frame.with_columns(pl.col("_time").dt.epoch("us")) for frame in self.rows]
        return sorted((change for frame in stamped for change in _changes(frame)), key=change_key)
