"""A query's first stage on Spark: where its plan is cut, what its tables hold, and how its clock moves."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from headgate.physical.program import CompiledQuery
from headgate.physical.stages import cut, ways
from headgate.runtime.build_stages import build_stages
from headgate.runtime.io.changes import ChangeStream, change_stream, require_static
from headgate.runtime.io.declared import require_time
from headgate.runtime.spark.changes import with_changes
from headgate.runtime.spark.options import SparkOptions
from headgate.runtime.stage import ClockOptions, Stage


def make_stage(
    query: CompiledQuery,
    options: SparkOptions,
    *,
    shards: int,
    tables: Mapping[str, pl.DataFrame],
    narrow: bool = False,
    changes: Mapping[str, ChangeStream] | None = None,
) -> Stage:
    """A query's first stage, over tables that have been read.

    `changes` are streams of changes by table, besides those that tables are declared with.
    """
    told = dict(changes or {})
    for table in query.tables:
        declared = None if table.name in tables or table.name in told else change_stream(table)
        if declared is not None:
            told[table.name] = declared
        require_static(table, None if table.name in told else tables[table.name])
    read = [table.name for table in query.tables]
    streamed = [told[name] for name in read if name in told]
    # All shards hear of a table's changes, which only the first stage reads.
    staged = (
        next(ways(query.graph, query.facts, shards)) if streamed else cut(query.graph, query.facts, shards)
    )
    clock = ClockOptions(options.ordered, options.idle_ms, options.future_us)
    static = {name: tables[name] for name in read if name not in told}
    stage = with_changes(build_stages(query.plan, staged, static, clock, narrow=narrow), streamed)
    for stream in stage.streams:
        require_time(stream)
    return stage
