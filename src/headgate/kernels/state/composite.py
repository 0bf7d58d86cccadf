"""Composite: a state that consists of other states, each under a name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar

import polars as pl

from headgate.kernels.kernel import State
from headgate.kernels.state.store import prefixed, under


class Part(State, Protocol):
    """A state that can be restored by itself."""

    def restored(self, chunks: Mapping[str, pl.DataFrame]) -> Self:
        """The state like this empty one whose `chunks()` these are."""


class Composite(ABC):
    """Several states; their chunks carry their names."""

    @property
    @abstractmethod
    def _parts(self) -> Mapping[str, State]:
        """The states by name."""

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self._parts.values())

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self._parts.values())

    def chunks(self) -> dict[str, pl.DataFrame]:
        named = (prefixed(part.chunks(), f"{name}/") for name, part in self._parts.items())
        return {name: frame for chunks in named for name, frame in chunks.items()}


P = TypeVar("P", bound=Part)
S_co = TypeVar("S_co", bound=State, covariant=True)


@dataclass(frozen=True, eq=False)
class States(Composite, Generic[S_co]):
    """States of one kind by name."""

    named: Mapping[str, S_co]

    @property
    def _parts(self) -> Mapping[str, S_co]:
        return self.named

    def restored(self: States[P], chunks: Mapping[str, pl.DataFrame]) -> States[P]:
        """The states like these empty ones whose `chunks()` these are."""
        return States({name: part.restored(of_part(chunks, name)) for name, part in self.named.items()})


def of_part(chunks: Mapping[str, pl.DataFrame], name: str) -> dict[str, pl.DataFrame]:
    """The chunks of the part with this name, as it knows them."""
    return under(chunks, f"{name}/")
