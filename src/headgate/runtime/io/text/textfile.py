"""Text files: from bytes to blocks of whole rows, with rows that are none taken out.

A block goes the fast way, whole, if it is clean. Otherwise its rows are told apart, those that cannot be read are cut
out with the reason, and the rest goes the fast way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate.model.errors import DataError
from headgate.runtime.io.format import Piece, RowPlace, Span
from headgate.runtime.io.rejects import LONGEST_KEPT, BadRow, Origin
from headgate.runtime.io.text.bytestream import ByteStream
from headgate.runtime.io.text.records import Records
from headgate.runtime.io.text.utf8 import is_utf8, not_utf8, one_text, texts

BLOCK = 1 << 22
LONGEST_ROW = 1 << 24
_LINE_FEED, _RETURN = b"\n\r"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

HEAD = 1 << 16
"""How much of a file a format looks at to fit itself to it, at most; a first row may be longer."""

TOO_LONG = f"the row is longer than {LONGEST_ROW >> 20} MB"
_OPEN = "a quote is opened and never closed"


@dataclass(frozen=True)
class Flaw:
    """Why a row cannot be taken apart, and the column if it is known."""

    reason: str
    column: str | None = None
    remedy: str | None = None


F = TypeVar("F", bound="TextFormat")


class TextFormat(Protocol):
    """What the text formats differ in."""

    @property
    def has_header(self) -> bool:
        """Whether a file begins with something else than a row."""

    def begin(self, file: Origin, data: bytes) -> tuple[Self, int]:
        """The format fitted to a file by its first block, and how many bytes of that are no rows."""

    def cut(self, data: bytes, *, final: bool) -> int:
        """How many bytes of a block are whole rows."""

    def records(self, data: bytes) -> Records:
        """The rows of a block of whole rows."""

    def parse(self, data: bytes) -> Sequence[pa.Array] | None:
        """The declared columns of a block of whole rows; None if it has rows that need a closer look."""

    def flaws(
        self, data: bytes, records: Records, known: Mapping[int, Flaw], *, stops: bool
    ) -> Mapping[int, Flaw]:
        """The rows that cannot be parsed, besides those known; with `stops`, one before which all can is enough."""


def text_pieces(file: Path, format: TextFormat, span: Span | None, *, stops: bool) -> Iterator[Piece]:
    """The rows of a text file, or of a span of it that begins and ends between two rows."""
    rows, lines, begun = 0, 0, False
    before = _Before(file, format, 0 if span is None else span.start)
    if before.size:
        format, begun = begun_format(file, format), True
    with ByteStream(file, span) as stream:
        for block in _blocks(stream, format, marked=not before.size):
            data, used = block.data, 0
            if not begun:
                format, used = _begin(file, format, block)
                begun = True
            source = _Source(file, data[used:], format, rows, lines + _line_breaks(data[:used]), before)
            if block.flaw is None:
                piece, height = _piece(source, stream.position, stops=stops)
            else:
                place = RowPlace(before.rows + rows + 1, before.lines + source.line + 1, _text(data))
                broken = _bad_row(file, place, block.flaw)
                piece, height = Piece(format.parse(b"") or (), (broken,), source.place, stream.position), 1
            rows += height
            lines += _line_breaks(data)
            yield piece


def begun_format(file: Path, format: F) -> F:
    """The format fitted to a file by its first rows; DataError where they do not allow that."""
    with ByteStream(file, Span(0)) as stream:
        head = stream.read(2 * HEAD).removeprefix(BYTE_ORDER_MARK)
        whole = format.cut(head, final=False)
        if whole >= HEAD:
            return format.begin(file, head[:whole])[0]
    with ByteStream(file, Span(0)) as stream:
        first = next(_blocks(stream, format, marked=True), _Block(b""))
    return _begin(file, format, first)[0]


def _begin(file: Path, format: F, block: _Block) -> tuple[F, int]:
    if block.flaw is not None and format.has_header:
        raise DataError(f"{file}, line 1: {block.flaw.reason}")
    return format.begin(file, block.data)


@dataclass(frozen=True)
class _Before:
    """What stands in a file before a span of it; it is counted only if a bad row has to be named."""

    file: Path
    format: TextFormat
    size: int

    @property
    def rows(self) -> int:
        return self._counts[0]

    @property
    def lines(self) -> int:
        return self._counts[1]

    @cached_property
    def _counts(self) -> tuple[int, int]:
        rows, lines = 0, 0
        if self.size:
            format, begun = self.format, False
            with ByteStream(self.file, Span(0, self.size)) as stream:
                for block in _blocks(stream, format, marked=True):
                    used = 0
                    if not begun:
                        format, used = _begin(self.file, format, block)
                        begun = True
                    rows += 1 if block.flaw else len(format.records(block.data[used:]))
                    lines += _line_breaks(block.data)
        return rows, lines


def block_piece(data: bytes, format: TextFormat, *, stops: bool) -> Piece:
    """The rows of a block of whole rows that stands alone."""
    format, used = format.begin("", data)
    piece, _ = _piece(
        _Source("", data[used:], format, 0, 0, _Before(Path(), format, 0)), len(data), stops=stops
    )
    return piece


@dataclass(frozen=True)
class _Block:
    """Whole rows, or with a flaw the beginning of a row that goes wrong."""

    data: bytes
    flaw: Flaw | None = None


def _blocks(stream: ByteStream, format: TextFormat, *, marked: bool) -> Iterator[_Block]:
    """All that a stream has; `marked`: it may begin with a byte order mark."""
    rest = stream.read(len(BYTE_ORDER_MARK)).removeprefix(BYTE_ORDER_MARK) if marked else b""
    final = False
    while not final:
        chunk = stream.read(BLOCK)
        final = not chunk
        rest += chunk
        end = format.cut(rest, final=final)
        if end:
            yield _Block(rest[:end])
            rest = rest[end:]
        while rest and (final or len(rest) > LONGEST_ROW):
            line = rest.find(b"\n") + 1
            if not line and not final:
                yield _Block(rest[:LONGEST_KEPT], Flaw(TOO_LONG))
                rest = _behind_line(stream)
                break
            # Only an open quote makes so much text one row. Start again behind its first line.
            line = line or len(rest)
            yield _Block(rest[:line], Flaw(_OPEN if len(rest) <= LONGEST_ROW else f"{_OPEN}, and {TOO_LONG}"))
            rest = rest[line:]
            end = format.cut(rest, final=final)
            if end:
                yield _Block(rest[:end])
                rest = rest[end:]


def _behind_line(stream: ByteStream) -> bytes:
    """What follows the line in which the stream stands, as far as it has been read."""
    while chunk := stream.read(BLOCK):
        if b"\n" in chunk:
            return chunk[chunk.index(b"\n") + 1 :]
    return b""


@dataclass(frozen=True)
class _Source:
    """A block of whole rows, and how many rows and lines of its file or span are before it."""

    file: Origin
    data: bytes
    format: TextFormat
    row: int
    line: int
    before: _Before

    @cached_property
    def records(self) -> Records:
        return self.format.records(self.data)

    @cached_property
    def _breaks(self) -> npt.NDArray[np.int64]:
        letters = np.frombuffer(self.data, np.uint8)
        if b"\r" not in self.data:
            return np.flatnonzero(letters == _LINE_FEED)
        returns = letters == _RETURN
        returns[:-1] &= letters[1:] != _LINE_FEED
        return np.flatnonzero((letters == _LINE_FEED) | returns)

    def place(self, index: int) -> RowPlace:
        start, end = int(self.records.starts[index]), int(self.records.ends[index])
        line = self.before.lines + self.line + int(np.searchsorted(self._breaks, start)) + 1
        return RowPlace(self.before.rows + self.row + index + 1, line, _text(self.data[start:end]))

    def bad_row(self, index: int, flaw: Flaw) -> BadRow:
        return _bad_row(self.file, self.place(index), flaw)


def _piece(source: _Source, position: int, *, stops: bool) -> tuple[Piece, int]:
    """The rows of a block, and how many there were with the broken ones."""
    data, format = source.data, source.format
    clean = b"\0" not in data and len(data) <= LONGEST_ROW and is_utf8(one_text(data))
    columns = format.parse(data) if clean else None
    if columns is not None:
        return Piece(columns, (), source.place, position), len(columns[0])
    records = source.records
    flaws = {} if clean else dict(_flaws_of_bytes(data, records))
    flaws |= format.flaws(data, records, flaws, stops=stops)
    end = min(flaws, default=len(records)) if stops else len(records)
    flawed = sorted(index for index in flaws if index <= end)
    kept = np.delete(np.arange(end), [index for index in flawed if index < end])
    columns = format.parse(_without(data, records, flawed, end))
    if columns is None or len(columns[0]) != kept.size:
        first = source.before.rows + source.row + 1
        last = first + len(records) - 1
        raise DataError(f"{source.file}: rows {first} to {last} cannot be told apart")
    broken = tuple(source.bad_row(index, flaws[index]) for index in flawed)
    return Piece(columns, broken, lambda index: source.place(int(kept[index])), position), len(records)


def _without(data: bytes, records: Records, flawed: Sequence[int], end: int) -> bytes:
    """The rows before `end` that have no flaw."""
    parts, start = [], 0
    for index in flawed:
        parts.append(data[start : records.starts[index]])
        start = int(records.starts[index + 1]) if index + 1 < len(records) else len(data)
    if end == len(records):
        parts.append(data[start:])
    return b"".join(parts)


def _flaws_of_bytes(data: bytes, records: Records) -> Iterator[tuple[int, Flaw]]:
    """Rows that are too long, or whose bytes are not text."""
    for index in np.flatnonzero(records.ends - records.starts > LONGEST_ROW).tolist():
        yield index, Flaw(TOO_LONG)
    for index in np.flatnonzero(not_utf8(texts(data, records.starts))).tolist():
        yield index, Flaw("the row is not UTF-8 text")
    nulls = np.flatnonzero(np.frombuffer(data, np.uint8) == 0)
    for index in np.unique(np.searchsorted(records.starts, nulls, side="right") - 1).tolist():
        yield index, Flaw("the row has a NUL byte")


def _bad_row(file: Origin, place: RowPlace, flaw: Flaw) -> BadRow:
    return BadRow(file, flaw.reason, place.row, place.line, flaw.column, place.text, flaw.remedy)


def _text(data: bytes) -> str:
    return data[:LONGEST_KEPT].rstrip(b"\r\n").decode("utf-8", errors="backslashreplace")


def _line_breaks(data: bytes) -> int:
    """How many lines end in a block; a carriage return ends one unless a line feed follows."""
    letters = np.frombuffer(data, np.uint8)
    breaks = int(np.count_nonzero(letters == _LINE_FEED))
    return breaks + data.count(b"\r") - data.count(b"\r\n") if b"\r" in data else breaks
