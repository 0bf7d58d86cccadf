"""Lateness: how late the rows of a stream come, in few numbers, and what slack would have kept them.

```
late by     0 … 1 s   … 1 min   … 1 h      a count for each range of times, 1/16 wide at most
rows        12        340       9          97 % of them need a slack of the most in the second range
```

How late a row is, is how far behind the largest instant before it; that does not depend on the slack. So the counts
tell for every slack how many rows it would have kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from headgate.model.errors import DataError
from headgate.model.time import in_whole_units

LATE_BY = "_late_by"
"""The column in which late rows say by how many microseconds they are."""

MANY = 0.01
"""Of a stream with more than this share of late rows a warning tells."""
ENOUGH = 1_000
"""Rows after which a share means something while a run goes on."""
KEPT = 0.999
"""The share of late rows that the slack of a warning would keep."""

_BITS = 4
"""A range is so many bits narrower than its place."""

Counts = Mapping[str, list[int]]
"""For each range of times, by its end: how many rows are late by that, and the most among them, in microseconds.

The end is text, because JSON has no other keys.
"""


def counted(late_by: pl.Series) -> dict[str, list[int]]:
    """How many rows are late by how much."""
    width = pl.col(LATE_BY).cast(pl.Float64).log(2).floor().cast(pl.Int64) - _BITS
    step = pl.lit(2, dtype=pl.Int64).pow(pl.max_horizontal(width, pl.lit(0)))
    end = (pl.col(LATE_BY) // step + 1) * step - 1
    rows = late_by.drop_nulls().alias(LATE_BY).to_frame()
    found = rows.group_by(end.alias("end")).agg(pl.len(), pl.col(LATE_BY).max()).sort("end")
    return {str(each): [count, most] for each, count, most in found.iter_rows()}


def added(one: Counts, two: Counts) -> dict[str, list[int]]:
    """Two counts as one."""
    none = [0, 0]
    pairs = {end: (one.get(end, none), two.get(end, none)) for end in sorted({*one, *two}, key=int)}
    return {end: [a[0] + b[0], max(a[1], b[1])] for end, (a, b) in pairs.items()}


def slack_for(counts: Counts, share: float = KEPT) -> int | None:
    """The smallest slack that would have kept a share of the late rows, rounded up to the most of its range."""
    wanted, kept = share * sum(count for count, _ in counts.values()), 0
    for end in sorted(counts, key=int):
        kept += counts[end][0]
        if kept >= wanted:
            return counts[end][1]
    return None


class Arrivals(dict[str, dict[str, Any]]):
    """By stream: rows read, rows that came late, and by how much those were; as metrics have it."""

    def note(self, stream: str, rows: int, late_by: pl.Series | None = None) -> None:
        """Counts rows that were read, and those of them that came late."""
        found = self.setdefault(stream, {"rows": 0, "late_rows": 0, "late_by": {}})
        found["rows"] += rows
        if late_by is not None and len(late_by):
            found["late_rows"] += len(late_by)
            found["late_by"] = added(found["late_by"], counted(late_by))

    @staticmethod
    def together(many: Iterable[Mapping[str, Mapping[str, Any]]]) -> Arrivals:
        """What several have counted."""
        total = Arrivals()
        for each in many:
            for stream, found in each.items():
                mine = total.setdefault(stream, {"rows": 0, "late_rows": 0, "late_by": {}})
                mine["rows"] += found["rows"]
                mine["late_rows"] += found["late_rows"]
                mine["late_by"] = added(mine["late_by"], found["late_by"])
        return total


def share_late(arrivals: Mapping[str, Any]) -> float:
    """The share of a stream's rows that came late."""
    return float(arrivals["late_rows"] / arrivals["rows"]) if arrivals["rows"] else 0.0


def sentence(stream: str, arrivals: Mapping[str, Any]) -> str:
    """How many rows came late, and the slack that would have kept nearly all of them."""
    slack = slack_for(arrivals["late_by"])
    said = (
        f"{arrivals['late_rows']:,} of {arrivals['rows']:,} rows of {stream} came late and are in no answer"
    )
    return (
        said
        if slack is None
        else f"{said}; a slack of {in_whole_units(slack)} would have kept {KEPT:.1%} of them"
    )


def remedy(stream: str, arrivals: Mapping[str, Any]) -> str:
    """What to do about rows that come late."""
    slack = slack_for(arrivals["late_by"])
    declared = "…" if slack is None else in_whole_units(slack)
    return (
        f"sort the rows by time, or write TIMESTAMP BY … WITHIN INTERVAL {declared} in CREATE STREAM {stream}"
    )


def require_few(metrics: Mapping[str, Any], most: float | None, *, ended: bool = False) -> None:
    """Raises DataError if more than a share of a stream's rows came late."""
    if most is None:
        return
    for stream, arrivals in metrics.get("streams", {}).items():
        if share_late(arrivals) > most and (ended or arrivals["rows"] >= ENOUGH):
            raise DataError(
                f"{sentence(stream, arrivals)}; --max-late {most:g} allows {most:.1%}",
                remedy=remedy(stream, arrivals),
            )
