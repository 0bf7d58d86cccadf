"""Runs: sorted runs in order of birth, merged in tiers; for rows that never die, and the base of others.

A run whose rows are all dead is dropped whole; one that is more than half dead is written anew without them.
Dead rows that are still there are never found, because a probe asks for overlapping lifetimes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Self

import polars as pl

from headgate.kernels.state.run import Run, matches
from headgate.kernels.state.store import Layout, Match, Probes
from headgate.kernels.state.tiers import newest_to_merge
from headgate.model.time import Clock

_RUN = "run."

# A run of up to this many rows is written anew for any dead row: waiting would save nothing.
_SMALL = 256


@dataclass(frozen=True, eq=False)
class Runs:
    """Rows in runs, the oldest run first."""

    layout: Layout
    runs: tuple[Run, ...] = ()

    @property
    def rows(self) -> int:
        return sum(run.height for run in self.runs)

    @property
    def nbytes(self) -> int:
        return sum(run.nbytes for run in self.runs)

    def chunks(self) -> Mapping[str, pl.DataFrame]:
        return {f"{_RUN}{run.name}": run.frame for run in self.runs}

    def restored(self, chunks: Mapping[str, pl.DataFrame]) -> Self:
        runs = [
            Run.of(int(name.removeprefix(_RUN).partition(".")[0]), frame, self.layout.keys)
            for name, frame in chunks.items()
            if name.startswith(_RUN)
        ]
        # Births of two runs never mix, so the order of the runs need not be written down.
        runs.sort(key=lambda run: int(run.born[0]))
        return replace(self, runs=tuple(runs))

    def insert(self, frame: pl.DataFrame, clock: Clock) -> Self:
        if frame.is_empty():
            return self
        runs = (*self.runs, Run.of(clock.upto, frame, self.layout.keys))
        count = newest_to_merge([run.height for run in runs])
        if count > 1:
            merged = Run.merged(runs[-count:], clock.upto, clock.after)
            assert merged is not None, "rows born in this step are not dead before it"
            runs = (*runs[:-count], merged)
        return replace(self, runs=runs)

    def probe(self, key: int, probes: Probes) -> Iterator[Match]:
        return matches(self.runs, key, self.layout.keys[key], probes)

    def expire(self, upto: int) -> Self:
        runs: list[Run] = []
        for run in self.runs:
            if run.deaths.last <= upto:
                continue
            dead = run.dead_share(upto)
            # What this step has built is not written yet: whatever it loses now need not be.
            most = 0.2 if run.built == upto else 0.5
            if dead > most or (dead > 0 and run.height <= _SMALL):
                alive = Run.merged([run], upto, upto)
                if alive is not None:
                    runs.append(alive)
            else:
                runs.append(run)
        return replace(self, runs=tuple(runs))
