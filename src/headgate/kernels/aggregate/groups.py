"""Groups: a number for each group that has rows, and what is remembered of it.

A directory leads from the key to the number; records lead from the number to the key, the ledger and the
values announced last. Announced deaths then name their group by its number. Without keys there is one group,
number 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from headgate.kernels.keys import Mask, key_hash, keys_equal
from headgate.kernels.state.composite import Composite, States
from headgate.kernels.state.sorted_runs import Ints
from headgate.kernels.state.table import Table

NUMBER = "number"

_DIRECTORY, _RECORDS = "directory", "records"


@dataclass(frozen=True, eq=False)
class Fresh:
    """Groups met for the first time: their keys and numbers."""

    keys: pl.DataFrame
    number: Ints


@dataclass(frozen=True, eq=False)
class Identified:
    """The groups of some rows: a code from 0 up for each row, and the number of the group for each code."""

    code: Ints
    number: Ints
    fresh: Fresh


@dataclass(frozen=True, eq=False)
class Known:
    """What is remembered of some groups: `rows` of the table, and the place of each among the groups."""

    rows: pl.DataFrame
    place: Ints
    position: Ints
    """Where each group's record is; negative if there is none."""

    @property
    def exists(self) -> Mask:
        return self.position >= 0


@dataclass(frozen=True, eq=False)
class Groups(Composite):
    """Keys to numbers and numbers to records; `unused` is the next number."""

    keys: tuple[str, ...]
    directory: Table
    records: Table
    unused: int = 0

    @staticmethod
    def empty(keys: Mapping[str, pl.DataType], values: Mapping[str, pl.DataType]) -> Groups:
        """No groups, of keys and remembered values of these types."""
        number = {NUMBER: pl.Int64()}
        return Groups(
            tuple(keys),
            Table({**keys, **number}, tuple(keys)),
            Table({**number, **keys, **values}, (NUMBER,)),
        )

    @property
    def _parts(self) -> dict[str, Table]:
        return {_DIRECTORY: self.directory, _RECORDS: self.records}

    def restored(self, chunks: Mapping[str, pl.DataFrame]) -> Groups:
        """The groups like these empty ones whose chunks these are."""
        directory, records = States(self._parts).restored(chunks).named.values()
        used = [int(run.numbers(NUMBER).max()) for run in records.runs]
        return replace(self, directory=directory, records=records, unused=max(used, default=-1) + 1)

    def identify(self, keys: pl.DataFrame) -> Identified:
        """The groups of rows with these keys."""
        if not self.keys:
            code: Ints = np.zeros(keys.height, dtype=np.int64)
            return Identified(code, code[:1], Fresh(keys.clear(), code[:0]))
        code, different = _coded(keys, self.keys)
        (number,) = self.directory.numbers(self.directory.find(different, self.keys), [NUMBER], -1)
        new = np.flatnonzero(number < 0)
        number[new] = self.unused + np.arange(new.size)
        return Identified(code, number, Fresh(different[new], number[new]))

    def read(self, numbers: Ints) -> Known:
        """What is remembered of the groups with these numbers."""
        position = self.records.find(pl.DataFrame({NUMBER: numbers}), (NUMBER,))
        place = np.flatnonzero(position >= 0)
        return Known(self.records.take(position[place]), place, position)

    def write(
        self, records: pl.DataFrame, known: Known, alive: Mask, fresh: Fresh, after: int, upto: int
    ) -> Groups:
        """The groups after a step: records for all groups of the step, of which only some are still alive."""
        told = alive | known.exists
        chosen = np.flatnonzero(told)
        table = self.records.expire(after, upto)[0]
        table = table.put(records[chosen], known.position[chosen], ~alive[chosen])
        unused = max([self.unused, *(fresh.number[-1:] + 1).tolist()])
        return replace(
            self, directory=self._directed(records, known, alive, after, upto), records=table, unused=unused
        )

    def without(self, gone: Ints, upto: int) -> Groups:
        """The groups but for these numbers, written anew in the step that ends at `upto`."""
        left = [
            table.only(rows.filter(~pl.Series(np.isin(rows[NUMBER].to_numpy(), gone))), upto)
            for table in (self.directory, self.records)
            for rows in [table.live_rows()]
        ]
        return replace(self, directory=left[0], records=left[1])

    def _directed(self, records: pl.DataFrame, known: Known, alive: Mask, after: int, upto: int) -> Table:
        directory = self.directory.expire(after, upto)[0]
        if not self.keys:
            return directory
        born = np.flatnonzero(alive & ~known.exists)
        gone = np.flatnonzero(~alive & known.exists)
        entries = records[np.concatenate([born, gone])].select(*self.keys, NUMBER)
        deleted = np.arange(entries.height) >= born.size
        return directory.put(entries, directory.find(entries, self.keys), deleted)


def _coded(keys: pl.DataFrame, columns: Sequence[str]) -> tuple[Ints, pl.DataFrame]:
    """A code from 0 up for each row, and the key for each code."""
    hashes = key_hash(keys, columns)
    code = np.empty(keys.height, dtype=np.int64)
    representatives: list[Ints] = [np.empty(0, dtype=np.int64)]
    count = 0
    rest = np.arange(keys.height)
    # One round, unless two keys have one hash: then the other key is coded in the next.
    while rest.size:
        order = rest[np.argsort(hashes[rest])]
        ordered = hashes[order]
        new = np.ones(order.size, dtype=np.bool_)
        new[1:] = ordered[1:] != ordered[:-1]
        heads = order[new]
        local = np.cumsum(new) - 1
        code[order] = local + count
        equal = keys_equal(keys[order], keys[heads[local]], columns, columns, null_equal=True)
        representatives.append(heads)
        count += heads.size
        rest = order[~equal]
    return code, keys[np.concatenate(representatives)]
