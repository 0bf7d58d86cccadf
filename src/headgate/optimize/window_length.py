"""How long a window should be for a stream of which rates and distinct values are known."""

from __future__ import annotations

from headgate.model.time import DAY, HOUR, MINUTE, SECOND, WEEK
from headgate.optimize.statistics import Statistics

ROWS_PER_VALUE = 10
ROWS = 100_000
"""How many rows a window holds if no distinct values are given."""

ROUND = (
    *(n * SECOND for n in (1, 2, 5, 10, 15, 30)),
    *(n * MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * HOUR for n in (1, 2, 6, 12)),
    *(n * DAY for n in (1, 2)),
    *(n * WEEK for n in (1, 2, 4)),
)


def suggest_length(statistics: Statistics, stream: str) -> int | None:
    """A round length in which each value of the stream's most varied column comes about ten times.

    Without distinct counts, one that holds about 100,000 rows; None if nothing is known of the stream.
    """
    known = statistics.streams.get(stream.casefold())
    if known is None or not known.rate:
        return None
    rows = ROWS_PER_VALUE * max(known.distinct.values()) if known.distinct else ROWS
    wanted = rows / known.rate * SECOND
    return next((length for length in ROUND if length >= wanted), ROUND[-1])
