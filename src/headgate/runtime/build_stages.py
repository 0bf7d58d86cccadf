"""The stages of a compiled query: what its shards run, linked in the order in which rows pass them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from headgate.physical.fragments import fragment
from headgate.physical.graph import SourceStep, Step
from headgate.physical.partition import Routes
from headgate.physical.program import CompiledQuery
from headgate.physical.scan_pushdown import first_filter, kept_columns, scan_pushdown
from headgate.physical.stages import StagedPlan
from headgate.plan.nodes import Emit, StreamScan
from headgate.runtime.stage import ClockOptions, Feed, Stage


def whole_stage(query: CompiledQuery, tables: Mapping[str, pl.DataFrame]) -> Stage:
    """A query as one shard runs it, which gets all rows of its streams in the order in which they come."""
    feeds = tuple(Feed(stream.name, stream.name, ((),)) for stream in query.streams)
    used = {table.name: tables[table.name] for table in query.tables}
    clock = ClockOptions(ordered=True)
    return Stage(query.graph, query.plan, query.streams, feeds, (1,), used, clock, is_whole=True)


def build_stages(
    plan: Emit,
    staged: StagedPlan,
    tables: Mapping[str, pl.DataFrame],
    clock: ClockOptions,
    *,
    narrow: bool = False,
) -> Stage:
    """The first stage of a query, linked to those after it.

    With `narrow`, only columns and rows that the query looks at reach the shards; late rows are then as narrow.
    """
    onward: Stage | None = None
    graph, stages = staged.graph, staged.stages
    for number in reversed(range(len(stages))):
        planned = stages[number]
        part = fragment(graph, planned.roots, planned.entering, first=number == 0)
        assert part is not None, "a stage reads what does not reach it"
        steps, feeds = _fed(part.steps, planned.routes)
        scans = [node for node in plan.walk() if isinstance(node, StreamScan)] if number == 0 else []
        read = {step.relation for step in steps if isinstance(step, SourceStep) and step.is_table}
        onward = Stage(
            replace(graph, steps=steps, promises=graph.promises if number == 0 else (), places={}),
            plan,
            tuple({scan.stream.name: scan.stream for scan in scans}.values()),
            feeds,
            planned.routes.shares,
            {name: table for name, table in tables.items() if name in read},
            clock,
            senders=stages[number - 1].routes.shards if number else 0,
            exports=() if onward is None else part.exports,
            onward=onward,
            number=number + 1,
        )
    assert onward is not None
    return _narrow(onward) if narrow else onward


def _narrow(stage: Stage) -> Stage:
    """The stage without what it does not look at."""
    promises = stage.graph.promises
    found = scan_pushdown(stage.graph.steps, stage.exports)
    read: dict[str, set[str]] = {}
    feeds: list[Feed] = []
    for feed in stage.feeds:
        read.setdefault(feed.stream, set()).update(
            found.columns[feed.name], (name for axis in feed.columns for name in axis)
        )
        promised = any(each.stream == feed.stream for each in promises)
        predicate = None if promised else first_filter(found.steps, feed.name)
        feeds.append(replace(feed, predicate=predicate))
    streams = tuple(kept_columns(each, read[each.name], promises) for each in stage.streams)
    return replace(stage, graph=replace(stage.graph, steps=found.steps), streams=streams, feeds=tuple(feeds))


def _fed(steps: Sequence[Step], routes: Routes) -> tuple[tuple[Step, ...], tuple[Feed, ...]]:
    """The steps with feeds as their sources, and these."""
    feeds: list[Feed] = []
    found: list[Step] = []
    number = -1
    for step in steps:
        if not isinstance(step, SourceStep):
            found.append(step)
            continue
        number += 1
        if step.is_table:
            found.append(step)
            continue
        mine = {full: short for short, full in step.columns}
        columns = tuple(tuple(mine[name] for name in axis) for axis in routes.columns[number])
        feed = next((f for f in feeds if (f.stream, f.columns) == (step.relation, columns)), None)
        if feed is None:
            same = sum(f.stream == step.relation for f in feeds)
            feed = Feed(f"{step.relation}#{same}" if same else step.relation, step.relation, columns)
            feeds.append(feed)
        found.append(replace(step, relation=feed.name))
    return tuple(found), tuple(feeds)
