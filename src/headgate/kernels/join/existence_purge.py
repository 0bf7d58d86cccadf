"""Existence purge: what EXISTS and NOT EXISTS drop because nothing can come any more that would need it.

```
left rows      the right side is closed at their key, or they are old enough, and they have no match: dropped
right rows     the left side is closed at their key, or they are old enough: dropped
matches        those that stay for ever: dropped like the right rows they stand for
```

What has been said of a row stays in the answer. As in a join's purge, a sweep comes when as much has come as was left
by the last one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from headgate.kernels.join.purge import Purge
from headgate.kernels.keys import Mask
from headgate.kernels.state.closed_values import ClosedValues
from headgate.model.batch import BORN

LEFT, RIGHT = 0, 1


@dataclass(frozen=True)
class SidePurge:
    """The closings that let rows of each side go, chains of one step; and after how long they go without any.

    `retain` says for each side how many microseconds after its birth a row is forgotten without ending its answer. On
    the right it needs a residual: without one only keys are kept, and their births are not known.
    """

    purge: Purge
    retain: tuple[int | None, int | None] = (None, None)

    def __post_init__(self) -> None:
        if any(len(chain.steps) != 1 for chain in self.purge.chains):
            raise ValueError("a side is closed by the other one alone")

    def covers(self, side: int) -> bool:
        """Whether rows of a side are ever dropped."""
        return side in self.purge.members or self.retain[side] is not None

    def gone(self, side: int, rows: pl.DataFrame, closed_values: Sequence[ClosedValues], upto: int) -> Mask:
        """Which rows of a side the other one is closed at, or are old enough, at an instant."""
        found = np.zeros(rows.height, dtype=np.bool_)
        for chain in self.purge.chains:
            if chain.member == side:
                (step,) = chain.steps
                found |= closed_values[step.closing].closes(rows, step.values).to_numpy()
                if step.aged is not None:
                    found |= closed_values[step.aged].closes(rows, [BORN]).to_numpy()
        retain = self.retain[side]
        if retain is not None:
            found |= rows.get_column(BORN).to_numpy() <= upto - retain
        return found
