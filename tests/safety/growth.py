"""Runs queries over long, unkind streams and looks at what they keep: flat once windows are full, or growing.

```
rows kept      ┌──────────┐┌──────────┐┌──────────┐┌──────────┐
               │ filling  ││  before  ││          ││  after   │      grows: after > 1.5 × before + 40
```
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from random import Random
from typing import Any, Literal

import polars as pl
import pyarrow as pa
import pytest
from tests.oracle.choices import Choices
from tests.oracle.generate import QUERY, TAPE, write_example
from tests.oracle.generate_data import Declared, write_declared
from tests.oracle.generate_queries import Author

from headgate.kernels.aggregate import coupons
from headgate.model.schema import Column
from headgate.physical.compile import compile_query
from headgate.physical.program import Program
from headgate.plan.catalog import StreamDef, TableDef
from headgate.runtime.data import frame_of
from headgate.runtime.io.changes import static_table
from headgate.runtime.local.engine import LocalRun, Stop
from headgate.session import Query

Data = Literal["few", "unique", "hot", "null", "same", "silent", "late closings"]
"""few: small domains. unique: no value twice. hot: one value in most rows, the others unique. null: every other value
is NULL, the others unique. same: one value for ever. silent: unique, and all streams but the first stop early. late
closings: every other row repeats the value of an old one, and BOOLEAN columns mark it."""

KINDS: tuple[Data, ...] = ("unique", "few", "hot", "null", "same", "silent", "late closings")

LATE = 101
"""How many rows after a value its closing comes, where closings come late."""

ROWS, STEP = 640, 64
"""Rows of each stream, one a second, and how many come at once: windows of the generator are full after 32."""
LIVES = 8
"""A run lasts at least so many times what the longest-lived rows live."""
MOST_OUT = 150_000
"""A run that says more than this is stopped: it is about what is kept, not about what is said."""
SECOND = 1_000_000


# -- queries --------------------------------------------------------------------------------------


PROMISES = (
    "",
    "KEY (k)",
    "PUNCTUATED BY (k) WHEN k % 3 = 0",
    "ORDERED BY (k) WITHIN 5 ROWS",
    "CLUSTERED BY (k) WITHIN 5 ROWS",
    "ORDERED BY (k) WITHIN 5 SECONDS",
    "CLUSTERED BY (k) WITHIN 5 SECONDS",
    "PUNCTUATED BY (k) WHEN k % 2 = 0 ORDERED BY (k) WITHIN 0 ROWS",
)
CHECKS = ("", "", "CHECK (k BETWEEN 0 AND 3)", "CHECK (k > 0)", "CHECK (k < 3)")


def windowed_text(random: Random) -> str:
    """Declarations and a query as the differential tests draw them: mostly windows, the whole language."""
    return write_example(random.randbytes(TAPE)).text


def promising_text(random: Random) -> str:
    """Declarations with promises, and a query over streams that mostly have no window."""
    choices = Choices(random.randbytes(TAPE))
    declared = write_declared(choices)
    author = Author(choices, declared, unwindowed=60, timed=30)
    match choices.weigh({"plain": 8, "set": 3, "nested": 4, "internal": 3}):
        case "plain":
            core = author.relation()
        case "set":
            core = author.set_operation()
        case "nested":
            core = author.relation()
            inner = author.derived_item(f"({core.sql()})", core.columns(), window=0)
            core = author.relation(items=[inner], lonely=True)
        case _:
            core, _ = author.internal(mark=True)
            inner = author.derived_item(f"({core.sql()})", core.columns(), window=20)
            items = [inner, author.stream_item()] if choices.chance(50) else [inner]
            core = choices.choose((author.project, author.group))(items, author.conditions(items))
    kind = choices.choose(("ISTREAM", None, "RSTREAM", "DSTREAM"))
    text = "".join(_declared(each, random) for each in declared)
    return f"{text}CREATE QUERY {QUERY} AS {core.sql(kind)};\n"


def _declared(each: Declared, random: Random) -> str:
    text, check = each.declaration(), random.choice(CHECKS)
    if each.slack is None:
        return text
    if check:
        text = text.replace(") TIMESTAMP BY", f", {check}) TIMESTAMP BY")
    marked = ["PUNCTUATED BY (k) WHEN f"] * 3 if any(column.name == "f" for column in each.columns) else []
    return text.replace(";", f" {random.choice([*PROMISES, *marked])};")


# -- rows -----------------------------------------------------------------------------------------


def stream_rows(
    stream: StreamDef, data: Data, random: Random, *, rows: int = ROWS, pause: int = SECOND
) -> pl.DataFrame:
    """Rows of a stream in order of time, one a second or less often."""
    made = [
        [number * pause for number in range(rows)]
        if column.name == stream.time
        else [place % 2 == 1 for place in range(rows)]
        if data == "late closings" and pa.types.is_boolean(column.type)
        else [_value(column.type, number, random) for number in _numbers(data, random, rows)]
        for column in stream.columns
    ]
    return frame_of(_table(stream.columns, made), stream.columns)


def _numbers(data: Data, random: Random, rows: int) -> Iterator[int | None]:
    for place in range(rows):
        match data:
            case "few":
                yield random.randrange(4)
            case "unique" | "silent":
                yield place + 7
            case "hot":
                yield 1 if random.random() < 0.7 else place + 7
            case "null":
                yield None if random.random() < 0.5 else place + 7
            case "same":
                yield 1
            case "late closings":
                yield place if place % 2 == 0 or place < LATE else place - LATE


def _value(dtype: pa.DataType, number: int | None, random: Random) -> Any:
    """The value of a type that stands for a number: a different one for each, where the type has as many."""
    if number is None:
        return None
    if pa.types.is_boolean(dtype):
        return number % 3 == 0
    if pa.types.is_string(dtype):
        return f"v{number}"
    if pa.types.is_date(dtype):
        return date(2024, 1, 1) + timedelta(days=number)
    if pa.types.is_decimal(dtype):
        return Decimal(number)
    if pa.types.is_timestamp(dtype):
        return number * SECOND
    return float(number) if pa.types.is_floating(dtype) else number


def _table(columns: tuple[Column, ...], values: list[list[Any]]) -> pa.Table:
    arrays = [pa.array(each, column.type) for each, column in zip(values, columns, strict=True)]
    return pa.table(arrays, names=[column.name for column in columns])


def table_rows(table: TableDef, random: Random) -> pl.DataFrame:
    """A table of a few rows."""
    made = [[_value(column.type, number, random) for number in range(4)] for column in table.columns]
    return static_table(frame_of(_table(table.columns, made), table.columns))


# -- runs -----------------------------------------------------------------------------------------


_FEW_BITS = 2


class _TooMuchSaidError(Exception):
    """A run says more than is waited for."""


@dataclass(frozen=True)
class Kept:
    """The rows that a query kept after each step; None if the run was stopped."""

    sizes: tuple[int, ...] | None

    @property
    def grows(self) -> bool:
        if self.sizes is None or len(self.sizes) < 8:
            return False
        # At the end the rows that the slack held back come all at once.
        sizes = self.sizes[:-1]
        quarter = len(sizes) // 4
        # Joins of values that recur by chance keep now more, now less: what they once kept is no growth later.
        before, after = max(sizes[: 2 * quarter]), max(sizes[3 * quarter :])
        return after > 1.5 * before + 40


def keeps(query: Query, data: Data, random: Random, *, rows: int = ROWS, step: int = STEP) -> Kept:
    """What an admitted query keeps over unkind streams."""
    ready = compile_query(query.planned)
    streams = []
    # Groups of a day are as many as ever after a day: the run is some of them long.
    pause = max(SECOND, LIVES * ready.graph.settles // rows)
    for number, stream in enumerate(ready.streams):
        few = data == "silent" and number > 0
        frame = stream_rows(stream, data, random, rows=rows // 8 if few else rows, pause=pause)
        streams.append((stream, frame.iter_slices(step)))
    tables = {table.name: table_rows(table, random) for table in ready.tables}
    run = LocalRun(Program((ready,)), streams, tables, stop=Stop.LAST_ROW)
    sizes: list[int] = []
    said = 0

    def count(name: str, frame: pl.DataFrame) -> None:
        nonlocal said
        said += frame.height
        if said > MOST_OUT:
            raise _TooMuchSaidError

    # A count of distinct values fills a table of fixed size, which a short run does not: here it has few cells.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coupons, "ROW_BITS", _FEW_BITS)
        patch.setattr(coupons, "_ROWS", 1 << _FEW_BITS)
        try:
            run.run(count, lambda *late: None, lambda progress: sizes.append(progress.state_rows))
        except _TooMuchSaidError:
            return Kept(None)
    return Kept(tuple(sizes))
