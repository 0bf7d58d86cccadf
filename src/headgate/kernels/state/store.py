"""Store: what a kernel remembers of one input, whatever structure holds it.

A store is an immutable value. Its rows are payload columns with `_born` and `_dies`; rows with a negative
sign never enter, they take back a row that is there. It is probed by one of the keys that its layout names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt
import polars as pl

from headgate.kernels.keys import Hashes, Mask, key_hash
from headgate.kernels.state.index import Positions
from headgate.model.batch import BORN, DIES
from headgate.model.time import Clock

Instants = npt.NDArray[np.int64]

ENDS = "_ends"
"""When a row really ends: its death as announced, or the ending that came before it."""

LIFETIME = (BORN, DIES, ENDS)


@dataclass(frozen=True)
class Layout:
    """The payload columns of a store, and the sets of columns it can be probed by."""

    schema: Mapping[str, pl.DataType]
    keys: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        unknown = {name for key in self.keys for name in key} - {*self.schema, *LIFETIME}
        if unknown:
            raise ValueError(f"keys over columns that are not stored: {sorted(unknown)}")


@dataclass(frozen=True, eq=False)
class Probes:
    """Rows that look for partners: `columns` of `frame` against a key, alive together at some instant."""

    frame: pl.DataFrame
    columns: tuple[str, ...]
    born: Instants
    ends: Instants

    @cached_property
    def hashes(self) -> Hashes:
        return key_hash(self.frame, self.columns)


@dataclass(frozen=True, eq=False)
class Match:
    """Pairs of a probing row and a stored row with equal keys and overlapping lifetimes, column by column."""

    probe: Positions
    """The number of the probing row."""
    left: pl.DataFrame
    """The probing row."""
    right: pl.DataFrame
    """The stored row's payload."""
    born: Instants
    dies: Instants
    ends: Instants


class Store(Protocol):
    """The rows of one input that can still matter."""

    @property
    def layout(self) -> Layout:
        """Its payload columns and keys."""

    @property
    def rows(self) -> int:
        """Rows held, dead ones that were not reclaimed yet included."""

    @property
    def nbytes(self) -> int:
        """Bytes of rows and indexes."""

    def chunks(self) -> Mapping[str, pl.DataFrame]:
        """Every chunk by name."""

    def restored(self, chunks: Mapping[str, pl.DataFrame]) -> Self:
        """The store of this kind and layout whose `chunks()` these are."""

    def insert(self, frame: pl.DataFrame, clock: Clock) -> Self:
        """The store with the rows of `frame` too: all that were born in the step `clock`."""

    def probe(self, key: int, probes: Probes) -> Iterator[Match]:
        """All partners of the probes by the layout's key number `key`; NULL finds only NULL."""

    def expire(self, upto: int) -> Self:
        """The store without rows that are dead at `upto`, but for a bounded share that leaves later.

        At most once in a clock step, at its end: chunks are named after the step that writes them.
        """

    def live(self, upto: int) -> pl.DataFrame:
        """All rows that are not dead at an instant."""


def rows_at(frame: pl.DataFrame, positions: Positions) -> pl.DataFrame:
    """The rows of a frame at some positions, in that order."""
    return frame[pl.Series(positions.astype(np.uint32))]


def rows_where(frame: pl.DataFrame, keep: Mask) -> pl.DataFrame:
    """The rows of a frame for which the mask holds."""
    return frame if keep.all() else rows_at(frame, np.flatnonzero(keep))


def payload_of(frame: pl.DataFrame) -> pl.DataFrame:
    """The columns that are data rather than lifetime; there may be none, and still the rows."""
    payload = [name for name in frame.columns if name not in LIFETIME]
    return frame[payload] if payload else frame.drop(frame.columns)


def prefixed(chunks: Mapping[str, pl.DataFrame], prefix: str) -> dict[str, pl.DataFrame]:
    """The chunks of a part as chunks of the whole."""
    return {prefix + name: frame for name, frame in chunks.items()}


def under(chunks: Mapping[str, pl.DataFrame], prefix: str) -> dict[str, pl.DataFrame]:
    """The chunks of the part that `prefixed` had put under this prefix."""
    return {name.removeprefix(prefix): frame for name, frame in chunks.items() if name.startswith(prefix)}
