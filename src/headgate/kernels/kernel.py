"""The contract of a kernel: (state, batches of one clock step) -> (state, batch of that step).

A kernel is an immutable description of work; its state is an immutable value that shares what did not
change with its predecessor. So the old state stays valid until the new one is published, a snapshot is the
state itself, and a checkpoint writes only the chunks that are new.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

import polars as pl

from headgate.model.batch import Batch
from headgate.model.time import Clock


class State(Protocol):
    """What a kernel remembers between clock steps: named, immutable Arrow chunks."""

    @property
    def rows(self) -> int:
        """Rows held, over all chunks."""

    @property
    def nbytes(self) -> int:
        """Bytes held, over all chunks (estimated from the columns, not by walking them)."""

    def chunks(self) -> Mapping[str, pl.DataFrame]:
        """Every chunk by name. A name is never reused for other contents during a run."""


S = TypeVar("S", bound=State)


class Kernel(Protocol[S]):
    """One operator. Every kernel has, by test: split-invariance, exact restore, cost that follows the batch."""

    def initial(self) -> S:
        """The state before the first row."""

    def restore(self, chunks: Mapping[str, pl.DataFrame]) -> S:
        """The state whose `chunks()` these are."""

    def advance(self, state: S, inputs: Sequence[Batch], clock: Clock) -> tuple[S, Batch]:
        """All output births in (clock.after, clock.upto], given all input births in that step."""
