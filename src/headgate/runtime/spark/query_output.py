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
from typing import Any, ClassVar, Protocol

import pyarrow as pa

from headgate.model.errors import InputError
from headgate.runtime.growth import with_assumptions
from headgate.runtime.output import arrow_schema
from headgate.runtime.ownership import MARK
from headgate.runtime.spark.aside import Aside
from headgate.runtime.spark.checkpoint import Claim
from headgate.runtime.spark.listener import SparkProgress
from headgate.runtime.spark.shard_reports import summed
from headgate.runtime.stage import Stage

KEPT_NOTES = 100
"""Spark may repeat its last micro-batch, never one so long ago."""
NOTES = ".batches"


class Files(Protocol):
    """A folder, of this machine or elsewhere."""

    def __truediv__(self, name: str) -> Files: ...

    def read(self, name: str) -> bytes | None: ...

    def write(self, name: str, content: bytes) -> None: ...

    def names(self) -> list[str]: ...

    def exists(self, name: str) -> bool: ...

    def delete(self, name: str) -> None: ...


@dataclass
class QueryOutput(ABC):
    """Where one query's output goes, and what has come so far."""

    stage: Stage
    claim: Claim
    """The checkpoint and the run that the output belongs to."""
    on_batch: Callable[[Mapping[str, Any]], None] = field(default=lambda metrics: None)
    aside: Aside = field(default_factory=Aside)
    progress: SparkProgress | None = None
    """What Spark reports of the query, if anybody listens."""
    metrics_name: ClassVar[str] = "metrics.json"
    _last: dict[str, Any] | None = field(default=None, init=False, repr=False)

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
        """Raises if there are results or rejects that are not of this run; a new run may replace results."""
        with self.writable():
            found = None if self.is_mine else self.has_results()
            if found is not None and not self.claim.fresh:
                raise self.foreign()
            if found is not None and not overwrite:
                raise InputError(
                    f"{found} exists already",
                    remedy="choose another --output, or give --overwrite to replace it",
                )
        self.aside.check()

    def take(self) -> None:
        """Makes the folder this run's; only after `clear`, and after the checkpoint is marked as used."""
        with self.writable():
            if self.files.read(MARK) is None:
                self.files.write(MARK, f"{self.claim.run}\n".encode())
            for old in self._notes()[:-KEPT_NOTES]:
                self._noted.delete(f"{old:05d}.json")
            self._last = None
            if self.progress is not None:
                self.progress.go_on_from(self._spark_so_far())
        self.aside.prepare()

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

    def note(self, batch: int, rows: int, reports: Sequence[Mapping[str, Any]]) -> None:
        """Takes note that a micro-batch is complete, with what the shards have reported of it."""
        metrics = self._with_progress(self._metrics(reports, batch))
        self._noted.write(f"{batch:05d}.json", _json({"rows": rows, "metrics": metrics}))
        self.files.write(self.metrics_name, _json(metrics))
        self._noted.delete(f"{batch - KEPT_NOTES:05d}.json")
        self._last = metrics
        self.on_batch(metrics)

    def finish(self) -> dict[str, Any]:
        """The metrics of the whole run; the folder then has a readable schema even if no row came."""
        if not self.has_rows():
            self.write_nothing()
        so_far = self.last_metrics() or summed(self.stage, [])
        metrics = self._with_progress({**so_far, "rejected_rows": self.aside.count()})
        self.files.write(self.metrics_name, _json(metrics))
        return metrics

    def strip(self) -> None:
        """Takes away what only a run that goes on needs: nothing can go on from this one."""
        self.files.delete(NOTES)
        self.files.delete(MARK)

    def last_metrics(self) -> dict[str, Any]:
        """The metrics after the last complete micro-batch."""
        if self._last is None:
            notes = self._notes()
            found = self._noted.read(f"{notes[-1]:05d}.json") if notes else None
            self._last = {} if found is None else dict(json.loads(found)["metrics"])
        return self._last

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
        return {**noted, "batches": batch + 1, "rejected_rows": self.aside.count()}

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


def prepare(outputs: Sequence[QueryOutput], *, overwrite: bool) -> None:
    """Makes the outputs of a job's queries ready, or finds those of this run; raises if one is another's."""
    for each in outputs:
        each.check(overwrite=overwrite)
    for each in outputs:
        if not each.is_mine:
            each.clear()
    outputs[0].claim.keep()
    for each in outputs:
        each.take()


def _json(content: Mapping[str, Any]) -> bytes:
    return (json.dumps(content, indent=2) + "\n").encode()
