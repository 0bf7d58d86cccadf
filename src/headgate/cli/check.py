"""`headgate check`."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from headgate.cli.options import FilesArgument, QueryOption, StatsOption, chosen_queries, open_session

EPILOG = (
    "Exit code: 0 all bounded, 1 some refused, 2 bad input.   "
    "Examples: [bold]headgate check auction.cql[/]   ·   [bold]headgate check auction.cql --format json[/]"
)


class Format(StrEnum):
    """How `check` speaks."""

    text = "text"
    json = "json"
    html = "html"
    svg = "svg"


def check(
    files: FilesArgument,
    format: Annotated[
        Format, typer.Option("--format", "-f", help="For people, programs or documents.")
    ] = Format.text,
    stats: StatsOption = None,
    query: QueryOption = None,
) -> None:
    """Say for each query whether its state is bounded, by what, or why it is refused and what would help."""
    from headgate.explain.checked import page, picture

    checked = [
        (file, [each.checked for each in chosen_queries(open_session(file, stats), query)]) for file in files
    ]
    every = [each for _, found in checked for each in found]
    match format:
        case Format.json:
            found = [each.as_dict() | {"file": str(file)} for file, queries in checked for each in queries]
            typer.echo(json.dumps({"queries": found}, indent=2, ensure_ascii=False))
        case Format.html:
            typer.echo(page(every))
        case Format.svg:
            typer.echo(picture(every))
        case _:
            console = Console(soft_wrap=True, highlight=False)
            for file, queries in checked:
                if len(files) > 1:
                    console.print(Text(f"{file}", style="underline"))
                for each in queries:
                    console.print(each.to_text(), end="")
    if not all(each.verdict.bounded for each in every):
        raise typer.Exit(1)
