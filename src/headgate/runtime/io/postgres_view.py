"""A materialized view in PostgreSQL: the current answer of a query, changed once for each micro-batch.

```
micro-batch 7   +  (anvil, 3)      net change     (anvil, 2)  -1      one transaction: the change is applied,
                -  (anvil, 2)                     (anvil, 3)  +1      and "7 is done" is noted beside it
```

The table has the columns of the select list, `_copies` (how often the row is in the answer) and `_key`, a digest of
the row by which it is found. A micro-batch that comes again after its transaction was committed finds the note and
changes nothing; one that failed half-way left nothing behind.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa

from headgate.kernels.keys import with_plain_zeros
from headgate.model.errors import DataError, InputError, SetupError, UnsupportedError
from headgate.runtime.libpq import HOW_TO_WRITE, is_readable, psycopg_for, reason, stop_if_refused
from headgate.runtime.output import OP, TIME

if TYPE_CHECKING:
    import psycopg
    from psycopg.sql import Composed, Identifier

COPIES, KEY = "_copies", "_key"
LEDGER = "headgate_views"
_CHANGES = "headgate_changes"
NEEDER = "a view in PostgreSQL"
# PostgreSQL cuts longer names, so that different ones would mean the same.
_LONGEST_NAME = 63
# Any number will do, as long as all that make tables of views take the same.
_MAKING_TABLES = 0x4845414447415445

_TYPES: dict[pa.DataType, str] = {
    pa.bool_(): "boolean",
    pa.int8(): "smallint",
    pa.int16(): "smallint",
    pa.int32(): "integer",
    pa.int64(): "bigint",
    pa.float32(): "real",
    pa.float64(): "double precision",
    pa.string(): "text",
    pa.large_string(): "text",
    pa.date32(): "date",
}
# So that the text of a row, and with it its digest, is the same in every session.
_SETTINGS = (
    "SET LOCAL TimeZone = 'UTC'",
    "SET LOCAL DateStyle = 'ISO, YMD'",
    "SET LOCAL IntervalStyle = 'postgres'",
    "SET LOCAL extra_float_digits = 1",
    "SET LOCAL bytea_output = 'hex'",
)


@dataclass
class PostgresView:
    """A sink that keeps the answer of a query in one table of a database.

    `dsn` is libpq's connection string, `table` the name of the table, made if it is not there, `schema` where. A
    server that does not answer is asked again for `retry_seconds`. Hand it to `Query.start` as the sink.
    """

    dsn: str = field(repr=False)
    table: str
    schema: str = "public"
    retry_seconds: float = 120.0
    on_wait: Callable[[str], None] = field(default=lambda why: None, repr=False)

    def __post_init__(self) -> None:
        _require_name("the table of a view", self.table)
        _require_name("the schema of a view", self.schema)
        if not is_readable(self.dsn, psycopg_for(NEEDER)):
            raise InputError(
                f"the address of PostgreSQL for the view {self.table} cannot be read", remedy=HOW_TO_WRITE
            )

    def __call__(self, rows: Any, batch: int) -> None:
        """Applies a micro-batch of Spark's."""
        run = rows.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
        self.apply(rows.toArrow(), batch, run=run or "")

    def apply(self, changes: pa.Table, batch: int, *, run: str = "") -> bool:
        """Applies the change log of a micro-batch in one transaction; False if that was done before.

        `run` tells apart runs that count their micro-batches anew: Spark's query id, which a checkpoint keeps.
        """
        if OP not in changes.column_names:
            raise InputError(
                "a materialized view needs a query whose answer changes, not a stream of its births or deaths",
                remedy="leave out ISTREAM, DSTREAM or RSTREAM in the query's select list",
            )
        columns = {
            each.name: _sql_type(each.name, each.type)
            for each in changes.schema
            if each.name not in (OP, TIME)
        }
        net = _net(changes, list(columns))
        psycopg = psycopg_for(NEEDER)
        patience = time.monotonic() + self.retry_seconds
        while True:
            try:
                with psycopg.connect(self.dsn, connect_timeout=10) as connection:
                    return self._apply(connection, columns, net, batch, run)
            except psycopg.OperationalError as error:
                stop_if_refused(error, f"view {self.table}")
                why = reason(error)
                if time.monotonic() > patience:
                    raise SetupError(
                        f"PostgreSQL does not answer: {why}",
                        remedy="start it and run the query again with its checkpoint: nothing is lost",
                    ) from error
                self.on_wait(why)
                time.sleep(min(2.0, max(0.1, patience - time.monotonic())))
            except psycopg.Error as error:
                raise SetupError(
                    f"PostgreSQL refuses to keep the view {self.table}: {reason(error)}",
                    remedy="see that the table belongs to this query and that the user may change it",
                ) from error

    def _apply(
        self,
        connection: psycopg.Connection[Any],
        columns: dict[str, str],
        net: pl.DataFrame,
        batch: int,
        run: str,
    ) -> bool:
        """Within a transaction, which `connection` commits when its block ends well."""
        for setting in _SETTINGS:
            connection.execute(setting)
        was_there = self._prepare(connection, columns)
        name = f"{self.schema}.{self.table}"
        # A row that is there can be locked; of runs that start together, one has put it there.
        begin = f"INSERT INTO {LEDGER} (view, run, batch) VALUES (%s, %s, -1) ON CONFLICT (view) DO NOTHING"
        connection.execute(begin, [name, run])
        found = f"SELECT batch, run FROM {LEDGER} WHERE view = %s FOR UPDATE"
        done = connection.execute(found, [name]).fetchone()
        if done is None or done[1] != run:
            raise InputError(
                f"the view {name} belongs to a run with another checkpoint",
                remedy=f"go on with that checkpoint, or choose another table, or drop it: DROP TABLE {name}; "
                f"DELETE FROM {LEDGER} WHERE view = '{name}'",
            )
        if done[0] >= 0 and not was_there:
            raise InputError(
                f"the table of the view {name} is gone, and with it what this run had put there",
                remedy=f"bring it back, or start anew: DELETE FROM {LEDGER} WHERE view = '{name}', "
                "and a new checkpoint",
            )
        if done[0] >= batch:
            return False
        if net.height:
            self._copy(connection, columns, net)
            missing = self._merge(connection, columns)
            if missing:
                raise DataError(
                    f"{missing} rows leave the view {name} that are not in it",
                    remedy="the table was changed by somebody else; drop it and start with a new checkpoint",
                )
        connection.execute(f"UPDATE {LEDGER} SET batch = %s WHERE view = %s", [batch, name])
        return True

    @property
    def _place(self) -> Identifier:
        from psycopg import sql

        return sql.Identifier(self.schema, self.table)

    def _prepare(self, connection: psycopg.Connection[Any], columns: dict[str, str]) -> bool:
        """Makes the tables that are not there; one transaction at a time does that, until it ends.

        Whether the view's own table was there.
        """
        from psycopg import sql

        there = connection.execute(
            "SELECT relname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace "
            "WHERE (nspname, relname) IN ((current_schema(), %s), (%s, %s))",
            [LEDGER, self.schema, self.table],
        ).fetchall()
        if len(there) == 2:
            return True
        # IF NOT EXISTS alone fails where two look at the same moment.
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [_MAKING_TABLES])
        connection.execute(
            f"CREATE TABLE IF NOT EXISTS {LEDGER} "
            "(view text PRIMARY KEY, run text NOT NULL, batch bigint NOT NULL)"
        )
        declared = [sql.SQL("{} {}").format(sql.Identifier(n), sql.SQL(t)) for n, t in columns.items()]
        connection.execute(
            sql.SQL("CREATE TABLE IF NOT EXISTS {} ({}, {} bigint NOT NULL, {} bytea PRIMARY KEY)").format(
                self._place, sql.SQL(", ").join(declared), sql.Identifier(COPIES), sql.Identifier(KEY)
            )
        )
        return (self.table,) in there

    def _copy(self, connection: psycopg.Connection[Any], columns: dict[str, str], net: pl.DataFrame) -> None:
        """Brings the changes into a table of this session."""
        from psycopg import sql

        names = _names([*columns, COPIES])
        connection.execute(f"DROP TABLE IF EXISTS pg_temp.{_CHANGES}")
        declared = [
            sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(kind))
            for name, kind in {**columns, COPIES: "bigint"}.items()
        ]
        connection.execute(
            sql.SQL("CREATE TEMPORARY TABLE {} ({}) ON COMMIT DROP").format(
                sql.Identifier(_CHANGES), sql.SQL(", ").join(declared)
            )
        )
        command = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv, NULL '')").format(
            sql.Identifier("pg_temp", _CHANGES), names
        )
        with connection.cursor() as cursor, cursor.copy(command) as copy:
            for piece in net.iter_slices(100_000):
                copy.write(_as_csv(piece))

    def _merge(self, connection: psycopg.Connection[Any], columns: dict[str, str]) -> int:
        """Adds the changes to the copies of each row; rows without copies leave.

        Gives how many rows now have fewer copies than none. Looks at the changed rows only.
        """
        from psycopg import sql

        every = _names(list(columns))
        digest = sql.SQL("sha256(convert_to(ROW({})::text, 'UTF8'))").format(every)
        parts = {
            "view": self._place,
            "columns": every,
            "copies": sql.Identifier(COPIES),
            "key": sql.Identifier(KEY),
            "changes": sql.Identifier("pg_temp", _CHANGES),
            "digest": digest,
        }
        connection.execute(
            sql.SQL(
                "INSERT INTO {view} AS kept ({columns}, {copies}, {key}) SELECT {columns}, {copies}, {digest} "
                "FROM {changes} ON CONFLICT ({key}) DO UPDATE SET {copies} = kept.{copies} + excluded.{copies}"
            ).format(**parts)
        )
        connection.execute(
            sql.SQL(
                "DELETE FROM {view} WHERE {copies} = 0 AND {key} IN (SELECT {digest} FROM {changes})"
            ).format(**parts)
        )
        wrong = sql.SQL(
            "SELECT count(*) FROM {view} WHERE {copies} < 0 AND {key} IN (SELECT {digest} FROM {changes})"
        )
        found = connection.execute(wrong.format(**parts)).fetchone()
        return int(found[0]) if found else 0


def _names(names: list[str]) -> Composed:
    from psycopg import sql

    return sql.SQL(", ").join(sql.Identifier(name) for name in names)


def _require_name(what: str, name: str) -> None:
    """Raises InputError if PostgreSQL cannot call something so."""
    if not name or "\0" in name:
        raise InputError(f"{what} has {'no name' if not name else 'a name with a NUL character'}")
    if len(name.encode()) > _LONGEST_NAME:
        raise InputError(
            f"{what} is called {name}, which is longer than {_LONGEST_NAME} bytes: PostgreSQL would cut it",
            remedy="give it a shorter name",
        )


def _sql_type(name: str, dtype: pa.DataType) -> str:
    _require_name("a column of a view", name)
    if name in (COPIES, KEY):
        raise InputError(f"a view has a column {name} of its own", remedy=f"give {name} another name with AS")
    if pa.types.is_timestamp(dtype):
        return "timestamp" if dtype.tz is None else "timestamptz"
    if pa.types.is_decimal(dtype):
        return f"numeric({dtype.precision}, {dtype.scale})"
    if dtype in _TYPES:
        return _TYPES[dtype]
    raise UnsupportedError(
        f"column {name} of type {dtype} cannot be kept in PostgreSQL",
        remedy="leave it out, or CAST it to STRING",
    )


def _net(changes: pa.Table, columns: list[str]) -> pl.DataFrame:
    """Each row that changes, once, and by how many copies. -0.0 is 0.0."""
    frame = pl.DataFrame(pl.from_arrow(changes.drop_columns([TIME])))
    frame = frame.with_columns(with_plain_zeros(name, frame.schema[name]) for name in columns)
    copies = pl.when(pl.col(OP) == "+").then(1).otherwise(-1).sum().cast(pl.Int64).alias(COPIES)
    return frame.group_by(columns).agg(copies).filter(pl.col(COPIES) != 0)


def _as_csv(rows: pl.DataFrame) -> bytes:
    """Rows as PostgreSQL's COPY reads them: text in quotes, so that an empty one is not NULL."""
    texts = [name for name, dtype in rows.schema.items() if dtype == pl.String]
    if any(rows[name].str.contains("\0", literal=True).any() for name in texts):
        raise DataError(
            "a text holds a NUL character, which PostgreSQL cannot keep", remedy="replace it in the query"
        )
    zoned = [
        name for name, dtype in rows.schema.items() if isinstance(dtype, pl.Datetime) and dtype.time_zone
    ]
    plain = [
        name for name, dtype in rows.schema.items() if isinstance(dtype, pl.Datetime) and not dtype.time_zone
    ]
    written = rows.with_columns(
        pl.col(zoned).dt.convert_time_zone("UTC").dt.strftime("%Y-%m-%dT%H:%M:%S%.6f+00"),
        pl.col(plain).dt.strftime("%Y-%m-%dT%H:%M:%S%.6f"),
    )
    text = written.write_csv(include_header=False, quote_style="non_numeric", null_value="")
    return text.encode()
