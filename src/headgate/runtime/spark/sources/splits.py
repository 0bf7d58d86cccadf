"""File splits: what there is to read of streams, cut into parts, micro-batches and tasks.

A split is a file, some row groups of a Parquet file, or a span of a text file. In a micro-batch all streams advance
by the same share of their rows, and its tasks read consecutive splits of one stream.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.plan.catalog import StreamDef
from headgate.runtime.io.files import find_files
from headgate.runtime.io.options import read_options
from headgate.runtime.io.source import Slice
from headgate.runtime.io.text.spans import row_bytes, text_spans

_PARTS = 4
"""Into how many parts a micro-batch's worth of one file is cut, so that tasks can share it."""
_LEAST_BYTES = 1 << 16
"""A part of a text file is no smaller."""
_USUAL_ROW = 64


@dataclass(frozen=True)
class FileSplit:
    """A stream's file or a part of it, and about how many rows that is."""

    stream: str
    slice: Slice
    rows: float


def splits_of(
    stream: StreamDef,
    base: Path,
    batch_rows: int,
    known: frozenset[str] = frozenset(),
    *,
    moving: bool = False,
) -> list[FileSplit]:
    """All that there is to read of a stream, in order, cut where it can be; files already `known` are left out.

    `moving`: files come and go meanwhile.
    """
    options = read_options(stream)
    found: list[FileSplit] = []
    for file in find_files(options.path, base, moving=moving):
        whole = file.absolute()
        if str(whole) in known or (moving and not file.exists()):
            continue
        if options.format == "parquet":
            parts = _row_groups(stream.name, whole, batch_rows)
        else:
            parts = _spans(stream, whole, batch_rows)
        # The reader says what is wrong with a file, if anything is.
        found += parts or [FileSplit(stream.name, Slice(whole), max(1.0, _size(whole) / _USUAL_ROW))]
    return found


def _row_groups(stream: str, file: Path, batch_rows: int) -> list[FileSplit]:
    found: list[FileSplit] = []
    groups = _rows_of_groups(file)
    start, rows = 0, 0
    for index, count in enumerate(groups):
        rows += count
        if rows >= batch_rows / _PARTS or index == len(groups) - 1:
            found.append(FileSplit(stream, Slice(file, (start, index + 1)), max(1.0, rows)))
            start, rows = index + 1, 0
    return found


def _rows_of_groups(file: Path) -> list[int]:
    try:
        with pq.ParquetFile(file) as opened:
            metadata = opened.metadata
            return [metadata.row_group(index).num_rows for index in range(metadata.num_row_groups)]
    except (OSError, pa.ArrowException):
        return []


def _spans(stream: StreamDef, file: Path, batch_rows: int) -> list[FileSplit]:
    """The parts of a text file that is larger than a micro-batch."""
    size = _size(file)
    if size < 2 * _LEAST_BYTES:
        return []
    try:
        width = row_bytes(file)
    except OSError:
        return []
    if size / width <= batch_rows:
        return []
    each = max(_LEAST_BYTES, int(batch_rows / _PARTS * width))
    spans = text_spans(file, read_options(stream), stream.columns, each)
    return [
        FileSplit(
            stream.name,
            Slice(file, span=span),
            max(1.0, ((size if span.end is None else span.end) - span.start) / width),
        )
        for span in spans
    ]


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


def batches_of(streams: Mapping[str, Sequence[FileSplit]], batch_rows: int) -> list[list[FileSplit]]:
    """Micro-batches of about so many rows, in which all streams advance by the same share of their rows."""
    total = sum(split.rows for splits in streams.values() for split in splits)
    count = max(1, round(total / batch_rows))
    batches: list[list[FileSplit]] = [[] for _ in range(count)]
    for splits in streams.values():
        for number, part in enumerate(_shared(splits, count)):
            batches[number] += part
    return [batch for batch in batches if batch]


def tasks_of(batch: Sequence[FileSplit], streams: Sequence[str], tasks: int) -> list[list[FileSplit]]:
    """A micro-batch's splits by task: consecutive splits of one stream, of about equal size."""
    each = max(1, tasks // max(1, len(streams)))
    parts = [
        part for stream in streams for part in _shared([one for one in batch if one.stream == stream], each)
    ]
    return [part for part in parts if part]


def _shared(splits: Sequence[FileSplit], count: int) -> list[list[FileSplit]]:
    """Consecutive splits in so many parts of about equal size, some of which may be empty."""
    parts: list[list[FileSplit]] = [[] for _ in range(count)]
    whole, before = sum(split.rows for split in splits), 0.0
    for split in splits:
        middle = (before + split.rows / 2) / whole
        parts[min(count - 1, int(middle * count))].append(split)
        before += split.rows
    return parts
