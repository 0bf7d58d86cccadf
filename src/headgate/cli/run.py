"""`headgate run`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from headgate.cli.help_epilog import help_epilog
from headgate.cli.options import FileArgument, QueryOption, StatsOption, duration, open_session
from headgate.cli.run_display import RunDisplay
from headgate.model.errors import InputError
from headgate.runtime.io.files import is_elsewhere, local_path
from headgate.runtime.io.registry import FILE_FORMATS, is_file_format

EPILOG = help_epilog(
    "headgate run auction.cql --output out",
    "headgate run auction.cql -o out --engine local",
    "headgate run auction.cql -o out -q hot --rejects bad",
    "headgate run auction.cql -o out --checkpoint state --follow",
    codes={0: "done", 1: "a query was refused", 130: "interrupted (Ctrl-C)"},
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
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", metavar="DIR", help="Where results go; on Spark also an address: s3a://…"
        ),
    ],
    output_format: Annotated[
        str,
        typer.Option(
            "--output-format",
            metavar="FORMAT",
            help="Of result files: parquet, orc, csv, json; on Spark any that it writes.",
        ),
    ] = "parquet",
    engine: Annotated[
        Engine, typer.Option("--engine", help="Where to run: on Spark, or in this process, without Java.")
    ] = Engine.spark,
    master: Annotated[
        str | None, typer.Option("--master", metavar="URL", help="Spark's master; local[*] if none is given.")
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option("--checkpoint", metavar="DIR", help="Spark: keep state there, and continue from it."),
    ] = None,
    shards: Annotated[
        int | None,
        typer.Option(
            "--shards", metavar="N", min=1, max=1024, help="Spark: shards; as many as cores if not given."
        ),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Spark: go on with files that come, until interrupted.")
    ] = False,
    query: QueryOption = None,
    stats: StatsOption = None,
    batch_rows: Annotated[
        int | None,
        typer.Option(
            "--batch-rows",
            metavar="N",
            min=1,
            help="Rows per step, about: 1,000,000 on Spark, 100,000 locally.",
        ),
    ] = None,
    allow_unbounded: Annotated[
        bool, typer.Option("--allow-unbounded", help="Run queries whose state is not proven bounded.")
    ] = False,
    rejects: Annotated[
        str | None,
        typer.Option("--rejects", metavar="DIR", help="Put bad rows there instead of stopping."),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="SINK",
            help="Spark: rows go there: console, kafka://HOST:9092/TOPIC or postgresql://HOST/DB?table=NAME.",
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
    max_late: Annotated[
        float | None,
        typer.Option(
            "--max-late",
            min=0,
            max=1,
            metavar="SHARE",
            help="Stop if a larger share of a stream's rows comes late.",
        ),
    ] = None,
    max_ahead: Annotated[
        str | None,
        typer.Option(
            "--max-ahead",
            metavar="DURATION",
            help="Set rows aside that are further ahead of the clock on the wall: '1 HOUR'.",
        ),
    ] = None,
    strategy: Annotated[
        Strategy, typer.Option("--strategy", help="UPA; NT and DIRECT to compare.")
    ] = Strategy.UPA,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, no summary.")] = False,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            "--metrics-port",
            min=0,
            max=65535,
            metavar="PORT",
            help="Serve metrics for Prometheus; 0: any port.",
        ),
    ] = None,
    metrics_host: Annotated[
        str, typer.Option("--metrics-host", metavar="HOST", help="Where to serve them: this machine alone.")
    ] = "127.0.0.1",
) -> None:
    """Run the queries of a file to the end of their input and write the results as files."""
    session = open_session(file, stats)
    # Refusals come before anything is started, and need no Java.
    program = session.compile(query, allow_unbounded=allow_unbounded, strategy=strategy.value)
    future_us = None if max_ahead is None else duration(max_ahead, "--max-ahead")
    display = RunDisplay(quiet, metrics_port, metrics_host)
    if engine is Engine.spark:
        from headgate.cli.run_on_spark import run_on_spark

        run_on_spark(
            session,
            program,
            output,
            {
                "batch_rows": batch_rows or SPARK_BATCH_ROWS,
                "drain": drain,
                "shards": shards,
                "future_us": future_us,
                "max_late": max_late,
                "rejects": rejects,
            },
            display,
            master=master,
            checkpoint=checkpoint,
            overwrite=overwrite,
            format=output_format,
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
    from headgate.cli.run_local import run_local

    for address in filter(is_elsewhere, (output, rejects or "")):
        raise InputError(f"{address} is not on this machine", remedy="name a folder, or run on Spark")
    if not is_file_format(output_format):
        raise InputError(
            f"the local engine writes {', '.join(FILE_FORMATS)}, not {output_format}",
            remedy="choose one of them, or run on Spark",
        )
    run_local(
        session,
        program,
        local_path(output),
        {
            "batch_rows": batch_rows or LOCAL_BATCH_ROWS,
            "drain": drain is not False,
            "future_us": future_us,
        },
        display,
        rejects=None if rejects is None else local_path(rejects),
        overwrite=overwrite,
        format=output_format,
        max_late=max_late,
    )


def _settings(pairs: list[str]) -> dict[str, str]:
    """Settings of Spark's session from words KEY=VALUE."""
    settings = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key.strip() or not equals:
            raise InputError(f"--conf {key or '=…'} is not KEY=VALUE", remedy="write --conf spark.key=value")
        settings[key.strip()] = value
    return settings
