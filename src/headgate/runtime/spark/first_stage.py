"""A query's first stage on Spark: where its plan is cut, what its tables hold, and how its clock moves."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from headgate.physical.program import CompiledQuery, Program
from headgate.physical.stages import cut, ways
from headgate.plan.catalog import TableDef
from headgate.runtime.io.changes import ChangeStream, change_stream, require_static
from headgate.runtime.io.declared import require_time
from headgate.runtime.io.tables import read_table
from headgate.runtime.spark.aside import TABLE, Aside, publish
from headgate.runtime.spark.changes import with_changes
from headgate.runtime.spark.options import SparkOptions
from headgate.runtime.spark.sources.tables_elsewhere import is_table_elsewhere
from headgate.runtime.stage import ClockOptions, Stage, build_stages


def make_stage(
    query: CompiledQuery,
    options: SparkOptions,
    *,
    shards: int,
    tables: Mapping[str, pl.DataFrame],
    base: Path,
    narrow: bool = False,
    changes: Mapping[str, ChangeStream] | None = None,
) -> Stage:
    """A query's first stage.

    `changes` are streams of changes by table, besides those that tables are declared with.
    """
    used, told = dict(tables), dict(changes or {})
    for table in query.tables:
        declared = None if table.name in used or table.name in told else change_stream(table)
        if declared is not None:
            told[table.name] = declared
        if table.name not in used and table.name not in told:
            used[table.name] = _read_table(table, base, options)
        require_static(table, None if table.name in told else used[table.name])
    read = [table.name for table in query.tables]
    streamed = [told[name] for name in read if name in told]
    # All shards hear of a table's changes, which only the first stage reads.
    staged = (
        next(ways(query.graph, query.facts, shards)) if streamed else cut(query.graph, query.facts, shards)
    )
    clock = ClockOptions(options.ordered, options.idle_ms, options.future_us)
    static = {name: used[name] for name in read if name not in told}
    stage = with_changes(build_stages(query.plan, staged, static, clock, narrow=narrow), streamed)
    for stream in stage.streams:
        require_time(stream)
    return stage


def _read_table(table: TableDef, base: Path, options: SparkOptions) -> pl.DataFrame:
    """All rows of a table as they are now, with `_born` and `_sign`."""
    aside = Aside(options.rejects, frozenset([table.name]))
    refused = aside.state(table.name)
    rows, _ = read_table(table, base, rows_per_chunk=100_000, on_bad_row=aside.policy, rejects=refused)
    publish(refused, TABLE)
    return rows


def read_tables(program: Program, base: Path, options: SparkOptions) -> dict[str, pl.DataFrame]:
    """The rows of the tables of a program that do not change, each read once; not those that only Spark can read."""
    return {
        table.name: _read_table(table, base, options)
        for table in program.tables
        if change_stream(table) is None and not is_table_elsewhere(table)
    }
