"""Addresses of sinks: where `headgate run --to` sends a query's rows.

```
console                                            one JSON object a line, to standard output
kafka://host:9092/answers?key=item                 a topic
postgresql://user@host/shop?table=answers          a view; with &retry=60, a silent server is asked for a minute
```

`{query}` in an address stands for the query's name, so that several queries of a file find places of their own.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, unquote, unquote_plus

import polars as pl

from headgate.model.errors import InputError
from headgate.runtime.io.kafka_topic import HOW_TO_SIGN_IN, NO_USER, KafkaTopic
from headgate.runtime.io.postgres_view import NEEDER, PostgresView
from headgate.runtime.libpq import HOW_TO_WRITE, is_readable, psycopg_for

Sink = Callable[[Any, int], None]
"""What takes a micro-batch's DataFrame and its number."""

_EXAMPLES = "console, kafka://host:9092/topic?key=column or postgresql://user@host/database?table=name"
_QUERY = re.compile(r"(?:\{|%7[Bb])query(?:\}|%7[Dd])")
_WORD = re.compile(r"[A-Za-z0-9+.-]*")
_SERVER = re.compile(r"(?:[\w.-]*|\[[\w:.]*\])(?::\d*)?")
_PATH = re.compile(r"[\w.,{}/%-]*")


def sink_at(address: str, query: str) -> Sink:
    """The sink that an address means for a query; InputError, which shows no secret of it, if it means none."""
    if address == "console":
        return to_console
    scheme, _, rest = address.partition("://")
    match scheme.lower():
        case "kafka":
            return _topic(address, _named(rest, query))
        case "postgresql" | "postgres":
            return _view(address, rest, query)
        case _:
            raise InputError(f"--to {shown(address)} is no place that is known", remedy=f"write {_EXAMPLES}")


def _named(text: str, query: str) -> str:
    """A part of an address with the query's name in it."""
    return _QUERY.sub(lambda _: quote(query, safe=""), text)


def _topic(address: str, rest: str) -> KafkaTopic:
    place, _, options = rest.partition("?")
    servers, _, topic = place.partition("/")
    if "@" in place:
        raise InputError(f"--to {shown(address)}: {NO_USER}", remedy=HOW_TO_SIGN_IN)
    if not servers or not topic or "/" in topic:
        raise InputError(f"--to {shown(address)} names no topic", remedy="write kafka://host:9092/topic")
    given = {unquote_plus(name): unquote_plus(value) for name, value in _pairs(address, options)}
    key = tuple(each for each in given.pop("key", "").split(",") if each)
    return KafkaTopic(servers, unquote(topic), key, given)


def _view(address: str, rest: str, query: str) -> PostgresView:
    """A view; what is not for Headgate goes on to libpq as it is, by libpq's rules: a + is no space."""
    start = rest.partition("/")[0]
    user = start[: start.find("@") + 1]
    place, _, options = _named(rest.removeprefix(user), query).partition("?")
    ours, theirs = {"table": query, "schema": "public", "retry": "120"}, []
    for name, value in _pairs(address, options):
        if unquote(name) in ours:
            ours[unquote(name)] = unquote(value)
        else:
            theirs.append(f"{name}={value}")
    if not ours["retry"].isdecimal():
        raise InputError(
            f"--to {shown(address)}: retry is '{ours['retry']}'", remedy="give a number of seconds"
        )
    dsn = f"postgresql://{user}{place}{'?' if theirs else ''}{'&'.join(theirs)}"
    if not is_readable(dsn, psycopg_for(NEEDER)):
        raise InputError(f"--to {shown(address)} cannot be read", remedy=HOW_TO_WRITE)
    return PostgresView(dsn, ours["table"], ours["schema"], float(ours["retry"]), _Waiting())


def _pairs(address: str, options: str) -> list[tuple[str, str]]:
    """Names and values of options as they are written."""
    pairs = [each.partition("=") for each in options.split("&")] if options else []
    if not all(equals for _, equals, _ in pairs):
        raise InputError(
            f"--to {shown(address)} cannot be read: an option has no value", remedy=f"write {_EXAMPLES}"
        )
    return [(name, value) for name, _, value in pairs]


def shown(address: str) -> str:
    """An address as a message may show it: its scheme, its servers and what it names there.

    The user, the options and whatever else may be a piece of a password are left out.
    """
    scheme, colon, rest = address.partition("://")
    if not _WORD.fullmatch(scheme):
        return "…"
    if not colon:
        return scheme
    where = re.split(r"[?#]", rest, maxsplit=1)[0]
    options = rest[len(where) :]
    _, at, place = where.rpartition("@")
    servers, _, path = place.partition("/")
    if "@" in options or not all(map(_SERVER.fullmatch, servers.split(","))) or not _PATH.fullmatch(path):
        return f"{scheme}://…"
    return f"{scheme}://{'…@' if at else ''}{place}{'?…' if options else ''}"


class _Waiting:
    """Says on standard error that a server is waited for, when that begins."""

    def __init__(self) -> None:
        self._said: str | None = None

    def __call__(self, why: str) -> None:
        if why != self._said:
            sys.stderr.write(f"waiting for PostgreSQL: {why}\n")
            self._said = why


def formats_of(address: str | None) -> list[str]:
    """The formats that Spark needs connectors for to reach an address."""
    return ["kafka"] if address is not None and address.lower().startswith("kafka:") else []


def to_console(rows: Any, batch: int) -> None:
    """Prints a micro-batch's rows."""
    frame = pl.DataFrame(pl.from_arrow(rows.toArrow()))
    sys.stdout.write(frame.write_ndjson())
    sys.stdout.flush()
