"""Data checks: queries over the data of a stream that find what would break a promise, so that no rows are good news.

They are plain SQL over a table of the stream's name, for DuckDB, Spark or whatever holds the data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from headgate.plan.catalog import StreamDef


def repeated(stream: StreamDef, columns: Sequence[str]) -> str:
    """Values that would not be a key."""
    names, filled = _names(columns), " AND ".join(f"{name} IS NOT NULL" for name in _quoted(columns))
    return f"SELECT {names} FROM {_table(stream)} WHERE {filled} GROUP BY {names} HAVING COUNT(*) > 1"


def reopened(stream: StreamDef, columns: Sequence[str], flag: str) -> Iterator[str]:
    """Values with a row after one that closed them."""
    if stream.time is not None:
        (time, closing), names = _quoted((stream.time, flag)), _names(columns)
        first = f"MIN(CASE WHEN {closing} THEN {time} END)"
        yield f"SELECT {names} FROM {_table(stream)} GROUP BY {names} HAVING MAX({time}) > {first}"


def disordered(stream: StreamDef, column: str, within: int) -> Iterator[str]:
    """Rows that come after a greater one by more than so many rows."""
    if stream.time is not None:
        time, name = _quoted((stream.time, column))
        frame = f"ROWS BETWEEN UNBOUNDED PRECEDING AND {within + 1} PRECEDING"
        inner = f"SELECT {name}, MAX({name}) OVER (ORDER BY {time} {frame}) AS before FROM {_table(stream)}"
        yield f"SELECT * FROM ({inner}) AS q WHERE {name} < before"


def missing(stream: StreamDef, columns: Sequence[str]) -> str:
    """Rows with NULL."""
    empty = " OR ".join(f"{name} IS NULL" for name in _quoted(columns))
    return f"SELECT * FROM {_table(stream)} WHERE {empty}"


def failing(stream: StreamDef, bound: exp.Expr) -> str:
    """Rows that a CHECK would not let through."""
    return f"SELECT * FROM {_table(stream)} WHERE NOT ({bound.sql('spark')})"


def _table(stream: StreamDef) -> str:
    return exp.to_identifier(stream.name).sql("spark")


def _quoted(columns: Sequence[str]) -> list[str]:
    return [exp.to_identifier(name).sql("spark") for name in columns]


def _names(columns: Sequence[str]) -> str:
    return ", ".join(_quoted(columns))
