"""Stateless: what a kernel is that remembers nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True)
class EmptyState:
    """Nothing remembered."""

    @property
    def rows(self) -> int:
        return 0

    @property
    def nbytes(self) -> int:
        return 0

    def chunks(self) -> Mapping[str, pl.DataFrame]:
        return {}


class Stateless:
    """The two methods that kernels without memory share."""

    def initial(self) -> EmptyState:
        return EmptyState()

    def restore(self, chunks: Mapping[str, pl.DataFrame]) -> EmptyState:
        return EmptyState()
