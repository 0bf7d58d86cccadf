"""Declared streams and tables with the rows that a case gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

import pyarrow as pa
from sqlglot import exp
from tests.oracle.contents import Stream
from tests.oracle.values import Row, canonical_row

from headgate.language import nodes

Rows: TypeAlias = pa.Table | Sequence[Mapping[str, Any]]
TimedRow: TypeAlias = tuple[int, str, Mapping[str, Any]]
"""An instant, '+' or '-', and the row that a table gains or loses at it."""

BEGINNING, NEVER = -(2**63), 2**63 - 1
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_TYPES: dict[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "TEXT": pa.string(),
    "VARCHAR": pa.string(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMPTZ": pa.timestamp("us"),
    "TIMESTAMPNTZ": pa.timestamp("us"),
}


@dataclass(frozen=True)
class StreamInput:
    """A stream's rows in processing order, and those that came too late."""

    stream: Stream
    late: pa.Table


@dataclass(frozen=True)
class TableInput:
    """Versions of a table's rows and when each was there: from `born` until just before `dies`."""

    rows: pa.Table
    born: tuple[int, ...]
    dies: tuple[int, ...]
    retroactive: bool
    changing: bool = False

    def at(self, instant: int) -> list[int]:
        return [
            i
            for i, (born, dies) in enumerate(zip(self.born, self.dies, strict=True))
            if born <= instant < dies
        ]

    def changes(self) -> set[int]:
        return {at for at in (*self.born, *self.dies) if at not in (BEGINNING, NEVER)}


def declared_schema(declaration: exp.Expr) -> pa.Schema:
    """Column names and types of a CREATE STREAM or CREATE TABLE; instants without time zone, in UTC."""
    columns = [each for each in declaration.args["columns"] if isinstance(each, exp.ColumnDef)]
    return pa.schema([(column.name, _arrow_type(column.args["kind"])) for column in columns])


def _arrow_type(kind: exp.DataType) -> pa.DataType:
    name = kind.this.value
    if name == "DECIMAL":
        precision, scale = (
            ([int(each.this.name) for each in kind.expressions] + [10, 0])[:2]
            if kind.expressions
            else (10, 0)
        )
        return pa.decimal128(precision, scale)
    return _TYPES[name]


def read_rows(schema: pa.Schema, rows: Rows) -> pa.Table:
    """Rows as an Arrow table of the declared types; a whole number in a TIMESTAMP column is microseconds."""
    if not isinstance(rows, pa.Table):
        unknown = {name for row in rows for name in row} - set(schema.names)
        if unknown:
            raise ValueError(f"no such columns: {sorted(unknown)}")
        columns = [[_instant(row.get(f.name), f.type) for row in rows] for f in schema]
        return pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)
    return rows.select(schema.names).cast(schema)


def _instant(value: Any, dtype: pa.DataType) -> Any:
    if not pa.types.is_timestamp(dtype) or value is None:
        return value
    if isinstance(value, int):
        return value
    if value.tzinfo is None:
        return value
    return (value - EPOCH) // timedelta(microseconds=1)


def read_stream(declaration: nodes.CreateStream, rows: Rows) -> StreamInput:
    """Sorts a stream's rows by time, then arrival, and sets aside those older than its clock when they arrive."""
    table = read_rows(declared_schema(declaration), rows)
    clause = next(
        (c for c in declaration.args.get("clauses") or () if isinstance(c, nodes.TimestampBy)), None
    )
    if clause is None:
        raise ValueError(f"stream {declaration.name} has no TIMESTAMP BY")
    slack = clause.args.get("slack") or 0
    times: list[int] = table.column(clause.this.name).cast(pa.int64()).to_pylist()
    timely: list[int] = []
    late: list[int] = []
    newest = BEGINNING
    for position, ts in enumerate(times):
        newest = max(newest, ts)
        (late if ts < newest - slack else timely).append(position)
    timely.sort(key=lambda position: times[position])
    stream = Stream(_pick(table, timely), tuple(times[position] for position in timely))
    return StreamInput(stream, _pick(table, late))


def _pick(table: pa.Table, positions: list[int]) -> pa.Table:
    return table.take(pa.array(positions, pa.int64()))


def read_table(declaration: nodes.CreateTable, rows: Rows | Sequence[TimedRow]) -> TableInput:
    """A table's versions, from rows that were always there or from a list of timed changes."""
    schema = declared_schema(declaration)
    retroactive = not declaration.args.get("non_retroactive")
    if not isinstance(rows, pa.Table) and any(isinstance(row, tuple) for row in rows):
        return _versions(schema, [row for row in rows if isinstance(row, tuple)], retroactive)
    table = read_rows(schema, rows)
    count = table.num_rows
    # A table without changes shows the same to all, retroactive or not.
    return TableInput(table, (BEGINNING,) * count, (NEVER,) * count, retroactive=True)


def _versions(schema: pa.Schema, changes: Sequence[TimedRow], retroactive: bool) -> TableInput:
    gained: list[Mapping[str, Any]] = []
    born: list[int] = []
    dies: list[int] = []
    for at, op, row in sorted(changes, key=lambda change: change[0]):
        if op == "+":
            gained.append(row)
            born.append(at)
            dies.append(NEVER)
        else:
            wanted = _declared(schema, row)
            here = [
                i for i, old in enumerate(gained) if dies[i] == NEVER and _declared(schema, old) == wanted
            ]
            if not here:
                raise ValueError(f"nothing to delete at {at}: {row}")
            dies[here[0]] = at
    return TableInput(read_rows(schema, gained), tuple(born), tuple(dies), retroactive, changing=True)


def _declared(schema: pa.Schema, row: Mapping[str, Any]) -> Row:
    return canonical_row(row.get(name) for name in schema.names)
