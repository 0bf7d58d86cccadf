"""Reading lists: what Spark streams in place of files, written down so that each is read once and none is lost.

```
CHECKPOINT/headgate/units/000007-0000.json    what one task of micro-batch 7 reads; Spark's file source watches these
CHECKPOINT/headgate/done/…/000006-0000.json   lists of finished micro-batches, which Spark has moved there
CHECKPOINT/headgate/read.json                 the files of finished lists, and where the count of lists stands
CHECKPOINT/headgate/planned.json              lists that are being written, all of them
```

A file is known while its name is in one of these. Finished lists are gathered into `read.json`, and names of files
that are no more are dropped from it, so the folder is as large as the backlog and the input folder are.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headgate.model.errors import SetupError
from headgate.plan.catalog import StreamDef
from headgate.runtime.spark.units import Unit, line_of

_TICK_NS = 2_000_000
"""Spark takes files in the order of their times, which it knows to the millisecond."""
_GATHERED_AT_ONCE = 64
_LISTS = "[0-9]*.json"
"""Not the hidden ones, which are being written or were when a process died."""


@dataclass
class _Record:
    """What `read.json` says."""

    number: int = 0
    """Of the next micro-batch."""
    latest: int = 0
    """The latest time of a list, in nanoseconds."""
    files: set[str] = field(default_factory=set)


class UnitLog:
    """The reading lists of a run, in a folder of its checkpoint."""

    def __init__(self, folder: Path, streams: Sequence[StreamDef], tasks: int) -> None:
        self.folder = folder
        self.done = folder.parent / "done"
        self._record_path, self._plan_path = folder.parent / "read.json", folder.parent / "planned.json"
        self._streams = [stream.name for stream in streams]
        self._each = max(1, tasks // max(1, len(streams)))
        self._record: _Record | None = None
        self._known: set[str] = set()
        self._kept = 0
        """How many names were known when those of files that are no more were dropped."""

    @property
    def files_per_batch(self) -> int:
        return self._each * max(1, len(self._streams))

    @property
    def source_options(self) -> Mapping[str, str]:
        """What Spark's file source has to know: how many lists make a micro-batch, and to move finished ones.

        Lists are taken in the order of their times, so one that is older than the newest one read is of no interest.
        """
        return {
            "maxFilesPerTrigger": str(self.files_per_batch),
            "cleanSource": "archive",
            "sourceArchiveDir": str(self.done),
            "maxFileAge": "1h",
        }

    def known(self) -> frozenset[str]:
        """The files that are in a list already."""
        self._load()
        return frozenset(self._known)

    def add(self, batches: Iterable[Sequence[Unit]], *, end: bool) -> int:
        """Appends micro-batches, and then the end of all streams if that is meant; says how many there are now.

        All of them or none, even if this process dies on the way.
        """
        record = self._load()
        planned = [[*batch] for batch in batches]
        if end and not planned:
            planned = [[]]
        lists: dict[str, list[str]] = {}
        number = record.number
        for batch in planned:
            for place, units in enumerate(self._lists(batch)):
                lines = [line_of(unit, number * self.files_per_batch + place) for unit in units]
                lists[f"{number:06d}-{place:04d}.json"] = lines or ["{}"]
            number += 1
        if end and lists:
            lists[max(lists)].append(json.dumps({"end": True}))
        if lists:
            _put(self._plan_path, {"lists": lists})
            self._carry_out(record, lists)
        return record.number

    def gather(self, least: int = _GATHERED_AT_ONCE) -> None:
        """Takes the lists that Spark is done with, if there are many of them, into the record."""
        record = self._load()
        found = sorted(self.done.rglob(_LISTS)) if self.done.exists() else []
        if len(found) < max(least, len(record.files) // 8):
            return
        for each in found:
            record.files |= _files(each)
        if len(record.files) >= 2 * self._kept:
            there = {file for file in record.files if Path(file).exists()}
            # If all are gone at once, the folder itself may be away for a while.
            self._known -= record.files - (there or record.files)
            record.files = there or record.files
            self._kept = max(_GATHERED_AT_ONCE, len(record.files))
        content = {"number": record.number, "latest": record.latest, "files": sorted(record.files)}
        _put(self._record_path, content)
        # Only now: a list that is in both places does no harm.
        for each in found:
            each.unlink()

    def _load(self) -> _Record:
        """The record, read when first asked for; lists that a dead process had begun to write are written."""
        if self._record is not None:
            return self._record
        self.folder.mkdir(parents=True, exist_ok=True)
        record = _Record()
        found = _read(self._record_path)
        if found is not None:
            record = _Record(found["number"], found["latest"], set(found["files"]))
        lists = [*self.folder.glob(_LISTS), *self.done.rglob(_LISTS)]
        for each in lists:
            record.number = max(record.number, _number(each) + 1)
            record.latest = max(record.latest, each.stat().st_mtime_ns)
            self._known |= _files(each)
        self._known |= record.files
        planned = _read(self._plan_path)
        if planned is not None:
            there = {each.name for each in lists}
            self._carry_out(
                record, {name: each for name, each in planned["lists"].items() if name not in there}
            )
        self._record = record
        return record

    def _carry_out(self, record: _Record, lists: Mapping[str, Sequence[str]]) -> None:
        for name, lines in sorted(lists.items()):
            record.latest = self._write(name, lines, record.latest)
            record.number = max(record.number, _number(Path(name)) + 1)
            self._known |= {entry["file"] for entry in map(json.loads, lines) if "file" in entry}
        self._plan_path.unlink(missing_ok=True)

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
        return lists or [[]]

    def _write(self, name: str, lines: Sequence[str], latest: int) -> int:
        """Writes a list under a time after all others', in one move."""
        hidden = self.folder / f".{name}"
        hidden.write_text("\n".join(lines) + "\n")
        time = max(hidden.stat().st_mtime_ns, latest + _TICK_NS)
        os.utime(hidden, ns=(time, time))
        hidden.rename(self.folder / name)
        return time


def _number(file: Path) -> int:
    return int(file.name.partition("-")[0])


def _files(file: Path) -> set[str]:
    entries = [json.loads(line) for line in file.read_text().splitlines()]
    return {entry["file"] for entry in entries if "file" in entry}


def _read(path: Path) -> dict[str, Any] | None:
    """A file of ours, if it is there."""
    if not path.exists():
        return None
    try:
        return dict(json.loads(path.read_text()))
    except ValueError as error:
        raise SetupError(
            f"{path} cannot be read: {error}", remedy="restore the checkpoint, or choose another"
        ) from error


def _put(path: Path, content: Mapping[str, Any]) -> None:
    """Writes a file whole or not at all."""
    beside = path.with_name(f".{path.name}")
    beside.write_text(json.dumps(content) + "\n")
    beside.replace(path)
