"""Adversary, the model of a witness: rows that every correct algorithm for a query has to remember."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Values = Mapping[str, Any]
"""Values of some columns of a stream."""


@dataclass(frozen=True)
class Adversary:
    """Rows that `stream` may or may not bring, and for each the rows that later ask whether it did, or once for all.

    Any subset of the rows is a possible past (any of half the size, if `one_size`), and the answers to come tell
    all of these apart. So a state has to be able to tell them apart too.
    """

    stream: str
    rows: tuple[Values, ...]
    probes: tuple[tuple[tuple[str, Values], ...], ...]
    one_size: bool
    reason: str
    setting: tuple[tuple[str, Values], ...] = ()
    """Rows of other streams that come after these in any case."""

    def bits(self, count: int) -> int:
        """How many bits any correct algorithm needs after `count` of the rows."""
        return math.floor(math.log2(math.comb(count, count // 2))) if self.one_size else count

    def resembles(self, other: Adversary) -> bool:
        """Whether the other one proves the same thing with another number of rows."""
        return (self.stream, self.one_size, self.reason) == (other.stream, other.one_size, other.reason)
