"""Closings: what each of several inputs has closed, and when it is time to look through what is kept.

```
closings     x x  x   x x   x x x        as many as were left by the last sweep, and at least a few: a sweep
             └─ since ─────────┘ kept    what every input has closed is forgotten, in the state and here
```
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic

import polars as pl

from headgate.kernels.kernel import S, State
from headgate.kernels.state.closed_values import ClosedValues, not_by_all
from headgate.kernels.state.composite import Composite, States, of_part
from headgate.model.batch import Batch
from headgate.model.time import Clock

# Rows and closings that are not worth a sweep.
_FEW = 128

_VALUES, CLOSINGS = "values", "closings"


@dataclass(frozen=True, eq=False)
class Closings(Composite):
    """The values that each input has closed; what came since the last sweep, and what was left by it."""

    closed_values: tuple[ClosedValues, ...]
    since: int = 0
    kept: int = 0

    @staticmethod
    def nothing(schema: Mapping[str, pl.DataType], below: Iterable[bool]) -> Closings:
        """Of inputs that close values of the same columns, each `below` or one by one."""
        return Closings(tuple(ClosedValues.nothing(schema, below=each) for each in below))

    @property
    def _parts(self) -> Mapping[str, ClosedValues]:
        return {str(number): each for number, each in enumerate(self.closed_values)}

    def restored(self, chunks: Mapping[str, pl.DataFrame]) -> Closings:
        """The closings like these whose `chunks()` these are."""
        return Closings(tuple(States(self._parts).restored(chunks).named.values()))

    def observe(self, frames: Sequence[pl.DataFrame], arrived: int, clock: Clock) -> Closings:
        """What has come in a step: closed values, and so many rows that there may be to forget."""
        closed_values = tuple(
            each.observe(frame, clock) for each, frame in zip(self.closed_values, frames, strict=True)
        )
        since = self.since + arrived + sum(frame.height for frame in frames)
        return Closings(closed_values, since, self.kept)

    @property
    def due(self) -> bool:
        """Whether it is time for a sweep."""
        return self.since >= max(_FEW, self.kept)

    def swept(self, kept: int, clock: Clock) -> Closings:
        """After a sweep that left so many rows: without the values that all have closed."""
        return after_sweep(not_by_all(self.closed_values, clock), kept)


def after_sweep(closed_values: tuple[ClosedValues, ...], kept: int) -> Closings:
    """The closings that a sweep left, beside so many rows."""
    return Closings(closed_values, 0, kept + sum(each.rows for each in closed_values))


@dataclass(frozen=True, eq=False)
class ClosingState(Composite, Generic[S]):
    """What a kernel remembers, and the closings by which it forgets."""

    values: S
    closings: Closings

    @property
    def _parts(self) -> dict[str, State]:
        return {_VALUES: self.values, CLOSINGS: self.closings}

    def restored(
        self, restore: Callable[[Mapping[str, pl.DataFrame]], S], chunks: Mapping[str, pl.DataFrame]
    ) -> ClosingState[S]:
        """The state like this empty one whose `chunks()` these are; `restore` knows what the kernel remembers."""
        return ClosingState(
            restore(of_part(chunks, _VALUES)), self.closings.restored(of_part(chunks, CLOSINGS))
        )

    def observed(
        self, values: S, inputs: Sequence[Batch], closed: Sequence[Batch], clock: Clock
    ) -> ClosingState[S]:
        """The state after a step in which these inputs led to `values`, and these were closed."""
        if clock.upto <= clock.after:
            return ClosingState(values, self.closings)
        # Where one value closes many, what there is to forget follows the rows.
        below = any(each.below for each in self.closings.closed_values)
        arrived = sum(batch.height for batch in inputs) if below else 0
        frames = [batch.frame for batch in closed]
        return ClosingState(values, self.closings.observe(frames, arrived, clock))

    def due(self, clock: Clock) -> bool:
        """Whether it is time for a sweep; a step of no length must not write chunks under names that are taken."""
        return clock.upto > clock.after and self.closings.due
