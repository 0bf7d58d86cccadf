"""`headgate demo`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from headgate.cli.console import open_console
from headgate.cli.help_epilog import help_epilog
from headgate.cli.live_view import bars
from headgate.cli.run import Engine
from headgate.explain.glossary import POINTER

if TYPE_CHECKING:
    from headgate.lab.demo import Demo, DemoState

EPILOG = help_epilog(
    "headgate demo", "headgate demo --items 50000 --picture auction.png", codes={0: "played to its end"}
)


def demo(
    items: Annotated[
        int,
        typer.Option("--items", metavar="N", min=10, help="Items in the auction; each has about 13 bids."),
    ] = 15_000,
    engine: Annotated[
        Engine | None,
        typer.Option("--engine", help="On Spark, or in this process; by itself, on Spark where it can run."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Another auction.")] = 1,
    picture: Annotated[
        Path, typer.Option("--picture", metavar="PNG", help="Where the picture goes, if matplotlib is there.")
    ] = Path("headgate-demo.png"),
) -> None:
    """Watch a live auction: which queries the gate admits, and that their state stays bounded."""
    from headgate.lab.demo import prepare_demo, run_demo, run_demo_on_spark
    from headgate.lab.demo_picture import draw
    from headgate.lab.plots import HOW_TO_DRAW, can_draw
    from headgate.runtime.spark.cluster import require_spark, why_not_spark

    console = open_console()
    if engine is Engine.spark:
        require_spark()
    elif engine is None:
        reason = why_not_spark()
        engine = Engine.spark if reason is None else Engine.local
        if reason is not None:
            console.print(f"on the local engine (as --engine local does): {reason}")
    with console.status("generating an auction"):
        prepared = prepare_demo(items, seed)
    console.print(_gate(prepared))
    with Live(console=console, refresh_per_second=8, transient=True) as live:
        run = run_demo_on_spark if engine is Engine.spark else run_demo
        state = run(prepared, lambda now: live.update(_display(now)))
    console.print(_display(state))
    if can_draw():
        draw(state, picture)
        console.print(Text(f"picture: {picture}"))
    else:
        console.print(Text(f"no picture, for matplotlib is not installed: {HOW_TO_DRAW}"))


def _gate(prepared: Demo) -> Text:
    text = Text("the gate says\n", style="bold")
    for verdict in prepared.verdicts:
        if verdict.admitted:
            text.append("  admitted ", style="green")
            text.append(f"{verdict.query}\n")
            continue
        first = verdict.unbounded[0]
        text.append("  refused  ", style="red")
        text.append(f"{verdict.query}: {first.operator} over {first.stream}: {first.reason}\n")
    text.append(f"{POINTER}\n", style="dim")
    return text


def _display(state: DemoState) -> RenderableType:
    table = Table(show_edge=False)
    for name in ("query", "rows out", "state rows", "state over time"):
        table.add_column(name, justify="right" if "rows" in name else "left")
    for name, history in state.state_rows.items():
        table.add_row(name, f"{state.rows_out.get(name, 0):,}", f"{history[-1]:,}", _spark(history))
    rate = state.rows / state.seconds if state.seconds else 0.0
    clock = datetime.fromtimestamp(state.clock / 1e6, UTC).strftime("%H:%M:%S")
    head = Text(f"auction time {clock}   {state.rows:,} rows read   {rate:,.0f} rows/s")
    ranking = sorted(state.categories.items(), key=lambda each: -each[1])[:5]
    most = max((bids for _, bids in ranking), default=1) or 1
    ranked = Text("\nhot now\n", style="bold")
    for category, bids in ranking:
        ranked.append(f"  {category:<10} {'█' * max(1, 30 * bids // most)} {bids:,}\n", style="cyan")
    return Group(head, table, ranked)


def _spark(values: list[int], width: int = 40) -> str:
    step = max(1, len(values) // width)
    return bars(values[::step][-width:])
