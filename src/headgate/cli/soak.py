"""`headgate soak`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from headgate.cli.console import open_console
from headgate.cli.experiments import Format, FormatOption
from headgate.cli.help_epilog import help_epilog

if TYPE_CHECKING:
    from headgate.lab.soak import Sample, Soak

EPILOG = help_epilog(
    "headgate soak --minutes 30 --picture soak.png",
    codes={0: "memory and state stay flat", 1: "they do not"},
)


def soak(
    minutes: Annotated[
        float, typer.Option("--minutes", metavar="MINUTES", min=0.1, help="For how long.")
    ] = 30.0,
    every: Annotated[
        float, typer.Option("--every", min=0.1, metavar="SECONDS", help="A file of each stream so often.")
    ] = 3.0,
    span: Annotated[
        int,
        typer.Option("--span", min=1, metavar="SECONDS", help="So much of the auction's time in each file."),
    ] = 60,
    sample: Annotated[
        float, typer.Option("--sample", min=0.5, metavar="SECONDS", help="Look so often.")
    ] = 30.0,
    warm_up: Annotated[
        float | None,
        typer.Option("--warm-up", metavar="MINUTES", help="Not judged; a third of the run if not given."),
    ] = None,
    format: FormatOption = Format.text,
    picture: Annotated[Path | None, typer.Option("--picture", metavar="PNG", help="Also draw it.")] = None,
) -> None:
    """Follow a generated auction on Spark for a long time: do memory and state stay as they are?"""
    from headgate.lab import soak as lab
    from headgate.lab.plots import require_drawing
    from headgate.runtime.spark.cluster import require_spark

    require_drawing(picture)
    require_spark()
    console = open_console(stderr=True, soft_wrap=True)
    found = lab.run(
        minutes,
        every=every,
        span=span,
        sample_every=sample,
        warm_up=warm_up,
        on_sample=lambda each: console.print(_line(each)),
    )
    if picture is not None:
        lab.draw(found, picture)
    if format is Format.json:
        typer.echo(json.dumps(found.as_dict(), indent=2))
    else:
        open_console().print(_table(found))
    if not found.flat:
        raise typer.Exit(1)


def _megabytes(size: int | None) -> str:
    return "n/a" if size is None else f"{size / 1e6:,.0f}"


def _line(sample: Sample) -> str:
    return (
        f"{sample.seconds:6.0f} s  JVM {_megabytes(sample.jvm_bytes)} MB  "
        f"Python {_megabytes(sample.python_bytes)} MB in {sample.processes or 0} processes  "
        f"state {sample.state_rows:,} rows, {sample.state_bytes / 1e6:,.1f} MB  {sample.rows_in:,} rows in  "
        f"{sample.behind_seconds:,.0f} s behind  {sample.log_bytes:,} bytes of log"
    )


def _table(found: Soak) -> Table:
    warm_up = f"after a warm-up of {found.warm_up_seconds / 60:g}"
    cost = found.processor_us_per_row
    spent = "" if cost is None else f", {cost:,.0f} µs of the processor a row"
    title = f"{found.minutes:g} minutes, {found.rows_per_second:,.0f} rows/s{spent}, {warm_up}"
    table = Table(title=title, title_justify="left", show_edge=False)
    for name in ("", "mean", "lowest", "highest", "drift", "flat within 10 %"):
        table.add_column(name, justify="left" if not name else "right")
    for each in found.flatness:
        is_bytes = each.name.endswith("bytes")
        table.add_row(
            each.name.replace("_bytes", " MB").replace("_", " "),
            f"{each.mean / 1e6:,.1f}" if is_bytes else f"{each.mean:,.0f}",
            f"{each.low:+.1%}",
            f"{each.high:+.1%}",
            f"{each.drift:+.1%}",
            "yes" if each.flat else "no",
        )
    return table
