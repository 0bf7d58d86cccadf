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
from headgate.kernels.state.store import ENDS, Instants, Match, Probes, payload_of, rows_at, rows_where
from headgate.model.batch import BORN, DIES

# Matched rows gathered together: bounds the memory of a probe with very many partners.
_GATHERED = 1 << 20


@dataclass(frozen=True, eq=False)
class Deaths:
    """What is known of the announced deaths of a run without going through them again."""

    first: int
    last: int
    some: Instants
    """At least a thousand of them, or all, in order."""

    @staticmethod
    def of(dies: Instants) -> Deaths:
        some = dies[:: max(1, len(dies) // 1024)]
        return Deaths(int(dies.min()), int(dies.max()), np.sort(some))

    def share(self, upto: int) -> float:
        """About which share of the rows has died by `upto`."""
        return float(np.searchsorted(self.some, upto, side="right")) / len(self.some)


@dataclass(frozen=True, eq=False)
class Run:
    """Immutable rows (payload, `_born`, `_dies`) and where each key's hashes occur among them."""

    built: int
    """The end of the clock step that wrote it."""
    frame: pl.DataFrame
    indexes: tuple[HashIndex, ...]
    deaths: Deaths
    ended: Ended

    @staticmethod
    def of(built: int, frame: pl.DataFrame, keys: Sequence[Sequence[str]]) -> Run:
        """A run of the rows of `frame`, at least one, put in order of birth."""
        frame = frame.rechunk()
        born = frame[BORN].to_numpy()
        if np.any(born[1:] < born[:-1]):
            frame = frame.sort(BORN, maintain_order=True)
        return Run._fresh(built, frame, tuple(HashIndex.of(key_hash(frame, key)) for key in keys))

    @staticmethod
    def merged(runs: Sequence[Run], built: int, upto: int) -> Run | None:
        """One run with the rows of several, oldest first, that are not dead at `upto`; None when all are."""
        frame = alive_rows(runs, upto)
        if frame.is_empty():
            return None
        keeps = [run.alive(upto) for run in runs]
        indexes = zip(*(run.indexes for run in runs), strict=True)
        return Run._fresh(built, frame, tuple(HashIndex.merged(each, keeps) for each in indexes))

    @staticmethod
    def _fresh(built: int, frame: pl.DataFrame, indexes: tuple[HashIndex, ...]) -> Run:
        return Run(built, frame, indexes, Deaths.of(frame[DIES].to_numpy()), Ended.none(frame.height))

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
        return payload_of(self.frame)

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

    def dead_share(self, upto: int) -> float:
        """About which share of the rows is dead at `upto`; those that ended and then died count twice."""
        return self.ended.count / self.height + self.deaths.share(upto)

    def alive(self, upto: int) -> Mask | None:
        """Which rows are not dead at `upto`; None when none is."""
        if self.ended.count == 0 and self.deaths.first > upto:
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

    def without(self, positions: Positions, step: int) -> Run:
        """The run in which these rows have ended; they stay where they are until it is merged."""
        return replace(self, ended=self.ended.adding(positions, step))


def alive_rows(runs: Sequence[Run], upto: int) -> pl.DataFrame:
    """The rows of several runs that are not dead at `upto`, oldest run first."""
    keeps = [run.alive(upto) for run in runs]
    kept = [
        r.frame if keep is None else rows_where(r.frame, keep) for r, keep in zip(runs, keeps, strict=True)
    ]
    return pl.concat(kept, rechunk=True)


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
