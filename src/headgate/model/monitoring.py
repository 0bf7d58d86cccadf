"""Monitoring: how closely rows are watched to find the k of a constraint that is declared WITHIN AUTO."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil


@dataclass(frozen=True)
class Monitoring:
    """The parameters of the k-Mon document's monitors (section 4.3), with what it sets them to.

    A k is used after `window` rows have kept to it. While it is in use, distances of up to `margin` times as many
    rows are sure to be seen, and a `sampled` part of what is longer. None is seen that is longer than `limit` rows,
    and no k beyond it is used: so much is remembered at most.
    """

    margin: float = 1.2
    sampled: float = 0.01
    window: int = 1000
    limit: int = 100_000

    def detectable(self, k: int | None) -> int:
        """The longest distance that is sure to be seen while a k is in use; at least one more than that."""
        return self.limit if k is None else min(self.limit, max(ceil(self.margin * k), k + 1))


DEFAULT = Monitoring()
