"""The demo: a generated auction through the gate and through the local engine, watched live."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from time import perf_counter

import polars as pl
import pyarrow.compute as pc

from headgate.lab.generators import Auction
from headgate.lab.plots import figure
from headgate.model.source import SourceText
from headgate.model.time import MINUTE, SECOND
from headgate.runtime.local.engine import LocalRun, Progress
from headgate.safety.verdict import Verdict
from headgate.session import Session

BATCH_ROWS = 4_000


@dataclass
class DemoState:
    """What the display shows: the clock, rows so far, and per query its output and the history of its state."""

    clock: int = 0
    rows: int = 0
    seconds: float = 0.0
    rows_out: dict[str, int] = field(default_factory=dict)
    state_rows: dict[str, list[int]] = field(default_factory=dict)
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
        return [verdict.query for verdict in self.verdicts if verdict.bounded]

    @property
    def refused(self) -> list[Verdict]:
        return [verdict for verdict in self.verdicts if not verdict.bounded]


def prepare_demo(items: int, seed: int) -> Demo:
    """Generates the auction, declares its queries and asks the gate about each."""
    text = files("headgate.lab").joinpath("demo.cql").read_text(encoding="utf-8")
    session = Session()
    session.read(SourceText("demo.cql", text))
    auction = Auction(items=items, mean_bids=12, mean_duration=20 * MINUTE, disorder=3 * SECOND, seed=seed)
    items_table, bids_table = auction["items"].table(), auction["bids"].table()
    # The demo ends in the middle of business, not when the last straggler has closed.
    busy = pc.less_equal(bids_table["ts"], pc.max(items_table["ts"]))
    session.stream("items", items_table)
    session.stream("bids", bids_table.filter(busy))
    return Demo(session, tuple(query.check() for query in session.queries))


def run_demo(demo: Demo, on_step: Callable[[DemoState], None]) -> DemoState:
    """Runs the admitted queries to the end of the data; calls back after every clock step."""
    session, state = demo.session, DemoState()
    run, _ = session.local.prepare(
        session.chosen(demo.admitted), session.catalog, base=Path(), batch_rows=BATCH_ROWS
    )
    begun = perf_counter()

    def on_output(query: str, frame: pl.DataFrame) -> None:
        state.rows_out[query] = state.rows_out.get(query, 0) + frame.height
        if query == "hot":
            for time, category, bids in frame.select("_time", "category", "bids").iter_rows():
                state.categories[category] = bids
                state.category_history.append((time, category, bids))

    def on_progress(progress: Progress) -> None:
        state.clock, state.rows = progress.clock, progress.rows
        state.seconds = perf_counter() - begun
        _remember(state, run)
        on_step(state)

    run.run(on_output, lambda stream, late: None, on_progress)
    state.seconds = perf_counter() - begun
    return state


def _remember(state: DemoState, run: LocalRun) -> None:
    state.clocks.append(state.clock)
    state.rows_in.append(state.rows)
    for name, query in run.states.items():
        state.state_rows.setdefault(name, []).append(query.metrics.state_rows)


def draw(state: DemoState, path: Path) -> None:
    """A picture of the run: bids per category over time, and state against rows read."""
    with figure(path, rows=2, height=7.0) as (top, bottom):
        history = pl.DataFrame(
            state.category_history, schema=["time", "category", "bids"], orient="row"
        ).with_columns(minutes=(pl.col("time") - state.clocks[0]) / MINUTE)
        last = sorted(state.categories, key=lambda name: -state.categories[name])
        for category in last:
            line = history.filter(pl.col("category") == category).sort("minutes")
            top.plot(line["minutes"], line["bids"], label=category, linewidth=1.2)
        top.set(
            title="bids of the last ten minutes, by category", xlabel="minutes of the auction", ylabel="bids"
        )
        top.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
        minutes = [(clock - state.clocks[0]) / MINUTE for clock in state.clocks]
        for name, rows in state.state_rows.items():
            bottom.plot(minutes, rows, label=f"state of {name}")
        bottom.plot(minutes, state.rows_in, label="rows read", color="black", linestyle=":")
        bottom.set(
            title="state stays flat while rows keep coming",
            xlabel="minutes of the auction",
            ylabel="rows",
            yscale="log",
        )
        bottom.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
