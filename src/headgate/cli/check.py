"""`headgate check`."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from headgate.cli.options import FilesArgument, QueryOption, StatsOption, chosen_queries, open_session

if TYPE_CHECKING:
    from headgate.safety.verdict import Verdict

EPILOG = (
    "Exit code: 0 all bounded, 1 some refused, 2 bad input.   "
    "Examples: [bold]headgate check auction.cql[/]   ·   [bold]headgate check auction.cql --format json[/]"
)


class Format(StrEnum):
    """How `check` speaks."""

    text = "text"
    json = "json"


def check(
    files: FilesArgument,
    format: Annotated[Format, typer.Option("--format", "-f", help="For people or programs.")] = Format.text,
    stats: StatsOption = None,
    query: QueryOption = None,
) -> None:
    """Say for each query whether its state is bounded, by what, or why it is refused and what would help."""
    checked = [
        (file, [each.check() for each in chosen_queries(open_session(file, stats), query)]) for file in files
    ]
    if format is Format.json:
        found = [
            verdict.as_dict() | {"file": str(file)} for file, verdicts in checked for verdict in verdicts
        ]
        typer.echo(json.dumps({"queries": found}, indent=2, ensure_ascii=False))
    else:
        console = Console(soft_wrap=True, highlight=False)
        for file, verdicts in checked:
            if len(files) > 1:
                console.print(Text(f"{file}", style="underline"))
            for verdict in verdicts:
                console.print(_text(verdict), end="")
    if not all(verdict.bounded for _, verdicts in checked for verdict in verdicts):
        raise typer.Exit(1)


def _text(verdict: Verdict) -> Text:
    text = Text()
    text.append(
        "bounded  " if verdict.bounded else "refused  ", style="green" if verdict.bounded else "bold red"
    )
    text.append(f"{verdict.query}\n", style="bold")
    if not verdict.states:
        text.append("  keeps nothing\n", style="dim")
    for state in verdict.states:
        mark, style = ("✓", "green") if state.bounded else ("✗", "red")
        text.append(f"  {mark} ", style=style)
        text.append(f"{state.operator} over {state.stream}: ")
        text.append(f"{state.by}" if state.bounded else "not bounded", style=style)
        text.append(f", {state.reason}\n")
    for number, fix in enumerate(verdict.fixes, start=1):
        first, *rest = fix.edit.splitlines()
        text.append(f"  fix {number}  ", style="cyan")
        text.append(f"{first}\n", style="bold")
        for line in rest:
            text.append(f"         {line}\n", style="bold")
        text.append(f"         {fix.effect}\n", style="dim")
    return text
