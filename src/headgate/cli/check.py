"""`headgate check`."""

from __future__ import annotations

import json
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from headgate.cli.options import FilesArgument, QueryOption, StatsOption, chosen_queries, open_session
from headgate.model.errors import InputError

if TYPE_CHECKING:
    from headgate.explain.checked import Checked
    from headgate.session import Query

EPILOG = (
    "Exit code: 0 all bounded or conditional, 1 some refused (with --strict also: some conditional), 2 bad input.   "
    "Examples: [bold]headgate check auction.cql[/]   ·   [bold]headgate check auction.cql --format json[/]"
)


MOST_ROWS = 10_000


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
    witness: Annotated[
        int | None,
        typer.Option(
            "--witness",
            min=1,
            max=MOST_ROWS,
            metavar="N",
            help="Show N rows on which any algorithm for a refused query must remember more and more.",
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 for conditional queries too.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="DIR", help="Write the rows of --witness there.")
    ] = None,
) -> None:
    """Say for each query whether its state is bounded, by what, or why it is refused and what would help."""
    from headgate.explain.checked import page, picture
    from headgate.explain.glossary import POINTER

    if output is not None and witness is None:
        raise InputError("--output is where --witness writes its rows", remedy="give --witness N too")
    asked = [(file, chosen_queries(open_session(file, stats), query)) for file in files]
    checked = [(file, [_shown(each, witness, output) for each in queries]) for file, queries in asked]
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
            console.print(Text(POINTER, style="dim"))
    fine = ("bounded",) if strict else ("bounded", "conditional")
    if not all(each.verdict.kind in fine for each in every):
        raise typer.Exit(1)


def _shown(query: Query, witness: int | None, output: Path | None) -> Checked:
    """A query as checked; a refused one with its witness, if one is asked for and known."""
    from headgate.explain.checked import WitnessTable
    from headgate.runtime.output import safe_name

    checked = query.checked
    if witness is None or checked.verdict.admitted:
        return checked
    found = query.witness(witness)
    if found is None:
        return replace(checked, witness=WitnessTable("", query.no_witness, (), ()))
    files = found.write(output / safe_name(query.name)) if output is not None else []
    rows = tuple((each.rows, each.bits, each.kept) for each in found.growth)
    table = WitnessTable(found.adversary.stream, found.adversary.reason, rows, tuple(map(str, files)))
    return replace(checked, witness=table)
