"""What is in a window at an instant, word for word as the definitions have it.

Everything here is quadratic on purpose: the contents at t are found by asking every row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from tests.oracle.values import Row, canonical_row

from headgate.language import nodes


@dataclass(frozen=True)
class Window:
    """A window in plain numbers: microseconds, rows, column names."""

    kind: str
    length: int | None = None
    slide: int | None = None
    rows: int | None = None
    partition: tuple[str, ...] = ()
    internal: bool = False

    @staticmethod
    def of(spec: nodes.WindowSpec) -> Window:
        """The window that a syntax node describes."""
        args = spec.args
        partition = tuple(column.name.lower() for column in args.get("partition") or ())
        return Window(
            args["kind"],
            args.get("length"),
            args.get("slide"),
            args.get("rows"),
            partition,
            bool(args.get("internal")),
        )


UNBOUNDED = Window("UNBOUNDED")


def tick_from(instant: int, slide: int) -> int:
    """The first multiple of a slide at or after an instant."""
    return instant + -instant % slide


@dataclass(frozen=True)
class Stream:
    """Rows and their instants, in the order in which they are processed."""

    rows: pa.Table
    times: tuple[int, ...]
    orderless: bool = False
    """Whether rows of one instant have no order of their own, so that a row window over them has to pick one."""

    def values(self, columns: Sequence[str]) -> list[Row]:
        """The canonical values of some columns, row by row."""
        names = {name.lower(): name for name in self.rows.column_names}
        lists = [self.rows.column(names[column]).to_pylist() for column in columns]
        return (
            [canonical_row(values) for values in zip(*lists, strict=True)]
            if lists
            else [()] * len(self.times)
        )


@dataclass(frozen=True)
class WindowContents:
    """One window over one stream."""

    window: Window
    stream: Stream
    partitions: list[Row] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "partitions", self.stream.values(self.window.partition))

    def at(self, instant: int) -> list[int]:
        """Positions of the stream's rows that the window holds at an instant."""
        window, times = self.window, self.stream.times
        match window.kind:
            case "RANGE":
                assert window.length is not None
                seen = instant // window.slide * window.slide if window.slide else instant
                return [i for i, ts in enumerate(times) if seen - window.length < ts <= seen]
            case "NOW":
                return [i for i, ts in enumerate(times) if ts == instant]
            case "UNBOUNDED":
                return [i for i, ts in enumerate(times) if ts <= instant]
            case "ROWS":
                assert window.rows is not None
                past = [i for i, ts in enumerate(times) if ts <= instant]
                return [i for i in past if self._younger(i, past) < window.rows]
            case kind:
                raise ValueError(f"no window {kind}")

    def _younger(self, position: int, past: list[int]) -> int:
        """How many rows of the same partition came after one, among those of the past."""
        mine = self.partitions[position]
        return sum(1 for other in past if other > position and self.partitions[other] == mine)

    def changes(self) -> set[int]:
        """Every instant at which the contents can change."""
        window, times = self.window, self.stream.times
        if window.kind == "NOW":
            return {at for ts in times for at in (ts, ts + 1)}
        if window.kind != "RANGE":
            return set(times)
        assert window.length is not None
        ends = {at for ts in times for at in (ts, ts + window.length)}
        return {tick_from(at, window.slide) for at in ends} if window.slide else ends

    def ambiguous(self) -> bool:
        """Whether the contents depend on an order that the rows do not have.

        That is so for ROWS n over a query's stream with different rows of one instant.
        """
        if self.window.kind != "ROWS" or not self.stream.orderless:
            return False
        values = self.stream.values([name.lower() for name in self.stream.rows.column_names])
        seen: dict[tuple[int, Row], Row] = {}
        keys = zip(self.stream.times, self.partitions, strict=True)
        return any(seen.setdefault(key, value) != value for key, value in zip(keys, values, strict=True))
