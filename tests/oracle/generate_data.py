"""Random declarations, streams and batches: tiny domains so that values meet, nulls, ties, gaps, bursts and disorder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from headgate.model.time import SECOND

Draw = Any
"""What `st.composite` hands to its function."""

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
    STRING: ("a", "b", "Ab", "a", "b", "", None),
    DOUBLE: (0.25, 1.0, 0.0, 0.5, -0.75, 1.5, 2.0, 0.25, 1.0, 0.5, float("nan"), None),
    BOOLEAN: (True, False, True, False, None),
    DATE: (date(2024, 1, 31), date(2024, 2, 1), date(2023, 12, 31), None),
    DECIMAL: (Decimal("1.25"), Decimal("0.00"), Decimal("1.50"), Decimal("-2.00"), None),
}

SLACKS = (0, 0, 2 * SECOND, 5 * SECOND)
GAPS = tuple(SECOND * gap for gap in (1, 0, 1, 2, 0, 1, 3, 1, 5, 0, 12))
JITTERS = (0, 0, 0, 0, 0, 0, 500_000, 1)
STARTS = tuple(SECOND * at for at in (0, 1, 0, 2, 4))
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


def draw_declared(draw: Draw) -> tuple[Declared, ...]:
    """Two or three streams `s`, `t`, `u`, each with a time, a key and more columns; perhaps a table `ref`."""
    names = draw(st.sampled_from((("s", "t"), ("s", "t", "u"))))
    found = []
    for name in names:
        more = draw(st.lists(st.sampled_from(_OPTIONAL), min_size=1, max_size=3, unique=True))
        columns = (Column("ts", TIMESTAMP), Column("k", BIGINT), *more)
        found.append(Declared(name, columns, draw(st.sampled_from(SLACKS))))
    if draw(st.sampled_from((False, False, True))):
        columns = (
            Column("k", BIGINT),
            *draw(st.lists(st.sampled_from(_OPTIONAL), min_size=1, max_size=2, unique=True)),
        )
        found.append(Declared("ref", columns, None, draw(st.booleans())))
    return tuple(found)


def draw_rows(draw: Draw, declared: Declared, base: int) -> pa.Table:
    """Rows in order of arrival; each arrives before its stream's clock has passed it."""
    values = [
        st.sampled_from(DOMAINS[column.type]) for column in declared.columns if column.type != TIMESTAMP
    ]
    if declared.slack is None:
        rows = draw(st.lists(st.tuples(*values), max_size=4))
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(values)
        return pa.table(
            [pa.array(c, f.type) for c, f in zip(columns, declared.schema(), strict=True)], declared.schema()
        )
    slack = declared.slack
    delays = st.sampled_from((0, 0, slack, slack // 2)) if slack else st.just(0)
    rest = [st.sampled_from(GAPS), st.sampled_from(JITTERS), delays]
    fewest = draw(st.sampled_from((4, 4, 4, 4, 4, 1, 0)))
    rows = draw(st.lists(st.tuples(*rest, *values), min_size=fewest, max_size=12))
    at = base + draw(st.sampled_from(STARTS))
    arrivals = []
    for gap, jitter, delay, *row in rows:
        at += gap + jitter
        arrivals.append((at + delay, (at, *row)))
    # A row waits at most the slack for its arrival, so none that comes before it is newer by more than that.
    arrivals.sort(key=lambda arrival: arrival[0])
    columns = list(zip(*(row for _, row in arrivals), strict=True)) or [()] * len(declared.columns)
    return pa.table(
        [pa.array(c, f.type) for c, f in zip(columns, declared.schema(), strict=True)], declared.schema()
    )


def draw_batches(draw: Draw, sizes: Mapping[str, int]) -> tuple[dict[str, int], ...]:
    """How many rows of each stream arrive in each batch: all at once, one by one, or anything."""
    longest = max(sizes.values(), default=0)
    match draw(st.sampled_from(("once", "cuts", "cuts", "singly"))):
        case "once":
            return (dict(sizes),)
        case "singly":
            return tuple(
                {name: int(turn < size) for name, size in sizes.items()} for turn in range(max(1, longest))
            )
    count = draw(st.integers(2, 5))
    cuts = {}
    for name, size in sizes.items():
        inner = draw(st.lists(st.integers(0, size), min_size=count - 1, max_size=count - 1))
        cuts[name] = [0, *sorted(inner), size]
    return tuple({name: cut[turn + 1] - cut[turn] for name, cut in cuts.items()} for turn in range(count))


def slices(
    tables: Mapping[str, pa.Table], batches: tuple[dict[str, int], ...]
) -> Iterator[dict[str, pa.Table]]:
    """The batches themselves: for each stream its next rows."""
    done = dict.fromkeys(tables, 0)
    for batch in batches:
        yield {name: tables[name].slice(done[name], size) for name, size in batch.items()}
        done = {name: done[name] + batch.get(name, 0) for name in done}
