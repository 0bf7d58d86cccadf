"""Measuring kernels: steps of a fixed size through one kernel, timed one by one.

Times are of the processor, not of the wall: other programs on the machine then disturb them less.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from time import process_time
from typing import Any

from headgate.kernels.kernel import Kernel
from headgate.model.batch import Batch
from headgate.model.time import BEGINNING, Clock

MakeBatches = Callable[[int, int], tuple[list[Batch], int]]
"""From the rows sent so far and a number of new rows per input: one batch per input, and the clock after them."""


@dataclass(frozen=True)
class Level:
    """Times per step while the state held about `state_rows`."""

    state_rows: int
    seconds: tuple[float, ...]

    @property
    def mean(self) -> float:
        return fmean(self.seconds)

    @property
    def median(self) -> float:
        return median(self.seconds)


class Driver:
    """Pushes generated batches through a kernel and keeps its state and clock."""

    def __init__(self, kernel: Kernel[Any], make: MakeBatches) -> None:
        self.kernel, self._make = kernel, make
        self.state = kernel.initial()
        self.clock, self.sent, self.results = BEGINNING, 0, 0

    def step(self, rows: int) -> float:
        """One step with so many new rows per input; its processor time in seconds."""
        batches, upto = self._make(self.sent, rows)
        begun = process_time()
        self.state, output = self.kernel.advance(self.state, batches, Clock(self.clock, upto, 0))
        spent = process_time() - begun
        self.clock, self.sent = upto, self.sent + rows
        self.results += output.height
        return spent

    def fill(self, rows: int, step: int) -> None:
        """Sends rows in large steps until so many have been sent per input."""
        while self.sent < rows:
            self.step(min(step, rows - self.sent))


def levels(driver: Callable[[int], Driver], sizes: Sequence[int], *, batch: int, steps: int) -> list[Level]:
    """Times of steps at each state size; `driver` makes a kernel whose window holds so many rows.

    At least `steps` steps, and so many that the whole state is replaced once: merges that come seldom and cost much
    are then in the mean with the share that they have.
    """
    found = []
    for size in sizes:
        running = driver(size)
        running.fill(size, 500_000)
        # The window is full and slides from here on: every step expires as much as it brings.
        running.fill(size + 5 * batch, batch)
        count = max(steps, -(-size // batch))
        found.append(Level(running.state.rows, tuple(running.step(batch) for _ in range(count))))
    return found
