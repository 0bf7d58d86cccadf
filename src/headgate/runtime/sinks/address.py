"""Addresses of sinks: where `headgate run --to` sends a query's rows.

```
console                                            one JSON object a line, to standard output
kafka://host:9092/answers?key=item                 a topic
postgresql://user@host/shop?table=answers          a view; with &retry=60, a silent server is asked for a minute
```

`{query}` in an address stands for the query's name, so that several queries of a file find places of their own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

import polars as pl

from headgate.model.errors import InputError
from headgate.runtime.sinks.kafka import KafkaTopic
from headgate.runtime.sinks.postgres import PostgresView

Sink = Callable[[Any, int], None]
"""What takes a micro-batch's DataFrame and its number."""

_EXAMPLES = "console, kafka://host:9092/topic?key=column or postgresql://user@host/database?table=name"


def sink_at(address: str, query: str) -> Sink:
    """The sink that an address means for a query; InputError if it means none."""
    if address == "console":
        return to_console
    try:
        parts = urlsplit(address)
        given = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    except ValueError as error:
        raise InputError(f"--to {address} cannot be read: {error}", remedy=f"write {_EXAMPLES}") from error
    path = unquote(parts.path).lstrip("/").replace("{query}", query)
    match parts.scheme:
        case "kafka":
            if not parts.netloc or not path or "/" in path:
                raise InputError(f"--to {address} names no topic", remedy="write kafka://host:9092/topic")
            key = tuple(each for each in given.pop("key", "").split(",") if each)
            return KafkaTopic(parts.netloc, path, key, given)
        case "postgresql" | "postgres":
            table = given.pop("table", "{query}").replace("{query}", query)
            schema = given.pop("schema", "public")
            retry = _seconds(address, given.pop("retry", "120"))
            rest = parts._replace(scheme="postgresql", query=urlencode(given))
            return PostgresView(rest.geturl(), table, schema, retry, _Waiting())
        case _:
            raise InputError(f"--to {address} is no place that is known", remedy=f"write {_EXAMPLES}")


def _seconds(address: str, text: str) -> float:
    if not text.isdecimal():
        raise InputError(f"--to {address}: retry is '{text}'", remedy="give a number of seconds")
    return float(text)


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
    return ["kafka"] if address is not None and address.startswith("kafka:") else []


def to_console(rows: Any, batch: int) -> None:
    """Prints a micro-batch's rows."""
    frame = pl.DataFrame(pl.from_arrow(rows.toArrow()))
    sys.stdout.write(frame.write_ndjson())
    sys.stdout.flush()
