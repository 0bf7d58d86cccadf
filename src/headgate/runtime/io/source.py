"""File sources: a declared stream or table read from its files, chunk by chunk, in its declared types."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from headgate.kernels.expressions.dtypes import polars_type
from headgate.model.errors import DataError, InputError
from headgate.plan.catalog import StreamDef, TableDef
from headgate.runtime.io.files import find_files
from headgate.runtime.io.fitting import fit
from headgate.runtime.io.format import Piece, Span
from headgate.runtime.io.registry import declared_files
from headgate.runtime.io.rejects import RejectPolicy, RejectState
from headgate.runtime.io.text.bytestream import unreadable

_CHUNK_BYTES = 1 << 28


@dataclass
class ReadState:
    """How far a source has been read."""

    rows: int = 0
    bytes: int = 0


@dataclass(frozen=True)
class Slice:
    """One file of a source, or a span of it."""

    file: Path
    span: Span | None = None


class FileSource:
    """The files of a stream or table, found and checked to be there; the rows come when `chunks` is walked.

    Bad rows stop the reading or are set aside, as `on_bad_row` says. A file that cannot be read, or only in part, is
    dealt with alike; but if no file can be read at all, that is an error in any case.
    """

    def __init__(
        self,
        definition: StreamDef | TableDef,
        base: Path,
        *,
        rows_per_chunk: int,
        on_bad_row: RejectPolicy,
        only: Slice | None = None,
        rejects: RejectState | None = None,
    ) -> None:
        if rows_per_chunk < 1:
            raise ValueError(f"a chunk has at least one row, not {rows_per_chunk}")
        declared = declared_files(definition)
        self.definition = definition
        self.files = find_files(declared.path, base) if only is None else (only.file,)
        self.total_bytes = sum(_size(file) for file in self.files)
        self._rows_per_chunk = rows_per_chunk
        self._stops = on_bad_row.stops
        self._reader, self._span = declared.reader, None if only is None else only.span
        self._rejects = rejects or RejectState(on_bad_row, definition.name)
        self._state = ReadState()

    @property
    def bytes_read(self) -> int:
        """How many bytes of the files are done."""
        return self._state.bytes

    @property
    def rows_read(self) -> int:
        """How many good rows have been read."""
        return self._state.rows

    @property
    def rejected_rows(self) -> int:
        """How many bad rows have been set aside."""
        return self._rejects.rows

    @property
    def rejected_files(self) -> int:
        """How many files have been set aside, or their rests."""
        return self._rejects.files

    def chunks(self) -> Iterator[pl.DataFrame]:
        """All rows in the order of the files, `rows_per_chunk` at a time and the last chunk shorter.

        A chunk is also shorter where rows are very large. A source without rows gives one empty chunk.
        """
        waiting: list[pl.DataFrame] = []
        held, size, given = 0, 0.0, False
        for frame in self._frames():
            waiting.append(frame)
            held += frame.height
            size += frame.estimated_size()
            while held and (held >= self._rows_per_chunk or size > _CHUNK_BYTES):
                whole = waiting[0] if len(waiting) == 1 else pl.concat(waiting, rechunk=True)
                yield whole.head(self._rows_per_chunk)
                waiting, given = [whole.slice(self._rows_per_chunk)], True
                held = waiting[0].height
                size *= held / whole.height
        if held:
            yield pl.concat(waiting, rechunk=True)
        elif not given:
            yield pl.DataFrame(
                schema={column.name: polars_type(column.type) for column in self.definition.columns}
            )

    def _frames(self) -> Iterator[pl.DataFrame]:
        """The good rows of every file."""
        self._state = ReadState()
        done = 0
        for file in self.files:
            try:
                for piece in self._reader.pieces(file, self._span, self._rows_per_chunk, stops=self._stops):
                    frame = self._good_rows(file, piece)
                    self._state.rows += frame.height
                    self._state.bytes = done + piece.bytes_read
                    yield frame
            except (InputError, DataError) as error:
                self._rejects.refuse_file(file, error)
            done += _size(file)
            self._state.bytes = done
        if self._rejects.first_file_error is not None and self._rejects.files == len(self.files):
            raise self._rejects.first_file_error
        if self._state.rows:
            self._reader.finish(self.definition.name)

    def _good_rows(self, file: Path, piece: Piece) -> pl.DataFrame:
        """The rows of a piece that fit the declaration; the others are refused in the order in which they stand."""
        frame, bad = fit(self.definition, self._reader, file, piece, stops=self._stops)
        self._rejects.refuse(bad)
        return frame


def open_source(
    definition: StreamDef | TableDef, base: Path, *, rows_per_chunk: int, on_bad_row: RejectPolicy
) -> FileSource:
    """The files of a declared stream or table, ready to be read; relative paths are meant from `base`."""
    return FileSource(definition, base, rows_per_chunk=rows_per_chunk, on_bad_row=on_bad_row)


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError as error:
        raise unreadable(file, error) from error
