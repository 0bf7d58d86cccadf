"""`headgate check`."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from headgate.cli.console import open_console
from headgate.cli.help_epilog import help_epilog
from headgate.cli.options import FilesArgument, QueryOption, StatsOption, chosen_queries, open_session
from headgate.model.errors import InputError

if TYPE_CHECKING:
    from headgate.explain.check_report import CheckReport
    from headgate.session import Query

EPILOG = help_epilog(
    "headgate check auction.cql",
    "headgate check auction.cql --format json",
    codes={
        0: "all queries are bounded or conditional",
        1: "a query is refused, or with --strict conditional",
    },
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
    from headgate.explain.check_report import page, picture
    from headgate.explain.glossary import POINTER
    from headgate.runtime.io.declared import check_sources

    if output is not None and witness is None:
        raise InputError("--output is where --witness writes its rows", remedy="give --witness N too")
    asked = [(file, chosen_queries(open_session(file, stats), query)) for file in files]
    for read in (each for _, queries in asked for each in queries):
        check_sources(read.plan)
    checked = [(file, [_shown(each, witness, output, file) for each in queries]) for file, queries in asked]
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
            console = open_console(soft_wrap=True)
            for file, queries in checked:
                if len(files) > 1:
                    console.print(Text(f"{file}", style="underline"))
                for each in queries:
                    console.print(each.to_text(), end="")
            console.print(Text(POINTER, style="dim"))
    fine = ("bounded",) if strict else ("bounded", "conditional")
    if not all(each.verdict.kind in fine for each in every):
        raise typer.Exit(1)


def _shown(query: Query, witness: int | None, output: Path | None, file: Path) -> CheckReport:
    """A query as checked; a refused one with its witness, if one is asked for and known."""
    from headgate.explain.check_report import WitnessTable
    from headgate.profile.uses import can_be_helped
    from headgate.runtime.output import safe_name

    checked = query.checked
    if can_be_helped(query.plan, query.judged):
        said = f"headgate profile {shlex.quote(str(file))}: what the rows promise, and the state that it would save"
        checked = replace(checked, next=said)
    if witness is None or checked.verdict.admitted:
        return checked
    found = query.witness(witness)
    if found is None:
        return replace(checked, witness=WitnessTable("", query.no_witness, (), ()))
    files = found.write(output / safe_name(query.name)) if output is not None else []
    rows = tuple((each.rows, each.bits, each.kept) for each in found.growth)
    table = WitnessTable(found.adversary.stream, found.adversary.reason, rows, tuple(map(str, files)))
    return replace(checked, witness=table)
