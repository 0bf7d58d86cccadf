"""The demo: a generated auction through the gate and through an engine, watched live."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import polars as pl
import pyarrow.compute as pc

from headgate.lab.generators import Auction
from headgate.model.source import SourceText
from headgate.model.time import MINUTE, SECOND
from headgate.plan.catalog import Source
from headgate.runtime.local.engine import LocalRun, Progress
from headgate.safety.verdict import Verdict
from headgate.session import Session

BATCH_ROWS = 4_000


@dataclass
class DemoState:
    """What the display shows: the clock, rows so far, and per query its output and the history of its state."""

    begins: int
    ends: int
    """When the first row and the last row of the data are: after that the clock runs on until windows are empty."""
    clock: int = 0
    rows: int = 0
    seconds: float = 0.0
    rows_out: dict[str, int] = field(default_factory=dict)
    state_rows: dict[str, list[int]] = field(default_factory=dict)
    state_clocks: dict[str, list[int]] = field(default_factory=dict)
    """When the queries had these states: on Spark, each goes at its own pace."""
    clocks: list[int] = field(default_factory=list)
    rows_in: list[int] = field(default_factory=list)
    categories: dict[str, int] = field(default_factory=dict)
    category_history: list[tuple[int, str, int]] = field(default_factory=list)


@dataclass(frozen=True)
class Demo:
    """The auction, checked and ready to run."""

    session: Session
    verdicts: tuple[Verdict, ...]

    @property
    def admitted(self) -> list[str]:
        return [verdict.query for verdict in self.verdicts if verdict.admitted]

    def state(self) -> DemoState:
        """What there is to show before a run."""
        times = [frame["ts"].dt.epoch("us") for frame in self.session.local.rows.values()]
        return DemoState(
            min(int(pc.min(each.to_arrow()).as_py()) for each in times),
            max(int(pc.max(each.to_arrow()).as_py()) for each in times),
        )

    @property
    def refused(self) -> list[Verdict]:
        return [verdict for verdict in self.verdicts if not verdict.admitted]


def prepare_demo(items: int, seed: int) -> Demo:
    """Generates the auction, declares its queries and asks the gate about each."""
    text = files("headgate.lab").joinpath("demo.cql").read_text(encoding="utf-8")
    session = Session()
    session.read(SourceText("demo.cql", text))
    # Items close after five minutes, so that business has its usual size long before the demo ends.
    auction = Auction(items=items, mean_bids=12, mean_duration=5 * MINUTE, disorder=3 * SECOND, seed=seed)
    items_table, bids_table = auction["items"].table(), auction["bids"].table()
    # The demo ends in the middle of business, not when the last straggler has closed.
    busy = pc.less_equal(bids_table["ts"], pc.max(items_table["ts"]))
    session.stream("items", items_table)
    session.stream("bids", bids_table.filter(busy))
    return Demo(session, tuple(query.check() for query in session.queries))


def run_demo(demo: Demo, on_step: Callable[[DemoState], None]) -> DemoState:
    """Runs the admitted queries to the end of the data; calls back after every clock step."""
    session, state = demo.session, demo.state()
    run, _ = session.local.prepare(
        session.compile(demo.admitted), session.catalog, base=Path(), batch_rows=BATCH_ROWS
    )
    begun = perf_counter()

    def on_output(query: str, frame: pl.DataFrame) -> None:
        state.rows_out[query] = state.rows_out.get(query, 0) + frame.height
        if query == "hot":
            for time, category, bids in frame.select("_time", "category", "bids").iter_rows():
                if time <= state.ends:
                    state.categories[category] = bids
                state.category_history.append((time, category, bids))

    def on_progress(progress: Progress) -> None:
        state.rows = progress.rows
        if progress.clock is not None:
            state.clock = progress.clock
        state.seconds = perf_counter() - begun
        _remember(state, run)
        on_step(state)

    run.run(on_output, lambda query, stream, late: None, on_progress)
    state.seconds = perf_counter() - begun
    return state


def run_demo_on_spark(
    demo: Demo, on_step: Callable[[DemoState], None], master: str | None = None, batches: int = 8
) -> DemoState:
    """Runs the admitted queries on Spark, one after the other; calls back after every micro-batch."""
    from headgate.runtime.spark.cluster import SHORT_RUN, open_spark  # noqa: PLC0415 - needs an extra
    from headgate.runtime.spark.failures import close  # noqa: PLC0415
    from headgate.runtime.spark.options import SparkOptions  # noqa: PLC0415
    from headgate.runtime.spark.run import RunTarget, run_to_folder  # noqa: PLC0415

    state = demo.state()
    spark = open_spark(master, SHORT_RUN)
    begun = perf_counter()

    def on_batch(metrics: Mapping[str, Any]) -> None:
        if metrics["clock"] is not None:
            state.seconds = perf_counter() - begun
            note_batch(state, metrics)
            on_step(state)

    try:
        with TemporaryDirectory(prefix="headgate-demo-") as place:
            folder = Path(place)
            session = _in_files(demo.session, folder, batches)
            rows = max(frame.height for frame in demo.session.local.rows.values())
            options = SparkOptions(batch_rows=max(1, rows // batches))
            program = session.compile(demo.admitted)
            run_to_folder(spark, program, folder, options, RunTarget(folder / "out", on_batch=on_batch))
            if "hot" in demo.admitted:
                hot = pl.read_parquet(folder / "out" / "hot" / "*.parquet").sort("_time")
                times = hot.select(pl.col("_time").dt.epoch("us"), "category", "bids")
                state.category_history = list(times.iter_rows())
                state.categories = {
                    category: bids for time, category, bids in state.category_history if time <= state.ends
                }
    finally:
        close(spark)
    state.seconds = perf_counter() - begun
    return state


def note_batch(state: DemoState, metrics: Mapping[str, Any]) -> None:
    """Remembers what a query has done after a micro-batch on Spark.

    The last one also empties the windows, which says nothing of what they hold in business.
    """
    name, clock = metrics["query"], metrics["clock"]
    state.rows_out[name], state.rows = metrics["rows_out"], metrics["rows_in"]
    if clock > state.ends and name in state.state_rows:
        return
    state.state_rows.setdefault(name, []).append(metrics["state_rows"])
    state.state_clocks.setdefault(name, []).append(clock)
    if len(state.state_rows) == 1:
        state.clocks.append(clock)
        state.rows_in.append(metrics["rows_in"])
    state.clock = clock


def _in_files(session: Session, folder: Path, batches: int) -> Session:
    """A session whose streams have the same rows in files, in order of arrival."""
    twin = Session()
    twin.catalog = session.catalog
    for stream in session.catalog.streams:
        frame = session.local.rows[stream.name]
        (folder / stream.name).mkdir()
        size = -(-frame.height // batches)
        for number, piece in enumerate(frame.iter_slices(max(1, size))):
            piece.write_parquet(folder / stream.name / f"part-{number:03d}.parquet")
        source = Source("parquet", (("path", str(folder / stream.name)),))
        twin.catalog = twin.catalog.with_definition(replace(stream, source=source))
    return twin


def _remember(state: DemoState, run: LocalRun) -> None:
    state.clocks.append(state.clock)
    state.rows_in.append(state.rows)
    for name, query in run.states.items():
        state.state_rows.setdefault(name, []).append(query.metrics.state_rows)
        state.state_clocks.setdefault(name, []).append(state.clock)
