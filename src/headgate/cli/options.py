"""Arguments and options that several commands share."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headgate.model.errors import InputError
from headgate.model.time import UNITS

if TYPE_CHECKING:
    from headgate.session import Query, Session

FileArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="A file of CQL statements.", show_default=False)
]
FilesArgument = Annotated[
    list[Path], typer.Argument(metavar="FILE", help="Files of CQL statements.", show_default=False)
]
StatsOption = Annotated[
    Path | None,
    typer.Option("--stats", metavar="YAML", help="Rates and distinct counts: streams: {S1: {rate: 10}}."),
]
QueryOption = Annotated[
    list[str] | None,
    typer.Option("--query", "-q", metavar="NAME", help="Only this query; may be given several times."),
]


def duration(text: str, option: str) -> int:
    """A duration on the command line, such as `90 SECONDS`, in microseconds."""
    match = re.fullmatch(r"\s*(\d{1,9})\s*([A-Za-z]+)\s*", text)
    unit = UNITS.get(match[2].upper().removesuffix("S")) if match else None
    if match is None or unit is None:
        raise InputError(
            f"{option} {text} is not a duration", remedy=f"write {option} '1 HOUR' or '90 SECONDS'"
        )
    return int(match[1]) * unit


def open_session(file: Path, stats: Path | None) -> Session:
    """A session with the statements of a file and, if given, statistics."""
    from headgate.session import Session

    session = Session.from_file(file)
    if stats is not None:
        session.use_statistics(stats)
    return session


def chosen_queries(session: Session, names: list[str] | None) -> list[Query]:
    """The queries named on the command line, or all of them."""
    return [session.query(name) for name in names] if names else list(session.queries)
