"""MonitoredOrderPunctuator: below which value no row comes any more, if rows stay as close to their order as of late.

```
position   0  1  2  3  4          records  3 at 0, 5 at 1, 9 at 3
value      3  5  4  9  1          4 is less than the record 5: distance 2 - 1; 1 is less than 3: 4 - 0
```

A row is out of order by as many rows as have come since the first that is greater than it, itself included. That one
is a record, a row greater than all before it. Records before the monitor's floor are forgotten but for the last one:
a row that is less than that is known to be out of order by so much at least, so that no rise of k goes unseen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from headgate.kernels.punctuation.monitor import Monitor, MonitorState, Numbers, said
from headgate.kernels.punctuation.order_in_time import rising
from headgate.model.batch import BORN, Batch
from headgate.model.time import Clock

_POSITION, _RECORDS = "_position", "records"


@dataclass(frozen=True)
class MonitoredOrderPunctuator(Monitor):
    """Values of `column` in; out, once a step, the one below which nothing comes any more, while a k is in use."""

    column: str
    dtype: pl.DataType

    def initial(self) -> MonitorState:
        return MonitorState({_RECORDS: pl.DataFrame(schema={self.column: self.dtype, _POSITION: pl.Int64()})})

    def advance(
        self, state: MonitorState, inputs: Sequence[Batch], clock: Clock
    ) -> tuple[MonitorState, Batch]:
        """The value at the end of the step; or that nothing is sure any more of what was said."""
        (batch,) = inputs
        if not batch.height:
            return state, Batch.empty({self.column: self.dtype})
        before, values = state.watch, batch.frame.get_column(self.column)
        seen = before.arrived + batch.height
        place = pl.int_range(before.arrived, seen, dtype=pl.Int64, eager=True)
        new = pl.DataFrame([values, place.alias(_POSITION)])
        records = state.parts[_RECORDS]
        records = pl.concat([records.head(-1), rising(pl.concat([records.tail(1), new]), self.column)])
        positions = records.get_column(_POSITION).to_numpy()
        # The first record that is greater than a value stands after all that are not; NULL is less than nothing.
        greater = np.full(batch.height, positions.size)
        greater[values.is_not_null().to_numpy()] = records.get_column(self.column).search_sorted(
            values.drop_nulls(), side="right"
        )
        ordered = np.append(positions, seen)

        def distances(first: int, last: int, floors: Numbers) -> Numbers:
            known = np.searchsorted(positions, floors, side="left") - 1
            at = np.maximum(greater[first - before.arrived : last - before.arrived], known)
            found: Numbers = np.maximum(0, np.arange(first, last) - ordered[at])
            return found

        born = batch.frame.get_column(BORN)
        watch = before.followed(self.options, batch.height, distances, lambda row: int(born[row]))
        kept = max(0, int(np.searchsorted(positions, watch.floor, side="left")) - 1)
        after = MonitorState({_RECORDS: records.slice(kept).rechunk()}, watch, clock.upto)
        broken = before.k is not None and watch.violations > before.violations
        passed = 0 if watch.k is None else int(np.searchsorted(positions, seen - watch.k, side="left"))
        settled = records.slice(max(0, passed - 1), min(1, passed)).select(self.column)
        return after, said(settled, int(born[-1]), anew=broken)
