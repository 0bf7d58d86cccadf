"""The stateful operators of a Spark plan, as plain values: what the rules judge.

They are read from Spark once (see `reader`), so that a rule is a function of facts and needs no JVM.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Watermark:
    """An event-time column with a delay, as `withWatermark` declares it."""

    column: str
    delay_ms: int


@dataclass(frozen=True)
class Key:
    """A grouping or deduplication key.

    `delay_ms` is set when Spark still knows the key as event time, `finite` says why it has few values,
    `derived_from` names the watermarked column that it was computed from, losing the watermark on the way.
    """

    name: str
    delay_ms: int | None = None
    finite: str | None = None
    derived_from: str | None = None


@dataclass(frozen=True)
class Source:
    """What flows into an operator: watermarks set below it, and columns that could carry one."""

    columns: tuple[str, ...]
    watermarks: tuple[Watermark, ...]
    times: tuple[str, ...]

    @property
    def shown(self) -> str:
        """The columns, shortened, to recognize the input by."""
        few = self.columns[:4]
        return ", ".join(few) + (", …" if len(self.columns) > len(few) else "")

    @property
    def time(self) -> str:
        """The event-time column: the watermarked one, else a timestamp column, else a name to be chosen."""
        if self.watermarks:
            return self.watermarks[0].column
        return self.times[0] if self.times else "event_time"


@dataclass(frozen=True)
class Aggregation:
    """`groupBy(...).agg(...)`, or DISTINCT in SQL; `growing` are functions whose buffer holds its input."""

    source: Source
    keys: tuple[Key, ...]
    growing: tuple[str, ...]
    distinct: bool
    shortened: bool
    """Whether a sort or a limit follows: it shortens what is written, not what is kept."""


@dataclass(frozen=True)
class Deduplication:
    """`dropDuplicates`, or `dropDuplicatesWithinWatermark` if `within`."""

    source: Source
    keys: tuple[Key, ...]
    within: bool


@dataclass(frozen=True)
class Drop:
    """When Spark drops a row that a join keeps: `by_key` with its event-time key, else by its own time."""

    column: str
    after_ms: int
    by_key: bool


@dataclass(frozen=True)
class JoinSide:
    """One side of a join: when Spark drops its rows (None is never), and what is missing if it never does.

    `compared` holds the times, own and other, that the condition already relates as it should.
    """

    source: Source
    drop: Drop | None
    compared: tuple[str, str] | None = None


@dataclass(frozen=True)
class StreamJoin:
    """A join of two streams; one without an equality Spark cannot run."""

    how: str
    left: JoinSide
    right: JoinSide
    has_equality: bool


@dataclass(frozen=True)
class Limit:
    """`limit(n)` on a stream; in append mode the rows so far are counted."""


@dataclass(frozen=True)
class OwnState:
    """State that the user's code keeps: `clock` is none, processing or event; a `transform` may also have TTL."""

    name: str
    keys: tuple[str, ...]
    clock: str
    transform: bool


Operator = Aggregation | Deduplication | StreamJoin | Limit | OwnState
