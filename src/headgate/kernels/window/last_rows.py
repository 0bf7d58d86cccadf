"""LastRows: the last n rows of a stream, in a few runs.

```
runs, oldest first     [ . . . x x x ] [ x x x ] [ x x ]        x: the last n rows
push 4 rows            the first four x leave, oldest first
```

What has left at the front is not written down: it is what exceeds n.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from headgate.kernels.state.sorted_runs import Run, Runs


@dataclass(frozen=True, eq=False)
class LastRows(Runs):
    """Up to `length` rows of a stream in order of arrival."""

    length: int

    def push(self, frame: pl.DataFrame, now: int) -> tuple[LastRows, pl.DataFrame]:
        """The tail after the rows of `frame`, and the rows of the old one that they push out, oldest first.

        `now` names the run that is built: at most one push has it.
        """
        gone = max(0, self.rows - self.length)
        leaving = max(0, min(self.rows, self.rows + frame.height - self.length) - gone)
        found, kept, start = [pl.DataFrame(schema=self.schema)], [], 0
        for run in self.runs:
            # Polars counts a negative offset from the end.
            first, last = max(gone - start, 0), max(gone + leaving - start, 0)
            found.append(run.frame.slice(first, last - first))
            start += run.height
            if gone + leaving < start:
                kept.append(run)
        return replace(self, runs=tuple(kept)).adding(frame.tail(self.length), now), pl.concat(found)

    def _merged(self, runs: Sequence[Run], now: int, dead: int) -> tuple[Run, ...]:
        # Rows that have left at the front are not copied.
        merged = super()._merged(runs, now, dead)
        return tuple(replace(run, frame=run.frame.tail(self.length)) for run in merged)
