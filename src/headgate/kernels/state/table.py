"""Table: an immutable map from a key to a row of values, held in runs that are indexed by hashes of the key.

```
runs, oldest first     [ 80,000 rows ] [ 9,000 ] [ 10,000 ] [ 1,200 ]
find a key             one run at most has a row for it that is not stale
put a batch            one more run, and the rows it replaces become stale; runs of like size become one
```

A batch costs a probe of each run (their number grows with the logarithm of the rows) and its share of the
merges, so the time of a step follows the batch. A table never holds more than two rows per key alive: when
stale, deleted and expired rows come to outnumber the others, all is written anew.

A table may have a *deadline*: a column of instants at which rows stop mattering on their own. `expire` finds
them in time order without touching the rest. The deadline of a key may move forward only.

A chunk is named after the instant of the step that built it; a step builds at most one, so no name recurs.
Which rows are stale is not written down: a newer chunk has the key, be it only to say that it is gone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import polars as pl

from headgate.kernels.keys import Mask, key_hash, keys_equal
from headgate.kernels.state.index import HashIndex
from headgate.kernels.state.store import rows_at
from headgate.kernels.state.tiers import newest_to_merge
from headgate.model.time import BEGINNING, NEVER

Ints = npt.NDArray[np.int64]
"""Instants, counts, row numbers and positions."""

GONE = "_gone"
"""Marks the row that says that its key has been deleted."""

# A position is the number of the run above these bits and the row of the run below them.
_ROW_BITS = 40
_ROW_MASK = (1 << _ROW_BITS) - 1

_NONE = np.empty(0, dtype=np.int64)
_NO = np.empty(0, dtype=np.bool_)


def columns_of(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Some columns of a frame, at least one, without the query engine's overhead."""
    return pl.DataFrame([frame.get_column(name) for name in names])


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows, no key twice, with what is needed to find them by key and by deadline."""

    frame: pl.DataFrame
    index: HashIndex
    by_deadline: npt.NDArray[np.uint32] | None

    @cached_property
    def nbytes(self) -> int:
        order = 0 if self.by_deadline is None else self.by_deadline.nbytes
        return int(self.frame.estimated_size()) + self.index.nbytes + order

    @cached_property
    def gone(self) -> Mask | None:
        """Which rows are deletions; None if none is."""
        column = self.frame.get_column(GONE)
        return column.to_numpy() if column.any() else None

    def numbers(self, name: str) -> Ints:
        """A column of integers as an array, without a copy."""
        return self.frame.get_column(name).to_numpy()

    def due(self, deadline: str, after: int, upto: int) -> Ints:
        """Rows with a deadline in (after, upto]."""
        assert self.by_deadline is not None
        instants = self.numbers(deadline)
        first = bisect_right(self.by_deadline, after, key=instants.__getitem__)
        last = bisect_right(self.by_deadline, upto, lo=first, key=instants.__getitem__)
        return self.by_deadline[first:last].astype(np.int64)

    def last_deadline(self, deadline: str) -> int:
        assert self.by_deadline is not None
        return int(self.numbers(deadline)[self.by_deadline[-1]])


@dataclass(frozen=True, eq=False)
class Run:
    """Rows, the step that put them here, and which of them a newer run has made stale."""

    built: int
    rows: Rows
    stale: npt.NDArray[np.uint8]
    stales: int = 0

    @staticmethod
    def fresh(built: int, rows: Rows) -> Run:
        return Run(built, rows, np.zeros((rows.frame.height + 7) // 8, dtype=np.uint8))

    @property
    def height(self) -> int:
        return self.rows.frame.height

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes + self.stale.nbytes

    def is_fresh(self, rows: Ints) -> Mask:
        """Which of the rows are not stale."""
        if not self.stales:
            return np.ones(rows.size, dtype=np.bool_)
        return (~(self.stale.take(rows >> 3) >> (rows & 7).astype(np.uint8)) & 1).view(np.bool_)

    def without(self, rows: Ints) -> Run:
        """The run with these rows, which are not stale, stale too."""
        stale = self.stale.copy()
        np.bitwise_or.at(stale, rows >> 3, np.left_shift(1, rows & 7).astype(np.uint8))
        return replace(self, stale=stale, stales=self.stales + rows.size)


@dataclass(frozen=True, eq=False)
class Table:
    """Rows by key. `schema` names all columns; `deadline`, if any, is one of them, of type Int64.

    A position says where a row is. If negative, the key is not there: -1, or -2 - p if it was deleted at p.
    """

    schema: Mapping[str, pl.DataType]
    keys: tuple[str, ...]
    deadline: str | None = None
    runs: tuple[Run, ...] = ()
    live: int = 0
    now: int = BEGINNING

    @property
    def rows(self) -> int:
        return sum(run.height for run in self.runs)

    @property
    def nbytes(self) -> int:
        return sum(run.nbytes for run in self.runs)

    def chunks(self, prefix: str) -> dict[str, pl.DataFrame]:
        """Every chunk by name; each name starts with `prefix`."""
        return {f"{prefix}{run.built}": run.rows.frame for run in self.runs}

    def restore(self, chunks: Mapping[str, pl.DataFrame], prefix: str) -> Table:
        """The table like this empty one whose chunks with `prefix` these are."""
        mine = {int(name.removeprefix(prefix)): name for name in chunks if name.startswith(prefix)}
        if not mine:
            return replace(self, runs=(), live=0, now=BEGINNING)
        runs = [Run.fresh(built, self._rows(chunks[mine[built]])) for built in sorted(mine)]
        stale = np.split(self._superseded(runs), np.cumsum([run.height for run in runs])[:-1])
        runs = [run.without(np.flatnonzero(which)) for run, which in zip(runs, stale, strict=True)]
        now = runs[-1].built
        live = sum(int(self._alive(run, np.arange(run.height), now).sum()) for run in runs)
        return replace(self, runs=tuple(runs), live=live, now=now)

    def expire(self, after: int, upto: int) -> tuple[Table, Ints]:
        """The table at `upto`, and the positions of the rows whose deadline lies in (after, upto].

        They can be read, by position or with `find(since=after)`, until the next `put`.
        """
        # A restored table knows only when its newest run was built, which may be before `after`.
        table = self._pass(after)[0] if self.now < after else self
        return table._pass(upto)

    def find(self, frame: pl.DataFrame, columns: Sequence[str], since: int | None = None) -> Ints:
        """For each row of `frame`, the position of the row whose key equals its `columns`.

        `since` also finds rows whose deadline passed after that instant. NULL equals NULL.
        """
        hashes = key_hash(frame, columns)
        limit = self.now if since is None else since
        asking, found, alive, theirs = [_NONE], [_NONE], [_NO], []
        for number, run in enumerate(self.runs):
            for which, suspects in run.rows.index.find(hashes):
                fresh = run.is_fresh(suspects)
                rows = suspects[fresh]
                if rows.size:
                    asking.append(which[fresh])
                    found.append(rows | (number << _ROW_BITS))
                    alive.append(self._matters(run, rows, limit))
                    if columns:
                        theirs.append(rows_at(columns_of(run.rows.frame, self.keys), rows))
        which, positions = np.concatenate(asking), np.concatenate(found)
        positions = np.where(np.concatenate(alive), positions, -2 - positions)
        if theirs:
            ours = rows_at(columns_of(frame, columns), which)
            equal = keys_equal(ours, pl.concat(theirs), columns, self.keys, null_equal=True)
            which, positions = which[equal], positions[equal]
        result = np.full(frame.height, -1, dtype=np.int64)
        result[which] = positions
        return result

    def take(self, positions: Ints) -> pl.DataFrame:
        """The rows at the positions, none negative, in their order."""
        pieces = [pl.DataFrame(schema=self.schema)]
        place = np.empty_like(positions)
        filled = 0
        for number, which, rows in self._by_run(positions):
            pieces.append(rows_at(columns_of(self.runs[number].rows.frame, [*self.schema]), rows))
            place[which] = np.arange(filled, filled + rows.size)
            filled += rows.size
        return rows_at(pl.concat(pieces), place)

    def numbers(self, positions: Ints, names: Sequence[str], absent: int) -> tuple[Ints, ...]:
        """Columns of integers at the positions; `absent` where a position is negative."""
        columns = tuple(np.full(positions.size, absent, dtype=np.int64) for _ in names)
        for number, which, rows in self._by_run(positions):
            for column, name in zip(columns, names, strict=True):
                column[which] = self.runs[number].rows.numbers(name).take(rows)
        return columns

    def put(self, rows: pl.DataFrame, at: Ints, gone: Mask | None = None) -> Table:
        """The table with `rows`, no key twice, in place of what `find` found for their keys, `at`.

        A row that is `gone` deletes its key instead. At most once a step, after `expire`.
        """
        if self.runs and self.runs[-1].built >= self.now:
            if rows.height:
                raise ValueError(f"the step that ends at {self.now} has built its chunk already")
            return self
        deleted = np.zeros(rows.height, dtype=np.bool_) if gone is None else gone
        known = at >= 0
        if self.deadline is not None:
            known &= self.numbers(at, [self.deadline], BEGINNING)[0] > self.now
        live = self.live + int((~deleted).sum()) - int(known.sum())
        # Nothing to delete, nothing to say: the key is nowhere, or only in rows whose deadline has passed.
        said = np.flatnonzero(~deleted | known)
        if not said.size:
            return replace(self, live=live)._settled()
        runs = list(self.runs)
        for number, _, replaced in self._by_run(np.where(at >= 0, at, -2 - at).take(said)):
            runs[number] = runs[number].without(replaced)
        fresh = columns_of(rows, [*self.schema]).hstack([pl.Series(GONE, deleted)])
        fresh = fresh if said.size == fresh.height else rows_at(fresh, said)
        runs.append(Run.fresh(self.now, self._rows(fresh)))
        return replace(self, runs=tuple(runs), live=live)._settled()

    def live_rows(self) -> pl.DataFrame:
        """All rows that are there."""
        found = [
            rows_at(run.rows.frame, np.flatnonzero(self._alive(run, np.arange(run.height), self.now)))
            for run in self.runs
        ]
        return columns_of(pl.concat(found), [*self.schema]) if found else pl.DataFrame(schema=self.schema)

    def only(self, rows: pl.DataFrame, upto: int) -> Table:
        """The table with these of its rows alone, written anew in the step that ends at `upto`."""
        table = replace(self, runs=(), live=rows.height, now=max(self.now, upto))
        if rows.is_empty():
            return table
        marked = columns_of(rows, [*self.schema]).hstack([pl.Series(GONE, np.zeros(rows.height, np.bool_))])
        return replace(table, runs=(Run.fresh(table.now, table._rows(marked)),))

    def _pass(self, upto: int) -> tuple[Table, Ints]:
        """The table at `upto` and the positions of the rows that expired on the way."""
        upto = max(self.now, min(upto, NEVER - 1))
        due = [_NONE]
        if self.deadline is not None and upto > self.now:
            for number, run in enumerate(self.runs):
                rows = run.rows.due(self.deadline, self.now, upto)
                rows = rows[self._alive(run, rows, self.now)]
                due.append(rows | (number << _ROW_BITS))
        positions = np.concatenate(due)
        return replace(self, now=upto, live=self.live - positions.size), positions

    def _by_run(self, positions: Ints) -> list[tuple[int, Ints, Ints]]:
        """For each run with some of the positions: its number, which of them they are, and their rows."""
        if len(self.runs) == 1:
            which = np.flatnonzero(positions >= 0)
            return [(0, which, positions.take(which))] if which.size else []
        # Sorting the numbers of so few runs takes a single pass.
        owners = (positions >> _ROW_BITS).astype(np.int16)
        order = np.argsort(owners, kind="stable")
        bounds = np.searchsorted(owners.take(order), np.arange(len(self.runs) + 1, dtype=np.int16)).tolist()
        parts = [order[low:high] for low, high in pairwise(bounds)]
        return [(number, w, positions.take(w) & _ROW_MASK) for number, w in enumerate(parts) if w.size]

    def _alive(self, run: Run, rows: Ints, now: int) -> Mask:
        """Which of the rows are neither stale nor deletions nor expired."""
        return run.is_fresh(rows) & self._matters(run, rows, now)

    def _matters(self, run: Run, rows: Ints, now: int) -> Mask:
        """Which of the rows are neither deletions nor expired."""
        matters = np.ones(rows.size, dtype=np.bool_)
        if run.rows.gone is not None:
            matters = ~run.rows.gone.take(rows)
        if self.deadline is not None:
            matters &= run.rows.numbers(self.deadline).take(rows) > now
        return matters

    def _settled(self) -> Table:
        """The same contents in as few runs and rows as promised."""
        runs = self.runs
        if self.deadline is not None:
            runs = tuple(run for run in runs if run.rows.last_deadline(self.deadline) > self.now)
        if sum(run.height for run in runs) > 2 * self.live:
            runs = self._merged(runs, oldest=True)
        elif runs and (count := newest_to_merge([run.height for run in runs])) > 1:
            runs = (*runs[:-count], *self._merged(runs[-count:], oldest=count == len(runs)))
        return replace(self, runs=runs)

    def _merged(self, runs: Sequence[Run], oldest: bool) -> tuple[Run, ...]:
        """One run, or none, with what matters of consecutive runs: deletions only if there are older runs."""
        stays = [self._stays(run, oldest) for run in runs]
        frame = pl.concat(
            [
                run.rows.frame if keep is None else run.rows.frame.filter(pl.Series(keep))
                for run, keep in zip(runs, stays, strict=True)
            ],
            rechunk=True,
        )
        if frame.is_empty():
            return ()
        index = HashIndex.merged([run.rows.index for run in runs], stays)
        by_deadline = None
        if self.deadline is not None:
            orders, offset = [], np.uint32(0)
            for run, keep in zip(runs, stays, strict=True):
                order = run.rows.by_deadline
                assert order is not None
                if keep is not None:
                    order = np.cumsum(keep, dtype=np.uint32).take(order[keep.take(order)]) - np.uint32(1)
                orders.append(order + offset)
                offset += np.uint32(order.size)
            by_deadline = _in_order(np.concatenate(orders), frame.get_column(self.deadline).to_numpy())
        # What the newest run held under the same name nobody has seen: it was built in this step.
        return (Run.fresh(self.now, Rows(frame, index, by_deadline)),)

    def _stays(self, run: Run, oldest: bool) -> Mask | None:
        """Which rows of a run matter when it is written anew; None if all do."""
        stays = self._alive(run, np.arange(run.height), self.now)
        if not oldest and run.rows.gone is not None:
            stays |= run.rows.gone & run.is_fresh(np.arange(run.height))
        return None if stays.all() else stays

    def _superseded(self, runs: Sequence[Run]) -> Mask:
        """Which rows of the runs, laid end to end from the oldest, have a key that a later row has too."""
        frame = pl.concat([run.rows.frame for run in runs])
        hashes = key_hash(frame, self.keys)
        order = np.argsort(hashes, kind="stable")
        hashes = hashes[order]
        superseded = np.zeros(order.size, dtype=np.bool_)
        distance = 1
        while (pairs := np.flatnonzero(hashes[:-distance] == hashes[distance:])).size:
            older, newer = rows_at(frame, order[pairs]), rows_at(frame, order[pairs + distance])
            equal = keys_equal(older, newer, self.keys, self.keys, null_equal=True)
            superseded[order[pairs[equal]]] = True
            distance += 1
        return superseded

    def _rows(self, frame: pl.DataFrame) -> Rows:
        frame = frame.rechunk()
        by_deadline = None
        if self.deadline is not None:
            instants = frame.get_column(self.deadline).to_numpy()
            by_deadline = _in_order(np.arange(frame.height, dtype=np.uint32), instants)
        return Rows(frame, HashIndex.of(key_hash(frame, self.keys)), by_deadline)


def _in_order(rows: npt.NDArray[np.uint32], instants: Ints) -> npt.NDArray[np.uint32]:
    """The rows by the instants that they have."""
    mine = instants.take(rows)
    # Deadlines mostly come in order, or in a few stretches that are, which the stable sort finds and merges.
    return rows if np.all(mine[:-1] <= mine[1:]) else rows.take(np.argsort(mine, kind="stable"))


@dataclass(frozen=True, eq=False)
class Tables:
    """The state of a kernel that remembers all it needs in a few tables."""

    parts: Mapping[str, Table]

    @property
    def rows(self) -> int:
        return sum(table.rows for table in self.parts.values())

    @property
    def nbytes(self) -> int:
        return sum(table.nbytes for table in self.parts.values())

    def chunks(self) -> dict[str, pl.DataFrame]:
        named = [table.chunks(f"{name}/") for name, table in self.parts.items()]
        return {name: frame for chunks in named for name, frame in chunks.items()}

    def restore(self, chunks: Mapping[str, pl.DataFrame]) -> Tables:
        """The tables like these empty ones whose chunks these are."""
        return Tables({name: table.restore(chunks, f"{name}/") for name, table in self.parts.items()})
