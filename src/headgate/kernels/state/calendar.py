"""Calendar: rows whose deaths are known but not in order (WK), partitioned by death.

```
deaths     …  40    50    60    70    80    90   100   …          never
           |  gone | day | day | day | day | day |                 [ its own partition ]
clock at 52 ───────────^                 arrivals [ run ][ run ]   not yet filed
```

The calendar queue of Windows, section 3.5.2. A partition ("day") is a power of two of microseconds wide,
chosen so that what is filed spreads over about `days` of them; it is dropped whole when the clock has passed
it. Rows are filed when the arrivals outnumber what is filed: filing each batch at once would split it into as
many small runs as there are days, and every probe would have to visit them all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Self

import numpy as np
import polars as pl

from headgate.kernels.state.lifetime_runs import LifetimeRuns
from headgate.kernels.state.store import Layout, Match, Probes, prefixed, rows_at, rows_where, under
from headgate.model.batch import DIES
from headgate.model.time import NEVER, Clock

_ARRIVALS = "arrivals/"
_DAY = "day."


@dataclass(frozen=True, order=True)
class Day:
    """Deaths from `number * width` to before the next multiple of `width`; width 0: rows that never die."""

    width: int
    number: int

    @property
    def over(self) -> int:
        """The instant at which every row of the day is dead."""
        return (self.number + 1) * self.width if self.width else NEVER


@dataclass(frozen=True, eq=False)
class Calendar:
    """Rows by day of death, and recent arrivals in runs."""

    layout: Layout
    arrivals: LifetimeRuns
    filed: Mapping[Day, LifetimeRuns] = field(default_factory=dict)
    days: int = 8
    """How many partitions there are about."""
    smallest: int = 4096
    """Arrivals that are not worth filing."""

    @staticmethod
    def empty(layout: Layout, days: int = 8, smallest: int = 4096) -> Calendar:
        return Calendar(layout, LifetimeRuns(layout), days=days, smallest=smallest)

    @cached_property
    def _parts(self) -> tuple[LifetimeRuns, ...]:
        return (*self.filed.values(), self.arrivals)

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self._parts)

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self._parts)

    def chunks(self) -> Mapping[str, pl.DataFrame]:
        chunks = prefixed(self.arrivals.chunks(), _ARRIVALS)
        for day, part in self.filed.items():
            chunks |= prefixed(part.chunks(), f"{_DAY}{day.width}.{day.number}/")
        return chunks

    def restored(self, chunks: Mapping[str, pl.DataFrame]) -> Self:
        empty = LifetimeRuns(self.layout)
        filed = {}
        for prefix in sorted({name[: name.index("/") + 1] for name in chunks if name.startswith(_DAY)}):
            width, _, number = prefix.removeprefix(_DAY).removesuffix("/").partition(".")
            filed[Day(int(width), int(number))] = empty.restored(under(chunks, prefix))
        arrivals = empty.restored(under(chunks, _ARRIVALS))
        return replace(self, filed=filed, arrivals=arrivals)

    def insert(self, frame: pl.DataFrame, clock: Clock) -> Self:
        if frame.is_empty():
            return self
        arrivals = self.arrivals.insert(frame, clock)
        grown = replace(self, arrivals=arrivals)
        # Often enough to drop most rows by the day, rarely enough to write each of them about once.
        due = arrivals.rows > max(self.smallest, sum(part.rows for part in self.filed.values()))
        return grown._with_arrivals_filed(clock) if due else grown

    def probe(self, key: int, probes: Probes) -> Iterator[Match]:
        return self._whole.probe(key, probes)

    def expire(self, upto: int) -> Self:
        filed = {day: part for day, part in self.filed.items() if day.over > upto}
        return replace(self, filed=filed, arrivals=self.arrivals.expire(upto))

    def live(self, upto: int) -> pl.DataFrame:
        return self._whole.live(upto)

    @property
    def _whole(self) -> LifetimeRuns:
        """All runs, to be looked at."""
        return LifetimeRuns(self.layout, runs=tuple(run for part in self._parts for run in part.runs))

    def _with_arrivals_filed(self, clock: Clock) -> Self:
        rows = self.arrivals.live(clock.after)
        filed = dict(self.filed)
        for day, frame in self._by_day(rows, clock.after):
            filed[day] = filed.get(day, LifetimeRuns(self.layout)).insert(frame, clock)
        return replace(self, filed=filed, arrivals=LifetimeRuns(self.layout))

    def _by_day(self, frame: pl.DataFrame, after: int) -> Iterator[tuple[Day, pl.DataFrame]]:
        """The rows of each day, in order of birth; deaths are all after `after`."""
        dies = frame[DIES].to_numpy()
        mortal = dies != NEVER
        if not mortal.all():
            yield Day(0, 0), rows_where(frame, ~mortal)
        if not mortal.any():
            return
        frame, dies = rows_where(frame, mortal), dies[mortal]
        # The clock may still be at the beginning of time, so the first death stands for it then.
        span = int(dies.max()) - max(after, int(dies.min()))
        width = 1 << (span // self.days).bit_length()
        numbers = dies // width
        order = np.argsort(numbers, kind="stable")
        numbers = numbers[order]
        cuts = np.flatnonzero(numbers[1:] != numbers[:-1]) + 1
        for low, high in pairwise([0, *cuts.tolist(), frame.height]):
            # A copy for each day: a slice would keep the memory of the other days when they are gone.
            yield Day(width, int(numbers[low])), rows_at(frame, order[low:high])
