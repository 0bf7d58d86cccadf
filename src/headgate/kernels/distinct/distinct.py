"""Distinct: each value once while the input holds it at all; its forms differ in state and in what they say.

```
input      a  [1 ====== 6)
           a      [3 ======== 9)
star       a  [1 ====== 6)                 announced with its death; said at 1
           a              [6 == 9)         the younger row takes over; said at 6
extent     a  [1 ===============...        announced without a death; said at 1
           a                   [9 ---...   ended when the last row dies; said at 9
```

* `star` is δ* (Windows, section 3.5.2): per value the announced death and the latest death seen. Its output
  has no endings; its input must have none either.
* `extent` keeps the same state and needs the same input, but says one long lifetime and its ending.
* `strict` counts the rows of each value and so takes any input. It says what `extent` says.
* `naive` is what δ* is measured against: it keeps its whole input and scans it. For experiments only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import polars as pl

from headgate.kernels.distinct.multiplicity import Multiplicity, group
from headgate.kernels.distinct.presence import NOWHERE, Presence, presence
from headgate.kernels.kernel import State
from headgate.kernels.state.composite import Composite, States, of_part
from headgate.kernels.state.sorted_runs import Ints, Runs
from headgate.kernels.state.store import rows_at
from headgate.kernels.state.table import Table, Tables, columns_of
from headgate.model.batch import BORN, DIES, SIGN, Batch
from headgate.model.time import NEVER, Clock

Form = Literal["star", "extent", "strict", "naive"]

ANNOUNCED, LATEST = "_announced", "_latest"
VALUES, _INPUT = "values", "input"


@dataclass(frozen=True, eq=False)
class DistinctState(Composite):
    """The tables of a form, and for `naive` the input as well."""

    tables: Tables
    input: Runs

    @property
    def _parts(self) -> dict[str, State]:
        return {**self.tables.named, _INPUT: self.input}


@dataclass(frozen=True)
class Distinct:
    """DISTINCT over all payload columns: NULL equals NULL and NaN equals NaN."""

    schema: Mapping[str, pl.DataType]
    form: Form = "star"

    @property
    def _columns(self) -> tuple[str, ...]:
        return tuple(self.schema)

    @property
    def _counting(self) -> Multiplicity:
        return Multiplicity(self.schema)

    def initial(self) -> DistinctState:
        nothing = Runs({**self.schema, DIES: pl.Int64()})
        if self.form == "strict":
            return DistinctState(self._counting.initial(), nothing)
        columns = {**self.schema, ANNOUNCED: pl.Int64(), LATEST: pl.Int64()}
        return DistinctState(States({VALUES: Table(columns, self._columns, deadline=ANNOUNCED)}), nothing)

    def restore(self, chunks: Mapping[str, pl.DataFrame]) -> DistinctState:
        empty = self.initial()
        return DistinctState(empty.tables.restored(chunks), empty.input.restored(of_part(chunks, _INPUT)))

    def advance(
        self, state: DistinctState, inputs: Sequence[Batch], clock: Clock
    ) -> tuple[DistinctState, Batch]:
        """Lifetimes in which no value is there twice."""
        (batch,) = inputs
        if self.form == "strict":
            tables, said = self._counted(state.tables, batch.frame, clock)
            return replace(state, tables=tables), said
        table, said = self._stretched(state, batch.frame, clock)
        kept = self._kept(state, batch.frame, clock) if self.form == "naive" else state.input
        return DistinctState(States({VALUES: table}), kept), said

    def until(self, state: DistinctState, frame: pl.DataFrame, columns: Sequence[str], after: int) -> Ints:
        """For each row of `frame`, until when its `columns` are sure to be present; NOWHERE if they are not.

        `after` is the end of the step that made the state. `strict` is sure of that instant only, `star` of
        what it has announced, `extent` of the latest death it has seen.
        """
        if self.form == "strict":
            present = self._counting.present(state.tables, frame, columns)
            return np.where(present, min(after, NEVER - 1) + 1, NOWHERE)
        table = state.tables.named[VALUES]
        at = table.find(frame, columns, since=after)
        return table.numbers(at, [LATEST if self.form == "extent" else ANNOUNCED], NOWHERE)[0]

    def _counted(self, tables: Tables, frame: pl.DataFrame, clock: Clock) -> tuple[Tables, Batch]:
        tables, changes = self._counting.advance(tables, [frame], clock)
        before, after = changes.before[:, 0] > 0, changes.after[:, 0] > 0
        turns = before != after
        signs = np.where(after[turns], 1, -1)
        return tables, self._said(changes.values, changes.codes[turns], changes.instants[turns], NEVER, signs)

    def _stretched(self, state: DistinctState, frame: pl.DataFrame, clock: Clock) -> tuple[Table, Batch]:
        born, dies = frame[BORN].to_numpy(), frame[DIES].to_numpy()
        groups = group(frame, self._columns, born)
        table, due = state.tables.named[VALUES].expire(clock.after, clock.upto)
        met = rows_at(columns_of(frame, self._columns), groups.leaders)
        at = table.find(met, self._columns, since=clock.after)
        announced, latest = table.numbers(at, (ANNOUNCED, LATEST), NOWHERE)
        # Values that no new row mentions, but whose announced death falls into the step.
        alone = due[~np.isin(due, at)]
        unmet = table.take(alone)
        values = met.vstack(columns_of(unmet, self._columns))
        at = np.concatenate((at, alone))
        announced = np.concatenate((announced, unmet.get_column(ANNOUNCED).to_numpy()))
        latest = np.concatenate((latest, unmet.get_column(LATEST).to_numpy()))
        if self.form == "naive":
            latest = np.maximum(latest, self._latest_stored(state, values))
        step = presence(groups.codes, born[groups.order], dies[groups.order], latest)
        said = self._say(values, announced, step, table.now)
        ends = step.final
        # Where a new stretch has begun, what was announced is over.
        next_announced = np.where(announced <= table.now, ends, announced)
        changed = (next_announced != announced) | (ends != latest)
        stays = np.flatnonzero(changed & (next_announced > table.now))
        rows = rows_at(values, stays).hstack(
            [pl.Series(ANNOUNCED, next_announced[stays]), pl.Series(LATEST, ends[stays])]
        )
        return table.put(rows, at[stays]), said

    def _say(self, values: pl.DataFrame, announced: Ints, step: Presence, now: int) -> Batch:
        if self.form == "extent":
            over = np.flatnonzero((announced != NOWHERE) & (step.reach <= now))
            short = step.ends <= now
            codes = np.concatenate((step.codes, over, step.codes[short]))
            born = np.concatenate((step.born, step.reach[over], step.ends[short]))
            signs = np.repeat([1, -1], [step.codes.size, over.size + int(short.sum())])
            return self._said(values, codes, born, NEVER, signs)
        handed = np.flatnonzero((announced != NOWHERE) & (announced <= now) & (step.reach > announced))
        codes = np.concatenate((handed, step.codes))
        born = np.concatenate((announced[handed], step.born))
        return self._said(values, codes, born, np.concatenate((step.reach[handed], step.ends)), 1)

    def _said(
        self, values: pl.DataFrame, codes: Ints, born: Ints, dies: Ints | int, signs: Ints | int
    ) -> Batch:
        lifetimes = [
            pl.Series(BORN, born, dtype=pl.Int64),
            pl.Series(DIES, np.broadcast_to(dies, born.shape), dtype=pl.Int64),
            pl.Series(SIGN, np.broadcast_to(signs, born.shape).astype(np.int8), dtype=pl.Int8),
        ]
        return Batch(rows_at(columns_of(values, self._columns), codes).hstack(lifetimes))

    def _latest_stored(self, state: DistinctState, values: pl.DataFrame) -> Ints:
        """For each value the latest death among all rows kept, found by looking at every one of them."""
        latest = state.input.frame.group_by(self._columns).agg(pl.col(DIES).max())
        found = values.join(latest, on=self._columns, how="left", nulls_equal=True, maintain_order="left")
        return found[DIES].fill_null(NOWHERE).to_numpy()

    def _kept(self, state: DistinctState, frame: pl.DataFrame, clock: Clock) -> Runs:
        """The whole input that is alive after the step, as one chunk."""
        if clock.upto <= clock.after:
            return state.input
        rows = pl.concat([state.input.frame, frame.select(*self._columns, DIES)])
        return state.input.only(rows.filter(pl.col(DIES) > clock.upto), clock.upto)
