"""Random declarations, streams and batches.

Domains are tiny so that values meet; there are nulls, ties, gaps, bursts, duplicates and disorder within the slack.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
from tests.oracle.choices import Choices
from tests.oracle.inputs import TimedRow

from headgate.model.time import SECOND

TIMESTAMP, BIGINT, INT, STRING, DOUBLE, BOOLEAN, DATE, DECIMAL = (
    *("TIMESTAMP", "BIGINT", "INT", "STRING", "DOUBLE", "BOOLEAN", "DATE"),
    "DECIMAL(9, 2)",
)

ARROW: Mapping[str, pa.DataType] = {
    TIMESTAMP: pa.timestamp("us", tz="UTC"),
    BIGINT: pa.int64(),
    INT: pa.int32(),
    STRING: pa.string(),
    DOUBLE: pa.float64(),
    BOOLEAN: pa.bool_(),
    DATE: pa.date32(),
    DECIMAL: pa.decimal128(9, 2),
}

# Doubles are multiples of a quarter, so that sums do not depend on their order.
DOMAINS: Mapping[str, tuple[Any, ...]] = {
    BIGINT: (1, 0, 2, 1, 0, 2, 1, 0, None),
    INT: (1, 0, 2, 3, -2, 1, 2, 4, None),
    STRING: ("a", "b", "Ab", "a", "b", "", "a_", None),
    DOUBLE: (0.25, 1.0, 0.0, 0.5, -0.75, 1.5, 2.0, 0.25, 1.0, 0.5, float("nan"), None),
    BOOLEAN: (True, False, True, False, None),
    DATE: (date(2024, 1, 31), date(2024, 2, 1), date(2023, 12, 31), None),
    DECIMAL: (Decimal("1.25"), Decimal("0.00"), Decimal("1.50"), Decimal("-2.00"), None),
}

SLACKS = (0, 0, 2 * SECOND, 5 * SECOND)
GAPS = tuple(SECOND * gap for gap in (1, 0, 1, 2, 0, 1, 3, 1, 0, 1, 2, 5, 0, 12))
JITTERS = (0, 0, 0, 0, 0, 0, 500_000, 1)
STARTS = tuple(SECOND * at for at in (0, 1, 0, 2))
COUNTS = (1, 3, 5, 6, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 0)
# Around the epoch, before it, and in our days.
BASES = (0, 0, 0, 0, -7 * SECOND, 1_704_067_203 * SECOND)


@dataclass(frozen=True)
class Column:
    """A column's name and its type as CQL spells it."""

    name: str
    type: str


@dataclass(frozen=True)
class Declared:
    """A stream (with a slack) or a table (without)."""

    name: str
    columns: tuple[Column, ...]
    slack: int | None
    non_retroactive: bool = False
    changing: bool = False
    """A table whose rows come and go."""

    def declaration(self) -> str:
        columns = ", ".join(f"{column.name} {column.type}" for column in self.columns)
        if self.slack is None:
            return f"CREATE TABLE {self.name} ({columns})" + " NON RETROACTIVE" * self.non_retroactive + ";\n"
        within = f" WITHIN INTERVAL {self.slack // SECOND} SECONDS" if self.slack else ""
        return f"CREATE STREAM {self.name} ({columns}) TIMESTAMP BY ts{within};\n"

    def schema(self) -> pa.Schema:
        return pa.schema([(column.name, ARROW[column.type]) for column in self.columns])


_OPTIONAL = (
    Column("a", INT),
    Column("x", DOUBLE),
    Column("n", STRING),
    Column("f", BOOLEAN),
    Column("d", DATE),
    Column("m", DECIMAL),
)


def write_declared(choices: Choices) -> tuple[Declared, ...]:
    """Two or three streams `s`, `t`, `u`, each with a time, a key and more columns; perhaps a table `ref`."""
    found = []
    for name in choices.choose(("st", "stu")):
        columns = (Column("ts", TIMESTAMP), Column("k", BIGINT), *choices.subset(_OPTIONAL, 1, 3))
        found.append(Declared(name, columns, choices.choose(SLACKS)))
    if choices.chance(40):
        columns = (Column("k", BIGINT), *choices.subset(_OPTIONAL, 1, 2))
        found.append(Declared("ref", columns, None, choices.chance(40), choices.chance(60)))
    return tuple(found)


def write_rows(choices: Choices, declared: Declared, base: int) -> pa.Table:
    """Rows in order of arrival; each arrives before its stream's clock has passed it."""
    domains = [DOMAINS[column.type] for column in declared.columns if column.type != TIMESTAMP]
    if declared.slack is None:
        return _table(declared, [_row(choices, domains) for _ in range(choices.choose((3, 2, 4, 1, 0)))])
    at = base + choices.choose(STARTS)
    delays = (0, 0, declared.slack, declared.slack // 2)
    arrivals = []
    for _ in range(choices.choose(COUNTS)):
        at += choices.choose(GAPS) + choices.choose(JITTERS)
        arrivals.append((at + choices.choose(delays), (at, *_row(choices, domains))))
    # A row waits at most the slack for its arrival, so none that comes before it is newer by more than that.
    arrivals.sort(key=lambda arrival: arrival[0])
    return _table(declared, [row for _, row in arrivals])


def write_changes(choices: Choices, declared: Declared, base: int) -> list[TimedRow]:
    """A table's changes in order of time: before the streams' rows, among them, after them, or all of that.

    A row goes only if it is there; at one instant there may be several changes.
    """
    domains = [DOMAINS[column.type] for column in declared.columns]
    names = [column.name for column in declared.columns]
    at = base + SECOND * choices.choose((0, -3, 2, -1, 12))
    there: list[tuple[Any, ...]] = []
    changes: list[TimedRow] = []
    for _ in range(choices.choose((3, 5, 7, 9, 2, 4, 1))):
        if there and choices.chance(40):
            row, op = there.pop(choices.choose(range(len(there)))), "-"
        else:
            row, op = _row(choices, domains), "+"
            there.append(row)
        changes.append((at, op, dict(zip(names, row, strict=True))))
        at += choices.choose((*GAPS, 25 * SECOND)) + choices.choose(JITTERS)
    return changes


def _row(choices: Choices, domains: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    return tuple(map(choices.choose, domains))


def _table(declared: Declared, rows: list[tuple[Any, ...]]) -> pa.Table:
    schema = declared.schema()
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    return pa.table([pa.array(c, each.type) for c, each in zip(columns, schema, strict=True)], schema)


def write_batches(choices: Choices, sizes: Mapping[str, int]) -> tuple[dict[str, int], ...]:
    """How many rows of each stream arrive in each batch: all at once, one by one, or anything."""
    longest = max(sizes.values(), default=0)
    match choices.choose(("once", "cuts", "cuts", "singly")):
        case "once":
            return (dict(sizes),)
        case "singly":
            turns = range(max(1, longest))
            return tuple({name: int(turn < size) for name, size in sizes.items()} for turn in turns)
    count = choices.choose((2, 3, 4, 5))
    cuts = {}
    for name, size in sizes.items():
        cuts[name] = [0, *sorted(choices.choose(range(size + 1)) for _ in range(count - 1)), size]
    return tuple({name: cut[turn + 1] - cut[turn] for name, cut in cuts.items()} for turn in range(count))


def slices(
    tables: Mapping[str, pa.Table], batches: tuple[dict[str, int], ...]
) -> Iterator[dict[str, pa.Table]]:
    """The batches themselves: for each stream its next rows."""
    done = dict.fromkeys(tables, 0)
    for batch in batches:
        yield {name: tables[name].slice(done[name], size) for name, size in batch.items()}
        done = {name: done[name] + batch.get(name, 0) for name in done}
