"""CompositeState: a state that consists of other states, each under a name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from headgate.kernels.kernel import State
from headgate.kernels.state.store import prefixed, under


@dataclass(frozen=True, eq=False)
class CompositeState:
    """Several states; their chunks carry their names."""

    named: Mapping[str, State]

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.named.values())

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self.named.values())

    def chunks(self) -> Mapping[str, pl.DataFrame]:
        chunks: dict[str, pl.DataFrame] = {}
        for name, part in self.named.items():
            chunks |= prefixed(part.chunks(), f"{name}/")
        return chunks

    @staticmethod
    def of(chunks: Mapping[str, pl.DataFrame], name: str) -> dict[str, pl.DataFrame]:
        """The chunks of the part with this name, as it knows them."""
        return under(chunks, f"{name}/")
