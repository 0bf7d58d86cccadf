"""Codec: frames as bytes, whole numbers in as few of them as their range needs.

Rows on their way to a shard and chunks of its state pass through half a dozen buffers, so what they weigh is what a
micro-batch costs. A column of whole numbers, dates or instants is written as the distance from its smallest value;
one that is the same everywhere is not written at all; a death counts from its birth.

```
_born   1700000000000100  1700000000000200  …   base 1700000000000100, then 0 100 …       4 bytes a row
_dies   1700000060000100  1700000060000200  …   60000000 after _born, everywhere          none
k       7  1999999  …                           base 7, then 0 1999992 …                  4 bytes a row
```

The bytes are the length of a header, the header as JSON, and an Arrow IPC stream.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import polars as pl

from headgate.model.batch import BORN, DIES

_WIDTHS: tuple[tuple[int, pl.DataType], ...] = ((1, pl.UInt8()), (2, pl.UInt16()), (4, pl.UInt32()))
_BYTES = {pl.Int16: 2, pl.Int32: 4, pl.Int64: 8, pl.Date: 4, pl.Datetime: 8, pl.Duration: 8}
_FEWEST_ROWS = 64
_LENGTH = 4
_AFTER_BIRTH = "after birth"


def encode(frame: pl.DataFrame, *, compress: bool = False) -> bytes:
    """A frame as bytes. With `compress`, also what is not narrowed is made smaller, if that is likely to pay."""
    narrow, narrowed = (frame, {}) if frame.height < _FEWEST_ROWS else _narrowed(frame)
    header = json.dumps({"rows": frame.height, "columns": frame.columns, "narrowed": narrowed}).encode()
    buffer = io.BytesIO()
    buffer.write(len(header).to_bytes(_LENGTH, "little"))
    buffer.write(header)
    worth = compress and any(not _is_plain(dtype) for dtype in narrow.dtypes)
    narrow.write_ipc_stream(buffer, compression="lz4" if worth else "uncompressed")
    return buffer.getvalue()


def decode(blob: bytes) -> pl.DataFrame:
    """The frame in these bytes."""
    buffer = io.BytesIO(blob)
    header = json.loads(buffer.read(int.from_bytes(buffer.read(_LENGTH), "little")))
    narrow = pl.read_ipc_stream(buffer)
    if not header["narrowed"]:
        return narrow
    return _widened(narrow, header["columns"], header["narrowed"], header["rows"])


def _narrowed(frame: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, Any]]:
    """The columns that are left to write, and for those that are not as they were how to make them again."""
    numbers = {
        name: pl.col(name).to_physical() for name, dtype in frame.schema.items() if type(dtype) in _BYTES
    }
    if not numbers:
        return frame, {}
    lifetimes = frame.schema.get(BORN) == pl.Int64 and frame.schema.get(DIES) == pl.Int64
    if lifetimes:
        numbers[DIES] = pl.col(DIES) - pl.col(BORN)
    found = frame.select(
        *(each.min().alias(f"least {name}") for name, each in numbers.items()),
        *(each.max().alias(f"most {name}") for name, each in numbers.items()),
        *(each.null_count().alias(f"nulls {name}") for name, each in numbers.items()),
    ).row(0, named=True)
    kept: list[pl.Expr] = []
    narrowed: dict[str, Any] = {}
    for name, dtype in frame.schema.items():
        least, most = found.get(f"least {name}"), found.get(f"most {name}")
        column = pl.col(name)
        if least is not None and most is not None:
            relative = _AFTER_BIRTH if lifetimes and name == DIES else None
            if least == most and not found[f"nulls {name}"]:
                narrowed[name] = [_named(dtype), least, relative, True]
                continue
            width = _width(most - least, _BYTES[type(dtype)])
            if width is not None:
                narrowed[name] = [_named(dtype), least, relative, False]
                column = (numbers[name] - least).cast(width).alias(name)
        kept.append(column)
    return (frame.select(kept), narrowed) if narrowed else (frame, {})


def _widened(
    narrow: pl.DataFrame, columns: Sequence[str], narrowed: dict[str, Any], rows: int
) -> pl.DataFrame:
    made: dict[str, pl.Expr] = {name: pl.col(name) for name in narrow.columns}
    for name, (kind, base, _, constant) in narrowed.items():
        physical = _physical(_dtype(kind))
        start = pl.lit(base, dtype=physical)
        made[name] = (
            pl.repeat(base, rows, dtype=physical) if constant else pl.col(name).cast(physical) + start
        )
    if DIES in narrowed and narrowed[DIES][2] == _AFTER_BIRTH:
        made[DIES] = made[DIES] + made[BORN]
    for name, (kind, *_) in narrowed.items():
        made[name] = made[name].cast(_dtype(kind))
    return narrow.select(made[name].alias(name) for name in columns)


def _width(span: int, than: int) -> pl.DataType | None:
    """The smallest type for numbers up to `span`, if that has fewer bytes `than` now."""
    fitting = (dtype for size, dtype in _WIDTHS if span < 1 << (8 * size) and size < than)
    return next(fitting, None)


def _is_plain(dtype: pl.DataType) -> bool:
    return dtype.is_numeric() or dtype.is_temporal() or dtype == pl.Boolean


def _physical(dtype: pl.DataType) -> pl.DataType:
    if isinstance(dtype, pl.Date):
        return pl.Int32()
    return pl.Int64() if isinstance(dtype, (pl.Datetime, pl.Duration)) else dtype


def _named(dtype: pl.DataType) -> list[str | None]:
    match dtype:
        case pl.Datetime(time_unit=unit, time_zone=zone):
            return ["Datetime", unit, zone]
        case pl.Duration(time_unit=unit):
            return ["Duration", unit]
        case _:
            return [type(dtype).__name__]


def _dtype(named: Sequence[Any]) -> pl.DataType:
    match named:
        case ["Datetime", unit, zone]:
            return pl.Datetime(unit, zone)
        case ["Duration", unit]:
            return pl.Duration(unit)
        case [name]:
            return {"Int16": pl.Int16(), "Int32": pl.Int32(), "Int64": pl.Int64(), "Date": pl.Date()}[name]
        case _:
            raise ValueError(f"no type of numbers is called {named}")
