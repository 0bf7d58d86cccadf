"""`headgate profile`."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from headgate.cli.console import open_console
from headgate.cli.help_epilog import help_epilog
from headgate.cli.options import FileArgument, QueryOption, chosen_queries, open_session
from headgate.model.errors import InputError

if TYPE_CHECKING:
    from headgate.profile.profile import Profile

EPILOG = help_epilog(
    "headgate profile orders.cql",
    "headgate profile orders.cql --query shipped --rows all",
    "headgate profile orders.cql --margin 1.5 --write",
    "headgate profile orders.cql --format html > profile.html",
    codes={0: "shown, whether or not something was found"},
)

ROWS = 100_000
ALL = "all"


class Format(StrEnum):
    """How `profile` speaks."""

    text = "text"
    json = "json"
    html = "html"


def profile(
    file: FileArgument,
    format: Annotated[
        Format, typer.Option("--format", "-f", help="For people, programs or documents.")
    ] = Format.text,
    query: QueryOption = None,
    rows: Annotated[
        str, typer.Option("--rows", metavar="N", help="Look at the first N rows of each stream, or all.")
    ] = str(ROWS),
    margin: Annotated[
        float,
        typer.Option("--margin", min=1, max=1000, metavar="F", help="Allow F times the k that was seen."),
    ] = 1.0,
    write: Annotated[bool, typer.Option("--write", help="Put the clauses into FILE.")] = False,
) -> None:
    """Find what the rows of the streams promise: keys, orders, clusters, references; and what that would save."""
    from headgate.explain.glossary import POINTER
    from headgate.profile.page import page
    from headgate.profile.report import as_dict, refuted_words, to_text
    from headgate.runtime.io.declared import check_sources

    limit = _rows(rows)
    session = open_session(file, None)
    for read in chosen_queries(session, query):
        check_sources(read.plan)
    with _bar(open_console(stderr=True)) as bar:
        task = bar.add_task("reading", total=None, far="")

        def tell(doing: str, far: str) -> None:
            bar.update(task, description=doing, far=far)

        from headgate.profile.profile import profile as find

        found = find(session, query, rows=limit, margin=margin, tell=tell)
    match format:
        case Format.json:
            typer.echo(json.dumps(as_dict(found), indent=2, ensure_ascii=False))
            for each in found.refuted:
                open_console(stderr=True, soft_wrap=True).print(Text(f"{each.shown}: {refuted_words(each)}"))
        case Format.html:
            typer.echo(page(found))
        case _:
            console = open_console(soft_wrap=True)
            console.print(to_text(found), end="")
            console.print(Text(POINTER, style="dim"))
    if write:
        _write(file, found)


def _rows(text: str) -> int | None:
    """How many rows are read of each stream; None for all."""
    if text.casefold() == ALL:
        return None
    number = text.replace("_", "").replace(",", "")
    if not number.isascii() or not number.isdigit() or not 0 < int(number) < 10**12:
        raise InputError(
            f"--rows {text} is not a number of rows", remedy="write --rows 100000, or --rows all"
        )
    return int(number)


def _write(file: Path, found: Profile) -> None:
    from headgate.profile.profile import clauses_by_stream
    from headgate.profile.report import written_words
    from headgate.profile.rewrite import write_clauses
    from headgate.session import read_text

    clauses = clauses_by_stream(found)
    console = open_console(stderr=True, soft_wrap=True)
    if not clauses:
        console.print(Text(f"{file} stays as it is: there is nothing to write"))
        return
    write_clauses(file, read_text(file), clauses)
    for line in written_words(each for some in clauses.values() for each in some):
        console.print(Text(line))


def _bar(console: Console) -> Progress:
    return Progress(
        SpinnerColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
        TextColumn("{task.fields[far]}"),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
