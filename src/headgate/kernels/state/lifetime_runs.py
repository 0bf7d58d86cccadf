"""LifetimeRuns: rows with lifetimes in sorted runs, in order of birth; for rows that never die, or die in that order.

```
oldest [ dead ][ dead | alive ][ alive ][ alive ][ al ][ a ] newest
        dropped  masked until half of it is dead
```

Dead rows that are still there are never found, because a probe asks for overlapping lifetimes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import polars as pl

from headgate.kernels.keys import Mask, keys_agree
from headgate.kernels.state.index import HashIndex, Positions
from headgate.kernels.state.lifetime_run import LifetimeRun, matches
from headgate.kernels.state.sorted_runs import SortedRuns, kept_rows
from headgate.kernels.state.store import Layout, Match, Probes, rows_at
from headgate.model.batch import BORN, DIES
from headgate.model.time import Clock

# A run of up to this many rows is written anew for any dead row: waiting would save nothing.
_SMALL = 256


@dataclass(frozen=True, eq=False)
class LifetimeRuns(SortedRuns[LifetimeRun]):
    """Rows of a layout, with `_born` and `_dies`."""

    layout: Layout

    def insert(self, frame: pl.DataFrame, clock: Clock) -> Self:
        if frame.is_empty():
            return self
        runs = (*self.runs, self._written(frame, clock.upto))
        return replace(self, runs=self._tiered(runs, clock.upto, clock.after))

    def probe(self, key: int, probes: Probes) -> Iterator[Match]:
        return matches(self.runs, key, self.layout.keys[key], probes)

    def meet(self, key: int, probes: Probes) -> Iterator[tuple[LifetimeRun, Positions, Positions]]:
        """Where the partners of the probes are, run by run: pairs of a probe and a row."""
        for run in self.runs:
            for probe, position in run.suspects(key, probes):
                ours = (probes.frame, probes.columns, probe)
                equal = keys_agree(ours, (run.frame, self.layout.keys[key], position))
                yield (run, probe, position) if equal.all() else (run, probe[equal], position[equal])

    def without(self, asked: Sequence[tuple[int, Probes]], now: int) -> tuple[Self, pl.DataFrame]:
        """The store without all partners of some probes by some keys, and these.

        At most once in the step that ends at `now`, because what is taken out of a run is written down by step.
        """
        found: dict[str, list[Positions]] = {}
        for key, probes in asked:
            for run, _, position in self.meet(key, probes):
                found.setdefault(run.name, []).append(position)
        if not found:
            return self, self.live(now).clear()
        places = {name: np.unique(np.concatenate(each)) for name, each in found.items()}
        taken = [rows_at(run.frame, places[run.name]) for run in self.runs if run.name in places]
        runs = tuple(r.without(places[r.name], now) if r.name in places else r for r in self.runs)
        return replace(self, runs=self._tidied(runs, now, _SMALL)), pl.concat(taken)

    def expire(self, upto: int) -> Self:
        return replace(self, runs=self._tidied(self.runs, upto, _SMALL))

    def live(self, upto: int) -> pl.DataFrame:
        """All rows that are not dead at an instant."""
        if not self.runs:
            return pl.DataFrame(schema={**self.layout.schema, BORN: pl.Int64(), DIES: pl.Int64()})
        return kept_rows(self.runs, [run.alive(upto) for run in self.runs])

    def only(self, rows: pl.DataFrame, clock: Clock) -> Self:
        """The store with these of its rows alone, written anew in a step."""
        return replace(self, runs=()).insert(rows, clock)

    @property
    def _keys(self) -> tuple[tuple[str, ...], ...]:
        return self.layout.keys

    @property
    def _order(self) -> str:
        return BORN

    def _run(
        self, since: int, built: int, frame: pl.DataFrame, indexes: tuple[HashIndex, ...]
    ) -> LifetimeRun:
        return LifetimeRun(since, built, frame, indexes)

    def _alive(self, run: LifetimeRun, now: int) -> Mask | None:
        return run.alive(now)

    def _dead(self, run: LifetimeRun, now: int) -> float:
        # Rows that were taken out and then died count twice, which only hastens the end of the run.
        return run.removals + run.deaths.share(now) * run.height
