"""Case files: a query, timed input, and what must come out, in YAML that reads as an example.

Times are seconds since the epoch, as numbers; TIMESTAMP columns of inputs too. `expected` lists, for each query,
`[time, op, values…]` with op `'+'` or `'-'` for a relation and null for a stream, in any order.

    name: window-range
    about: A row is in [RANGE d] from its own instant until just before d later.
    text: |
      CREATE STREAM s (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts;
      CREATE QUERY q AS SELECT k FROM s [RANGE 5 SECONDS];
    inputs:
      s: [{ts: 1, k: 10}]
    expected:
      q: [[1, '+', 10], [6, '-', 10]]
    late: {s: 0}

`late` counts the rows of a stream that come too late, `broken` those that break a promise that each query relies on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml
from tests.oracle.inputs import TimedRow, declared_schema
from tests.oracle.values import Change, canonical_row

from headgate.language import nodes
from headgate.language.parse import parse
from headgate.model.source import SourceText

CASES = Path(__file__).parents[1] / "cases"
_KEYS = {"name", "about", "text", "inputs", "tables", "expected", "late", "broken"}


@dataclass(frozen=True)
class Case:
    """One case: streams' rows in order of arrival, tables as rows or as timed changes, output by query."""

    name: str
    about: str
    text: str
    inputs: Mapping[str, pa.Table]
    tables: Mapping[str, pa.Table | Sequence[TimedRow]]
    expected: Mapping[str, tuple[Change, ...]]
    late: Mapping[str, int] = field(default_factory=dict)
    broken: Mapping[str, int] = field(default_factory=dict)
    """Rows that are late because they break a promise; the oracle takes them, so they must change no answer."""

    @property
    def aside(self) -> dict[str, int]:
        """The rows of each stream that a run sets aside, for whatever reason."""
        names = [*self.late, *(name for name in self.broken if name not in self.late)]
        return {name: self.late.get(name, 0) + self.broken.get(name, 0) for name in names}

    def __str__(self) -> str:
        return self.name


def all_cases(folder: Path = CASES) -> tuple[Case, ...]:
    """Every case of a folder, by name."""
    return tuple(read_case(path) for path in sorted(folder.glob("*.yaml")))


def read_case(path: Path) -> Case:
    """The case in a file; ValueError if the file is not one."""
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    if not isinstance(found, dict) or not found.keys() <= _KEYS or found.get("name") != path.stem:
        raise ValueError(f"{path.name} is not a case of that name with {sorted(_KEYS)}")
    schemas = _schemas(found["text"])
    inputs = {name: _table(schemas[name], rows) for name, rows in found["inputs"].items()}
    tables = {name: _table_input(schemas[name], rows) for name, rows in found.get("tables", {}).items()}
    expected = {
        query: tuple(Change(microseconds(time), op, canonical_row(row)) for time, op, *row in lines)
        for query, lines in found["expected"].items()
    }
    late, broken = found.get("late", {}), found.get("broken", {})
    return Case(found["name"], found["about"], found["text"], inputs, tables, expected, late, broken)


def microseconds(seconds: float) -> int:
    """Seconds as written in a case file, in whole microseconds."""
    whole = Decimal(str(seconds)) * 1_000_000
    if whole != int(whole):
        raise ValueError(f"{seconds} seconds are not whole microseconds")
    return int(whole)


def _schemas(text: str) -> dict[str, pa.Schema]:
    """Declared columns by stream or table; instants are in UTC."""
    trees = [statement.tree for statement in parse(SourceText("case", text))]
    declared = [tree for tree in trees if isinstance(tree, (nodes.CreateStream, nodes.CreateTable))]
    return {tree.name: pa.schema([_zoned(each) for each in declared_schema(tree)]) for tree in declared}


def _zoned(column: pa.Field) -> pa.Field:
    zoned = pa.timestamp("us", tz="UTC")
    return column.with_type(zoned) if pa.types.is_timestamp(column.type) else column


def _table(schema: pa.Schema, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    unknown = {name for row in rows for name in row} - set(schema.names)
    if unknown:
        raise ValueError(f"no such columns: {sorted(unknown)}")
    columns = [
        pa.array([_value(row.get(each.name), each.type) for row in rows], each.type) for each in schema
    ]
    return pa.table(columns, schema=schema)


def _table_input(schema: pa.Schema, rows: Sequence[Any]) -> pa.Table | Sequence[TimedRow]:
    if not all(isinstance(row, list) for row in rows):
        return _table(schema, rows)
    types = dict(zip(schema.names, schema.types, strict=True))
    return [
        (microseconds(time), op, {name: _value(value, types[name]) for name, value in row.items()})
        for time, op, row in rows
    ]


def _value(value: Any, dtype: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_timestamp(dtype):
        return microseconds(value)
    return Decimal(str(value)) if pa.types.is_decimal(dtype) else value
