"""Presence: the stretches of time in which each value is present, when no lifetime is ever cut short.

Without endings a value stays at least until the latest death seen so far, whatever else happens. So two
instants per value are enough: where its presence as *announced* ends, and where it is known to *reach*.

```
known              ====== announced ==== reach
new rows                          [=========)          [====)
stretches          ========================= known     ====== new
```
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headgate.kernels.distinct.multiplicity import running_max, starts
from headgate.kernels.state.sorted_runs import Ints
from headgate.model.time import BEGINNING

NOWHERE = BEGINNING
"""The reach of a value that is not present."""


@dataclass(frozen=True, eq=False)
class Presence:
    """What a step does to the presence of each value.

    `reach` is, per value, where the stretch known before the step now ends (NOWHERE: there was none).
    A new stretch belongs to the value `codes` and lasts from `born` to `ends`.
    """

    reach: Ints
    codes: Ints
    born: Ints
    ends: Ints

    @property
    def final(self) -> Ints:
        """Per value, where its last stretch ends."""
        ends = self.reach.copy()
        ends[self.codes] = self.ends
        return ends


def presence(codes: Ints, born: Ints, dies: Ints, reach: Ints) -> Presence:
    """The stretches that rows make of what `reach` says of each value; rows by value, then by birth.

    Lifetimes that overlap or touch are one stretch.
    """
    known = reach[codes]
    upto = np.maximum(running_max(dies, codes), known)
    first = starts(codes)
    before = np.where(first, known, np.roll(upto, 1))
    opens = born > before
    closes = np.ones(codes.size, dtype=np.bool_)
    closes[:-1] = opens[1:] | first[1:]
    # Rows before the first opening of their value prolong what was known.
    opened: Ints = np.cumsum(opens)
    earlier: Ints = (opened - opens)[first]
    new = opened > earlier[np.cumsum(first) - 1]
    prolonged = reach.copy()
    prolonged[codes[closes & ~new]] = upto[closes & ~new]
    return Presence(prolonged, codes[opens], born[opens], upto[closes & new])
