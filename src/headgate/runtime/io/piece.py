"""Pieces: what a file format hands over, before types are looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from headgate.runtime.io.literals import TextForms
from headgate.runtime.io.rejects import BadRow


@dataclass(frozen=True)
class RowPlace:
    """Where a row stands in its file, and its text if the file is text."""

    row: int
    line: int | None = None
    text: str | None = None


@dataclass(frozen=True)
class Piece:
    """Some consecutive rows of a file: one array for each declared column, in the types that the file has.

    `broken` are rows that could not be taken apart at all; they are not in the arrays. `place` finds the row at
    an index of the arrays.
    """

    columns: Sequence[pa.Array]
    broken: Sequence[BadRow]
    place: Callable[[int], RowPlace]
    bytes_read: int


class Format(Protocol):
    """A file format: reads files into pieces."""

    @property
    def forms(self) -> TextForms | None:
        """How text is to be understood, for formats made of text."""

    def pieces(self, file: Path, rows: int, *, stops: bool) -> Iterator[Piece]:
        """A file's rows in order, some `rows` at a time; with `stops`, what follows a broken row may be left out."""

    def finish(self, name: str) -> None:
        """Raises if the files, now all read, are not together what was declared as `name`."""

    def advice(self, place: RowPlace) -> str | None:
        """What to do about a bad row, where its place tells."""
