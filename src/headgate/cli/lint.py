"""`headgate lint`."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from headgate.cli.console import open_console
from headgate.cli.help_epilog import help_epilog

EPILOG = help_epilog(
    "headgate lint job.py",
    "headgate lint job.py --format json",
    "headgate lint job.py -- --date 2026-03-01",
    codes={0: "all states are bounded", 1: "a state grows, or Spark would refuse the query"},
)

STYLES = {"✓": "green", "✗": "red", "?": "yellow"}
VERDICTS = {"bounded": "green", "unbounded": "bold red", "refused": "bold red", "unknown": "yellow"}


class Format(StrEnum):
    """How `lint` speaks."""

    text = "text"
    json = "json"


def lint(
    script: Annotated[
        Path, typer.Argument(metavar="SCRIPT", help="A PySpark program. It is executed.", show_default=False)
    ],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ARGUMENTS]...", help="What the program is given, after --."),
    ] = None,
    format: Annotated[Format, typer.Option("--format", "-f", help="For people or programs.")] = Format.text,
    timeout: Annotated[
        float, typer.Option("--timeout", min=1, metavar="SECONDS", help="Stop the program after this long.")
    ] = 120,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 also where only your own code can know.")
    ] = False,
) -> None:
    """Say which states of a plain PySpark streaming job Spark ever drops, and what to change.

    The script is executed, in a process of its own, with everything it does outside of streaming queries:
    it reads, and it writes. Only streaming queries do not start: start() and toTable() hand the query to lint
    instead, and functions given to foreachBatch are not called. What it prints is not shown.
    """
    from headgate.explain.glossary import POINTER
    from headgate.linting.script import lint_script

    outcome = lint_script(script, arguments or (), timeout=timeout)
    if format is Format.json:
        typer.echo(json.dumps({"queries": [report.as_dict() for report in outcome.reports]}, indent=2))
    else:
        console = open_console(soft_wrap=True)
        for report in outcome.reports:
            console.print(_coloured(report.to_text()), end="")
        if outcome.reports:
            console.print(Text(POINTER, style="dim"))
    if outcome.failure is not None:
        raise outcome.failure
    fine = ("bounded",) if strict else ("bounded", "unknown")
    if not all(report.verdict in fine for report in outcome.reports):
        raise typer.Exit(1)


def _coloured(text: str) -> Text:
    whole = Text()
    for line in text.splitlines(keepends=True):
        first = line.split()[0]
        whole.append(line, style=STYLES.get(first, VERDICTS.get(first, "")))
    return whole
