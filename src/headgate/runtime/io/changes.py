"""Changes of tables: a table whose rows come and go, told by a stream of insertions and deletions.

```
CREATE TABLE prices (item STRING, price DOUBLE) USING json OPTIONS (path 'prices', changeTime 'at', changeOp 'op')

{"at": "2026-01-01T00:00:00Z", "op": "+", "item": "anvil", "price": 3.0}
{"at": "2026-01-01T00:05:00Z", "op": "-", "item": "anvil", "price": 3.0}     an update is a deletion
{"at": "2026-01-01T00:05:00Z", "op": "+", "item": "anvil", "price": 3.5}     and an insertion at one instant
```
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from headgate.model.batch import BORN, SIGN
from headgate.model.errors import DataError, DeclarationError
from headgate.model.schema import Column
from headgate.model.time import BEGINNING
from headgate.model.types import STRING, TIMESTAMP, is_timestamp
from headgate.plan.catalog import CHANGE_OPTIONS, Source, StreamDef, TableDef
from headgate.runtime.io.rejects import shown

_TIME, _OP = CHANGE_OPTIONS
_FIRST = BEGINNING + 1
"""When the rows of a static table came."""
_INSERTS, _DELETES = ("+", "insert"), ("-", "delete")


@dataclass(frozen=True)
class ChangeStream:
    """The changes of a table as a stream: the table's columns, the instant of a change and what it does."""

    stream: StreamDef
    op: str


def change_stream(table: TableDef) -> ChangeStream | None:
    """The change stream that a table's declaration means; None for a table that stays as it is."""
    options = {} if table.source is None else {key.casefold(): value for key, value in table.source.options}
    time, op = options.get(_TIME), options.get(_OP)
    if time is None and op is None:
        return None
    if time is None or op is None:
        raise DeclarationError(
            f"{table.name}: changeTime and changeOp belong together",
            remedy="name the column with the instant of a change, and the one with + or -",
        )
    assert table.source is not None
    rest = tuple(pair for pair in table.source.options if pair[0].casefold() not in (_TIME, _OP))
    return changes_of(table, time, op, Source(table.source.format, rest))


def changes_of(table: TableDef, time: str, op: str, source: Source | None = None) -> ChangeStream:
    """The changes of a table that have their instant and kind in these columns."""
    columns = {each.name.casefold(): each for each in table.columns}
    if op.casefold() in columns or op.casefold() == time.casefold():
        raise DeclarationError(
            f"{table.name}: {op} is a column of the table and cannot say what a change does",
            remedy="give the column with + or - a name of its own",
        )
    instant = columns.get(time.casefold(), Column(time, TIMESTAMP))
    if not is_timestamp(instant.type):
        raise DeclarationError(
            f"{table.name}: changeTime {time} is not a TIMESTAMP", remedy="declare it as TIMESTAMP"
        )
    added = () if time.casefold() in columns else (instant,)
    stream = StreamDef(
        table.name, (*table.columns, *added, Column(op, STRING)), time=instant.name, source=source
    )
    return ChangeStream(stream, op)


def signed(rows: pl.DataFrame, op: str, name: str) -> pl.DataFrame:
    """Changes with `_sign`, 1 for an insertion and -1 for a deletion; DataError if one of them is neither."""
    kind = pl.col(op).str.to_lowercase()
    sign = pl.when(kind.is_in(_INSERTS)).then(1).when(kind.is_in(_DELETES)).then(-1)
    changes = rows.with_columns(sign.cast(pl.Int8).alias(SIGN))
    wrong = changes.filter(pl.col(SIGN).is_null())
    if wrong.height:
        found = wrong[op][0]
        raise DataError(
            f"table {name}: a change is {'NULL' if found is None else shown(str(found))} in column {op}",
            remedy="write + or insert for a row that comes, - or delete for one that goes",
        )
    return changes


def dated(rows: pl.DataFrame, changes: ChangeStream) -> pl.DataFrame:
    """All changes of a table in the order of their instants, with `_born` and `_sign`."""
    time = changes.stream.time
    assert time is not None
    born = rows.with_columns(pl.col(time).dt.epoch("us").alias(BORN))
    return signed(born, changes.op, changes.stream.name).drop(changes.op).sort(BORN, maintain_order=True)


def require_static(table: TableDef, rows: pl.DataFrame | None) -> None:
    """Raises DeclarationError if a table that queries take as static has changes; None: a stream of them."""
    if table.changes or (
        rows is not None and rows.filter((pl.col(BORN) > _FIRST) | (pl.col(SIGN) < 0)).is_empty()
    ):
        return
    raise DeclarationError(
        f"table {table.name} changes, but the query was planned for one that does not",
        remedy=f"declare {table.name} with changeTime and changeOp, or give its changes before you ask for the query",
    )


def static_table(rows: pl.DataFrame) -> pl.DataFrame:
    """A table that has been as it is since before all time."""
    first = pl.lit(_FIRST, dtype=pl.Int64).alias(BORN)
    return rows.with_columns(first, pl.lit(1, dtype=pl.Int8).alias(SIGN))
