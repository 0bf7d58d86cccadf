"""The file log: which splits each micro-batch reads, so that each is read once and none is lost.

```
CHECKPOINT/headgate/files/log.jsonl
  {"base": {"batch": 640, "digest": "…", "order": 1280, "ended": false, "files": {"bids": ["…"]}}, "check": "…"}
  {"batches": [{"tasks": [{"order": 1280, "stream": "bids", "splits": [{"file": "…"}]}], …}, …], "digest": "…"}
```

A line is added for all files that are found at a time, whole or not at all: what a killed process has left of a line
is no line. Micro-batches are numbered from 1. The digest after one of them is that of the digest before it and of all
that it reads, and Spark keeps number and digest as the offset of the source in its own log. So whatever happens
to this file behind Spark's back, an offset of Spark's then fits no micro-batch any more, and the run is refused.
Lines that no offset has spoken of yet may be lost: the files that they name are found again.

Micro-batches that Spark is done with are compacted into the first line, which says what is known of them. Names of
files that are no more are dropped from it, so the log is as large as the backlog and the input folders are.

Each task has a number among all tasks ever, its `order`: rows are late by the rows of lower orders, and bad
rows are named by theirs. It is in the log, so a micro-batch that is read again has the same ones, and it goes on
whatever the number of tasks is.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import time_ns
from typing import Any

from headgate.model.errors import SetupError
from headgate.runtime.disk import disk_full, is_full
from headgate.runtime.io.format import Span
from headgate.runtime.io.source import Slice
from headgate.runtime.spark.sources.splits import FileSplit, tasks_of

_NAME = "log.jsonl"
_COMPACTED_AT_ONCE = 64
_DIGITS = 32


@dataclass(frozen=True)
class Offset:
    """How many micro-batches have been read, and the digest after the last of them."""

    batch: int
    digest: str

    @property
    def as_json(self) -> dict[str, Any]:
        return {"batch": self.batch, "digest": self.digest}


START = Offset(0, "0" * _DIGITS)
"""Before the first micro-batch."""


@dataclass(frozen=True)
class TaskSplits:
    """What one task reads: consecutive splits of a stream, and its number among all tasks ever."""

    order: int
    stream: str
    slices: tuple[Slice, ...]


@dataclass(frozen=True)
class FileBatch:
    """What one micro-batch reads, whether all streams end behind it, and when it was planned, in microseconds."""

    tasks: tuple[TaskSplits, ...]
    ends: bool
    now: int

    @property
    def files(self) -> Iterable[tuple[str, str]]:
        """Streams and the names of their files."""
        return ((task.stream, str(each.file)) for task in self.tasks for each in task.slices)


@dataclass
class _Base:
    """What is known of compacted micro-batches."""

    batch: int = 0
    digest: str = START.digest
    order: int = 0
    """Of the next task."""
    ended: bool = True
    """Whether all streams ended behind the last of them, or there is none."""
    files: dict[str, set[str]] = field(default_factory=dict)
    """By stream."""

    @property
    def size(self) -> int:
        return sum(map(len, self.files.values()))


class FileLog:
    """The log of a run, in a folder of its checkpoint; one process writes to it at a time."""

    def __init__(self, folder: Path, streams: Sequence[str], tasks: int) -> None:
        self.path = folder / _NAME
        self._streams, self._tasks = tuple(streams), tasks
        self._base = _Base()
        self._batches: list[FileBatch] = []
        """Those that are not compacted."""
        self._digests: list[str] = []
        self._known: dict[str, set[str]] = {name: set() for name in self._streams}
        self._kept: dict[str, int] = {}
        """How many names of a stream there were when those of files that are no more were dropped."""
        self._size = 0
        """Of the lines that are whole."""
        self._load()

    @property
    def last(self) -> Offset:
        """The offset after all that has been planned."""
        return self.offset(self._base.batch + len(self._batches))

    @property
    def open(self) -> bool:
        """Whether anything was planned after which the end of all streams has not been said."""
        return not (self._batches[-1].ends if self._batches else self._base.ended)

    def known(self, stream: str | None = None) -> frozenset[str]:
        """The files of a stream, or of all, that have been planned already.

        Two streams may read one file, which is then new to each of them.
        """
        found = self._known.values() if stream is None else [self._known.get(stream, set())]
        return frozenset[str]().union(*found)

    def offset(self, batch: int) -> Offset:
        """The offset after so many micro-batches."""
        at = batch - self._base.batch
        return Offset(batch, self._digests[at - 1] if at else self._base.digest)

    def check(self, offset: Offset) -> None:
        """Raises SetupError if Spark's offset does not fit this log."""
        first, last = self._base.batch, self._base.batch + len(self._batches)
        if not first <= offset.batch <= last:
            raise self._damaged(
                f"it has micro-batches {first + 1} to {last}, and Spark has read {offset.batch} of them"
                if first < last
                else f"it has no micro-batch, and Spark has read {offset.batch} of them"
            )
        if self.offset(offset.batch) != offset:
            raise self._damaged(f"micro-batch {offset.batch} is not the one that Spark has read")

    def between(self, start: Offset, end: Offset) -> list[FileBatch]:
        """The micro-batches after one offset up to another; SetupError if they do not fit this log."""
        self.check(start)
        self.check(end)
        return self._batches[start.batch - self._base.batch : end.batch - self._base.batch]

    def add(self, batches: Iterable[Sequence[FileSplit]], *, end: bool) -> None:
        """Appends micro-batches, and then the end of all streams if that is meant; all of them or none."""
        planned = [[*batch] for batch in batches]
        self._forget({split.stream for batch in planned for split in batch})
        if end and not planned:
            planned = [[]]
        order, now, added = self._next_order, time_ns() // 1_000, []
        for number, batch in enumerate(planned, start=1):
            tasks = []
            for splits in tasks_of(batch, self._streams, self._tasks):
                slices = tuple(split.slice for split in splits)
                tasks.append(TaskSplits(order, splits[0].stream, slices))
                order += 1
            added.append(FileBatch(tuple(tasks), end and number == len(planned), now))
        if not added:
            return
        digests = _chain(self.last.digest, added)
        self._append(_line(added, digests[-1]))
        self._take(added, digests)

    def compact(self, upto: int, least: int = _COMPACTED_AT_ONCE) -> None:
        """Takes the first micro-batches, if there are many of them, into the first line."""
        count = upto - self._base.batch
        if count < max(least, self._base.size // 8, 1):
            return
        done, left = self._batches[:count], self._batches[count:]
        base = _Base(upto, self._digests[count - 1], self._order_after(done), done[-1].ends)
        base.files = {name: set(files) for name, files in self._base.files.items()}
        for batch in done:
            for stream, file in batch.files:
                base.files.setdefault(stream, set()).add(file)
        digests = self._digests[count:]
        lines = [_base_line(base), *([_line(left, digests[-1])] if left else [])]
        content = b"".join(lines)
        beside = self.path.with_name(f".{_NAME}")
        with self._writing():
            with beside.open("wb") as out:
                out.write(content)
                out.flush()
                os.fsync(out.fileno())
            self._require_size()
            beside.replace(self.path)
        self._base, self._batches, self._digests, self._size = base, left, digests, len(content)

    @property
    def _next_order(self) -> int:
        return self._order_after(self._batches)

    def _order_after(self, batches: Sequence[FileBatch]) -> int:
        return max([self._base.order, *(task.order + 1 for batch in batches for task in batch.tasks)])

    def _forget(self, streams: Iterable[str]) -> None:
        """Drops names of files that are no more, of streams of which new files have just been seen.

        New files show that the folder is there. Otherwise it may be away for a while, and all its files with it.
        """
        for stream in streams:
            files = self._base.files.get(stream, set())
            if files and len(files) >= 2 * self._kept.get(stream, 0):
                there = {file for file in files if Path(file).exists()}
                self._known[stream] -= files - there
                self._base.files[stream] = there
                self._kept[stream] = max(_COMPACTED_AT_ONCE, len(there))

    def _take(self, batches: Sequence[FileBatch], digests: Sequence[str]) -> None:
        self._batches += batches
        self._digests += digests
        for batch in batches:
            for stream, file in batch.files:
                self._known.setdefault(stream, set()).add(file)

    def _load(self) -> None:
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return
        except OSError as error:
            raise self._damaged(f"it cannot be read: {error.strerror or error}") from error
        # What a killed process has written of a line is no line.
        self._size = content.rfind(b"\n") + 1
        for number, line in enumerate(content[: self._size].splitlines()):
            try:
                self._read(json.loads(line), first=number == 0)
            except (ValueError, LookupError, TypeError, AttributeError) as error:
                raise self._damaged(f"line {number + 1} cannot be read") from error
            except _MismatchError as error:
                raise self._damaged(f"line {number + 1} has been changed") from error

    def _read(self, entry: Mapping[str, Any], *, first: bool) -> None:
        if first and "base" in entry:
            if entry["check"] != _digest("base", entry["base"]):
                raise _MismatchError
            found = entry["base"]
            files = {name: set(each) for name, each in found["files"].items()}
            self._base = _Base(**found | {"files": files})
            for name, each in files.items():
                self._known.setdefault(name, set()).update(each)
            return
        batches = [_batch_from(each) for each in entry["batches"]]
        digests = _chain(self.last.digest, batches)
        if not batches or entry["digest"] != digests[-1]:
            raise _MismatchError
        self._take(batches, digests)

    def _append(self, line: bytes) -> None:
        with self._writing():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # A log that is gone must not be begun anew behind the micro-batches that were in it.
            if not self._size:
                self.path.touch()
            with self.path.open("r+b") as out:
                out.seek(self._size)
                if b"\n" in out.read():
                    # No killed process left that; one that should be dead, or another run, still writes here.
                    raise self._damaged("another process has added to it")
                out.seek(self._size)
                out.truncate()
                out.write(line)
                out.flush()
                os.fsync(out.fileno())
        self._size += len(line)

    def _require_size(self) -> None:
        if self._size and not self.path.exists():
            raise self._damaged("it is gone")

    def _writing(self) -> _Writing:
        return _Writing(self)

    def _damaged(self, cause: str) -> SetupError:
        return SetupError(
            f"the log of files {self.path} is damaged: {cause}",
            remedy="restore the checkpoint or choose another",
        )


class _Writing:
    """Within it, failures to write the log are said in our words."""

    def __init__(self, log: FileLog) -> None:
        self._log = log

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(self, kind: object, failure: BaseException | None, trace: object) -> None:
        if not isinstance(failure, OSError):
            return
        if is_full(failure):
            raise disk_full(self._log.path.parent) from failure
        if isinstance(failure, FileNotFoundError):
            raise self._log._damaged("it is gone") from failure
        raise SetupError(
            f"cannot write {self._log.path}: {failure.strerror or failure}",
            remedy="check the checkpoint's folder, or choose another",
        ) from failure


class _MismatchError(Exception):
    """A line is not what its digest says."""


def _chain(digest: str, batches: Iterable[FileBatch]) -> list[str]:
    """The digests after each of some micro-batches."""
    digests = []
    for batch in batches:
        digest = _digest(digest, _batch_json(batch))
        digests.append(digest)
    return digests


def _digest(before: str, content: object) -> str:
    return hashlib.sha256(f"{before} {_text(content)}".encode()).hexdigest()[:_DIGITS]


def _text(content: object) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":"))


def _line(batches: Sequence[FileBatch], digest: str) -> bytes:
    return f"{_text({'batches': [_batch_json(each) for each in batches], 'digest': digest})}\n".encode()


def _base_line(base: _Base) -> bytes:
    content = vars(base) | {"files": {name: sorted(files) for name, files in base.files.items()}}
    return f"{_text({'base': content, 'check': _digest('base', content)})}\n".encode()


def _batch_json(batch: FileBatch) -> dict[str, Any]:
    tasks = [
        {"order": task.order, "stream": task.stream, "splits": [_slice_json(each) for each in task.slices]}
        for task in batch.tasks
    ]
    return {"tasks": tasks, "ends": batch.ends, "now": batch.now}


def _slice_json(part: Slice) -> dict[str, Any]:
    found: dict[str, Any] = {"file": str(part.file.absolute())}
    if part.span is not None:
        found["span"] = [part.span.start, part.span.end]
    return found


def _batch_from(found: Mapping[str, Any]) -> FileBatch:
    tasks = (
        TaskSplits(int(task["order"]), task["stream"], tuple(map(_slice_from, task["splits"])))
        for task in found["tasks"]
    )
    return FileBatch(tuple(tasks), bool(found["ends"]), int(found["now"]))


def _slice_from(found: Mapping[str, Any]) -> Slice:
    span = found.get("span")
    return Slice(Path(found["file"]), None if span is None else Span(*span))
