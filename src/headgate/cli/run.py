"""`headgate run`."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from headgate.cli.options import FileArgument, QueryOption, StatsOption, open_session
from headgate.model.errors import InputError

if TYPE_CHECKING:
    from headgate.runtime.local.engine import Progress as Step
    from headgate.runtime.local.files import RunSummary
    from headgate.session import Session

EPILOG = (
    "Exit code: 0 done, 1 a query was refused, 2 bad input.   Examples: "
    "[bold]headgate run auction.cql --output out[/]   ·   "
    "[bold]headgate run auction.cql -o out -q hot --rejects bad[/]"
)

SPARK_BATCH_ROWS, LOCAL_BATCH_ROWS = 1_000_000, 100_000


class Engine(StrEnum):
    """Where queries run."""

    local = "local"
    spark = "spark"


class Strategy(StrEnum):
    """How deaths are handled (for experiments)."""

    UPA = "UPA"
    NT = "NT"
    DIRECT = "DIRECT"


def run(
    file: FileArgument,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Where results go.")],
    engine: Annotated[
        Engine, typer.Option("--engine", help="Where to run: on Spark, or in this process, without Java.")
    ] = Engine.spark,
    master: Annotated[
        str | None, typer.Option("--master", metavar="URL", help="Spark's master; local[*] if none is given.")
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option("--checkpoint", metavar="DIR", help="Spark: keep state there, and continue from it."),
    ] = None,
    shards: Annotated[
        int | None,
        typer.Option("--shards", min=1, max=1024, help="Spark: shards; as many as cores if not given."),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Spark: go on with files that come, until interrupted.")
    ] = False,
    query: QueryOption = None,
    stats: StatsOption = None,
    batch_rows: Annotated[
        int | None,
        typer.Option(
            "--batch-rows", min=1, help="Rows per step, about: 1,000,000 on Spark, 100,000 locally."
        ),
    ] = None,
    allow_unbounded: Annotated[
        bool, typer.Option("--allow-unbounded", help="Run queries whose state is not proven bounded.")
    ] = False,
    rejects: Annotated[
        Path | None,
        typer.Option("--rejects", metavar="DIR", help="Put bad rows there instead of stopping."),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="SINK",
            help="Spark: rows go there: console, kafka://host:9092/topic, postgresql://host/db?table=name.",
        ),
    ] = None,
    conf: Annotated[
        list[str] | None, typer.Option("--conf", metavar="KEY=VALUE", help="Spark: a setting of its session.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace results that are there.")] = False,
    drain: Annotated[
        bool | None,
        typer.Option(
            "--drain/--no-drain",
            help="After the last row, let the clock run until windows are empty; done for files.",
        ),
    ] = None,
    strategy: Annotated[
        Strategy, typer.Option("--strategy", help="UPA; NT and DIRECT to compare.")
    ] = Strategy.UPA,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, no summary.")] = False,
) -> None:
    """Run the queries of a file to the end of their input and write the results as Parquet."""
    session = open_session(file, stats)
    # Refusals come before anything is started, and need no Java.
    session.require_admitted(query, allow_unbounded=allow_unbounded)
    if engine is Engine.spark:
        _run_on_spark(
            session,
            query,
            output,
            {
                "batch_rows": batch_rows or SPARK_BATCH_ROWS,
                "allow_unbounded": allow_unbounded,
                "strategy": strategy.value,
                "drain": drain,
                "shards": shards,
                "rejects": None if rejects is None else str(rejects.absolute()),
            },
            master=master,
            checkpoint=checkpoint,
            overwrite=overwrite,
            quiet=quiet,
            follow=follow,
            to=to,
            settings=_settings(conf or []),
        )
        return
    for option, given in (
        ("--master", master),
        ("--checkpoint", checkpoint),
        ("--shards", shards),
        ("--follow", follow),
        ("--to", to),
        ("--conf", conf),
    ):
        if given:
            raise InputError(f"{option} is for Spark", remedy="leave --engine local away")
    from headgate.runtime.local.files import run_to_folder
    from headgate.runtime.sources import RejectPolicy

    policy = RejectPolicy.stop() if rejects is None else RejectPolicy.rejects(rejects)
    prepared, sources = session.local.prepare(
        session.chosen(query),
        session.catalog,
        base=session.base,
        batch_rows=batch_rows or LOCAL_BATCH_ROWS,
        allow_unbounded=allow_unbounded,
        strategy=strategy.value,
        policy=policy,
        drain=drain is not False,
    )
    console = Console(stderr=True, highlight=False)
    unbounded = [name for name, state in prepared.states.items() if state.graph.allowed_unbounded]
    for name in unbounded:
        console.print(
            f"[bold red]unbounded[/] {name}: run because of --allow-unbounded; its state may grow for ever"
        )
    bar = _bar(console, sum(source.total_bytes for source in sources))
    with nullcontext() if quiet else bar:
        task = bar.add_task("running", total=sum(source.total_bytes for source in sources) or None, detail="")

        def on_progress(step: Step) -> None:
            detail = (
                f"{step.rows:,} rows  {_instant(step.clock)}  state {step.state_rows:,} rows, "
                f"{step.state_bytes / 1e6:,.1f} MB"
            )
            bar.update(task, completed=sum(source.bytes_read for source in sources), detail=detail)

        summary = run_to_folder(prepared, sources, output, overwrite=overwrite, on_progress=on_progress)
    if not quiet:
        console.print(_summary(summary, output, unbounded))


def _run_on_spark(
    session: Session,
    names: list[str] | None,
    output: Path,
    options: dict[str, Any],
    *,
    master: str | None,
    checkpoint: Path | None,
    overwrite: bool,
    quiet: bool,
    follow: bool,
    to: str | None,
    settings: dict[str, str],
) -> None:
    """Runs queries on Spark, with a line of progress."""
    from headgate.runtime.spark.cluster import open_spark, require_spark

    chosen = session.chosen(names)
    require_spark()
    from headgate.runtime.sinks.address import formats_of, sink_at
    from headgate.runtime.spark.run import Place, SparkOptions, run_to_folder, stages_of
    from headgate.runtime.spark.run import follow as run_on
    from headgate.runtime.spark.sources.connectors import packages_for

    console = Console(stderr=True, highlight=False)
    # What is wrong with the input is said before the seconds that Spark takes to start.
    stages = stages_of(chosen, SparkOptions(**options), shards=1, base=session.base)
    for stage in stages:
        if to is not None:
            sink_at(to, stage.graph.query)
    needed = packages_for([each for stage in stages for each in stage.streams], formats_of(to))
    with console.status("starting Spark …") if not quiet and console.is_terminal else nullcontext() as status:
        spark = open_spark(master, needed | settings)

        def on_batch(metrics: Mapping[str, Any]) -> None:
            if status is not None:
                status.update(
                    f"{metrics['query']}: batch {metrics.get('batches', 0)}  {metrics['rows_in']:,} rows in, "
                    f"{metrics['rows_out']:,} out  state {metrics['state_rows']:,} rows"
                )

        try:
            place = Place(output, checkpoint, overwrite, on_batch, to)
            if follow:
                with _interruptible() as interrupted:
                    summary = run_on(
                        spark,
                        chosen,
                        session.base,
                        SparkOptions(**options),
                        place,
                        is_over=interrupted.is_set,
                    )
            else:
                summary = run_to_folder(spark, chosen, session.base, SparkOptions(**options), place)
        finally:
            spark.stop()
    if not quiet:
        unbounded = [name for name, metrics in summary.metrics.items() if metrics["allowed_unbounded"]]
        console.print(_summary(summary, output, unbounded))


def _settings(pairs: list[str]) -> dict[str, str]:
    """Settings of Spark's session from words KEY=VALUE."""
    settings = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key.strip() or not equals:
            raise InputError(f"--conf {pair} is not KEY=VALUE", remedy="write --conf spark.key=value")
        settings[key.strip()] = value
    return settings


@contextmanager
def _interruptible() -> Iterator[Event]:
    """Within it, the first SIGINT or SIGTERM only sets an event; the run then ends in order."""
    event = Event()
    before = {each: signal.signal(each, lambda *_: event.set()) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield event
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _bar(console: Console, total: int) -> Progress:
    return Progress(
        SpinnerColumn(),
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:>3.0f}%" if total else ""),
        TimeElapsedColumn(),
        TextColumn("{task.fields[detail]}"),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def _instant(clock: int) -> str:
    try:
        return datetime.fromtimestamp(clock / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return f"{clock} µs"


def _summary(summary: RunSummary, output: Path, unbounded: list[str]) -> Table:
    table = Table(title=f"results in {output}", title_justify="left", show_edge=False)
    for name in ("query", "rows in", "rows out", "peak state rows", "peak state MB", "late"):
        table.add_column(name, justify="left" if name == "query" else "right")
    for query, metrics in summary.metrics.items():
        table.add_row(
            query + (" (unbounded)" if query in unbounded else ""),
            f"{metrics['rows_in']:,}",
            f"{metrics['rows_out']:,}",
            f"{metrics['peak_state_rows']:,}",
            f"{metrics['peak_state_bytes'] / 1e6:,.2f}",
            f"{metrics['late_rows']:,}",
        )
    if summary.rejected_rows:
        table.caption = f"{summary.rejected_rows:,} bad rows rejected"
    return table
