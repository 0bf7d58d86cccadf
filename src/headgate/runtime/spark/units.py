"""Units: which files each micro-batch reads, written down where Spark's file source finds them.

Files in declared formats are read by the same code on both engines. What Spark streams is the reading list: small
files of JSON lines, as many for each micro-batch as tasks run at once, each naming what one task reads. Spark's own
file source keeps track of the lists, so a micro-batch that is replayed reads the same files again.

```
CHECKPOINT/headgate/units/000000-0.json   {"stream": "bids", "order": 0, "file": "…/bids-0.parquet", "groups": [0, 4]}
CHECKPOINT/headgate/units/000000-1.json   {"stream": "items", "order": 1, "file": "…/items-0.parquet"}
CHECKPOINT/headgate/units/000001-0.json   {"stream": "bids", …} {"end": true}
```
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.plan.catalog import StreamDef
from headgate.runtime.sources import RejectPolicy
from headgate.runtime.sources.source import FileSource, Slice
from headgate.runtime.spark.aside import Aside, publish
from headgate.runtime.spark.messages import Message
from headgate.runtime.spark.pack import Packer, pack_end
from headgate.runtime.spark.stage import Stage

READ_ROWS = 250_000
_TICK_NS = 2_000_000
"""Spark takes files in the order of their times, which it knows to the millisecond."""


@dataclass(frozen=True)
class Unit:
    """A file, or some row groups of it, and about how many rows that is."""

    stream: str
    slice: Slice
    rows: float


def units_of(
    stream: StreamDef, base: Path, batch_rows: int, known: frozenset[str] = frozenset()
) -> list[Unit]:
    """All that there is to read of a stream, in order, cut where it can be; files already `known` are left out."""
    source = FileSource(stream, base, rows_per_chunk=READ_ROWS, on_bad_row=RejectPolicy.stop())
    is_parquet = stream.source is not None and stream.source.format == "parquet"
    found: list[Unit] = []
    for file in source.files:
        if str(file.absolute()) in known:
            continue
        groups = _row_groups(file) if is_parquet else None
        if not groups:
            # The reader says what is wrong with a file, if anything is.
            found.append(Unit(stream.name, Slice(file), max(1.0, file.stat().st_size / 64)))
            continue
        start, rows = 0, 0
        for index, count in enumerate(groups):
            rows += count
            if rows >= batch_rows / 4 or index == len(groups) - 1:
                found.append(Unit(stream.name, Slice(file, (start, index + 1)), rows))
                start, rows = index + 1, 0
    return found


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


class UnitLog:
    """The reading lists of a run, in a folder of its checkpoint."""

    def __init__(self, folder: Path, streams: Sequence[StreamDef], tasks: int) -> None:
        self.folder = folder
        self._streams = [stream.name for stream in streams]
        self._each = max(1, tasks // max(1, len(streams)))
        self._known: set[str] | None = None

    @property
    def files_per_batch(self) -> int:
        return self._each * max(1, len(self._streams))

    def known(self) -> frozenset[str]:
        """The files that are in a list already."""
        if self._known is None:
            files = sorted(self.folder.glob("*.json"))
            entries = [json.loads(line) for file in files for line in file.read_text().splitlines()]
            self._known = {entry["file"] for entry in entries if "file" in entry}
        return frozenset(self._known)

    def add(self, batches: Iterable[Sequence[Unit]], *, end: bool) -> int:
        """Appends micro-batches, and then the end of all streams if that is meant; says how many there are now."""
        self.folder.mkdir(parents=True, exist_ok=True)
        written = sorted(self.folder.glob("*.json"))
        number = int(written[-1].name.partition("-")[0]) + 1 if written else 0
        order = number * self.files_per_batch
        latest = max((each.stat().st_mtime_ns for each in written), default=0)
        planned = [[*batch] for batch in batches]
        self._known = None
        if end and not planned:
            planned = [[]]
        for batch in planned:
            lists = [
                [_line(unit, order + place) for unit in units]
                for place, units in enumerate(self._lists(batch))
            ]
            if end and batch is planned[-1]:
                # In the file that is written last: an interrupted list has no end.
                lists[-1].append(json.dumps({"end": True}))
            for place, lines in enumerate(lists):
                latest = self._write(f"{number:06d}-{place:04d}.json", lines or ["{}"], latest)
            number, order = number + 1, order + len(lists)
        return number

    def _lists(self, batch: Sequence[Unit]) -> list[list[Unit]]:
        """A micro-batch's units as one list for each task: consecutive units of one stream, of about equal size."""
        lists: list[list[Unit]] = []
        for stream in self._streams:
            mine = [unit for unit in batch if unit.stream == stream]
            parts: list[list[Unit]] = [[] for _ in range(self._each)]
            whole, before = sum(unit.rows for unit in mine), 0.0
            for unit in mine:
                middle = (before + unit.rows / 2) / whole
                parts[min(self._each - 1, int(middle * self._each))].append(unit)
                before += unit.rows
            lists += parts
        return lists

    def _write(self, name: str, lines: Sequence[str], latest: int) -> int:
        """Writes a list under a time after all others', in one move."""
        hidden = self.folder / f".{name}"
        hidden.write_text("\n".join(lines) + "\n")
        time = max(hidden.stat().st_mtime_ns, latest + _TICK_NS)
        os.utime(hidden, ns=(time, time))
        hidden.rename(self.folder / name)
        return time


def _line(unit: Unit, order: int) -> str:
    entry: dict[str, Any] = {"stream": unit.stream, "order": order, "file": str(unit.slice.file.absolute())}
    if unit.slice.groups is not None:
        entry["groups"] = list(unit.slice.groups)
    return json.dumps(entry)


def read_units(
    stage: Stage, lists: Iterable[pa.RecordBatch], aside: Aside
) -> Iterator[list[tuple[int, Message]]]:
    """All messages of what the lines of some lists name."""
    entries = [json.loads(line) for batch in lists for line in batch.column(0).to_pylist()]
    named = [entry for entry in entries if "file" in entry]
    for order in sorted({entry["order"] for entry in named}):
        mine = [entry for entry in named if entry["order"] == order]
        stream = next(each for each in stage.streams if each.name == mine[0]["stream"])
        yield from Packer(stage, stream).messages(_rows(stream, mine, aside), order)
    if any(entry.get("end") for entry in entries):
        yield from pack_end(stage, [pa.record_batch({"end": [True]})])


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
