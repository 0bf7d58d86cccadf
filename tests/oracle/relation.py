"""A relation over time: its rows, and which of them are there at each instant."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa
from tests.oracle.contents import Stream, WindowContents, tick_from
from tests.oracle.inputs import TableInput
from tests.oracle.values import Row, canonical_row, order_key


@dataclass(frozen=True)
class Relation:
    """Rows, the instants at which the contents may change, and the contents: positions of rows at an instant."""

    rows: pa.Table
    changes: tuple[int, ...]
    at: Callable[[int], Sequence[int]] = field(repr=False)
    times: tuple[int, ...] | None = None
    """The instant at which each row enters if the rows are those of a window over a stream."""
    versions: TableInput | None = None
    """The table behind it if that is NON RETROACTIVE: then `at` gives all versions that ever were."""
    stable: bool = False
    """Whether a position stands for the same row at all instants at which it is there, one span of time."""

    @cached_property
    def keys(self) -> list[Row]:
        """The canonical row at each position."""
        columns = [column.to_pylist() for column in self.rows.columns]
        if not columns:
            return [()] * self.rows.num_rows
        return [canonical_row(values) for values in zip(*columns, strict=True)]


def window_relation(contents: WindowContents) -> Relation:
    """What a window over a stream holds."""
    stream, slide = contents.stream, contents.window.slide
    times = tuple(tick_from(ts, slide) for ts in stream.times) if slide else stream.times
    return Relation(stream.rows, tuple(sorted(contents.changes())), contents.at, times, stable=True)


def table_relation(table: TableInput) -> Relation:
    """A table's contents; all its versions if they are to be chosen by the time of the rows that they meet."""
    if table.retroactive:
        return Relation(table.rows, tuple(sorted(table.changes())), table.at, stable=True)
    everything = range(table.rows.num_rows)
    return Relation(table.rows, (), lambda _: everything, versions=table, stable=True)


def stepwise(rows: pa.Table, contents: Mapping[int, Sequence[int]], *, stable: bool = False) -> Relation:
    """A relation that keeps its contents from each given instant to the next, and is empty before the first."""
    instants = tuple(sorted(contents))

    def at(instant: int) -> Sequence[int]:
        step = bisect_right(instants, instant)
        return contents[instants[step - 1]] if step else ()

    return Relation(rows, instants, at, stable=stable)


def append_only(rows: pa.Table, instants: Iterable[int], births: Mapping[int, Sequence[int]]) -> Relation:
    """A relation that gains rows at some of its instants and never loses any."""
    contents: dict[int, Sequence[int]] = {}
    so_far: tuple[int, ...] = ()
    for instant in sorted(instants):
        so_far = (*so_far, *births.get(instant, ()))
        contents[instant] = so_far
    return stepwise(rows, contents, stable=True)


def stream_of(relation: Relation, events: Iterable[tuple[int, int]]) -> Stream:
    """The rows at the positions of (instant, position) events: by time, and by value where times are equal."""
    ordered = sorted(events, key=lambda event: (event[0], order_key(relation.keys[event[1]])))
    positions = pa.array([position for _, position in ordered], pa.int64())
    return Stream(relation.rows.take(positions), tuple(time for time, _ in ordered), orderless=True)
