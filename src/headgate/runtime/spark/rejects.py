"""Bad rows on Spark: they travel with their micro-batch as messages, and the driver writes them, each once.

```
REJECTS/bids/rejects-00012-000.json    bad rows of micro-batch 12, one to a line
REJECTS/items/rejects-table.json       those of a table, which is read whole at each start, as it was read last
REJECTS/bids/.run                      the id of the run that they belong to; another run is refused
```

They go to the place of the first shard that reads the stream, which passes them on to the output, also through later
stages. A micro-batch that is tried again writes the same names, before any output notes that it is complete.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from headgate.model.errors import HeadgateError, InputError
from headgate.runtime.io.files import is_elsewhere, local_path
from headgate.runtime.io.rejects import (
    LONGEST_KEPT,
    BadRow,
    RejectPolicy,
    RejectState,
    folder_name,
    unwritable,
)
from headgate.runtime.ownership import MARK
from headgate.runtime.spark.filesystem import Folder
from headgate.runtime.spark.job import JobStage
from headgate.runtime.spark.local_folder import Files, LocalFolder
from headgate.runtime.spark.messages import Message, Reply, relay

REJECTS = "rejects"
"""The kind of replies that bring bad rows."""

_TABLE = "rejects-table.json"
_MESSAGE_BYTES, _FILE_BYTES = 1 << 23, 1 << 26


@dataclass
class TaskRejects(RejectState):
    """The bad rows of what a task reads of a stream, as lines of JSON, until they are sent."""

    renamed: tuple[str, str] | None = None
    """If files are read from copies: how a copy's name begins, and how people know the file instead."""
    size: int = 0
    lines: list[str] = field(default_factory=list, repr=False)
    packed: list[tuple[int, bytes]] = field(default_factory=list, repr=False)

    @staticmethod
    def of(name: str, *, keeps: bool) -> TaskRejects:
        """Bad rows are kept, or the first of them stops the run."""
        return TaskRejects(RejectPolicy(Path() if keeps else None), name)

    def __post_init__(self) -> None:
        """They are in no folder yet."""

    def refuse_file(self, file: Path, error: HeadgateError) -> None:
        """Sets the unread rest of a file aside; others may be fine."""
        if self.policy.stops:
            raise error
        self._keep([BadRow(file, error.cause)])
        self.files += 1

    def _keep(self, rows: Sequence[BadRow]) -> None:
        for row in rows:
            if self.renamed is not None:
                known = [str(each).replace(*self.renamed) for each in (row.file, row.reason)]
                row = replace(row, file=known[0], reason=known[1])  # noqa: PLW2901
            self.lines.append(row.as_json() + "\n")
            self.size += len(self.lines[-1])
            if self.size > _MESSAGE_BYTES:
                self._pack()

    def _pack(self) -> None:
        if self.lines:
            text = "".join(self.lines).encode("utf-8", errors="backslashreplace")
            self.packed.append((len(self.lines), zlib.compress(text, 1)))
            self.lines, self.size = [], 0

    def take(self) -> list[tuple[int, bytes]]:
        """All that was kept since this was asked last, compressed, and how many rows each piece has."""
        self._pack()
        found, self.packed = self.packed, []
        return found

    def messages(self, job: JobStage) -> list[tuple[int, Message]]:
        """The same as messages, each with the place that it goes to."""
        found = self.take()
        if not found:
            return []
        query = job.feeds_of(self.name)[0][1].query
        place = job.places_of(query)[0]
        return [(place, relay(Reply(REJECTS, self.name, rows, blob, query))) for rows, blob in found]


def with_rejects(
    pieces: Iterable[list[tuple[int, Message]]], refused: TaskRejects, job: JobStage
) -> Iterator[list[tuple[int, Message]]]:
    """Messages of a stream's rows, and of the rows that were found to be bad meanwhile."""
    for piece in pieces:
        yield [*piece, *refused.messages(job)]
    if left := refused.messages(job):
        yield left


@dataclass
class AttemptState:
    """Which micro-batch was tried last by this process."""

    last: int | None = None

    def begin(self, batch: int) -> bool:
        """Whether an earlier attempt at a micro-batch, by this process or one before it, may have left files.

        Processes before this one have tried nothing after the micro-batch that this one begins with.
        """
        again = self.last is None or batch <= self.last
        self.last = batch
        return again


@dataclass(frozen=True)
class RejectSink:
    """Where the bad rows of a job's streams and tables go."""

    folder: Files
    inputs: frozenset[str]
    run: str
    """The id of the run, which the folders of its bad rows bear."""
    attempts: AttemptState = field(default_factory=AttemptState)

    @staticmethod
    def at(spark: SparkSession, address: str, inputs: Iterable[str], run: str) -> RejectSink:
        """The sink at a folder of this machine, or at any address that Spark's file systems know."""
        place: Files = Folder(spark, address) if is_elsewhere(address) else LocalFolder(local_path(address))
        return RejectSink(place, frozenset(inputs), run)

    def check(self) -> None:
        """Raises InputError where bad rows of another run would be mixed with those of this one."""
        for place, names in self._used():
            if any(not each.startswith(".") and each != _TABLE for each in names) and not self._owns(place):
                raise InputError(
                    f"{place} has rejects of an earlier run",
                    remedy="name another folder for rejects, or empty this one",
                )

    def take(self, tables: Mapping[str, TaskRejects]) -> None:
        """Clears away what killed runs and emptied folders left, and puts the bad rows of tables in place."""
        for place, names in self._used():
            keeps = MARK if self._owns(place) else None
            with _writing(place):
                for left in names:
                    if left == _TABLE or (left.startswith(".") and left != keeps):
                        place.delete(left)
        for name, refused in tables.items():
            lines = [zlib.decompress(blob) for _, blob in refused.take()]
            if lines:
                with _writing(self._place(name)):
                    self._place(name).write(_TABLE, b"".join(lines))

    def put(self, batch: int, replies: Iterable[Any]) -> None:
        """Writes the bad rows of a micro-batch, in place of what an earlier attempt left."""
        found: dict[str, list[bytes]] = {}
        for each in replies:
            found.setdefault(each.name, []).append(bytes(each.content))
        again = self.attempts.begin(batch)
        for name in sorted(self.inputs if again else found):
            place, begin = self._place(name), f"rejects-{batch:05d}-"
            with _writing(place):
                texts = enumerate(_texts(found.get(name, [])))
                files = {f"{begin}{number:03d}.json": text for number, text in texts}
                for left in place.names() if again else ():
                    if left.startswith(begin) and left not in files:
                        place.delete(left)
                if files and not self._owns(place):
                    place.write(MARK, f"{self.run}\n".encode())
                for file, text in files.items():
                    place.write(file, text)

    def _used(self) -> list[tuple[Files, list[str]]]:
        """The folders, and what is in them."""
        found = []
        for name in sorted(self.inputs):
            place = self._place(name)
            with _writing(place):
                found.append((place, place.names()))
        return found

    def _owns(self, place: Files) -> bool:
        with _writing(place):
            return (place.read(MARK) or b"").decode(errors="replace").strip() == self.run

    def _place(self, name: str) -> Files:
        return self.folder / folder_name(name)


def counted(replies: Iterable[Any]) -> dict[str, int]:
    """How many bad rows replies bring, by stream."""
    found: dict[str, int] = {}
    for each in replies:
        found[each.name] = found.get(each.name, 0) + each.rows
    return found


def _texts(blobs: Sequence[bytes]) -> Iterator[bytes]:
    """Bad rows as contents of files, in order of what they come from, whichever shard was asked first."""
    text = b""
    for blob in sorted(blobs, key=_first):
        more = zlib.decompress(blob)
        if text and len(text) + len(more) > _FILE_BYTES:
            yield text
            text = b""
        text += more
    if text:
        yield text


def _first(blob: bytes) -> tuple[str, int]:
    """The file and the row of the first bad row."""
    head = zlib.decompressobj().decompress(blob, 8 * LONGEST_KEPT)
    row = json.loads(head.partition(b"\n")[0])
    return row["file"], row["row"] or 0


@contextmanager
def _writing(place: Files) -> Iterator[None]:
    """Within it, failures to write are said in our words."""
    try:
        yield
    except OSError as error:
        raise unwritable(str(place), error) from error
