"""A query's output on Spark, wherever it goes: which micro-batches are complete, and the metrics after each.

```
<query>/metrics.json           what the run has done up to the last micro-batch
<query>/.batches/00003.json    micro-batch 3 is complete, with the metrics after it; the last are kept
<query>/.run                   the id of the run that all this belongs to, as in its checkpoint
```

Notes of another run would be believed too, so a run adds to no folder but its own. Before anything is changed, all
folders are looked at (`check`). Then what is to be replaced is cleared (`clear`), the checkpoint is marked as used,
and each folder as its run's (`take`). A run that is killed between two of these steps is new once more, or finds no
folder.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pyarrow as pa

from headgate.model.errors import InputError
from headgate.runtime.growth import with_assumptions
from headgate.runtime.output import arrow_schema
from headgate.runtime.ownership import MARK
from headgate.runtime.spark.checkpoint import Claim
from headgate.runtime.spark.listener import SparkProgress
from headgate.runtime.spark.local_folder import Files
from headgate.runtime.spark.rejects import RejectSink, TaskRejects
from headgate.runtime.spark.shard_reports import summed
from headgate.runtime.stage import Stage

KEPT_NOTES = 100
"""Spark may repeat its last micro-batch, never one so long ago."""
NOTES = ".batches"


@dataclass
class QueryOutput(ABC):
    """Where one query's output goes, and what has come so far."""

    stage: Stage
    claim: Claim
    """The checkpoint and the run that the output belongs to."""
    format: str = "parquet"
    """Of the files with rows."""
    on_batch: Callable[[Mapping[str, Any]], None] = field(default=lambda metrics: None)
    progress: SparkProgress | None = None
    """What Spark reports of the query, if anybody listens."""
    metrics_name: ClassVar[str] = "metrics.json"
    _last: dict[str, Any] | None = field(default=None, init=False, repr=False)
    _rejected: dict[str, int] = field(default_factory=dict, init=False, repr=False)
    """How many bad rows there are of each stream up to the last complete micro-batch, and of each table."""

    @property
    @abstractmethod
    def files(self) -> Files:
        """The query's folder."""

    @abstractmethod
    def has_results(self) -> str | None:
        """The place of results or late rows of the query, if there are any."""

    @abstractmethod
    def clear(self) -> None:
        """Removes what is to be replaced; only after `check`."""

    @abstractmethod
    def has_rows(self) -> bool:
        """Whether there is a file with rows, and so with their schema."""

    @abstractmethod
    def write_nothing(self) -> None:
        """Puts a file without rows in place, so that the folder has a readable schema."""

    def check(self, *, overwrite: bool) -> None:
        """Raises if there are results that are not of this run; a new run may replace them."""
        with self.writable():
            mine = self.is_mine
            written = self._last_note().get("format", self.format) if mine else self.format
            if written != self.format:
                raise InputError(
                    f"{self.files} has results as {written}", remedy=f"go on with --output-format {written}"
                )
            found = None if mine else self.has_results()
            if found is not None and not self.claim.fresh:
                raise self.foreign()
            if found is not None and not overwrite:
                raise InputError(
                    f"{found} exists already",
                    remedy="choose another --output, or give --overwrite to replace it",
                )

    def take(self, tables: Mapping[str, TaskRejects]) -> None:
        """Makes the folder this run's; only after `clear`, and after the checkpoint is marked as used."""
        with self.writable():
            if self.files.read(MARK) is None:
                self.files.write(MARK, f"{self.claim.run}\n".encode())
            for old in self._notes()[:-KEPT_NOTES]:
                self._noted.delete(f"{old:05d}.json")
            self._last = None
            if self.progress is not None:
                self.progress.go_on_from(self._spark_so_far())
        mine = {name: refused for name, refused in tables.items() if name in self.stage.tables}
        self._rejected |= {name: refused.rows + refused.files for name, refused in mine.items()}

    @property
    def is_mine(self) -> bool:
        """Whether the folder is this run's."""
        found = self.files.read(MARK)
        return found is not None and found.decode(errors="replace").strip() == self.claim.run

    def foreign(self) -> InputError:
        """What to say if it is another's."""
        return InputError(
            f"{self.files} or its late rows belong to a run with another checkpoint",
            remedy="go on with that checkpoint, or choose another --output",
        )

    @contextmanager
    def writable(self) -> Iterator[None]:
        """Within it, failures to write are said in our words."""
        try:
            yield
        except OSError as error:
            raise InputError(
                f"cannot write to {self.files}: {error.strerror or error}", remedy="choose another --output"
            ) from error

    def is_done(self, batch: int) -> bool:
        """Whether a micro-batch is complete."""
        return self._noted.exists(f"{batch:05d}.json")

    def note(
        self, batch: int, rows: int, reports: Sequence[Mapping[str, Any]], rejected: Mapping[str, int]
    ) -> None:
        """Takes note that a micro-batch is complete, with what shards report of it, and bad rows by stream."""
        counts = dict(self.rejected)
        for stream in self.stage.streams:
            counts[stream.name] = counts.get(stream.name, 0) + rejected.get(stream.name, 0)
        metrics = self._metrics(reports, batch) | {"rejected_rows": sum(counts.values())}
        metrics = self._with_progress(metrics)
        note = {"rows": rows, "format": self.format, "rejected": counts, "metrics": metrics}
        self._noted.write(f"{batch:05d}.json", _json(note))
        self.files.write(self.metrics_name, _json(metrics))
        self._noted.delete(f"{batch - KEPT_NOTES:05d}.json")
        self._last, self._rejected = metrics, counts
        self.on_batch(metrics)

    def finish(self) -> dict[str, Any]:
        """The metrics of the whole run; the folder then has a readable schema even if no row came."""
        if not self.has_rows():
            self.write_nothing()
        so_far = self.last_metrics() or summed(self.stage, [])
        metrics = self._with_progress({**so_far, "rejected_rows": sum(self.rejected.values())})
        self.files.write(self.metrics_name, _json(metrics))
        return metrics

    def strip(self) -> None:
        """Takes away what only a run that goes on needs: nothing can go on from this one."""
        self.files.delete(NOTES)
        self.files.delete(MARK)

    def last_metrics(self) -> dict[str, Any]:
        """The metrics after the last complete micro-batch."""
        if self._last is None:
            note = self._last_note()
            self._last = dict(note.get("metrics", {}))
            self._rejected = {**note.get("rejected", {}), **self._rejected}
        return self._last

    def _last_note(self) -> dict[str, Any]:
        notes = self._notes()
        found = self._noted.read(f"{notes[-1]:05d}.json") if notes else None
        return {} if found is None else dict(json.loads(found))

    @property
    def rejected(self) -> Mapping[str, int]:
        """How many bad rows there are of each stream and table of the query."""
        self.last_metrics()
        return self._rejected

    @property
    def schemas(self) -> dict[str, pa.Schema]:
        """The forms of rows and of late rows."""
        graph = self.stage.graph
        late = {
            f"late/{stream.name}": pa.schema([(c.name, c.type) for c in stream.columns])
            for stream in self.stage.streams
        }
        return {"rows": arrow_schema(graph.columns, change_log=graph.is_change_log), **late}

    @property
    def _noted(self) -> Files:
        return self.files / NOTES

    def _notes(self) -> list[int]:
        """The numbers of complete micro-batches, in order."""
        names = (name.removesuffix(".json") for name in self._noted.names() if name.endswith(".json"))
        return sorted(int(each) for each in names if each.isdecimal())

    def _metrics(self, reports: Sequence[Mapping[str, Any]], batch: int) -> dict[str, Any]:
        before = self.last_metrics()
        # Without a row for any shard nothing is reported; bad rows there may be all the same.
        found = summed(self.stage, reports, before) if reports or not before else before
        noted = with_assumptions(found, before, self.stage.graph)
        return {**noted, "batches": batch + 1}

    def _with_progress(self, metrics: dict[str, Any]) -> dict[str, Any]:
        return metrics if self.progress is None else {**metrics, "spark": self.progress.facts()}

    def _spark_so_far(self) -> dict[str, Any]:
        """What Spark had reported; of the last micro-batch it does so when the note of that is written already."""
        last = self.last_metrics()
        try:
            shown = json.loads(self.files.read(self.metrics_name) or b"{}")
        except ValueError:
            shown = {}
        return dict((shown if shown.get("batches") == last.get("batches") else last).get("spark", {}))


def prepare(
    outputs: Sequence[QueryOutput],
    *,
    overwrite: bool,
    rejects: RejectSink | None = None,
    tables: Mapping[str, TaskRejects] | None = None,
) -> None:
    """Makes the outputs of a job's queries ready, or finds those of this run; raises if one is another's.

    `tables` are the bad rows of tables, which have been read.
    """
    for each in outputs:
        each.check(overwrite=overwrite)
    if rejects is not None:
        rejects.check()
    for each in outputs:
        if not each.is_mine:
            each.clear()
    outputs[0].claim.keep()
    for each in outputs:
        each.take(tables or {})
    if rejects is not None:
        rejects.take(tables or {})


def _json(content: Mapping[str, Any]) -> bytes:
    return (json.dumps(content, indent=2) + "\n").encode()
