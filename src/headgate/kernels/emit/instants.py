"""Instants of a step at which something is said, numbered 0, 1, …: ticks, or any instants in order.

Ticks are reckoned, not listed: ten years of a second each take no memory until somebody says something at them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from headgate.kernels.state.index import Positions
from headgate.kernels.state.store import Instants
from headgate.model.time import tick_at_or_after


class Numbered(Protocol):
    """Instants in order, by number."""

    @property
    def count(self) -> int: ...

    def since(self, instants: Instants) -> Positions:
        """For each instant the number of the first one here that is not earlier; `count` if all are."""

    def at(self, numbers: Positions) -> Instants:
        """The instants that have these numbers."""


@dataclass(frozen=True)
class Ticks:
    """The multiples of `slide` after `after` and up to `upto`."""

    after: int
    upto: int
    slide: int

    @property
    def _first(self) -> int:
        return tick_at_or_after(self.after + 1, self.slide) // self.slide

    @property
    def count(self) -> int:
        return max(0, self.upto // self.slide - self._first + 1)

    def since(self, instants: Instants) -> Positions:
        within = np.clip(instants, self.after, self.upto + 1)
        return np.clip(-(-within // self.slide) - self._first, 0, self.count)

    def at(self, numbers: Positions) -> Instants:
        return (numbers + self._first) * self.slide


@dataclass(frozen=True)
class Moments:
    """Some instants, sorted."""

    instants: Instants

    @property
    def count(self) -> int:
        return len(self.instants)

    def since(self, instants: Instants) -> Positions:
        return np.searchsorted(self.instants, instants, side="left")

    def at(self, numbers: Positions) -> Instants:
        return self.instants[numbers]
