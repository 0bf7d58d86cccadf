"""Table: an immutable map from a key to a row of values, held in sorted runs that are indexed by the key.

```
runs, oldest first     [ 80,000 rows ] [ 9,000 ] [ 10,000 ] [ 1,200 ]
find a key             one run at most has a row for it
put a batch            one more run, and the rows that it replaces are taken out of theirs
```

A batch costs a probe of each run (their number grows with the logarithm of the rows) and its share of the
merges, so the time of a step follows the batch. A table never holds more than two rows per key alive: when dead rows
come to outnumber the others, all is written anew.

A table may have a *deadline*: a column of instants at which rows stop mattering on their own. Runs are sorted by it,
so `expire` finds them without touching the rest. The deadline of a key may move forward only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Self

import numpy as np
import polars as pl

from headgate.kernels.keys import Mask, key_hash, keys_equal
from headgate.kernels.state.composite import States
from headgate.kernels.state.index import HashIndex
from headgate.kernels.state.sorted_runs import Ints, Run, SortedRuns, kept_rows
from headgate.kernels.state.store import rows_at
from headgate.model.time import BEGINNING, NEVER

# A position is the number of the run above these bits and the row of the run below them.
_ROW_BITS = 40
_ROW_MASK = (1 << _ROW_BITS) - 1

_NONE = np.empty(0, dtype=np.int64)


def columns_of(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Some columns of a frame, at least one, without the query engine's overhead."""
    return pl.DataFrame([frame.get_column(name) for name in names])


@dataclass(frozen=True, eq=False)
class Table(SortedRuns[Run]):
    """Rows by key. `schema` names all columns; `deadline`, if any, is one of them, of type Int64.

    A position says where a row is; -1 if the key is not there.
    """

    schema: Mapping[str, pl.DataType]
    keys: tuple[str, ...]
    deadline: str | None = None
    now: int = BEGINNING

    @property
    def live(self) -> int:
        """How many keys there are; it costs as much as all rows."""
        return sum(run.height if keep is None else int(keep.sum()) for run, keep in self._with_keeps())

    def restored(self, chunks: Mapping[str, pl.DataFrame]) -> Self:
        table = super().restored(chunks)
        return replace(table, now=max((run.built for run in table.runs), default=BEGINNING))

    def expire(self, after: int, upto: int) -> tuple[Self, Ints]:
        """The table at `upto`, and the positions of the rows whose deadline lies in (after, upto].

        They can be read, by position or with `find(since=after)`, until the next `put`.
        """
        upto = max(self.now, min(upto, NEVER - 1))
        due = [_NONE]
        for number, run in enumerate(self.runs):
            rows = np.arange(self._expired(run, after), self._expired(run, upto))
            due.append(rows[run.is_in(rows)] | (number << _ROW_BITS))
        return replace(self, now=upto), np.concatenate(due)

    def find(self, frame: pl.DataFrame, columns: Sequence[str], since: int | None = None) -> Ints:
        """For each row of `frame`, the position of the row whose key equals its `columns`.

        `since` also finds rows whose deadline passed after that instant. NULL equals NULL.
        """
        hashes = key_hash(frame, columns)
        limit = self.now if since is None else since
        asking, found, theirs = [_NONE], [_NONE], []
        for number, run in enumerate(self.runs):
            for which, suspects in run.indexes[0].find(hashes):
                matters = run.is_in(suspects) & (suspects >= self._expired(run, limit))
                rows = suspects[matters]
                if rows.size:
                    asking.append(which[matters])
                    found.append(rows | (number << _ROW_BITS))
                    if columns:
                        theirs.append(rows_at(columns_of(run.frame, self.keys), rows))
        which, positions = np.concatenate(asking), np.concatenate(found)
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
            pieces.append(rows_at(columns_of(self.runs[number].frame, [*self.schema]), rows))
            place[which] = np.arange(filled, filled + rows.size)
            filled += rows.size
        return rows_at(pl.concat(pieces), place)

    def numbers(self, positions: Ints, names: Sequence[str], absent: int) -> tuple[Ints, ...]:
        """Columns of integers at the positions; `absent` where a position is negative."""
        columns = tuple(np.full(positions.size, absent, dtype=np.int64) for _ in names)
        for number, which, rows in self._by_run(positions):
            for column, name in zip(columns, names, strict=True):
                column[which] = self.runs[number].numbers(name).take(rows)
        return columns

    def put(self, rows: pl.DataFrame, at: Ints, gone: Mask | None = None) -> Self:
        """The table with `rows`, no key twice, in place of what `find` found for their keys, `at`.

        A row that is `gone` deletes its key instead. At most once a step, after `expire`.
        """
        if any(run.built >= self.now for run in self.runs):
            if rows.height:
                raise ValueError(f"the step that ends at {self.now} has built its chunk already")
            return self
        runs = list(self.runs)
        for number, _, replaced in self._by_run(at):
            runs[number] = runs[number].without(replaced, self.now)
        fresh = columns_of(rows, [*self.schema])
        if gone is not None and gone.any():
            fresh = rows_at(fresh, np.flatnonzero(~gone))
        runs = [run for run in runs if max(run.removals, self._expired(run, self.now)) < run.height]
        if fresh.height:
            runs.append(self._written(fresh, self.now))
        settled = tuple(runs)
        if 2 * sum(self._dead(run, self.now) for run in runs) > sum(run.height for run in runs):
            settled = self._merged(runs, self.now, self.now)
        elif fresh.height:
            settled = self._tiered(settled, self.now, self.now)
        return replace(self, runs=settled)

    def live_rows(self) -> pl.DataFrame:
        """All rows that are there."""
        if not self.runs:
            return pl.DataFrame(schema=self.schema)
        return kept_rows(self.runs, [keep for _, keep in self._with_keeps()])

    def only(self, rows: pl.DataFrame, upto: int) -> Self:
        """The table with these of its rows alone, written anew in the step that ends at `upto`."""
        table = replace(self, runs=(), now=max(self.now, upto))
        return table if rows.is_empty() else replace(table, runs=(table._written(rows, table.now),))

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

    def _with_keeps(self) -> list[tuple[Run, Mask | None]]:
        return [(run, self._alive(run, self.now)) for run in self.runs]

    def _expired(self, run: Run, now: int) -> int:
        """How many rows at the front of a run have a deadline that has passed."""
        if self.deadline is None:
            return 0
        return int(np.searchsorted(run.numbers(self.deadline), now, side="right"))

    @property
    def _keys(self) -> tuple[tuple[str, ...], ...]:
        return (self.keys,)

    @property
    def _order(self) -> str | None:
        return self.deadline

    def _run(self, since: int, built: int, frame: pl.DataFrame, indexes: tuple[HashIndex, ...]) -> Run:
        return Run(since, built, frame, indexes)

    def _alive(self, run: Run, now: int) -> Mask | None:
        expired = self._expired(run, now)
        if not expired and run.removed is None:
            return None
        alive = np.ones(run.height, dtype=np.bool_) if run.removed is None else ~run.removed.mask()
        alive[:expired] = False
        return alive

    def _dead(self, run: Run, now: int) -> float:
        return run.removals + self._expired(run, now)


Tables = States[Table]
"""The state of a kernel that remembers all it needs in a few tables."""
