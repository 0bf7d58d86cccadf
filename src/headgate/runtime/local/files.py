"""Running queries from files to files: the local engine behind `headgate run`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from headgate.model.time import BEGINNING
from headgate.runtime.growth import with_assumptions
from headgate.runtime.io import FileSource
from headgate.runtime.io.registry import FormatName
from headgate.runtime.local.engine import LocalRun, Progress
from headgate.runtime.local.output_folder import OutputFolder
from headgate.runtime.output import RunSummary, arrow_schema, as_declared, to_arrow
from headgate.runtime.query import QueryState


def run_to_folder(
    run: LocalRun,
    sources: list[FileSource],
    folder: Path,
    *,
    format: FormatName = "parquet",
    overwrite: bool,
    on_progress: Callable[[Progress], None],
    on_metrics: Callable[[Mapping[str, Any]], None] = lambda metrics: None,
    on_end: Callable[[Mapping[str, Any]], None] = lambda metrics: None,
) -> RunSummary:
    """Runs to the end and writes every query's rows and metrics, and late rows, under a folder.

    After each step `on_metrics` is told the metrics of every query, and at the end `on_end`; if that raises, nothing
    is put in its place.
    """
    schemas = {
        query.graph.query: arrow_schema(query.graph.columns, change_log=query.graph.is_change_log)
        for query in run.program
    }
    late_schemas = {
        stream.name: pa.schema([(c.name, c.type) for c in stream.columns]) for stream, _ in run.streams
    }
    with OutputFolder(folder, schemas, late_schemas, format=format, overwrite=overwrite) as output:

        def on_output(query: str, frame: pl.DataFrame) -> None:
            if not frame.is_empty():
                output.append(query, to_arrow(frame, schemas[query]))

        def on_late(query: str, stream: str, frame: pl.DataFrame) -> None:
            output.append_late(stream, query, as_declared(frame, late_schemas[stream]))

        metrics: dict[str, dict[str, Any]] = {}

        def measure() -> None:
            for name, state in run.states.items():
                metrics[name] = metrics_of(state, metrics.get(name, {}))
                on_metrics(metrics[name])

        def after_step(progress: Progress) -> None:
            measure()
            on_progress(progress)

        run.run(on_output, on_late, after_step)
        measure()
        for name, found in metrics.items():
            on_end(found)
            output.write_json(name, "metrics.json", found)
    return RunSummary(metrics, sum(source.rejected_rows for source in sources))


def metrics_of(state: QueryState, before: Mapping[str, Any]) -> dict[str, Any]:
    """A query's metrics as `metrics.json` has them; `before` are those of an earlier step."""
    found = {
        "query": state.graph.query,
        "output": state.graph.output,
        "engine": "local",
        "allowed_unbounded": state.graph.allowed_unbounded,
        **state.metrics.as_dict(),
        "clock": None if state.clock == BEGINNING else state.clock,
    }
    return with_assumptions(found, before, state.graph)
