"""MonitoredClusterPunctuator: which values do not come any more, if rows with equal ones stay as close as of late.

```
position   0  1  2  3  4
value      a  b  a  c  b        a comes back after one row with another value, b after two
```

Of each value it is remembered where it came last. Once more rows with others have come than the k in use it is
closed, but not yet forgotten: it comes back unseen only if that takes longer than what is still detectable, and it
does not belong to the sample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from headgate.kernels.punctuation.monitor import Monitor, MonitorState, Numbers, chosen, said
from headgate.model.batch import BORN, Batch
from headgate.model.time import Clock

_POSITION, _BEFORE, _TOLD, _OPEN = "_position", "_before", "_told", "open"


@dataclass(frozen=True)
class MonitoredClusterPunctuator(Monitor):
    """Rows with the columns of `schema` in; closed values of them out, while a k is in use."""

    schema: Mapping[str, pl.DataType]

    def initial(self) -> MonitorState:
        schema = {**self.schema, _POSITION: pl.Int64(), _TOLD: pl.Boolean()}
        return MonitorState({_OPEN: pl.DataFrame(schema=schema)})

    def advance(
        self, state: MonitorState, inputs: Sequence[Batch], clock: Clock
    ) -> tuple[MonitorState, Batch]:
        """The values that are closed at the end of the step and were not; or that none of those said is for sure."""
        (batch,) = inputs
        if not batch.height:
            return state, Batch.empty(self.schema)
        columns, before = list(self.schema), state.watch
        seen = before.arrived + batch.height
        new = batch.frame.select(
            *columns,
            pl.int_range(before.arrived, seen, dtype=pl.Int64).alias(_POSITION),
            pl.lit(False).alias(_TOLD),
        ).drop_nulls(columns)
        # Equal values side by side: a window over each of very many values would take seconds.
        rows = pl.concat([state.parts[_OPEN], new]).sort([*columns, _POSITION])
        same = pl.all_horizontal(pl.col(name) == pl.col(name).shift() for name in columns).fill_null(False)
        rows = rows.with_columns(pl.when(same).then(pl.col(_POSITION).shift()).alias(_BEFORE))
        last = ~same.shift(-1, fill_value=False)
        found = rows.filter((pl.col(_POSITION) >= before.arrived) & pl.col(_BEFORE).is_not_null())
        came_before = np.full(batch.height, -1, dtype=np.int64)
        came_before[found[_POSITION].to_numpy() - before.arrived] = found[_BEFORE].to_numpy()
        sampled = chosen(came_before, self.options.sampled)

        def distances(first: int, last: int, floors: Numbers) -> Numbers:
            here = slice(first - before.arrived, last - before.arrived)
            at, others = np.arange(first, last), came_before[here]
            known = (others >= floors) | (sampled[here] & (others >= at - 1 - self.options.limit))
            return np.where(known & (others >= 0), at - others - 1, 0)

        born = batch.frame.get_column(BORN)
        watch = before.followed(self.options, batch.height, distances, lambda row: int(born[row]), ahead=-1)
        broken = before.k is not None and watch.violations > before.violations
        open_ = rows.filter(last).drop(_BEFORE).sort(_POSITION)
        positions = open_[_POSITION].to_numpy()
        closed = positions < seen - 1 - (seen if watch.k is None else watch.k)
        told = open_[_TOLD].to_numpy() & (not broken)
        values = open_.select(columns).filter(pl.Series(closed & ~told))
        kept = positions >= watch.floor
        kept |= chosen(positions, self.options.sampled) & (positions >= seen - 1 - self.options.limit)
        left = open_.with_columns(pl.Series(_TOLD, told | closed)).filter(pl.Series(kept))
        after = MonitorState({_OPEN: left.rechunk()}, watch, clock.upto)
        return after, said(values, int(born[-1]), anew=broken)
