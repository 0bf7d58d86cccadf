"""Table: an immutable map from a key to a row of values, held in runs sorted by the hash of the key.

```
runs, oldest first     [ 80,000 rows ] [ 9,000 ] [ 10,000 ] [ 1,200 ]
find a key             newest run first; the first run that knows the key has its current row
put a batch            one more run; runs of like size become one, and superseded rows leave
```

A batch costs a probe of each run (their number grows with the logarithm of the rows) and its share of the
merges, so the time of a step follows the batch. A table never holds more than two rows per key alive: when
superseded, deleted and expired rows come to outnumber the others, all is written anew.

A table may have a *deadline*: a column of instants at which rows stop mattering on their own. `expire` finds
them in time order without touching the rest. The deadline of a key may move forward only.

A chunk is named after the instant of the step that built it; a step builds at most one, so no name recurs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from headgate.kernels.keys import Hashes, Mask, key_hash, keys_equal
from headgate.kernels.state.tiers import newest_to_merge
from headgate.model.time import BEGINNING, NEVER

Ints = npt.NDArray[np.int64]
"""Instants, counts, row numbers and positions."""

GONE = "_gone"
"""Marks the row that says that its key has been deleted."""

# A position is the number of the run above these bits and the row of the run below them; -1 is nowhere.
_ROW_BITS = 40
_ROW_MASK = (1 << _ROW_BITS) - 1


@dataclass(frozen=True, eq=False)
class Run:
    """Rows sorted by the hash of their key, no key twice, with what is needed to search them."""

    built: int
    frame: pl.DataFrame
    hashes: Hashes
    by_deadline: Ints | None

    @property
    def height(self) -> int:
        return self.frame.height

    @cached_property
    def nbytes(self) -> int:
        index = 0 if self.by_deadline is None else self.by_deadline.nbytes
        return int(self.frame.estimated_size()) + self.hashes.nbytes + self._directory.nbytes + index

    @cached_property
    def gone(self) -> Mask:
        return self.frame[GONE].to_numpy()

    def numbers(self, name: str) -> Ints:
        """A column of integers as an array, without a copy."""
        return self.frame[name].to_numpy()

    @cached_property
    def _bits(self) -> int:
        return max(1, self.height.bit_length() - 2)

    @cached_property
    def _directory(self) -> npt.NDArray[np.int64]:
        """Where the hashes with each leading `_bits` bits begin: a search starts a few rows from its goal."""
        heads = (self.hashes >> np.uint64(64 - self._bits)).astype(np.int64)
        counts = np.bincount(heads, minlength=1 << self._bits)
        return np.concatenate(([0], np.cumsum(counts)))

    def seek(self, hashes: Hashes) -> Ints:
        """For each hash, the first row that has it, or -1."""
        heads = (hashes >> np.uint64(64 - self._bits)).astype(np.int64)
        low, high = self._directory[heads], self._directory[heads + 1]
        end = high
        width = int((high - low).max(initial=0))
        while width:
            middle = (low + high) >> 1
            before = (low < high) & (self.hashes[np.minimum(middle, self.height - 1)] < hashes)
            low, high = np.where(before, middle + 1, low), np.where(before, high, middle)
            width >>= 1
        found = low < end
        found[found] = self.hashes[low[found]] == hashes[found]
        return np.where(found, low, -1)

    def due(self, deadline: str, after: int, upto: int) -> Ints:
        """Rows with a deadline in (after, upto]."""
        assert self.by_deadline is not None
        instants = self.numbers(deadline)
        first = bisect_right(self.by_deadline, after, key=instants.__getitem__)
        last = bisect_right(self.by_deadline, upto, lo=first, key=instants.__getitem__)
        return self.by_deadline[first:last]

    def expired(self, deadline: str, now: int) -> bool:
        """Whether no row matters any more."""
        assert self.by_deadline is not None
        return bool(self.numbers(deadline)[self.by_deadline[-1]] <= now)


@dataclass(frozen=True, eq=False)
class Table:
    """Rows by key. `schema` names all columns; `deadline`, if any, is one of them, of type Int64."""

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
        return {f"{prefix}{run.built}": run.frame for run in self.runs}

    def restore(self, chunks: Mapping[str, pl.DataFrame], prefix: str) -> Table:
        """The table like this empty one whose chunks with `prefix` these are."""
        mine = {int(name.removeprefix(prefix)): name for name in chunks if name.startswith(prefix)}
        if not mine:
            return replace(self, runs=(), live=0, now=BEGINNING)
        runs = tuple(self._run(built, chunks[mine[built]]) for built in sorted(mine))
        now = runs[-1].built
        whole = _concatenate(runs)
        order = np.argsort(whole.hashes, kind="stable")
        current = order[self._newest(whole, order)]
        return replace(self, runs=runs, live=int(self._alive(whole, current, now).sum()), now=now)

    def expire(self, after: int, upto: int) -> tuple[Table, Ints]:
        """The table at `upto`, and the positions of the rows whose deadline lies in (after, upto].

        They can be read, by position or with `find(since=after)`, until the next `put`.
        """
        # A restored table knows only when its newest run was built, which may be before `after`.
        table = self._pass(after)[0] if self.now < after else self
        return table._pass(upto)

    def find(self, frame: pl.DataFrame, columns: Sequence[str], since: int | None = None) -> Ints:
        """For each row of `frame`, the position of the row whose key equals its `columns`, or -1.

        `since` also finds rows whose deadline passed after that instant. NULL equals NULL.
        """
        positions = np.full(frame.height, -1, dtype=np.int64)
        hashes = key_hash(frame, columns)
        needles = frame.select(columns) if columns else frame
        limit = self.now if since is None else since
        undecided = np.arange(frame.height)
        for number in reversed(range(len(self.runs))):
            if not undecided.size:
                break
            run = self.runs[number]
            rows = self._match(run, needles, columns, undecided, run.seek(hashes[undecided]))
            met = rows >= 0
            rows, which = rows[met], undecided[met]
            alive = self._alive(run, rows, limit)
            positions[which[alive]] = rows[alive] | (number << _ROW_BITS)
            undecided = undecided[~met]
        return positions

    def take(self, positions: Ints) -> pl.DataFrame:
        """The rows at the positions, in their order."""
        owners = positions >> _ROW_BITS
        by_run = np.argsort(owners, kind="stable")
        pieces = [pl.DataFrame(schema=self.schema)]
        for number, run in enumerate(self.runs):
            mine = positions[by_run[owners[by_run] == number]] & _ROW_MASK
            if mine.size:
                pieces.append(run.frame.select(list(self.schema))[mine])
        place = np.empty_like(by_run)
        place[by_run] = np.arange(by_run.size)
        return pl.concat(pieces)[place]

    def numbers(self, positions: Ints, name: str, absent: int) -> Ints:
        """A column of integers at the positions; `absent` where the position is -1."""
        values = np.full(positions.size, absent, dtype=np.int64)
        owners = positions >> _ROW_BITS
        for number, run in enumerate(self.runs):
            mine = owners == number
            values[mine] = run.numbers(name)[positions[mine] & _ROW_MASK]
        return values

    def put(self, rows: pl.DataFrame, at: Ints, gone: Mask | None = None) -> Table:
        """The table in which `rows` (no key twice) replace the rows at the positions `at`, -1 for none.

        A row that is `gone` deletes its key instead. At most once a step, after `expire`.
        """
        now = self.now
        if self.runs and self.runs[-1].built >= now:
            if rows.height:
                raise ValueError(f"the step that ends at {now} has built its chunk already")
            return self
        deleted = np.zeros(rows.height, dtype=np.bool_) if gone is None else gone
        known = at >= 0
        if self.deadline is not None:
            known &= self.numbers(at, self.deadline, BEGINNING) > now
        live = self.live + int((~deleted).sum()) - int(known.sum())
        # Nothing to delete, nothing to say: the key is nowhere, or only in rows whose deadline has passed.
        said = ~deleted | known
        runs = self.runs
        if said.any():
            fresh = rows.select(list(self.schema)).with_columns(pl.Series(GONE, deleted))
            runs = (*runs, self._run(now, fresh if said.all() else fresh.filter(pl.Series(said))))
        return replace(self, runs=runs, live=live)._settled()

    def _pass(self, upto: int) -> tuple[Table, Ints]:
        """The table at `upto` and the positions of the rows that expired on the way."""
        upto = max(self.now, min(upto, NEVER - 1))
        if self.deadline is None or upto == self.now:
            return replace(self, now=upto), np.empty(0, dtype=np.int64)
        due = []
        for number, run in enumerate(self.runs):
            rows = run.due(self.deadline, self.now, upto)
            rows = rows[~run.gone[rows]]
            if number < len(self.runs) - 1 and rows.size:
                # A newer run may have superseded the row; only the current one is due.
                position = rows | (number << _ROW_BITS)
                rows = rows[self.find(run.frame[rows], self.keys) == position]
            due.append(rows | (number << _ROW_BITS))
        positions = np.concatenate(due) if due else np.empty(0, dtype=np.int64)
        return replace(self, now=upto, live=self.live - positions.size), positions

    def _settled(self) -> Table:
        """The same contents in as few runs and rows as promised."""
        runs = self.runs
        if self.deadline is not None:
            runs = tuple(run for run in runs if not run.expired(self.deadline, self.now))
        if sum(run.height for run in runs) > 2 * self.live:
            runs = self._merged(runs, oldest=True)
        elif runs and (count := newest_to_merge([run.height for run in runs])) > 1:
            runs = (*runs[:-count], *self._merged(runs[-count:], oldest=count == len(runs)))
        return replace(self, runs=runs)

    def _merged(self, runs: tuple[Run, ...], oldest: bool) -> tuple[Run, ...]:
        """One run, or none, with what matters of consecutive runs: deletions only if there are older runs."""
        if not self.live and oldest:
            return ()
        joined = _concatenate(runs)
        order = np.argsort(joined.hashes, kind="stable")
        order = order[self._newest(joined, order)]
        if oldest:
            order = order[self._alive(joined, order, self.now)]
        elif self.deadline is not None:
            order = order[joined.numbers(self.deadline)[order] > self.now]
        if not order.size:
            return ()
        by_deadline = None
        if self.deadline is not None:
            # Each run knows its order by deadline: merge the orders, and follow each row to its new place.
            place = np.full(joined.height, -1, dtype=np.int64)
            place[order] = np.arange(order.size)
            assert joined.by_deadline is not None
            sequence = joined.by_deadline[place[joined.by_deadline] >= 0]
            sequence = sequence[np.argsort(joined.numbers(self.deadline)[sequence], kind="stable")]
            by_deadline = place[sequence]
        # Runs that are merged in the step that built the newest one replace it before anybody saw it.
        return (Run(self.now, joined.frame[order], joined.hashes[order], by_deadline),)

    def _alive(self, run: Run, rows: Ints, now: int) -> Mask:
        """Which of the rows are neither deletions nor expired."""
        alive = ~run.gone[rows]
        if self.deadline is not None:
            alive &= run.numbers(self.deadline)[rows] > now
        return alive

    def _newest(self, run: Run, order: Ints) -> Mask:
        """Which of the rows, taken in hash order and older before newer, no later row supersedes."""
        ordered = run.hashes[order]
        newest = np.ones(order.size, dtype=np.bool_)
        keys = run.frame.select(*self.keys, GONE)
        distance = 1
        while (pairs := np.flatnonzero(ordered[:-distance] == ordered[distance:])).size:
            pairs = pairs[newest[pairs]]
            older, newer = keys[order[pairs]], keys[order[pairs + distance]]
            newest[pairs[keys_equal(older, newer, self.keys, self.keys, null_equal=True)]] = False
            distance += 1
        return newest

    def _match(self, run: Run, frame: pl.DataFrame, columns: Sequence[str], which: Ints, rows: Ints) -> Ints:
        """From the first row of each hash in a run to the row with the key itself, or -1."""
        found = np.full(rows.size, -1, dtype=np.int64)
        open_ = np.flatnonzero(rows >= 0)
        keys = run.frame.select(*self.keys, GONE)
        while open_.size:
            at = rows[open_]
            equal = keys_equal(frame[which[open_]], keys[at], columns, self.keys, null_equal=True)
            found[open_[equal]] = at[equal]
            open_, at = open_[~equal], at[~equal]
            # Different keys with one hash lie side by side.
            on = at + 1 < run.height
            open_, at = open_[on], at[on]
            same = run.hashes[at + 1] == run.hashes[at]
            open_ = open_[same]
            rows[open_] += 1
        return found

    def _run(self, built: int, frame: pl.DataFrame) -> Run:
        hashes = key_hash(frame, self.keys)
        order = np.argsort(hashes, kind="stable")
        ordered = frame[order].rechunk()
        by_deadline = None
        if self.deadline is not None:
            by_deadline = np.argsort(ordered[self.deadline].to_numpy(), kind="stable")
        return Run(built, ordered, hashes[order], by_deadline)


def _concatenate(runs: Sequence[Run]) -> Run:
    """The rows of several runs one after the other; by_deadline likewise, not sorted across runs."""
    offsets = np.cumsum([0, *(run.height for run in runs)])
    orders = [
        run.by_deadline + offset
        for run, offset in zip(runs, offsets[:-1], strict=True)
        if run.by_deadline is not None
    ]
    return Run(
        built=runs[-1].built,
        frame=pl.concat([run.frame for run in runs], rechunk=True),
        hashes=np.concatenate([run.hashes for run in runs]),
        by_deadline=np.concatenate(orders) if orders else None,
    )


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
