"""Synthetic: streams for multi-way joins, with rates and distinct counts (Windows document, section 5.4.1).

Each time step brings one row to one of the streams, chosen with a probability proportional to its rate. The
join attribute is uniform in 1 … v, so of two streams the one with fewer values has a subset of the other's.

```
step   0   1   2   3   4   5   6   7
S1     .       .   .       .       .       rate 5
S2         .           .       .           rate 3
```
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import pyarrow as pa

from headgate.lab.generators.dataset import START, Dataset, GeneratedStream
from headgate.lab.generators.draw import ROWS_PER_BLOCK, Choice, Ints, blocks, generator
from headgate.model import types
from headgate.model.time import SECOND

ROW = pa.schema([("ts", types.TIMESTAMP), ("a", types.BIGINT), ("id", types.BIGINT)])


@dataclass(frozen=True)
class StreamShape:
    """One stream of a join: its rate (rows per second) and the number of distinct values of `a`."""

    name: str
    rate: float
    distinct: int

    def __post_init__(self) -> None:
        if not self.rate > 0 or self.distinct < 1:
            raise ValueError(f"{self.name} needs a positive rate and at least one distinct value")


TABLE_5_3 = (
    StreamShape("S1", 10, 500),
    StreamShape("S2", 1, 50),
    StreamShape("S3", 1, 40),
    StreamShape("S4", 3, 5),
)
# The document prints a rate of 100 for stream 1, but its costs come out with 10.
TABLE_5_5 = (
    StreamShape("S1", 10, 40),
    StreamShape("S2", 1, 100),
    StreamShape("S3", 1, 8),
    StreamShape("S4", 1, 5),
)
TABLE_5_6 = (
    StreamShape("S1", 11, 200),
    StreamShape("S2", 10, 100),
    StreamShape("S3", 1, 65),
    StreamShape("S4", 1, 20),
)


@dataclass(frozen=True)
class Synthetic(Dataset):
    """One stream per shape with columns ts, the join attribute `a`, and `id`, the number of the step.

    `step` is the length of a time step in microseconds. Without it steps are as long as the rates want, one
    second over their sum; with a step of one second the time counts the steps, as in the document.
    """

    shapes: tuple[StreamShape, ...] = TABLE_5_5
    steps: int = 100_000
    step: int | None = None
    seed: int = 0
    start: int = START

    def __post_init__(self) -> None:
        if not self.shapes or len({shape.name for shape in self.shapes}) < len(self.shapes):
            raise ValueError("there is at least one stream, and their names differ")
        if self.steps < 0 or (self.step is not None and self.step < 1):
            raise ValueError("steps is not negative and a step lasts at least a microsecond")

    @property
    def streams(self) -> Mapping[str, GeneratedStream]:
        return {
            shape.name: GeneratedStream(
                shape.name, ROW, partial(self._tables, place), partial(self._count, place)
            )
            for place, shape in enumerate(self.shapes)
        }

    @cached_property
    def _choice(self) -> Choice:
        return Choice(np.array([shape.rate for shape in self.shapes], dtype=np.float64))

    def _steps(self, place: int) -> Iterator[tuple[int, Ints]]:
        """The steps that bring a row to a stream, block by block."""
        for block, first, count in blocks(self.steps, ROWS_PER_BLOCK):
            chosen = self._choice.draw(generator(self.seed, "synthetic.choice", block), count)
            yield block, first + np.flatnonzero(chosen == place)

    def _count(self, place: int) -> int:
        return sum(steps.size for _, steps in self._steps(place))

    def _tables(self, place: int) -> Iterator[pa.Table]:
        shape = self.shapes[place]
        for block, steps in self._steps(place):
            rng = generator(self.seed, f"synthetic.{shape.name}", block)
            a = rng.integers(1, shape.distinct + 1, size=steps.size)
            yield pa.table([self._time(steps).view("datetime64[us]"), a, steps], schema=ROW)

    def _time(self, steps: Ints) -> Ints:
        if self.step is not None:
            return self.start + steps * self.step
        per_second = sum(shape.rate for shape in self.shapes)
        return self.start + (steps * (SECOND / per_second)).astype(np.int64)
