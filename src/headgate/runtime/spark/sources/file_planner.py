"""The file planner: finds files that are new, and plans which micro-batches read them.

It runs beside Spark's driver, in the process that Spark asks for offsets, many times a second while nothing comes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from time import monotonic

from headgate.plan.catalog import StreamDef
from headgate.runtime.spark.sources.file_log import START, FileLog
from headgate.runtime.spark.sources.splits import batches_of, splits_of

_PAUSE_S = 0.2
_SHARE = 5
"""Looking for files takes at most one part in so many of the time, however many there are."""


@dataclass
class PlannerState:
    """When to look for files again."""

    next_look: float = 0.0


@dataclass(frozen=True, eq=False)
class FilePlanner:
    """What a run reads from files, and how."""

    folder: Path
    """Where its log is."""
    streams: tuple[StreamDef, ...]
    base: Path
    batch_rows: int
    tasks: int
    """How many run at once."""
    moving: bool = False
    """Whether files come and go meanwhile."""
    ends: bool = False
    """Whether all streams end behind what is there when a run over all that is there begins."""
    discovers: bool = True
    """Otherwise only what the log has already is read."""
    at_once: bool = False
    """Whether there are queries that read no stream, and so are answered with the first micro-batch."""
    state: PlannerState = field(default_factory=PlannerState)

    @cached_property
    def log(self) -> FileLog:
        return FileLog(self.folder, [each.name for each in self.streams], self.tasks)

    def plan(self, *, ends: bool = False) -> None:
        """Plans what is there and in no micro-batch yet, and with `ends` the end of all streams, if it is due."""
        splits = {
            each.name: splits_of(
                each, self.base, self.batch_rows, self.log.known(each.name), moving=self.moving
            )
            for each in (self.streams if self.discovers else ())
        }
        batches = batches_of(splits, self.batch_rows)
        # An end is due once after the last file, also if that file was read by a run that did not end.
        due = ends and (self.log.open or not self.discovers)
        first = self.at_once and self.log.last == START
        if batches or due or first:
            self.log.add(batches or [[]], end=ends)

    def look(self) -> None:
        """Plans as `plan` does, unless it was done only just now."""
        begun = monotonic()
        if begun >= self.state.next_look:
            self.plan()
            done = monotonic()
            self.state.next_look = done + max(_PAUSE_S, _SHARE * (done - begun))
