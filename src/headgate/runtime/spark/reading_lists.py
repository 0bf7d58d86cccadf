"""Reading lists: what Spark streams in place of files, written down so that each is read once and none is lost.

```
CHECKPOINT/headgate/units/000007-0000.json    what one task of micro-batch 7 reads; Spark's file source watches these
CHECKPOINT/headgate/done/…/000006-0000.json   lists of finished micro-batches, which Spark has moved there
CHECKPOINT/headgate/read.json                 the files of finished lists, and where the counts stand
CHECKPOINT/headgate/planned.json              lists that are being written, all of them
```

A file is known while its name is in one of these. Finished lists are gathered into `read.json`, and names of files
that are no more are dropped from it, so the folder is as large as the backlog and the input folder are.

Each list with rows has a number among all lists ever, its `order`: rows are late by the rows of lower orders, and bad
rows are named by theirs. It is in the list, so a list that is read again has the same one, and it goes on whatever
the number of tasks is.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
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
    order: int = 0
    """Of the next list that has rows."""
    latest: int = 0
    """The latest time of a list, in nanoseconds."""
    open: bool = False
    """Whether there are lists after the last one that says that all streams have ended."""
    files: dict[str, set[str]] = field(default_factory=dict)
    """By stream."""

    def note(self, file: Path, entries: Sequence[Mapping[str, Any]]) -> set[str]:
        """Takes note of a list, in its turn; its files."""
        number, _ = _place(file)
        if number >= self.number:
            self.number, self.open = number + 1, True
        if number + 1 == self.number and any("end" in entry for entry in entries):
            self.open = False
        self.order = max([self.order, *(entry["order"] + 1 for entry in entries if "order" in entry)])
        return {entry["file"] for entry in entries if "file" in entry}

    @property
    def size(self) -> int:
        return sum(map(len, self.files.values()))


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
        self._kept: dict[str, int] = {}
        """How many names of a stream there were when those of files that are no more were dropped."""

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

    @property
    def open(self) -> bool:
        """Whether anything was added after which the end of all streams has not been said."""
        return self._load().open

    @property
    def begun(self) -> bool:
        """Whether anything was ever added."""
        return self._load().number > 0

    def add(self, batches: Iterable[Sequence[Unit]], *, end: bool) -> int:
        """Appends micro-batches, and then the end of all streams if that is meant; says how many there are now.

        All of them or none, even if this process dies on the way.
        """
        record = self._load()
        planned = [[*batch] for batch in batches]
        self._forget({unit.stream for batch in planned for unit in batch})
        if end and not planned:
            planned = [[]]
        lists: dict[str, list[str]] = {}
        order = record.order
        for number, batch in enumerate(planned, start=record.number):
            for place, units in enumerate(self._lists(batch)):
                lines = [line_of(unit, order) for unit in units]
                order += 1 if lines else 0
                lists[f"{number:06d}-{place:04d}.json"] = lines or ["{}"]
        if end and lists:
            lists[[*lists][-1]].append(json.dumps({"end": True}))
        if lists:
            _put(self._plan_path, {"lists": lists})
            self._carry_out(record, lists)
        return record.number

    def gather(self, least: int = _GATHERED_AT_ONCE) -> None:
        """Takes the lists that Spark is done with, if there are many of them, into the record."""
        record = self._load()
        found = sorted(self.done.rglob(_LISTS)) if self.done.exists() else []
        if len(found) < max(least, record.size // 8):
            return
        for each in found:
            for entry in _entries(each):
                if "file" in entry:
                    record.files.setdefault(entry["stream"], set()).add(entry["file"])
        content = asdict(record) | {"files": {name: sorted(files) for name, files in record.files.items()}}
        _put(self._record_path, content)
        # Only now: a list that is in both places does no harm.
        for each in found:
            each.unlink()

    def _forget(self, streams: Iterable[str]) -> None:
        """Drops names of files that are no more from the record, of streams of which new files have just been seen.

        New files show that the folder is there. Otherwise it may be away for a while, and all its files with it.
        """
        record = self._load()
        for stream in streams:
            files = record.files.get(stream, set())
            if files and len(files) >= 2 * self._kept.get(stream, 0):
                there = {file for file in files if Path(file).exists()}
                self._known -= files - there
                record.files[stream] = there
                self._kept[stream] = max(_GATHERED_AT_ONCE, len(there))

    def _load(self) -> _Record:
        """The record, read when first asked for; lists that a dead process had begun to write are written."""
        if self._record is not None:
            return self._record
        self.folder.mkdir(parents=True, exist_ok=True)
        record = _Record()
        found = _read(self._record_path, *asdict(record))
        if found is not None:
            record = _Record(**found | {"files": {name: set(each) for name, each in found["files"].items()}})
        lists = sorted([*self.folder.glob(_LISTS), *self.done.rglob(_LISTS)], key=_place)
        for each in lists:
            record.latest = max(record.latest, each.stat().st_mtime_ns)
            self._known |= record.note(each, _entries(each))
        self._known.update(*record.files.values())
        planned = _read(self._plan_path, "lists")
        if planned is not None:
            there = {each.name for each in lists}
            self._carry_out(
                record, {name: each for name, each in planned["lists"].items() if name not in there}
            )
        self._record = record
        return record

    def _carry_out(self, record: _Record, lists: Mapping[str, Sequence[str]]) -> None:
        for name, lines in lists.items():
            record.latest = self._write(name, lines, record.latest)
            entries = [json.loads(line) for line in lines]
            self._known |= record.note(Path(name), entries)
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


def _place(file: Path) -> tuple[int, int]:
    """A list's micro-batch, and its place there."""
    number, _, place = file.stem.partition("-")
    return int(number), int(place)


def _entries(file: Path) -> list[dict[str, Any]]:
    """The lines of a list."""
    return [json.loads(line) for line in file.read_text().splitlines()]


def _read(path: Path, *keys: str) -> dict[str, Any] | None:
    """What a file of ours says of these, if it is there."""
    if not path.exists():
        return None
    try:
        found = json.loads(path.read_text())
        return {key: found[key] for key in keys}
    except (ValueError, KeyError, TypeError) as error:
        cause = f"it does not say {error}" if isinstance(error, KeyError) else error
        raise SetupError(
            f"{path} cannot be read: {cause}", remedy="restore the checkpoint, or choose another"
        ) from error


def _put(path: Path, content: Mapping[str, Any]) -> None:
    """Writes a file whole or not at all."""
    beside = path.with_name(f".{path.name}")
    beside.write_text(json.dumps(content) + "\n")
    beside.replace(path)
