"""Formats of files: what has to be known of one, and the pieces that its reader hands over, not yet converted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from headgate.model.schema import Column
from headgate.runtime.io.literals import TextForms
from headgate.runtime.io.options import Options
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


@dataclass(frozen=True)
class Span:
    """A part of a file, from `start` up to `end`, or to the end of the file without one.

    What is counted is the format's: bytes of a text that is not compressed, row groups of Parquet, stripes of ORC.
    """

    start: int
    end: int | None = None


PARTS = 4
"""Into how many spans a micro-batch's worth of one file is cut, so that tasks can share it."""


class Reader(Protocol):
    """Reads the files of one declaration into pieces."""

    @property
    def forms(self) -> TextForms | None:
        """How text is to be understood, for formats made of text."""

    def pieces(self, file: Path, span: Span | None, rows: int, *, stops: bool) -> Iterator[Piece]:
        """A file's rows in order, or those of a span of it, some `rows` at a time.

        With `stops`, what follows a broken row may be left out.
        """

    def spans(self, file: Path, batch_rows: int) -> Sequence[tuple[Span, float]]:
        """A file cut into spans for micro-batches of so many rows, and about how many rows each has.

        None if it has to be read whole, or cannot be looked at: whoever reads it says what is wrong with it.
        """

    def finish(self, name: str) -> None:
        """Raises if the files, now all read, are not together what was declared as `name`."""

    def advice(self, place: RowPlace) -> str | None:
        """What to do about a bad row, where its place tells."""


class Writer(Protocol):
    """Writes one file."""

    def write_table(self, table: pa.Table) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class FileFormat:
    """A format of files, source and sink. Nothing here has a default, so that nothing is forgotten."""

    name: str
    """After USING and --output-format, as Spark knows it."""
    suffix: str
    """How the names of files end that are written."""
    options: tuple[str, ...]
    """Options of a declaration, besides those that all files have, as Spark spells them."""
    reader: Callable[[tuple[Column, ...], Options], Reader]
    """What reads files with these columns; raises on options that cannot be meant so."""
    writer: Callable[[Path, pa.Schema], Writer]
    """What writes a file. Headgate and Spark read it back, without further options but those of `spark_options`."""
    writes: Callable[[pa.DataType], bool]
    """Whether there is a way to write values of a type."""
    spark_options: Mapping[str, str]
    """With which Spark writes, so that no value is changed."""
