"""`headgate glossary`."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.padding import Padding
from rich.text import Text

from headgate.cli.console import open_console
from headgate.cli.help_epilog import help_epilog
from headgate.model.errors import InputError
from headgate.model.suggest import did_you_mean

EPILOG = help_epilog("headgate glossary", "headgate glossary late", codes={0: "shown"})


def glossary(
    word: Annotated[
        str | None, typer.Argument(metavar="[WORD]", help="Only this word.", show_default=False)
    ] = None,
) -> None:
    """Say what the words of reports mean: slack, late, closing, pattern, drain and others."""
    from headgate.explain.glossary import entries, plain

    known = entries()
    wanted = [each for each in known if word is None or word.casefold() in each.split()]
    if not wanted:
        names = [part for each in known for part in each.split() if part not in ("and", "time")]
        raise InputError(f"the glossary has no word {word}", remedy=did_you_mean(str(word), names))
    console = open_console()
    for number, each in enumerate(wanted):
        if number:
            console.print()
        console.print(Text(each, style="bold"))
        for line in plain(known[each]).splitlines():
            console.print(Padding(Text(line), (0, 0, 0, 2)))
