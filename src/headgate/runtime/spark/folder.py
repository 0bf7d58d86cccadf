"""The output folder of a run on Spark: every micro-batch's rows once, however often it is tried.

```
DIR/<query>/part-00003-00001.parquet   rows of micro-batch 3, from one task
DIR/<query>/metrics.json               what the run has done up to the last micro-batch
DIR/<query>/.batches/00003.json        micro-batch 3 is complete, with the metrics after it; the last are kept
DIR/<query>/.run                       the id of the run that all this belongs to, as in its checkpoint
DIR/_late/<stream>/part-<query>.…      late rows, numbered likewise
```

Tasks write beside the final place. The driver then puts the files of a micro-batch in place and notes that; a
micro-batch that comes again after that note only repeats its work, and what it wrote is thrown away.

Notes of another run would be believed too, so a run adds to no folder but its own. Before anything is changed, all
folders are looked at (`check`). Then what is to be replaced is cleared (`clear`), the checkpoint is marked as used,
and each folder as its run's (`take`). A run that is killed between two of these steps is new once more, or finds no
folder.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from headgate.model.errors import InputError
from headgate.runtime.growth import with_assumptions
from headgate.runtime.lateness import Arrivals
from headgate.runtime.output import (
    arrow_schema,
    as_declared,
    check_free,
    clear,
    late_folder,
    late_parts,
    output_places,
    safe_name,
)
from headgate.runtime.ownership import MARK, is_bare, mark, owner_of
from headgate.runtime.spark.aside import Aside
from headgate.runtime.spark.checkpoint import Claim
from headgate.runtime.spark.codec import decode
from headgate.runtime.spark.listener import SparkProgress
from headgate.runtime.spark.messages import decode_table
from headgate.runtime.stage import Stage

WRITTEN_DDL = "query int, kind string, name string, file string, rows long, metrics string"
_WRITTEN = pa.schema(
    [
        ("query", pa.int32()),
        ("kind", pa.string()),
        ("name", pa.string()),
        ("file", pa.string()),
        ("rows", pa.int64()),
        ("metrics", pa.string()),
    ]
)

_KEPT_NOTES = 100
"""Spark may repeat its last micro-batch, never one so long ago."""


@dataclass
class QueryFolder:
    """Where one query's output goes, and what has come so far."""

    root: Path
    stage: Stage
    claim: Claim
    """The checkpoint and the run that the output belongs to."""
    on_batch: Callable[[Mapping[str, Any]], None] = field(default=lambda metrics: None)
    aside: Aside = field(default_factory=Aside)
    progress: SparkProgress | None = None
    """What Spark reports of the query, if anybody listens."""

    def __post_init__(self) -> None:
        query = safe_name(self.stage.graph.query)
        self.folder = self.root / query
        self.late = {each.name: late_folder(self.root, each.name) for each in self.stage.streams}
        self.notes = self.folder / ".batches"
        self.staging = self.folder / ".staging"
        self.written = 0
        """Micro-batches that this process has seen through."""
        self._last: dict[str, Any] | None = None

    def prepare(self, *, overwrite: bool) -> None:
        """Makes the folder, or finds the one of this run; raises if it is another's."""
        prepare([self], overwrite=overwrite)

    def check(self, *, overwrite: bool) -> None:
        """Raises if there are results or rejects that are not of this run; a new run may replace results."""
        query = self.stage.graph.query
        with self._writable():
            places = output_places(self.root, query)
            if not self._is_mine and not all(each.is_dir() and is_bare(each) for each in places):
                if not self.claim.fresh:
                    raise self._foreign()
                check_free(self.root, query, overwrite=overwrite)
        self.aside.check()

    def clear(self) -> None:
        """Removes what is to be replaced; only after `check`."""
        with self._writable():
            if not self._is_mine:
                clear(self.root, self.stage.graph.query)

    def take(self) -> None:
        """Makes the folder this run's; only after `clear`, and after the checkpoint is marked as used."""
        with self._writable():
            mark(self.folder, self.claim.run)
            self.notes.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(self.staging, ignore_errors=True)
            for old in self._notes()[:-_KEPT_NOTES]:
                old.unlink()
            self._last = None
            if self.progress is not None:
                self.progress.go_on_from(self._spark_so_far())
        self.aside.prepare()

    @property
    def _is_mine(self) -> bool:
        return owner_of(self.folder) == self.claim.run

    def _foreign(self) -> InputError:
        return InputError(
            f"{self.folder} or its late rows belong to a run with another checkpoint",
            remedy="go on with that checkpoint, or choose another --output",
        )

    @contextmanager
    def _writable(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise InputError(
                f"cannot write to {self.folder}: {error.strerror or error}", remedy="choose another --output"
            ) from error

    def write(self, answer: DataFrame, batch: int) -> None:
        """Puts a micro-batch's answer in place, once, for a query that is alone in its job."""
        write_batch([self], answer, batch)

    def stage_batch(self, batch: int) -> Staged:
        """Where tasks write a micro-batch of the query; raises if the folder is not this run's any more."""
        if not self._is_mine:
            raise self._foreign()
        return Staged(str(self.staging / f"{batch:05d}-{uuid4().hex}"), self._schemas())

    def put(self, written: list[Any], batch: int, staged: Staged) -> None:
        """Puts what tasks have written of a micro-batch in place, unless that was done before."""
        note = self.notes / f"{batch:05d}.json"
        if not note.exists():
            self._publish(written, batch)
            metrics = self._with_progress(self._metrics(written, batch))
            _put(note, {"rows": sum(row.rows for row in written if row.kind == "rows"), "metrics": metrics})
            _put(self.folder / "metrics.json", metrics)
            (self.notes / f"{batch - _KEPT_NOTES:05d}.json").unlink(missing_ok=True)
            self._last = metrics
            self.on_batch(metrics)
        shutil.rmtree(staged.folder, ignore_errors=True)
        self.written += 1

    def finish(self) -> dict[str, Any]:
        """The metrics of the whole run; the folder then has a readable schema even if no row came."""
        shutil.rmtree(self.staging, ignore_errors=True)
        if not any(self.folder.glob("part-*.parquet")):
            schema = self._schemas()["rows"]
            pq.write_table(schema.empty_table(), self.folder / "part-00000-00000.parquet")
        so_far = self.last_metrics() or summed(self.stage, [])
        metrics = self._with_progress({**so_far, "rejected_rows": self.aside.count()})
        _put(self.folder / "metrics.json", metrics)
        return metrics

    def _with_progress(self, metrics: dict[str, Any]) -> dict[str, Any]:
        return metrics if self.progress is None else {**metrics, "spark": self.progress.facts()}

    def _spark_so_far(self) -> dict[str, Any]:
        """What Spark had reported; of the last micro-batch it does so when the note of that is written already."""
        last, file = self.last_metrics(), self.folder / "metrics.json"
        try:
            shown = json.loads(file.read_text())
        except (FileNotFoundError, ValueError):
            shown = {}
        return dict((shown if shown.get("batches") == last.get("batches") else last).get("spark", {}))

    def last_metrics(self) -> dict[str, Any]:
        if self._last is None:
            notes = self._notes()
            self._last = dict(json.loads(notes[-1].read_text())["metrics"]) if notes else {}
        return self._last

    def _notes(self) -> list[Path]:
        """The notes in the order of their micro-batches."""
        return sorted(self.notes.glob("*.json"), key=lambda each: int(each.stem))

    def _schemas(self) -> dict[str, pa.Schema]:
        graph = self.stage.graph
        late = {
            f"late/{stream.name}": pa.schema([(c.name, c.type) for c in stream.columns])
            for stream in self.stage.streams
        }
        return {"rows": arrow_schema(graph.columns, change_log=graph.is_change_log), **late}

    def _publish(self, written: list[Any], batch: int) -> None:
        """Moves files to their names; what an interrupted attempt left under such names is replaced."""
        late = late_parts(self.stage.graph.query)
        answer = self.folder / f"part-{batch:05d}"
        begins = {name: folder / f"{late}{batch:05d}" for name, folder in self.late.items()}
        for begin in (answer, *begins.values()):
            if not _part(begin, 0).exists():
                continue
            # The first goes last: while it is there, others may be.
            for old in sorted(begin.parent.glob(f"{begin.name}-*.parquet"), reverse=True):
                old.unlink()
        counts: dict[Path, int] = {}
        for row in sorted((each for each in written if each.file), key=lambda each: each.file):
            begin = answer if row.kind == "rows" else begins[row.name]
            begin.parent.mkdir(parents=True, exist_ok=True)
            number = counts.get(begin, 0)
            counts[begin] = number + 1
            Path(row.file).rename(_part(begin, number))

    def _metrics(self, written: list[Any], batch: int) -> dict[str, Any]:
        reports = [json.loads(row.metrics) for row in written if row.kind == "metrics"]
        before = self.last_metrics()
        # Without a row for any shard nothing is reported; bad rows there may be all the same.
        found = summed(self.stage, reports, before) if reports or not before else before
        noted = with_assumptions(found, before, self.stage.graph)
        return {**noted, "batches": batch + 1, "rejected_rows": self.aside.count()}

    def strip(self) -> None:
        """Takes away what only a run that goes on needs: nothing can go on from this one."""
        shutil.rmtree(self.notes, ignore_errors=True)
        (self.folder / MARK).unlink(missing_ok=True)


def summed(
    stage: Stage, reports: list[dict[str, Any]], before: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The metrics of all shards as one, in the form of the local engine's."""
    before = before or {}
    total: dict[str, Any] = {
        "query": stage.graph.query,
        "output": stage.graph.output,
        "engine": "spark",
        "allowed_unbounded": stage.graph.allowed_unbounded,
        "shards": stage.most_shards,
        "stages": len(stage.chain),
    }
    for name in (
        "rows_in",
        "rows_out",
        "state_rows",
        "state_bytes",
        "late_rows",
        "future_rows",
        "waiting_rows",
    ):
        total[name] = sum(each[name] for each in reports)
    total["streams"] = Arrivals.together(each["streams"] for each in reports)
    total["steps"] = max((each["steps"] for each in reports), default=0)
    total["clock"] = min((each["clock"] for each in reports if each["clock"] is not None), default=None)
    # Shards need not have theirs at one moment, so this is the most that there can have been.
    for name in ("peak_state_rows", "peak_state_bytes"):
        total[name] = max(before.get(name, 0), sum(each[name] for each in reports))
    seconds: dict[str, float] = {}
    for each in reports:
        for operator, spent in each["seconds"].items():
            seconds[operator] = round(seconds.get(operator, 0.0) + spent, 6)
    total["seconds"] = seconds
    total["operators"] = _operators(reports)
    total["cache_hits"] = before.get("cache_hits", 0) + sum(each["batch"]["cached"] for each in reports)
    total["cache_misses"] = before.get("cache_misses", 0) + sum(
        not each["batch"]["cached"] for each in reports
    )
    total["written_bytes"] = before.get("written_bytes", 0) + sum(
        each["batch"]["written_bytes"] for each in reports
    )
    stages: dict[str, float] = dict(before.get("stage_seconds", {}))
    for each in reports:
        for name, spent in each["batch"]["seconds"].items():
            stages[name] = round(stages.get(name, 0.0) + spent, 6)
    total["stage_seconds"] = stages
    return total


def _operators(reports: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """What each operator holds in all shards."""
    total: dict[str, dict[str, int]] = {}
    for each in reports:
        for name, sizes in each["operators"].items():
            mine = total.setdefault(name, dict.fromkeys(sizes, 0))
            for key, size in sizes.items():
                mine[key] += size
    return total


def _part(begin: Path, number: int) -> Path:
    return begin.with_name(f"{begin.name}-{number:05d}.parquet")


def _put(path: Path, content: Mapping[str, Any]) -> None:
    """Writes a file whole or not at all."""
    beside = path.with_name(f".{path.name}.{uuid4().hex}")
    beside.write_text(json.dumps(content, indent=2) + "\n")
    beside.replace(path)


def prepare(folders: Sequence[QueryFolder], *, overwrite: bool) -> None:
    """Makes the folders of a job's queries, or finds those of this run; raises if one is another's."""
    for folder in folders:
        folder.check(overwrite=overwrite)
    for folder in folders:
        folder.clear()
    folders[0].claim.keep()
    for folder in folders:
        folder.take()


@dataclass(frozen=True)
class Staged:
    """Where tasks write a query's part of a micro-batch, and in which forms."""

    folder: str
    schemas: Mapping[str, pa.Schema]


def write_batch(folders: Sequence[QueryFolder], answer: DataFrame, batch: int) -> None:
    """Puts a micro-batch's answers of all queries of a job in their folders, once; their kernels run once."""
    staged = [each.stage_batch(batch) for each in folders]
    written = answer.mapInArrow(_writing(staged), WRITTEN_DDL).collect()
    for query, folder in enumerate(folders):
        folder.put([row for row in written if row.query == query], batch, staged[query])


def _writing(staged: Sequence[Staged]) -> Any:
    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from write_parts(staged, batches)

    return write


def write_parts(staged: Sequence[Staged], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Writes the rows of a task's answers to files, one for each query and kind; says which, and metrics."""
    found: list[dict[str, Any]] = []
    writers: dict[tuple[int, str], tuple[Path, pq.ParquetWriter]] = {}
    counts: dict[tuple[int, str], int] = {}
    for batch in batches:
        for row in batch.to_pylist():
            query, kind = row["query"], "rows" if row["kind"] == "rows" else f"late/{row['name']}"
            key = (query, kind)
            schemas = staged[query].schemas
            if row["kind"] == "metrics":
                metrics = row["blob"].decode()
                found.append({"query": query, "kind": "metrics", "name": row["name"], "metrics": metrics})
            elif kind in schemas:
                if key not in writers:
                    folder = Path(staged[query].folder)
                    folder.mkdir(parents=True, exist_ok=True)
                    path = folder / f"{uuid4().hex}.parquet"
                    writers[key] = (path, pq.ParquetWriter(path, schemas[kind], compression="zstd"))
                if kind == "rows":
                    table = decode_table(row["blob"])
                else:
                    table = as_declared(decode(row["blob"]), schemas[kind])
                writers[key][1].write_table(table)
                counts[key] = counts.get(key, 0) + table.num_rows
    for key, (path, writer) in writers.items():
        writer.close()
        kind, _, name = key[1].partition("/")
        found.append({"query": key[0], "kind": kind, "name": name, "file": str(path), "rows": counts[key]})
    rows = [{"file": None, "rows": 0, "metrics": None, **each} for each in found]
    yield pa.RecordBatch.from_pylist(rows, schema=_WRITTEN)
