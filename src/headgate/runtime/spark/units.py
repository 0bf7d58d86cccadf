"""Units: which files each micro-batch reads, written down where Spark's file source finds them.

Files in declared formats are read by the same code on both engines. What Spark streams is the reading list: small
files of JSON lines, as many for each micro-batch as tasks run at once, each naming what one task reads. Spark's own
file source keeps track of the lists, so a micro-batch that is replayed reads the same files again.

```
000000-0.json   {"stream": "bids", "order": 0, "file": "…/bids-0.parquet", "groups": [0, 4]}
000000-1.json   {"stream": "items", "order": 1, "file": "…/items-0.parquet"}
000001-0.json   {"stream": "bids", …} {"end": true}
```
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.plan.catalog import StreamDef
from headgate.runtime.sources.files import find_files
from headgate.runtime.sources.options import read_options
from headgate.runtime.sources.source import FileSource, Slice
from headgate.runtime.spark.aside import Aside, publish
from headgate.runtime.spark.job import JobStage
from headgate.runtime.spark.messages import Message
from headgate.runtime.spark.pack import Packer, pack_end

READ_ROWS = 250_000


@dataclass(frozen=True)
class Unit:
    """A file, or some row groups of it, and about how many rows that is."""

    stream: str
    slice: Slice
    rows: float


def units_of(
    stream: StreamDef,
    base: Path,
    batch_rows: int,
    known: frozenset[str] = frozenset(),
    *,
    moving: bool = False,
) -> list[Unit]:
    """All that there is to read of a stream, in order, cut where it can be; files already `known` are left out.

    `moving`: files come and go meanwhile.
    """
    files = find_files(read_options(stream).path, base, moving=moving)
    is_parquet = stream.source is not None and stream.source.format == "parquet"
    found: list[Unit] = []
    for file in files:
        if str(file.absolute()) in known or (moving and not file.exists()):
            continue
        groups = _row_groups(file) if is_parquet else None
        if not groups:
            # The reader says what is wrong with a file, if anything is.
            found.append(Unit(stream.name, Slice(file), max(1.0, _size(file) / 64)))
            continue
        start, rows = 0, 0
        for index, count in enumerate(groups):
            rows += count
            if rows >= batch_rows / 4 or index == len(groups) - 1:
                found.append(Unit(stream.name, Slice(file, (start, index + 1)), rows))
                start, rows = index + 1, 0
    return found


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _row_groups(file: Path) -> list[int] | None:
    try:
        with pq.ParquetFile(file) as opened:
            metadata = opened.metadata
            return [metadata.row_group(index).num_rows for index in range(metadata.num_row_groups)]
    except (OSError, pa.ArrowException):
        return None


def batches_of(streams: Mapping[str, Sequence[Unit]], batch_rows: int) -> list[list[Unit]]:
    """Micro-batches of about so many rows, in which all streams advance by the same share of their rows."""
    total = sum(unit.rows for units in streams.values() for unit in units)
    count = max(1, round(total / batch_rows))
    batches: list[list[Unit]] = [[] for _ in range(count)]
    for units in streams.values():
        whole, before = sum(unit.rows for unit in units), 0.0
        for unit in units:
            middle = (before + unit.rows / 2) / whole
            batches[min(count - 1, int(middle * count))].append(unit)
            before += unit.rows
    return [batch for batch in batches if batch]


def line_of(unit: Unit, order: int) -> str:
    """A unit as a line of a list."""
    entry: dict[str, Any] = {"stream": unit.stream, "order": order, "file": str(unit.slice.file.absolute())}
    if unit.slice.groups is not None:
        entry["groups"] = list(unit.slice.groups)
    return json.dumps(entry)


def read_units(
    job: JobStage, lists: Iterable[pa.RecordBatch], aside: Aside
) -> Iterator[list[tuple[int, Message]]]:
    """All messages of what the lines of some lists name."""
    entries = [json.loads(line) for batch in lists for line in batch.column(0).to_pylist()]
    named = [entry for entry in entries if "file" in entry]
    for order in sorted({entry["order"] for entry in named}):
        mine = [entry for entry in named if entry["order"] == order]
        packer = Packer.of(job, mine[0]["stream"])
        yield from packer.messages(_rows(packer.stream, mine, aside), order)
    if any(entry.get("end") for entry in entries):
        yield from pack_end(job, [pa.record_batch({"end": [True]})])


def _rows(stream: StreamDef, entries: Sequence[Mapping[str, Any]], aside: Aside) -> Iterator[pa.RecordBatch]:
    for number, entry in enumerate(entries):
        groups = entry.get("groups")
        only = Slice(Path(entry["file"]), (groups[0], groups[1]) if groups else None)
        refused = aside.state(stream.name)
        source = FileSource(
            stream,
            only.file.parent,
            rows_per_chunk=READ_ROWS,
            on_bad_row=aside.policy,
            only=only,
            rejects=refused,
        )
        for chunk in source.chunks():
            yield from chunk.to_arrow().to_batches()
        publish(refused, f"{entry['order']:08d}-{number:03d}")
