"""Multiplicity: how many copies of each value several inputs hold, at every instant of a step.

A signed lifetime is two events: its sign at birth, the opposite at death. Those in the step are swept in time
order; deaths beyond it wait, added up per value and instant, so that an ending (sign -1 until the announced
death) meets the death it takes back and both leave the state at once.

```
value a   +1 [1, 9)                 count   1    2         1        (0 at 9)
value a   +1 [3, 7)                         1    3         7
                    step (0, 8]     waiting at 9: -1
```
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from headgate.kernels.keys import Mask, key_hash, keys_equal
from headgate.kernels.state.composite import States
from headgate.kernels.state.sorted_runs import Ints
from headgate.kernels.state.store import rows_at
from headgate.kernels.state.table import Table, Tables, columns_of
from headgate.model.batch import BORN, DIES, SIGN
from headgate.model.time import NEVER, Clock

AT = "_at"


@dataclass(frozen=True, eq=False)
class Groups:
    """The rows of a frame, ordered by value and then by time.

    `order` lists the rows, `codes` numbers the value of each in that order, `leaders` has one row per value.
    """

    order: Ints
    codes: Ints
    leaders: Ints

    @property
    def first(self) -> Mask:
        """Where, in that order, a value begins."""
        return starts(self.codes)


def group(frame: pl.DataFrame, columns: Sequence[str], instants: Ints) -> Groups:
    """The rows of `frame` by equal `columns` (NULL equals NULL), each value's rows by `instants`."""
    by_time = np.arange(frame.height)
    if np.any(instants[1:] < instants[:-1]):
        by_time = np.argsort(instants, kind="stable")
    hashes = key_hash(frame, columns)[by_time]
    by_hash = np.argsort(hashes, kind="stable")
    order, hashes = by_time[by_hash], hashes[by_hash]
    opens = starts(hashes)
    codes = np.cumsum(opens) - 1
    leaders = order[opens]
    others = np.flatnonzero(~opens)
    if not columns or not others.size:
        return Groups(order, codes, leaders)
    # Equal hashes are nearly always equal values. Where they are not, the rest of the hash gets a leader of
    # its own, and so on; then the rows have to be brought together again.
    keys = columns_of(frame, columns)
    scattered = False
    while others.size:
        same = _agree(keys, order[others], leaders[codes[others]])
        others = others[~same]
        if others.size:
            scattered = True
            opens = starts(codes[others])
            codes[others] = leaders.size + np.cumsum(opens) - 1
            leaders = np.concatenate((leaders, order[others[opens]]))
            others = others[~opens]
    if scattered:
        together = np.argsort(codes, kind="stable")
        order, codes = order[together], codes[together]
    return Groups(order, codes, leaders)


def _agree(keys: pl.DataFrame, one: Ints, other: Ints) -> Mask:
    """Row by row, whether two lists of rows have the same values."""
    return keys_equal(rows_at(keys, one), rows_at(keys, other), keys.columns, keys.columns, null_equal=True)


def starts(codes: npt.NDArray[np.generic]) -> Mask:
    """Where a sequence differs from what comes before it; true at the beginning."""
    differs = np.ones(codes.size, dtype=np.bool_)
    differs[1:] = codes[1:] != codes[:-1]
    return differs


def running_max(values: Ints, codes: Ints) -> Ints:
    """For each row the largest value so far with its code; equal codes lie side by side."""
    largest = values.copy()
    distance = 1
    # Each round doubles the reach, up to the longest stretch of one code.
    while np.any(together := codes[distance:] == codes[:-distance]):
        np.maximum(largest[distance:], largest[:-distance].copy(), out=largest[distance:], where=together)
        distance *= 2
    return largest


@dataclass(frozen=True, eq=False)
class Changes:
    """Where a count of a value changes: the instant, and the counts before and after, one column per input.

    `codes` are rows of `values`; the changes of one value lie side by side in time order.
    """

    values: pl.DataFrame
    codes: Ints
    instants: Ints
    before: Ints
    after: Ints


@dataclass(frozen=True)
class Multiplicity:
    """Counts the rows of each input per value of the columns in `schema`; NULL is a value, NaN is NaN."""

    schema: Mapping[str, pl.DataType]
    inputs: int = 1

    @property
    def _values(self) -> tuple[str, ...]:
        return tuple(self.schema)

    @property
    def _counts(self) -> tuple[str, ...]:
        return tuple(f"_count{number}" for number in range(self.inputs))

    def initial(self) -> Tables:
        """No value anywhere, nothing waiting."""
        numbers = dict.fromkeys(self._counts, pl.Int64())
        waiting = {**self.schema, AT: pl.Int64(), **numbers}
        return States(
            {
                "counts": Table({**self.schema, **numbers}, self._values),
                "waiting": Table(waiting, (*self._values, AT), deadline=AT),
            }
        )

    def advance(self, state: Tables, inputs: Sequence[pl.DataFrame], clock: Clock) -> tuple[Tables, Changes]:
        """The state at the end of the step, and every change of a count in it, from signed lifetimes."""
        waiting, due = state.named["waiting"].expire(clock.after, clock.upto)
        counts, _ = state.named["counts"].expire(clock.after, clock.upto)
        events = [waiting.take(due)]
        later = []
        for frame, count in zip(inputs, self._counts, strict=True):
            dies = pl.col(DIES)
            events.append(self._events(frame, BORN, count, sign=1))
            events.append(self._events(frame.filter(dies <= waiting.now), DIES, count, sign=-1))
            later.append(
                self._events(frame.filter((dies > waiting.now) & (dies < NEVER)), DIES, count, sign=-1)
            )
        counts, changes = self._counted(counts, pl.concat(events))
        return States({"counts": counts, "waiting": self._waiting(waiting, pl.concat(later))}), changes

    def present(self, state: Tables, frame: pl.DataFrame, columns: Sequence[str]) -> Mask:
        """For each row of `frame`, whether its `columns` have a count other than 0."""
        return state.named["counts"].find(frame, columns) >= 0

    def _events(self, frame: pl.DataFrame, at: str, count: str, sign: int) -> pl.DataFrame:
        """One event per row: its value, the instant in column `at`, and what it adds to each count."""
        zero = pl.lit(0, dtype=pl.Int64)
        change = pl.col(SIGN).cast(pl.Int64) * sign
        return frame.select(
            *self._values,
            pl.col(at).alias(AT),
            *((change if c == count else zero).alias(c) for c in self._counts),
        )

    def _counted(self, counts: Table, events: pl.DataFrame) -> tuple[Table, Changes]:
        groups, net = self._net(events, self._values)
        values = rows_at(events, groups.leaders)
        codes, instants, deltas = net
        at = counts.find(values, self._values)
        known = np.stack(counts.numbers(at, self._counts, 0), axis=1)
        running = np.cumsum(deltas, axis=0)
        opens = np.flatnonzero(starts(codes))
        # What had been summed up before the value's first change belongs to other values.
        base = np.repeat(running[opens] - deltas[opens], np.diff(np.append(opens, codes.size)), axis=0)
        after = known[codes] + running - base
        before = after - deltas
        final = known.copy()
        final[codes] = after
        moved = np.flatnonzero(np.any(final != known, axis=1))
        rows = rows_at(values, moved).with_columns(
            pl.Series(name, final[moved, number]) for number, name in enumerate(self._counts)
        )
        counts = counts.put(rows, at[moved], gone=~np.any(final[moved], axis=1))
        return counts, Changes(values, codes, instants, before, after)

    def _waiting(self, waiting: Table, events: pl.DataFrame) -> Table:
        groups, (codes, _, deltas) = self._net(events, (*self._values, AT))
        rows = rows_at(events, groups.leaders[codes])
        at = waiting.find(rows, waiting.keys)
        total = deltas + np.stack(waiting.numbers(at, self._counts, 0), axis=1)
        rows = rows.with_columns(
            pl.Series(name, total[:, number]) for number, name in enumerate(self._counts)
        )
        return waiting.put(rows, at, gone=~np.any(total, axis=1))

    def _net(self, events: pl.DataFrame, columns: Sequence[str]) -> tuple[Groups, tuple[Ints, Ints, Ints]]:
        """Events by value; and where what they add per value and instant is not 0: value, instant and sum."""
        instants = events[AT].to_numpy()
        groups = group(events, columns, instants)
        instants = instants[groups.order]
        deltas = np.stack([events[name].to_numpy()[groups.order] for name in self._counts], axis=1)
        opens = np.flatnonzero(groups.first | starts(instants))
        sums = np.add.reduceat(deltas, opens, axis=0) if opens.size else deltas
        opens, sums = opens[some := np.any(sums, axis=1)], sums[some]
        return groups, (groups.codes[opens], instants[opens], sums)
