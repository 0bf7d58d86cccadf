"""Net change: what the contents gain and lose at each instant of a step, as bags.

A signed lifetime is two events, its sign at birth and the opposite at death. Deaths beyond the step wait on an
agenda. At an instant at which something comes and something goes, equal rows cancel, so it does not show in how
many pieces a lifetime was announced; at all other instants there is nothing to compare.

```
a  [1 ====== 6)             +a at 1
a          [6 ==== 9)       nothing at 6, -a at 9
```
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from headgate.kernels.agenda import AT, COUNT, Agenda, by_instant, netted
from headgate.kernels.keys import Mask, key_hash
from headgate.kernels.state.store import Instants
from headgate.model.batch import BORN, DIES, SIGN
from headgate.model.time import NEVER, Clock

_COPIES = pl.col(SIGN).cast(pl.Int64).alias(COUNT)


@dataclass(frozen=True)
class NetChange:
    """Follows signed lifetimes with the payload columns of `schema`.

    Its state is an agenda of deaths: payload, instant, and how many copies die then. With `immortal`, rows that
    never die are on it too, and the agenda is the whole contents.
    """

    schema: Mapping[str, pl.DataType]
    immortal: bool = False

    def initial(self) -> Agenda:
        return Agenda(self.schema, counted=True)

    def advance(self, deaths: Agenda, frame: pl.DataFrame, clock: Clock) -> tuple[Agenda, pl.DataFrame]:
        """The deaths after the step, and its changes: payload, `_at`, and `_count` copies gained or lost.

        Changes come by instant; what is gained at one instant in the order of the input.
        """
        deaths, due = self.follow(deaths, frame, clock)
        born = frame.select(*self.schema, pl.col(BORN).alias(AT), _COPIES)
        events = _cancelled(pl.concat([born, due.with_columns(-pl.col(COUNT))]))
        return deaths, by_instant(events)

    def follow(self, deaths: Agenda, frame: pl.DataFrame, clock: Clock) -> tuple[Agenda, pl.DataFrame]:
        """The deaths after the step, and those in it, whether or not a birth cancels them."""
        mortal = frame if self.immortal else frame.filter(pl.col(DIES) < NEVER)
        return deaths.advance(mortal.select(*self.schema, pl.col(DIES).alias(AT), _COPIES), clock)


def _cancelled(events: pl.DataFrame) -> pl.DataFrame:
    """The events without those that cancel."""
    counts, instants = events[COUNT].to_numpy(), events[AT].to_numpy()
    near = _on_both_sides(instants, counts)
    if not near.any():
        return events
    suspects = events.filter(pl.Series(near))
    keys = key_hash(suspects, [name for name in events.columns if name != COUNT])
    near[near] = _on_both_sides(keys, counts[near])
    if not near.any():
        return events
    settled = netted(events.filter(pl.Series(near)))
    return pl.concat([events.filter(pl.Series(~near)), settled])


def _on_both_sides(keys: npt.NDArray[np.generic], counts: Instants) -> Mask:
    """Which rows have a key with which something is gained and something is lost."""
    gained, lost = counts > 0, counts < 0
    found = np.zeros(len(keys), dtype=np.bool_)
    if gained.any() and lost.any():
        # Sets of Polars: those of NumPy take ten times as long.
        found[gained] = _among(keys[gained], keys[lost])
        found[lost] = _among(keys[lost], keys[gained])
    return found


def _among(keys: npt.NDArray[np.generic], others: npt.NDArray[np.generic]) -> Mask:
    return pl.Series(keys).is_in(pl.Series(others).implode()).to_numpy()


def copies(frame: pl.DataFrame) -> pl.DataFrame:
    """Each row as often as its `_count` says, without that column."""
    if frame.filter(pl.col(COUNT) != 1).is_empty():
        return frame.drop(COUNT)
    return frame.drop(COUNT)[np.repeat(np.arange(frame.height), frame[COUNT].to_numpy())]
