"""Sorted runs: how everything that a kernel remembers is kept, as immutable runs of rows, the oldest first.

```
runs             [ 80,000 rows ] [ 9,000 ] [ 10,000 ] [ 1,200 ]
a step           adds one run; the newest of about one size become one, in which dead rows are left behind
rows that die    are passed over where they are; a run that is mostly dead is written anew
a checkpoint     writes the runs that are new, and of the others which rows have been taken out since
```

There are few runs, each row is copied few times, and a step costs what it changes. What a structure adds is the order
of the rows in a run, the keys by which they are found, and when a row is dead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Generic, Self, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from headgate.kernels.keys import Mask, key_hash
from headgate.kernels.state.index import HashIndex, Positions
from headgate.kernels.state.removed import POSITION, Piece, Removed
from headgate.kernels.state.store import rows_at, rows_where
from headgate.kernels.state.tiers import newest_to_merge

Ints = npt.NDArray[np.int64]
"""Instants, counts, row numbers and positions."""


@dataclass(frozen=True, eq=False)
class Run:
    """Rows that were written together, an index of them for each key, and which have been taken out since."""

    since: int
    """The step that brought the oldest of them; runs of a structure stand in this order."""
    built: int
    """The step that wrote the run; with `since` it is a name that never recurs."""
    frame: pl.DataFrame
    indexes: tuple[HashIndex, ...] = ()
    removed: Removed | None = None

    @property
    def name(self) -> str:
        return f"{self.since}.{self.built}"

    @property
    def height(self) -> int:
        return self.frame.height

    @cached_property
    def nbytes(self) -> int:
        removed = 0 if self.removed is None else self.removed.nbytes
        return int(self.frame.estimated_size()) + sum(index.nbytes for index in self.indexes) + removed

    @cached_property
    def removals(self) -> int:
        """How many rows have been taken out."""
        return 0 if self.removed is None else self.removed.count

    def numbers(self, name: str) -> Ints:
        """A column of integers as an array, without a copy."""
        return self.frame.get_column(name).to_numpy()

    def is_in(self, positions: Positions) -> Mask:
        """Which of the rows at these positions have not been taken out."""
        if self.removed is None:
            return np.ones(positions.size, dtype=np.bool_)
        return ~self.removed.has(positions)

    def without(self, positions: Positions, step: int) -> Self:
        """The run without these rows; they stay where they are until it is written anew."""
        removed = Removed.none(self.height) if self.removed is None else self.removed
        return replace(self, removed=removed.adding(positions, step))


R = TypeVar("R", bound=Run)


@dataclass(frozen=True, eq=False)
class SortedRuns(Generic[R]):
    """Runs of rows. A structure says how a run is made, and may say how its rows are sorted, found and dead."""

    runs: tuple[R, ...] = field(default=(), kw_only=True)

    @property
    def rows(self) -> int:
        """Rows held, dead ones that were not reclaimed yet included."""
        return sum(run.height for run in self.runs)

    @property
    def nbytes(self) -> int:
        """Bytes of rows and indexes."""
        return sum(run.nbytes for run in self.runs)

    def chunks(self) -> dict[str, pl.DataFrame]:
        """Every chunk by name: the runs, and the positions of rows that have been taken out of them."""
        chunks = {run.name: run.frame for run in self.runs}
        for run in self.runs:
            for piece in () if run.removed is None else run.removed.log:
                chunks[f"{run.name}.{piece.step}"] = piece.frame
        return chunks

    def restored(self, chunks: Mapping[str, pl.DataFrame]) -> Self:
        """The structure like this empty one whose `chunks()` these are."""
        frames: dict[tuple[int, int], pl.DataFrame] = {}
        logs: dict[tuple[int, int], list[Piece]] = {}
        for name, frame in chunks.items():
            since, built, *step = map(int, name.split("."))
            if step:
                logs.setdefault((since, built), []).append(Piece(step[0], frame[POSITION].to_numpy()))
            else:
                frames[since, built] = frame.rechunk()
        runs = []
        for (since, built), frame in sorted(frames.items(), key=lambda each: each[0]):
            run = self._run(since, built, frame, self._indexes_of(frame))
            if log := logs.get((since, built)):
                run = replace(run, removed=Removed.none(run.height).remembering(tuple(log)))
            runs.append(run)
        return replace(self, runs=tuple(runs))

    @property
    def _keys(self) -> tuple[tuple[str, ...], ...]:
        """The columns of each key by which rows are found."""
        return ()

    @property
    def _order(self) -> str | None:
        """The column of instants by which the rows of a run are sorted; None: they stand as they came."""
        return None

    def _run(self, since: int, built: int, frame: pl.DataFrame, indexes: tuple[HashIndex, ...]) -> R:
        """A run of rows that are in order."""
        raise NotImplementedError

    def _alive(self, run: R, now: int) -> Mask | None:
        """Which rows of a run are not dead at an instant; None if all are alive."""
        return None

    def _dead(self, run: R, now: int) -> float:
        """About how many rows of a run are dead at an instant; only who tidies up asks."""
        raise NotImplementedError

    def _written(self, frame: pl.DataFrame, now: int) -> R:
        """A run of rows, at least one, that came in the step that ends at `now`."""
        order = self._places(frame)
        frame = (frame if order is None else rows_at(frame, order)).rechunk()
        return self._run(now, now, frame, self._indexes_of(frame))

    def _tiered(self, runs: tuple[R, ...], now: int, dead: int) -> tuple[R, ...]:
        """The same rows, of which the newest run has just come, in few runs; but for those dead at `dead`."""
        count = newest_to_merge([run.height for run in runs])
        return (*runs[:-count], *self._merged(runs[-count:], now, dead)) if count > 1 else runs

    def _tidied(self, runs: tuple[R, ...], now: int, small: int = 0) -> tuple[R, ...]:
        """The same rows without many that are dead; in a run of up to `small` rows, without any."""
        tidy: list[R] = []
        for run in runs:
            dead = self._dead(run, now)
            # What this step has built is not in a checkpoint yet: whatever it loses now need not be.
            most = run.height * (0.2 if run.built == now else 0.5)
            tidy += self._merged([run], now, now) if dead > (0 if run.height <= small else most) else [run]
        return tuple(tidy)

    def _merged(self, runs: Sequence[R], now: int, dead: int) -> tuple[R, ...]:
        """One run with the rows of consecutive ones that are not dead at `dead`, or none."""
        keeps = [self._alive(run, dead) for run in runs]
        frame = kept_rows(runs, keeps)
        if frame.is_empty():
            return ()
        order = self._places(frame)
        indexes = zip(*(run.indexes for run in runs), strict=True)
        moves = _moves(runs, keeps, order) if self._keys else []
        merged = tuple(HashIndex.merged(each, moves) for each in indexes)
        frame = frame if order is None else rows_at(frame, order)
        return (self._run(runs[0].since, now, frame, merged),)

    def _places(self, frame: pl.DataFrame) -> Positions | None:
        """The order in which the rows should stand; None if they do."""
        if self._order is None:
            return None
        instants = frame.get_column(self._order).to_numpy()
        # The stable sort makes use of the sorted stretches of which most frames consist.
        return np.argsort(instants, kind="stable") if np.any(instants[1:] < instants[:-1]) else None

    def _indexes_of(self, frame: pl.DataFrame) -> tuple[HashIndex, ...]:
        return tuple(HashIndex.of(key_hash(frame, key)) for key in self._keys)


@dataclass(frozen=True, eq=False)
class Runs(SortedRuns[Run]):
    """Rows with the columns of `schema` in the order in which they came, none of which dies on its own."""

    schema: Mapping[str, pl.DataType]

    @property
    def frame(self) -> pl.DataFrame:
        """All rows."""
        frames = [run.frame for run in self.runs]
        return frames[0] if len(frames) == 1 else pl.concat([pl.DataFrame(schema=self.schema), *frames])

    def adding(self, frame: pl.DataFrame, now: int) -> Self:
        """Also these rows, which came in the step that ends at `now`."""
        if frame.is_empty():
            return self
        return replace(self, runs=self._tiered((*self.runs, self._written(frame, now)), now, now))

    def only(self, frame: pl.DataFrame, now: int) -> Self:
        """These rows alone, written anew in the step that ends at `now`."""
        return replace(self, runs=()).adding(frame, now)

    def _run(self, since: int, built: int, frame: pl.DataFrame, indexes: tuple[HashIndex, ...]) -> Run:
        return Run(since, built, frame, indexes)


def kept_rows(runs: Sequence[Run], keeps: Sequence[Mask | None]) -> pl.DataFrame:
    """The rows of runs, at least one, that the masks keep (None: all)."""
    frames = zip((run.frame for run in runs), keeps, strict=True)
    return pl.concat([f if keep is None else rows_where(f, keep) for f, keep in frames], rechunk=True)


def _moves(
    runs: Sequence[Run], keeps: Sequence[Mask | None], order: Positions | None
) -> list[Positions | int]:
    """Where the rows of each run go when what is kept of them is laid end to end and put in order."""
    moves: list[Positions | int] = []
    offset = 0
    target = None if order is None else np.argsort(order)
    for run, keep in zip(runs, keeps, strict=True):
        if keep is None and target is None:
            moves.append(offset)
            offset += run.height
            continue
        kept = np.arange(run.height) if keep is None else np.flatnonzero(keep)
        place = np.arange(offset, offset + kept.size)
        offset += kept.size
        moved = np.full(run.height, -1, dtype=np.int64)
        moved[kept] = place if target is None else target[place]
        moves.append(moved)
    return moves
