"""Stage: everything that a task needs to run a query's kernels over shards, as one value that travels to workers.

Workers import this module for each run, so what makes stages out of programs is in `build_stages.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import polars as pl

from headgate.kernels.keys import key_hash
from headgate.model.batch import BORN
from headgate.model.scalar import Scalar
from headgate.model.types import spark_name
from headgate.physical.graph import ExchangeStep, OperatorGraph, SourceStep, Step
from headgate.plan.catalog import StreamDef, TableDef
from headgate.plan.nodes import Emit, TableScan
from headgate.runtime.description import described, plan_lines
from headgate.runtime.io.registry import FILE_FORMATS
from headgate.safety.promise import Promise

FORMAT = 9
"""The version of the state's format; a checkpoint of another version is refused."""


@dataclass(frozen=True)
class ClockOptions:
    """How a stage's clock moves, on Spark from micro-batch to micro-batch.

    `ordered`: the files of a micro-batch come in the order of its partitions, so each row is late or not by all rows
    before it; otherwise, and with other sources, by the micro-batches before. `idle_ms`: an input without rows for so
    long holds the clock no more. `future_us`: rows further ahead of the wall clock than this do not move the clock
    and are set aside.
    """

    ordered: bool = False
    idle_ms: int | None = None
    future_us: int | None = None


@dataclass(frozen=True)
class Feed:
    """Rows of a stream on one set of routes: its columns on each axis of the shards."""

    name: str
    stream: str
    columns: tuple[tuple[str, ...], ...]
    predicate: Scalar | None = None
    """Rows on which it is not TRUE are not sent."""
    op: str | None = None
    """For changes of a table: the column that says whether a row comes or goes."""


@dataclass(frozen=True, eq=False)
class Stage:
    """A query as shards run it."""

    graph: OperatorGraph
    """Its sources read feeds, by name."""
    plan: Emit
    streams: tuple[StreamDef, ...]
    feeds: tuple[Feed, ...]
    shares: tuple[int, ...]
    tables: Mapping[str, pl.DataFrame]
    """Changes in order of time with `_born` and `_sign`; every shard has all of them."""
    clock: ClockOptions = ClockOptions()
    senders: int = 0
    """Shards of the stage before, whose answers this one reads; 0 if it reads streams."""
    exports: tuple[int, ...] = ()
    """The steps whose batches go on, one for each feed of the stage after."""
    onward: Stage | None = None
    """The stage that is answered, if it is not the sink."""
    number: int = 1
    is_whole: bool = False
    """Whether there is one shard, in this process, and it gets every row of the streams."""

    @property
    def chain(self) -> tuple[Stage, ...]:
        """This stage and all after it."""
        return (self,) if self.onward is None else (self, *self.onward.chain)

    @property
    def most_shards(self) -> int:
        """Shards of the widest of them."""
        return max(stage.shards for stage in self.chain)

    @property
    def shards(self) -> int:
        return prod(self.shares)

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """How far apart shards are that are neighbours on each axis."""
        return tuple(prod(self.shares[axis + 1 :]) for axis in range(len(self.shares)))

    @cached_property
    def last_changes(self) -> dict[str, int]:
        """The last instants of tables that change and all of whose changes are known."""
        given = {table.name: self.tables[table.name] for table in self.changing if table.name in self.tables}
        last = {name: rows[BORN].max() for name, rows in given.items()}
        return {name: at for name, at in last.items() if isinstance(at, int)}

    @cached_property
    def changing(self) -> tuple[TableDef, ...]:
        """The tables of the query that change."""
        scans = [node for node in self.plan.walk() if isinstance(node, TableScan)]
        return tuple({scan.table.name: scan.table for scan in scans if scan.table.changes}.values())

    def stream(self, name: str) -> StreamDef:
        """A stream that it reads."""
        return next(each for each in self.streams if each.name == name)

    def in_order(self, stream: StreamDef) -> bool:
        """Whether partitions of a stream come one after the other; those of Kafka, for one, have no order."""
        return self.clock.ordered and (stream.source is None or stream.source.format in FILE_FORMATS)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of its streams and tables."""
        return (*(each.name for each in self.streams), *self.tables)

    def feeds_of(self, stream: str) -> list[int]:
        """The numbers of a stream's feeds; the first one answers for late rows."""
        return [number for number, feed in enumerate(self.feeds) if feed.stream == stream]

    def is_changes(self, stream: str) -> bool:
        """Whether a stream tells the changes of a table."""
        return any(feed.stream == stream and feed.op is not None for feed in self.feeds)

    def begins(self, stream: str) -> bool:
        """Whether a row of a stream, or a change of a table, may be the first of the query, and the last that counts.

        A change of a NON RETROACTIVE table takes effect with a stream's row only.
        """
        return any(feed.stream == stream and feed.name in self.graph.beginning for feed in self.feeds)

    def promises_on(self, feed: int) -> list[Promise]:
        """The promises of a feed's stream that the query relies on."""
        return [each for each in self.graph.promises if each.stream == self.feeds[feed].stream]

    def is_primary(self, feed: int, shard: int) -> bool:
        """Whether, of all copies of a row on this feed that shards get, this shard's is the one that counts."""
        places = [shard // stride % share for stride, share in zip(self.strides, self.shares, strict=True)]
        return not any(
            place for place, columns in zip(places, self.feeds[feed].columns, strict=True) if not columns
        )

    def description(self) -> list[str]:
        """What the state depends on, line by line: two stages with equal lines can read each other's state."""
        return [f"state format {FORMAT}", f"hash {_hash_probe()}", *plan_lines(self.plan), *self._lines()]

    def _lines(self) -> list[str]:
        lines = [f"shards {'×'.join(map(str, self.shares))}"]
        for stream in self.streams:
            columns = ", ".join(f"{each.name} {spark_name(each.type)}" for each in stream.columns)
            lines.append(f"stream {stream.name} ({columns}) by {stream.time} within {stream.slack} µs")
        for feed in self.feeds:
            where = "" if feed.predicate is None else f" where {described(feed.predicate)}"
            where += "" if feed.op is None else f" as changes by {feed.op}"
            lines.append(f"feed {feed.name} of {feed.stream} by {feed.columns}{where}")
        lines += [f"step {number}: {_described(step)}" for number, step in enumerate(self.graph.steps)]
        lines += [f"relies on {described(promise)}" for promise in self.graph.promises]
        if self.onward is None:
            lines.append(f"output {self.graph.output} {described(self.graph.emit)}")
            return lines
        lines.append(f"sends {', '.join(f'step {number}' for number in self.exports)}")
        return lines + [f"then {line}" for line in self.onward._lines()]

    @cached_property
    def fingerprint(self) -> str:
        return hashlib.sha256("\n".join(self.description()).encode()).hexdigest()[:16]


def _described(step: Step) -> str:
    if isinstance(step, ExchangeStep):
        columns = ", ".join(f"{name} {dtype}" for name, dtype in step.schema.items())
        return f"{step.relation} ({columns})"
    if isinstance(step, SourceStep):
        return f"{'table' if step.is_table else 'stream'} {step.relation} as {step.name}"
    return f"{step.operator}({', '.join(map(str, step.inputs))}) {described(step.kernel)}"


def _hash_probe() -> str:
    """A sample of the hash that routes rows: a library that hashes otherwise cannot continue a state."""
    frame = pl.DataFrame({"n": [0, 7, None], "t": ["", "headgate", None], "x": [0.0, 1.5, None]})
    hashes: Sequence[int] = key_hash(frame, ("n", "t", "x")).tolist()
    return hashlib.sha256(repr(hashes).encode()).hexdigest()[:12]
