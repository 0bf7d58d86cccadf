"""Spans: a large text file cut between rows, so that its parts can be read by themselves.

```
a,1 ⏎ "b ⏎ c",2 ⏎ d,3 ⏎
    │     ✗      │          a line break inside of quotes is no place to cut
```

A line of JSON ends at any line break. Whether one ends a CSV row depends on all quotes before it, so these are
counted from the beginning of the file on, and only as long as they are used by the book: behind the first quote that
is not, and behind the first escape, the rest of the file stays in one part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from headgate.model.errors import HeadgateError
from headgate.runtime.io.format import PARTS, Span
from headgate.runtime.io.text.bytestream import is_compressed
from headgate.runtime.io.text.records import CsvDialect, tidy_end
from headgate.runtime.io.text.textfile import (
    BLOCK,
    BYTE_ORDER_MARK,
    HEAD,
    LONGEST_ROW,
    TextFormat,
    begun_format,
)

_LOOKED_AT = 1 << 16
_LEAST_BYTES = 1 << 16
"""A span is no smaller."""


Cut = Callable[[BinaryIO, int], Iterator[int]]
"""Places in an open file between two rows, about so many bytes apart."""


def text_spans(file: Path, format: TextFormat, cut: Cut, batch_rows: int) -> list[tuple[Span, float]]:
    """The spans of a text file that is larger than a micro-batch, with about how many rows each has."""
    try:
        size = file.stat().st_size
        if size < 2 * _LEAST_BYTES:
            return []
        with file.open("rb") as opened:
            head = opened.read(HEAD)
    except OSError:
        return []
    width = len(head) / max(1, head.count(b"\n"))
    if size / width <= batch_rows:
        return []
    spans = cut_text(file, format, cut, max(_LEAST_BYTES, int(batch_rows / PARTS * width)))
    return [(span, ((size if span.end is None else span.end) - span.start) / width) for span in spans]


def cut_text(file: Path, format: TextFormat, cut: Cut, size: int) -> list[Span]:
    """A text file as spans of about `size` bytes; none if it has to be read whole."""
    try:
        if is_compressed(file):
            return []
        # What is wrong with the head of a file is said once, by whoever reads all of it.
        begun_format(file, format)
        with file.open("rb") as opened:
            cuts = [*cut(opened, size)]
    except (HeadgateError, OSError, pa.ArrowException):
        return []
    places = [0, *cuts]
    return [*(Span(start, end) for start, end in pairwise(places)), Span(places[-1])] if cuts else []


def after_lines(opened: BinaryIO, size: int) -> Iterator[int]:
    """Places behind line breaks, about `size` bytes apart."""
    whole, at = opened.seek(0, 2), size
    while at < whole:
        opened.seek(at)
        while chunk := opened.read(_LOOKED_AT):
            found = chunk.find(b"\n")
            if found >= 0:
                at += found + 1
                break
            at += len(chunk)
        if at >= whole:
            return
        yield at
        at += size


def after_records(dialect: CsvDialect, opened: BinaryIO, size: int) -> Iterator[int]:
    """Places between CSV rows, about `size` bytes apart, as far as quotes are used by the book."""
    whole = opened.seek(0, 2)
    opened.seek(0)
    rest, at, wanted = opened.read(len(BYTE_ORDER_MARK)), 0, size
    if rest == BYTE_ORDER_MARK:
        rest, at = b"", len(BYTE_ORDER_MARK)
    while chunk := opened.read(BLOCK):
        data = rest + chunk
        end = tidy_end(data, dialect)
        if end is None or len(data) - end > LONGEST_ROW:
            return
        quotes = _quotes(data[:end], dialect)
        while wanted < at + end:
            place = _break_outside(data, max(0, wanted - at), end, quotes)
            if place is None:
                break
            if at + place >= whole:
                return
            yield at + place
            wanted = at + place + size
        rest, at = data[end:], at + end


def _quotes(data: bytes, dialect: CsvDialect) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    if dialect.quote is None or dialect.quote.encode() not in data:
        return np.empty(0, np.int64)
    return np.flatnonzero(np.frombuffer(data, np.uint8) == ord(dialect.quote))


def _break_outside(
    data: bytes, start: int, end: int, quotes: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> int | None:
    """The place behind the first line break from `start` on that is not in quotes."""
    while (found := data.find(b"\n", start, end)) >= 0:
        before = int(np.searchsorted(quotes, found))
        if before % 2 == 0:
            return found + 1
        start = int(quotes[before])
    return None
