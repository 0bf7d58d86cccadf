"""Run: rows that were put away together, in order of birth, with an index for each key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from headgate.kernels.keys import Mask, key_hash, keys_equal
from headgate.kernels.state.ended import Ended
from headgate.kernels.state.index import HashIndex, Positions
from headgate.kernels.state.store import ENDS, LIFETIME, Instants, Match, Probes
from headgate.model.batch import BORN, DIES

# Deaths looked at to judge how much of a run is dead; the exact share is not worth a pass over the run.
_SAMPLE = 1024

# Matched rows gathered together: bounds the memory of a probe with very many partners.
_GATHERED = 1 << 20


@dataclass(frozen=True, eq=False)
class Run:
    """Immutable rows (payload, `_born`, `_dies`) and where each key's hashes occur among them."""

    built: int
    """The end of the clock step that wrote it."""
    frame: pl.DataFrame
    indexes: tuple[HashIndex, ...]
    ended: Ended

    @staticmethod
    def of(built: int, frame: pl.DataFrame, keys: Sequence[Sequence[str]]) -> Run:
        """A run of the rows of `frame`, at least one, put in order of birth."""
        frame = frame.rechunk()
        born = frame[BORN].to_numpy()
        if np.any(born[1:] < born[:-1]):
            frame = frame.sort(BORN, maintain_order=True)
        indexes = tuple(HashIndex.of(key_hash(frame, key)) for key in keys)
        return Run(built, frame, indexes, Ended.none(frame.height))

    @property
    def name(self) -> str:
        """A name of its own: births of two runs of a store do not mix, and a step writes a run once."""
        return f"{self.built}.{self.born[0]}"

    @property
    def height(self) -> int:
        return self.frame.height

    @cached_property
    def nbytes(self) -> int:
        indexes = sum(index.nbytes for index in self.indexes)
        return int(self.frame.estimated_size()) + indexes + self.ended.nbytes

    @cached_property
    def payload(self) -> pl.DataFrame:
        return self.frame.drop([name for name in LIFETIME if name in self.frame.columns])

    @cached_property
    def born(self) -> Instants:
        return self.frame[BORN].to_numpy()

    @cached_property
    def dies(self) -> Instants:
        return self.frame[DIES].to_numpy()

    @cached_property
    def ends(self) -> Instants:
        """The deaths that count for overlap."""
        return self.frame[ENDS].to_numpy() if ENDS in self.frame.columns else self.dies

    @cached_property
    def first_death(self) -> int:
        return int(self.dies.min())

    @cached_property
    def last_death(self) -> int:
        return int(self.dies.max())

    @cached_property
    def _some_deaths(self) -> Instants:
        return np.sort(self.dies[:: max(1, self.height // _SAMPLE)])

    def dead_share(self, upto: int) -> float:
        """About which share of the rows is dead at `upto`; never less than what is known of the ended ones."""
        ended = self.ended.count / self.height
        if self.first_death > upto:
            return ended
        some = self._some_deaths
        return ended + float(np.searchsorted(some, upto, side="right")) / len(some)

    def alive(self, upto: int) -> Mask | None:
        """Which rows are not dead at `upto`; None when all are."""
        if self.ended.count == 0 and self.first_death > upto:
            return None
        alive = self.dies > upto
        return alive & ~self.ended.mask() if self.ended.count else alive

    def suspects(self, key: int, probes: Probes) -> Iterator[tuple[Positions, Positions]]:
        """Pairs (probe, position) with agreeing hashes and overlapping lifetimes."""
        for probe, position in self.indexes[key].find(probes.hashes):
            together = (self.born.take(position) < probes.ends.take(probe)) & (
                self.ends.take(position) > probes.born.take(probe)
            )
            if self.ended.count:
                together &= ~self.ended.has(position)
            if together.all():
                yield probe, position
            else:
                yield probe[together], position[together]

    def gather(self, position: Positions) -> pl.DataFrame:
        """The payload of these rows."""
        return self.payload[pl.Series(position.astype(np.uint32))]


def merge(runs: Sequence[Run], built: int, upto: int) -> Run | None:
    """One run with the rows of several, oldest first, that are not dead at `upto`; None when all are."""
    keeps = [run.alive(upto) for run in runs]
    frames = [
        run.frame if keep is None else run.frame.filter(pl.Series(keep))
        for run, keep in zip(runs, keeps, strict=True)
    ]
    frame = pl.concat(frames, rechunk=True)
    if frame.is_empty():
        return None
    indexes = tuple(
        HashIndex.merged([run.indexes[key] for run in runs], keeps) for key in range(len(runs[0].indexes))
    )
    return Run(built, frame, indexes, Ended.none(frame.height))


def ended_at(run: Run, positions: Positions, step: int) -> Run:
    """The run without the rows at these positions, which stay where they are until it is merged."""
    return replace(run, ended=run.ended.adding(positions, step))


def matches(runs: Sequence[Run], key: int, columns: Sequence[str], probes: Probes) -> Iterator[Match]:
    """The partners of the probes in all runs, by the key number `key`, whose columns are `columns`."""
    pending: list[tuple[Run, Positions, Positions]] = []
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
    pending: Sequence[tuple[Run, Positions, Positions]], columns: Sequence[str], probes: Probes
) -> Match:
    probe = np.concatenate([probe for _, probe, _ in pending])
    left = probes.frame[pl.Series(probe.astype(np.uint32))]
    right = pl.concat([run.gather(position) for run, _, position in pending], rechunk=True)
    born, dies, ends = (
        np.concatenate([getattr(run, name).take(position) for run, _, position in pending])
        for name in ("born", "dies", "ends")
    )
    equal = keys_equal(left, right, probes.columns, columns, null_equal=True)
    if equal.all():
        return Match(probe, left, right, born, dies, ends)
    # Two different keys with one hash.
    true = pl.Series(equal)
    return Match(probe[equal], left.filter(true), right.filter(true), born[equal], dies[equal], ends[equal])
