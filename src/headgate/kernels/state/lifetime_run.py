"""LifetimeRun: rows that were put away together, in order of birth, with an index for each key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from headgate.kernels.keys import Mask, keys_equal
from headgate.kernels.state.index import Positions
from headgate.kernels.state.sorted_runs import Run
from headgate.kernels.state.store import ENDS, Instants, Match, Probes, payload_of, rows_at, rows_where
from headgate.model.batch import BORN, DIES

# Matched rows gathered together: bounds the memory of a probe with very many partners.
_GATHERED = 1 << 20


@dataclass(frozen=True, eq=False)
class Deaths:
    """What is known of the announced deaths of a run without going through them again."""

    first: int
    some: Instants
    """At least a thousand of them, or all, in order."""

    @staticmethod
    def of(dies: Instants) -> Deaths:
        some = dies[:: max(1, len(dies) // 1024)]
        return Deaths(int(dies.min()), np.sort(some))

    def share(self, upto: int) -> float:
        """About which share of the rows has died by `upto`."""
        return float(np.searchsorted(self.some, upto, side="right")) / len(self.some)


@dataclass(frozen=True, eq=False)
class LifetimeRun(Run):
    """Immutable rows: payload, `_born` and `_dies`."""

    @cached_property
    def payload(self) -> pl.DataFrame:
        return payload_of(self.frame)

    @cached_property
    def born(self) -> Instants:
        return self.numbers(BORN)

    @cached_property
    def dies(self) -> Instants:
        return self.numbers(DIES)

    @cached_property
    def ends(self) -> Instants:
        """The deaths that count for overlap."""
        return self.numbers(ENDS) if ENDS in self.frame.columns else self.dies

    @cached_property
    def deaths(self) -> Deaths:
        return Deaths.of(self.dies)

    def alive(self, upto: int) -> Mask | None:
        """Which rows are not dead at `upto`; None when none is."""
        if self.deaths.first > upto and not self.removals:
            return None
        alive = self.dies > upto
        return alive if self.removed is None else alive & ~self.removed.mask()

    def suspects(self, key: int, probes: Probes) -> Iterator[tuple[Positions, Positions]]:
        """Pairs (probe, position) with agreeing hashes and overlapping lifetimes."""
        for probe, position in self.indexes[key].find(probes.hashes):
            together = (self.born.take(position) < probes.ends.take(probe)) & (
                self.ends.take(position) > probes.born.take(probe)
            )
            if self.removed is not None:
                together &= self.is_in(position)
            if together.all():
                yield probe, position
            else:
                yield probe[together], position[together]


def matches(runs: Sequence[LifetimeRun], key: int, columns: Sequence[str], probes: Probes) -> Iterator[Match]:
    """The partners of the probes in all runs, by the key number `key`, whose columns are `columns`."""
    pending: list[tuple[LifetimeRun, Positions, Positions]] = []
    size = 0
    for run in runs:
        for probe, position in run.suspects(key, probes):
            if len(probe) == 0:
                continue
            pending.append((run, probe, position))
            size += len(probe)
            if size >= _GATHERED:
                yield _match(pending, columns, probes)
                pending, size = [], 0
    if pending:
        yield _match(pending, columns, probes)


def _match(
    pending: Sequence[tuple[LifetimeRun, Positions, Positions]], columns: Sequence[str], probes: Probes
) -> Match:
    probe = np.concatenate([probe for _, probe, _ in pending])
    left = rows_at(probes.frame, probe)
    found = [rows_at(run.payload, position) for run, _, position in pending]
    right = found[0] if len(found) == 1 else pl.concat(found, rechunk=True)
    born, dies, ends = (
        np.concatenate([getattr(run, name).take(position) for run, _, position in pending])
        for name in ("born", "dies", "ends")
    )
    equal = keys_equal(left, right, probes.columns, columns, null_equal=True)
    if equal.all():
        return Match(probe, left, right, born, dies, ends)
    # Two different keys with one hash.
    left, right = rows_where(left, equal), rows_where(right, equal)
    return Match(probe[equal], left, right, born[equal], dies[equal], ends[equal])
