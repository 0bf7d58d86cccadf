"""`headgate bench` and `headgate reproduce`."""

from __future__ import annotations

import json
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from headgate.cli.console import open_console
from headgate.cli.help_epilog import help_epilog
from headgate.model.errors import InputError

if TYPE_CHECKING:
    from headgate.lab.bench.kernels import KernelBench
    from headgate.lab.bench.streams import StreamBench
    from headgate.lab.reproduce.claims import Claim
    from headgate.lab.reproduce.kmon_experiment import KMonReproduction

BENCH_EPILOG = help_epilog(
    "headgate bench kernels --format json > kernels.json",
    "headgate bench join --interval",
    "headgate bench join --many-one --engines headgate-spark,headgate-windowed",
    "headgate bench queries --rows 4000000 --batch 500000",
    "headgate bench join --rows 4000000 --engines headgate-spark,spark-hdfs",
    codes={0: "measured", 1: "the engines disagree"},
)
_ENGINE_COLUMNS = (
    "engine",
    "rows/s",
    "Headgate is",
    "state MB",
    "memory MB",
    "results",
    "p50 batch s",
    "p95 batch s",
)
_WIDE = 120
REPRODUCE_EPILOG = help_epilog(
    "headgate reproduce windows --picture windows.png",
    "headgate reproduce punctuation --quick",
    "headgate reproduce kmon --scale 1 --picture kmon.png",
    codes={0: "done", 1: "the runs disagree"},
)


class Bench(StrEnum):
    """What can be measured."""

    kernels = "kernels"
    window_join = "join"
    multijoin = "multijoin"
    distinct = "distinct"
    aggregate = "aggregate"
    queries = "queries"


class Experiment(StrEnum):
    """What can be reproduced."""

    windows = "windows"
    joins = "joins"
    punctuation = "punctuation"
    kmon = "kmon"


class Format(StrEnum):
    """How figures are printed."""

    text = "text"
    json = "json"


FormatOption = Annotated[Format, typer.Option("--format", "-f", help="For people or programs.")]
QuickOption = Annotated[bool, typer.Option("--quick", help="Far fewer rows, to try it; figures mean little.")]


def bench(
    name: Annotated[Bench, typer.Argument(help="What to measure.")] = Bench.kernels,
    format: FormatOption = Format.text,
    quick: QuickOption = False,
    rows: Annotated[
        int, typer.Option("--rows", metavar="N", min=2, help="Rows of all streams together; not for kernels.")
    ] = 20_000_000,
    batch: Annotated[
        int, typer.Option("--batch", metavar="N", min=2, help="Rows in a micro-batch; not for kernels.")
    ] = 2_000_000,
    engines: Annotated[
        str | None,
        typer.Option("--engines", metavar="A,B", help="Which engines; all that are installed if not given."),
    ] = None,
    interval: Annotated[
        bool,
        typer.Option("--interval", help="join: no windows, but a condition on how far apart times may be."),
    ] = False,
    many_one: Annotated[
        bool,
        typer.Option("--many-one", help="join: three streams with keys and constraints, and without them."),
    ] = False,
    picture: Annotated[
        Path | None, typer.Option("--picture", metavar="PNG", help="Also draw it; not for kernels.")
    ] = None,
) -> None:
    """Measure Headgate on this machine, and others beside it."""
    from headgate.lab.plots import require_drawing

    require_drawing(picture)
    joins = {"--interval": interval, "--many-one": many_one}
    chosen = [option for option, given in joins.items() if given]
    if chosen and name is not Bench.window_join:
        raise InputError(
            f"{chosen[0]} is for join, not for {name}", remedy=f"headgate bench join {chosen[0]}"
        )
    if len(chosen) > 1:
        raise InputError("--interval and --many-one are two benchmarks", remedy="give one of them")
    if quick:
        rows, batch = min(rows, 600_000), min(batch, 100_000)
    if name is Bench.queries:
        _bench_queries(rows, batch, format)
        return
    if name is not Bench.kernels:
        workload = "interval" if interval else "many-one" if many_one else name.value
        _bench_streams(workload, rows, batch, engines, format, picture)
        return
    from headgate.lab.bench import kernels

    found = _working(f"measuring {name}", lambda say: kernels.run(quick=quick, on_progress=say))
    if format is Format.json:
        typer.echo(json.dumps(found.as_dict(), indent=2))
    else:
        _print_kernels(found)


def reproduce(
    name: Annotated[Experiment, typer.Argument(help="Which experiment.")] = Experiment.windows,
    format: FormatOption = Format.text,
    picture: Annotated[Path | None, typer.Option("--picture", metavar="PNG", help="Also draw it.")] = None,
    zeek: Annotated[
        Path | None,
        typer.Option("--zeek", metavar="DIR", help="windows: traffic from Zeek's logs instead of generated."),
    ] = None,
    quick: QuickOption = False,
    scale: Annotated[
        float | None,
        typer.Option(
            "--scale", metavar="PART", help="kmon: windows and rows of the document's; 0.2, 1 is all."
        ),
    ] = None,
) -> None:
    """Run a document's experiment and say which of its claims hold here."""
    from headgate.lab.plots import require_drawing
    from headgate.lab.reproduce import joins, kmon_experiment, punctuation, windows
    from headgate.lab.reproduce.traffic import Traffic

    require_drawing(picture)
    if scale is not None and name is not Experiment.kmon:
        raise InputError(f"--scale is for kmon, not for {name}", remedy="headgate reproduce kmon --scale 1")
    if scale is not None and not kmon_experiment.QUICK_SCALE <= scale <= 1:
        raise InputError(
            f"--scale {scale:g}: a run is from {kmon_experiment.QUICK_SCALE:g} of the document's to all of it, 1",
            remedy=f"headgate reproduce kmon --scale {kmon_experiment.SCALE:g}",
        )
    found: Any
    if name is Experiment.windows:
        traffic = None if zeek is None else Traffic.zeek(zeek)
        longest = 1_000 if quick else None
        found = _working(
            "Queries 1 to 4",
            lambda say: windows.reproduce(traffic=traffic, longest=longest, on_progress=say),
        )
        draw: Callable[[Any, Path], None] = windows.draw
    elif name is Experiment.joins:
        seconds = 120 if quick else 180
        found = _working("join orders and algorithms", lambda say: joins.reproduce(seconds, on_progress=say))
        draw = joins.draw
    elif name is Experiment.punctuation:
        times = 1 if quick else 5
        found = _working("purge", lambda say: punctuation.reproduce(times, on_progress=say))
        draw = punctuation.draw
    else:
        part = scale or (kmon_experiment.QUICK_SCALE if quick else kmon_experiment.SCALE)
        found = _working("constraints", lambda say: kmon_experiment.reproduce(part, on_progress=say))
        draw = kmon_experiment.draw
    if picture is not None:
        draw(found, picture)
    if format is Format.json:
        typer.echo(json.dumps(found.as_dict(), indent=2))
        return
    console = open_console()
    if name is Experiment.kmon:
        for table in _constraints(found):
            console.print(table)
    else:
        console.print(_series(found.as_dict()))
    console.print(_claims(found.claims))


def _working(what: str, work: Callable[[Callable[[str], None]], Any]) -> Any:
    """Does some work while a line on the terminal says how far it is."""
    with open_console(stderr=True).status(f"{what} …") as status:
        return work(lambda step: status.update(f"{step} …"))


def _bench_queries(rows: int, batch: int, format: Format) -> None:
    from headgate.lab.bench import queries

    found = _working("bench queries", lambda say: queries.run(rows=rows, batch=batch, on_progress=say))
    if format is Format.json:
        typer.echo(json.dumps(found.as_dict(), indent=2))
        return
    title = f"queries of one file over one stream on Spark: {rows:,} rows, {batch:,} a batch"
    table = Table(title=title, title_justify="left", show_edge=False)
    for heading in ("queries", "rows/s", "of one query's"):
        table.add_column(heading, justify="right")
    for each in found.results:
        table.add_row(str(each.queries), f"{each.rows_per_second:,.0f}", f"{found.share(each):.2f}")
    open_console().print(table)


def _bench_streams(
    name: str, rows: int, batch: int, engines: str | None, format: Format, picture: Path | None
) -> None:
    from headgate.lab.bench import streams

    chosen = None if engines is None else tuple(each.strip() for each in engines.split(","))
    found = _working(
        f"bench {name}",
        lambda say: streams.run(name, rows=rows, batch=batch, engines=chosen, on_progress=say),
    )
    if picture is not None:
        streams.draw(found, picture)
    if format is Format.json:
        typer.echo(json.dumps(found.as_dict(), indent=2))
        return
    console = open_console()
    if not console.is_terminal:
        # A file or a pipe has no edge.
        console.width = _WIDE
    console.print(_engines(found))


def _engines(found: StreamBench) -> Table:
    """Engines side by side; where there is little room, headings are broken into lines and numbers are not."""
    rows = []
    for each in found.engines:
        ratio = found.ratio(each)
        rows.append(
            (
                each.name,
                f"{each.rows_per_second:,.0f}",
                "" if ratio is None else f"{ratio:.1f}×",
                "" if each.state_bytes is None else f"{each.state_bytes / 1e6:,.1f}",
                "n/a" if each.memory_bytes is None else f"{each.memory_bytes / 1e6:,.0f}",
                f"{each.results:,}",
                f"{each.percentile(0.5):.2f}",
                f"{each.percentile(0.95):.2f}",
            )
        )
    title = f"{found.name}: {found.rows:,} rows, {found.batch:,} a batch"
    table = Table(title=title, title_justify="left", show_edge=False)
    for place, column in enumerate(_ENGINE_COLUMNS):
        widest = max(len(row[place]) for row in rows)
        table.add_column(column, justify="right" if place else "left", min_width=widest)
    for row in rows:
        table.add_row(*row)
    return table


def _print_kernels(found: KernelBench) -> None:
    console = open_console()
    growth = Table(title="time per step of 10,000 rows, ms (mean)", title_justify="left", show_edge=False)
    growth.add_column("kernel")
    growth.add_column("state rows", justify="right")
    growth.add_column("mean", justify="right")
    growth.add_column("median", justify="right")
    for each in found.growth:
        for level in each.levels:
            growth.add_row(
                each.kernel, f"{level.state_rows:,}", f"{1e3 * level.mean:.1f}", f"{1e3 * level.median:.1f}"
            )
        growth.add_row(each.kernel, "largest / smallest", f"{each.ratio:.2f}×", "")
    console.print(growth)
    rates = Table(title="rows per second, 100,000 rows a step", title_justify="left", show_edge=False)
    rates.add_column("kernel")
    rates.add_column("rows/s", justify="right")
    for rate in found.throughput:
        rates.add_row(rate.kernel, f"{rate.rows_per_second:,.0f}")
    console.print(rates)
    words = Table(
        title="result words over an aggregate, ns per row in and out", title_justify="left", show_edge=False
    )
    words.add_column("result word")
    for heading in ("rows in", "ticks", "rows out", "ns per row"):
        words.add_column(heading, justify="right")
    for cost in found.words:
        words.add_row(
            cost.word,
            f"{cost.rows:,}",
            f"{cost.ticks:,}",
            f"{cost.said:,}",
            f"{cost.nanoseconds_per_row:,.0f}",
        )
    console.print(words)
    console.print(
        f"join in batches: {found.join_rows_per_second:,.0f} rows/s, {found.join_share:.2f} of one Polars join over "
        f"all the data ({found.polars_rows_per_second:,.0f} rows/s)"
    )


def _series(found: dict[str, Any]) -> Table:
    table = Table(title="ms per 1,000 rows", title_justify="left", show_edge=False)
    if "runs" in found:
        for name in (
            "streams",
            "purge",
            "ms",
            "peak state rows",
            "of the join",
            "peak punctuations",
            "results",
        ):
            table.add_column(name, justify="left" if name in ("streams", "purge") else "right")
        for each in found["runs"]:
            table.add_row(
                each["workload"],
                each["variant"],
                f"{1e3 * each['seconds_per_1000_rows']:.1f}",
                *(f"{max(each[size]):,}" for size in ("state_rows", "joined_rows", "closed_values")),
                f"{each['results']:,}",
            )
        return table
    if "orders" in found:
        for name in ("state", "algorithm", "interval", "order", "model's cost", "ms", "results"):
            table.add_column(name, justify="left" if name in ("state", "algorithm", "order") else "right")
        for each in (*found["orders"], *found["intervals"]):
            table.add_row(
                each["state"],
                each["algorithm"],
                str(each["interval"]),
                each["order"],
                f"{each['predicted']:,.0f}",
                f"{1e3 * each['seconds']:.2f}",
                f"{each['results']:,}",
            )
        return table
    for name in ("query", "strategy", "window, rows", "ms", "peak state rows"):
        table.add_column(name, justify="left" if name in ("query", "strategy") else "right")
    for each in found["series"]:
        for length, seconds, state in zip(
            each["x"], each["seconds_per_1000_rows"], each["peak_state_rows"], strict=True
        ):
            table.add_row(
                each["query"], each["strategy"], f"{length:,.0f}", f"{1e3 * seconds:.2f}", f"{state:,}"
            )
    return table


def _constraints(found: KMonReproduction) -> tuple[Table, Table]:
    """What is kept in the second half of each run and what rows cost there; the queries of Linear Road."""
    title = f"windows and rows {found.scale:g} of the document's, {found.batch_rows:,} rows a step"
    lines = Table(title=title, title_justify="left", show_edge=False)
    for heading in ("figure", "way", "k", "state rows", "of SWJ", "ms per 1,000 rows", "of SWJ's"):
        lines.add_column(heading, justify="left" if heading in ("figure", "way") else "right")
    for row in found.rows:
        lines.add_row(*row)
    road = Table(title="Linear Road, without and with constraints", title_justify="left", show_edge=False)
    for heading in ("query", "state rows", "with", "ms per 1,000 rows", "with"):
        road.add_column(heading, justify="left" if heading == "query" else "right")
    for each in found.road:
        rows = (f"{kept:,.0f}" for kept in each.rows)
        road.add_row(each.query, *rows, *(f"{1e3 * seconds:.1f}" for seconds in each.seconds))
    return lines, road


def _claims(claims: tuple[Claim, ...]) -> Table:
    table = Table(title="claims", title_justify="left", show_edge=False)
    for name in ("", "claim", "document", "here"):
        table.add_column(name)
    for claim in claims:
        table.add_row(
            "[green]holds[/]" if claim.holds else "[red]not here[/]",
            claim.name,
            claim.document,
            claim.measured,
        )
    return table
