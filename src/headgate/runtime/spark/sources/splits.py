"""File splits: what there is to read of streams, cut into parts, micro-batches and tasks.

A split is a file, or a span of one where its format allows that. In a micro-batch all streams advance
by the same share of their rows, and its tasks read consecutive splits of one stream.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from headgate.plan.catalog import StreamDef
from headgate.runtime.io.files import find_files
from headgate.runtime.io.format import Span
from headgate.runtime.io.registry import declared_files
from headgate.runtime.io.source import Slice

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
    declared = declared_files(stream)
    found: list[FileSplit] = []
    for file in find_files(declared.path, base, moving=moving):
        whole = file.absolute()
        if str(whole) in known or (moving and not file.exists()):
            continue
        spans: Sequence[tuple[Span | None, float]] = declared.reader.spans(whole, batch_rows)
        spans = spans or [(None, _size(whole) / _USUAL_ROW)]
        found += [FileSplit(stream.name, Slice(whole, span), max(1.0, rows)) for span, rows in spans]
    return found


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
