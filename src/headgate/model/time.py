"""Time inside Headgate: whole microseconds, counted from the Unix epoch in UTC."""

from __future__ import annotations

from dataclasses import dataclass

NEVER = 2**63 - 1
"""The death of a row that lives for ever, or whose death is not yet known."""

BEGINNING = -(2**63)
"""The clock before the first row."""

MICROSECOND = 1
MILLISECOND = 1_000
SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
WEEK = 7 * DAY

UNITS: dict[str, int] = {
    "MICROSECOND": MICROSECOND,
    "MILLISECOND": MILLISECOND,
    "SECOND": SECOND,
    "MINUTE": MINUTE,
    "HOUR": HOUR,
    "DAY": DAY,
    "WEEK": WEEK,
}
"""The units a duration may have. Months and years are not here: their length varies."""


MONTHS: dict[str, int] = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
"""The units whose length varies, in months."""

FIRST_DAY, LAST_DAY = -719_162, 2_932_896
"""The calendar, 0001-01-01 to 9999-12-31, in days from 1970 on."""

LONGEST_INTERVAL = 10_000 * 366 * DAY
"""No two instants of the calendar are further from each other."""


@dataclass(frozen=True)
class Clock:
    """One step of event time, (after, upto], and the instant of the query's first row.

    Before `start` the query has no answer; `start` is None until a row has come.
    """

    after: int
    upto: int
    start: int | None

    def __post_init__(self) -> None:
        if self.upto < self.after:
            raise ValueError(f"a clock does not run backwards: {self.after} to {self.upto}")


def tick_at_or_after(instant: int, slide: int) -> int:
    """The first multiple of `slide` since the epoch at or after `instant`."""
    return -(-instant // slide) * slide


def format_duration(microseconds: int) -> str:
    """A duration in the largest unit that keeps it whole: `90 SECONDS`, `1 MINUTE`; none is `0 SECONDS`."""
    if microseconds == 0:
        return "0 SECONDS"
    for name in ("WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND"):
        size = UNITS[name]
        if microseconds % size == 0 and microseconds >= size:
            count = microseconds // size
            return f"{count} {name}" + ("" if count == 1 else "S")
    return f"{microseconds} MICROSECOND" + ("" if microseconds == 1 else "S")


def roughly(microseconds: int) -> str:
    """A duration rounded up to what people read: `1 HOUR` for a microsecond less, whole seconds from ten on."""
    return format_duration(rounded_up(microseconds))


def rounded_up(microseconds: int) -> int:
    """The duration that `roughly` writes."""
    for grain in (SECOND, MILLISECOND):
        if microseconds >= 10 * grain:
            return -(-microseconds // grain) * grain
    return microseconds


def in_whole_units(microseconds: int) -> str:
    """A duration as people write one, at least so long: in seconds up to two minutes, then in larger units."""
    for unit, most in ((SECOND, 2 * MINUTE), (MINUTE, 2 * HOUR), (HOUR, 2 * DAY)):
        if microseconds <= most:
            return format_duration(-(-microseconds // unit) * unit)
    return format_duration(-(-microseconds // DAY) * DAY)
