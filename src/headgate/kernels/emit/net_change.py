"""Net change: what the contents gain and lose at each instant of a step, as bags.

A signed lifetime is two events, its sign at birth and the opposite at death. Deaths beyond the step wait on a
timer queue. Equal rows of which some come and some go at one instant cancel, so it does not show in how many pieces a
lifetime was announced.

```
a  [1 ====== 6)             +a at 1
a          [6 ==== 9)       nothing at 6, -a at 9
```
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from headgate.kernels.keys import Hashes, key_hash
from headgate.kernels.state.index import Positions
from headgate.kernels.state.timer_queue import AT, COUNT, TimerQueue, netted
from headgate.model.batch import BORN, DIES, SIGN
from headgate.model.time import NEVER, Clock

_COPIES = pl.col(SIGN).cast(pl.Int64).alias(COUNT)


@dataclass(frozen=True)
class NetChange:
    """Follows signed lifetimes with the payload columns of `schema`.

    Its state is a timer queue of deaths: payload, instant, and how many copies die then. With `immortal`, rows that
    never die are on it too, and the queue is the whole contents.
    """

    schema: Mapping[str, pl.DataType]
    immortal: bool = False

    def initial(self) -> TimerQueue:
        return TimerQueue(self.schema, COUNT)

    def advance(
        self, deaths: TimerQueue, frame: pl.DataFrame, clock: Clock
    ) -> tuple[TimerQueue, pl.DataFrame]:
        """The deaths after the step, and its changes: payload, `_at`, and `_count` copies gained or lost.

        What is gained at one instant comes in the order of the input; instants come in no order.
        """
        deaths, due = self.follow(deaths, frame, clock)
        lost = due.with_columns(-pl.col(COUNT))
        if frame.is_empty():
            return deaths, _cancelled(lost)
        born = frame.select(*self.schema, pl.col(BORN).alias(AT), _COPIES)
        return deaths, _cancelled(pl.concat([born, lost]))

    def follow(
        self, deaths: TimerQueue, frame: pl.DataFrame, clock: Clock
    ) -> tuple[TimerQueue, pl.DataFrame]:
        """The deaths after the step, and those in it, whether or not a birth cancels them."""
        mortal = frame if self.immortal or frame.is_empty() else frame.filter(pl.col(DIES) < NEVER)
        return deaths.advance(mortal.select(*self.schema, pl.col(DIES).alias(AT), _COPIES), clock)


def _cancelled(events: pl.DataFrame) -> pl.DataFrame:
    """The events without those that cancel."""
    counts = events[COUNT].to_numpy()
    gained, lost = np.flatnonzero(counts > 0), np.flatnonzero(counts < 0)
    if len(gained) == 0 or len(lost) == 0:
        return events
    keys = key_hash(events, [name for name in events.columns if name != COUNT])
    gained, lost = _in_both(keys, gained, lost)
    if len(gained) == 0:
        return events
    near = np.zeros(len(keys), dtype=np.bool_)
    near[gained] = near[lost] = True
    settled = netted(events.filter(pl.Series(near)), [COUNT])
    return pl.concat([events.filter(pl.Series(~near)), settled])


def _in_both(keys: Hashes, gained: Positions, lost: Positions) -> tuple[Positions, Positions]:
    """The rows of two kinds whose key occurs among both.

    Most do not. A table of flags, four to eight for each row, turns nearly all of those away, and another one,
    for other bits of the keys, most of the rest.
    """
    for low in (32, 0):
        bits = max(8, max(len(gained), len(lost)).bit_length() + 2)
        place = ((keys >> np.uint64(low)) & np.uint64((1 << bits) - 1)).view(np.int64)
        flags = np.zeros((2, 1 << bits), dtype=np.bool_)
        flags[0][place[gained]] = flags[1][place[lost]] = True
        gained, lost = gained[flags[1][place[gained]]], lost[flags[0][place[lost]]]
    return gained[np.isin(keys[gained], keys[lost])], lost[np.isin(keys[lost], keys[gained])]


def copies(frame: pl.DataFrame) -> pl.DataFrame:
    """Each row as often as its `_count` says, without that column."""
    counts = frame[COUNT].to_numpy()
    payload = frame[[name for name in frame.columns if name != COUNT]]
    return payload[np.repeat(np.arange(frame.height), counts)] if (counts != 1).any() else payload
