"""Tables from PostgreSQL: all rows of a relation as one statement sees them, in the declared types.

```
CREATE TABLE companies (symbol STRING, name STRING) NON RETROACTIVE
  USING postgres OPTIONS (dsn 'host=db dbname=shop', table 'public.companies')
  USING jdbc OPTIONS (url 'jdbc:postgresql://db:5432/shop', dbtable 'companies', user 'reader')      the same
```

Passwords need not stand in a query's text: libpq finds them in PGPASSWORD, a service file or ~/.pgpass. Names are
sent as names, never as SQL.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import polars as pl
import pyarrow as pa

from headgate.model.errors import DataError, DeclarationError, SetupError, UnsupportedError
from headgate.model.schema import Column
from headgate.model.suggest import did_you_mean
from headgate.model.types import spark_name
from headgate.plan.catalog import StreamDef, TableDef
from headgate.runtime.io.conform import series_of
from headgate.runtime.libpq import HOW_TO_WRITE, is_readable, psycopg_for, reason, stop_if_refused

if TYPE_CHECKING:
    import psycopg

FORMATS = ("postgres", "postgresql", "jdbc")
_KNOWN = {
    "jdbc": ("url", "dbtable", "user", "password", "driver", "fetchsize", "retrySeconds"),
    "postgres": ("dsn", "table", "retrySeconds"),
}
_URL = re.compile(r"jdbc:(postgresql://.+)")
_ROWS = 50_000
_RETRY_SECONDS = 120.0
_LONGEST_WAIT = 10.0
_MOST_PARTS = 2
_WHAT = "a table from PostgreSQL"
_HOW_TO_WRITE_JDBC = (
    "write jdbc:postgresql://host:5432/database, with options of libpq's, and user and password as OPTIONS"
)


@dataclass(frozen=True)
class Relation:
    """A relation of a database: how it is reached, its name in parts, and for how long a silent server is asked."""

    dsn: str = field(repr=False)
    parts: tuple[str, ...]
    retry_seconds: float = _RETRY_SECONDS

    @property
    def name(self) -> str:
        return ".".join(self.parts)


def is_in_postgres(definition: StreamDef | TableDef) -> bool:
    """Whether a declaration means a relation of PostgreSQL."""
    return definition.source is not None and definition.source.format in FORMATS


def read_relation(table: TableDef) -> Relation:
    """The relation that a table's declaration means; DeclarationError if it means none."""
    assert table.source is not None
    format = "jdbc" if table.source.format == "jdbc" else "postgres"
    known = {each.casefold(): each for each in _KNOWN[format]}
    options: dict[str, str] = {}
    for key, value in table.source.options:
        if key.casefold() not in known:
            raise DeclarationError(
                f"{table.name}: {table.source.format} has no option {key} here",
                remedy=did_you_mean(key, known.values()) or f"it has {', '.join(known.values())}",
            )
        options[known[key.casefold()]] = value
    if format == "jdbc":
        dsn, name = _jdbc(table.name, options), options.get("dbtable")
    else:
        dsn, name = options.get("dsn", ""), options.get("table", table.name)
        if not is_readable(dsn, psycopg_for(_WHAT)):
            raise DeclarationError(f"{table.name}: its dsn cannot be read", remedy=HOW_TO_WRITE)
    if name is None:
        raise DeclarationError(f"{table.name}: no relation is named", remedy="add dbtable '…' to its OPTIONS")
    return Relation(dsn, _parts(table.name, name), _seconds(table.name, options.get("retrySeconds")))


def _jdbc(name: str, options: Mapping[str, str]) -> str:
    """libpq's words for the address, user and password of a JDBC URL."""
    url = options.get("url")
    if url is None:
        raise DeclarationError(f"{name}: no url is given", remedy="add url 'jdbc:postgresql://host/database'")
    found = _URL.fullmatch(url)
    if found is None:
        raise UnsupportedError(
            f"{name}: tables are read from jdbc:postgresql://… only",
            remedy=f"on Spark, hand over a DataFrame: session.table({name!r}, spark.read.format('jdbc')…)",
        )
    psycopg = psycopg_for(_WHAT)
    given = {key: options[key] for key in ("user", "password") if key in options}
    if not is_readable(found[1], psycopg) or any("\0" in each for each in given.values()):
        raise DeclarationError(f"{name}: its url cannot be read", remedy=_HOW_TO_WRITE_JDBC)
    return str(psycopg.conninfo.make_conninfo(found[1], **given))


def _parts(table: str, name: str) -> tuple[str, ...]:
    """The parts of a name such as shop.companies or "odd.name"; quotes keep a dot inside."""
    parts = re.findall(r'"((?:[^"]|"")*)"|([^."]+)', name)
    spelled = tuple(quoted.replace('""', '"') if quoted else plain for quoted, plain in parts)
    rebuilt = re.fullmatch(r'(?:"(?:[^"]|"")*"|[^."]+)(?:\.(?:"(?:[^"]|"")*"|[^."]+))*', name)
    if rebuilt is None or not spelled or len(spelled) > _MOST_PARTS or "\0" in name or not all(spelled):
        raise DeclarationError(
            f"{table}: {name!r} is not the name of a relation", remedy="write relation or schema.relation"
        )
    return spelled


def _seconds(table: str, text: str | None) -> float:
    try:
        seconds = _RETRY_SECONDS if text is None else float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise DeclarationError(f"{table}: retrySeconds is '{text}'", remedy="give a number of seconds")
    return seconds


def read_postgres(table: TableDef) -> pl.DataFrame:
    """All rows of a table, of one instant; DataError if a value does not fit, SetupError if no server answers."""
    relation = read_relation(table)
    with _connected(relation, table.name) as connection:
        frames = [_frame(table, rows) for rows in _rows(connection, relation, table)]
    return pl.concat(frames, rechunk=True)


def _rows(
    connection: psycopg.Connection[Any], relation: Relation, table: TableDef
) -> Iterator[list[tuple[Any, ...]]]:
    """All rows as tuples, some thousands at a time; at least one list, if an empty one."""
    from psycopg import sql

    columns = sql.SQL(", ").join(sql.Identifier(each.name) for each in table.columns)
    query = sql.SQL("SELECT {} FROM {}").format(columns, sql.Identifier(*relation.parts))
    with connection.cursor(f"headgate_{uuid4().hex}") as cursor:
        cursor.execute(query)
        first = True
        while (rows := cursor.fetchmany(_ROWS)) or first:
            yield rows
            first = False


@contextmanager
def _connected(relation: Relation, name: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection, with what goes wrong on it in our words."""
    psycopg = psycopg_for(_WHAT)
    try:
        with _connect(psycopg, relation, name) as connection:
            yield connection
    except psycopg.Error as error:
        raise SetupError(
            f"table {name}: PostgreSQL refuses to read {relation.name}: {reason(error)}",
            remedy="check the relation's name and columns, and that the user may read it",
        ) from error


def _connect(psycopg: Any, relation: Relation, name: str) -> Any:
    """A connection; a server that does not answer is asked again, less and less often."""
    patience, pause = time.monotonic() + relation.retry_seconds, 0.2
    while True:
        try:
            return psycopg.connect(relation.dsn, connect_timeout=10)
        except psycopg.OperationalError as error:
            stop_if_refused(error, f"table {name}")
            left = patience - time.monotonic()
            if left <= 0:
                raise SetupError(
                    f"table {name}: PostgreSQL does not answer: {reason(error)}",
                    remedy="check the address and that the server runs, then run the query again",
                ) from error
            time.sleep(min(pause, left))
            pause = min(2 * pause, _LONGEST_WAIT)


def _frame(table: TableDef, rows: list[tuple[Any, ...]]) -> pl.DataFrame:
    columns = list(zip(*rows, strict=True)) or [()] * len(table.columns)
    return pl.DataFrame(
        [_series(table.name, column, values) for column, values in zip(table.columns, columns, strict=True)]
    )


def _series(table: str, column: Column, values: tuple[Any, ...]) -> pl.Series:
    try:
        array = pa.array(values, column.type)
        if (
            pa.types.is_integer(column.type)
            and not pa.types.is_integer(pa.infer_type(values))
            and array.null_count < len(array)
        ):
            # Arrow would cut fractions off.
            raise TypeError("it is a number that may have a fraction")
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        # A number of any precision may become a floating one.
        if not pa.types.is_floating(column.type):
            raise _unfit(table, column, error) from error
        try:
            array = pa.array([None if each is None else float(each) for each in values], column.type)
        except (TypeError, ValueError) as again:
            raise _unfit(table, column, again) from again
    return series_of(array, column)


def _unfit(table: str, column: Column, error: Exception) -> DataError:
    return DataError(
        f"table {table}, column {column.name}: a value is not of type {spark_name(column.type)}: "
        f"{reason(error)}",
        remedy="declare the column as it is in PostgreSQL, or read a view that casts it",
    )
