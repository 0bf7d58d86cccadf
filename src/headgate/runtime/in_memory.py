"""Definitions of what is given rows in Python: from the catalog, or made from the columns of the rows."""

from __future__ import annotations

from collections.abc import Callable

from headgate.model.errors import InputError, NameResolutionError
from headgate.model.schema import Column
from headgate.model.types import is_timestamp
from headgate.plan.catalog import Catalog, StreamDef, TableDef

Columns = Callable[[], tuple[Column, ...]]
"""The columns that the rows have, asked for only where nothing is declared."""


def in_memory_stream(
    catalog: Catalog, name: str, columns: Columns, *, time: str | None, slack: int | None
) -> tuple[Catalog, StreamDef]:
    """A stream and the catalog with it; InputError if `time` or `slack` is not what was declared."""
    if slack is not None and not _is_slack(slack):
        raise InputError(
            f"stream {name}: slack is {slack}", remedy="give it in whole microseconds, 0 or more"
        )
    found = catalog.find(name)
    if found is None:
        made = columns()
        found = StreamDef(name, made, time=_time_column(made, name, time), slack=slack or 0)
        return catalog.with_definition(found), found
    if not isinstance(found, StreamDef):
        raise NameResolutionError(f"{name} is not a stream")
    if time is not None and time.casefold() != (found.time or "").casefold():
        raise InputError(
            f"stream {found.name} has the event time {found.time}, not {time}",
            remedy=f"leave time out, or declare the stream with TIMESTAMP BY {time}",
        )
    if slack is not None and slack != found.slack:
        raise InputError(
            f"stream {found.name} has a slack of {found.slack} microseconds, not {slack}",
            remedy="leave slack out, or declare the stream with another TIMESTAMP BY … WITHIN INTERVAL …",
        )
    return catalog, found


def in_memory_table(
    catalog: Catalog, name: str, columns: Columns, *, retroactive: bool | None
) -> tuple[Catalog, TableDef]:
    """A table and the catalog with it; InputError if `retroactive` is not what was declared."""
    found = catalog.find(name)
    if found is None:
        found = TableDef(name, columns(), retroactive=retroactive is not False)
        return catalog.with_definition(found), found
    if not isinstance(found, TableDef):
        raise NameResolutionError(f"{name} is not a table")
    if retroactive is not None and retroactive != found.retroactive:
        declared = "is not declared" if found.retroactive else "is declared"
        raise InputError(
            f"table {found.name} {declared} NON RETROACTIVE",
            remedy="leave retroactive out, or change the declaration",
        )
    return catalog, found


def _is_slack(slack: object) -> bool:
    return isinstance(slack, int) and slack >= 0


def _time_column(columns: tuple[Column, ...], name: str, time: str | None) -> str:
    stamps = [column.name for column in columns if is_timestamp(column.type)]
    chosen = stamps
    if time is not None:
        chosen = [each for each in stamps if each == time] or [
            each for each in stamps if each.casefold() == time.casefold()
        ]
    if len(chosen) == 1:
        return chosen[0]
    raise InputError(
        f"stream {name} needs one timestamp column as its event time",
        remedy=f"give time=…; timestamp columns are {', '.join(stamps) or 'none'}",
    )
