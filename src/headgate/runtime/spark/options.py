"""Options of runs on Spark."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SparkOptions:
    """How queries run on Spark."""

    shards: int | None = None
    """None: as many as tasks run at once."""
    batch_rows: int = 1_000_000
    drain: bool | None = None
    """Whether the clock runs on after the last row; None: if all streams are files, which have an end."""
    idle_ms: int | None = None
    future_us: int | None = None
    max_late: float | None = None
    """A stream of whose rows a larger share comes late stops the query."""
    ordered: bool = True
    rejects: str | None = None
    """A folder for bad rows; without one, the first of them stops the query."""
