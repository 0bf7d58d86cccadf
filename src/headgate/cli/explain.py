"""`headgate explain`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer
from rich.text import Text

from headgate.cli.console import open_console
from headgate.cli.help_epilog import help_epilog
from headgate.cli.options import FileArgument, QueryOption, StatsOption, chosen_queries, open_session

EPILOG = help_epilog(
    "headgate explain auction.cql",
    "headgate explain auction.cql --format svg > plan.svg",
    "headgate explain join.cql --stats rates.yaml --alternatives",
    "headgate explain join.cql --shards 4",
    codes={0: "shown"},
)


class Format(StrEnum):
    """How `explain` speaks."""

    text = "text"
    json = "json"
    svg = "svg"
    cql = "cql"


def explain(
    file: FileArgument,
    format: Annotated[Format, typer.Option("--format", "-f", help="For people, programs or documents.")] = (
        Format.text
    ),
    stats: StatsOption = None,
    query: QueryOption = None,
    alternatives: Annotated[
        bool, typer.Option("--alternatives", help="Also show the plans that cost more.")
    ] = False,
    shards: Annotated[
        int | None,
        typer.Option(
            "--shards",
            metavar="N",
            min=1,
            max=1_000,
            help="Also show the stages on up to so many shards of Spark.",
        ),
    ] = None,
) -> None:
    """Show each query's plan: the update pattern on every edge, the state of every operator."""
    from headgate.explain.explanation import Explanation
    from headgate.explain.glossary import POINTER

    session = open_session(file, stats)
    if format is Format.cql:
        typer.echo(session.render(), nl=False)
        return
    parts = [
        each.explain(alternatives=alternatives, shards=shards) for each in chosen_queries(session, query)
    ]
    whole = Explanation(
        tuple(described for part in parts for described in part.queries),
        tuple(others for part in parts for others in part.alternatives),
        tuple(stages for part in parts for stages in part.stages),
    )
    match format:
        case Format.json:
            typer.echo(whole.to_json())
        case Format.svg:
            typer.echo(whole.to_svg())
        case _:
            console = open_console(soft_wrap=True)
            console.print(whole.to_text(), end="")
            console.print(Text(POINTER, style="dim"))
