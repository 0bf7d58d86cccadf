"""The output folder of a run on Spark on a disk that all machines reach: every micro-batch's rows once.

```
DIR/<query>/part-00003-00001.parquet   rows of micro-batch 3, from one task
DIR/_late/<stream>/part-<query>.…      late rows, numbered likewise
```

Tasks write beside the final place. The driver then puts the files of a micro-batch in place and notes that
(`query_output`); a micro-batch that comes again after that note only repeats its work, and what it wrote is thrown
away.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from headgate.runtime.output import as_declared, clear, late_folder, late_parts, output_places, safe_name
from headgate.runtime.ownership import is_bare
from headgate.runtime.spark.codec import decode
from headgate.runtime.spark.local_folder import LocalFolder
from headgate.runtime.spark.messages import decode_table
from headgate.runtime.spark.query_output import QueryOutput, prepare

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


class QueryFolder(QueryOutput):
    """Where one query's output goes, and what has come so far."""

    def __init__(self, root: Path, *rest: Any, **named: Any) -> None:
        super().__init__(*rest, **named)
        self.root = root
        query = safe_name(self.stage.graph.query)
        self.folder = root / query
        self.late = {each.name: late_folder(root, each.name) for each in self.stage.streams}
        self.staging = self.folder / ".staging"

    @property
    def files(self) -> LocalFolder:
        return LocalFolder(self.folder)

    def prepare(self, *, overwrite: bool) -> None:
        """Makes the folder, or finds the one of this run; raises if it is another's."""
        prepare([self], overwrite=overwrite)

    def has_results(self) -> str | None:
        places = output_places(self.root, self.stage.graph.query)
        bare = all(each.is_dir() and is_bare(each) for each in places)
        return None if bare else str(places[-1])

    def clear(self) -> None:
        with self.writable():
            clear(self.root, self.stage.graph.query)

    def take(self) -> None:
        super().take()
        shutil.rmtree(self.staging, ignore_errors=True)

    def has_rows(self) -> bool:
        shutil.rmtree(self.staging, ignore_errors=True)
        return any(self.folder.glob("part-*.parquet"))

    def write_nothing(self) -> None:
        pq.write_table(self.schemas["rows"].empty_table(), self.folder / "part-00000-00000.parquet")

    def write(self, answer: DataFrame, batch: int) -> None:
        """Puts a micro-batch's answer in place, once, for a query that is alone in its job."""
        write_batch([self], answer, batch)

    def stage_batch(self, batch: int) -> Staged:
        """Where tasks write a micro-batch of the query; raises if the folder is not this run's any more."""
        if not self.is_mine:
            raise self.foreign()
        return Staged(str(self.staging / f"{batch:05d}-{uuid4().hex}"), self.schemas)

    def put(self, written: list[Any], batch: int, staged: Staged) -> None:
        """Puts what tasks have written of a micro-batch in place, unless that was done before."""
        if not self.is_done(batch):
            self._publish(written, batch)
            rows = sum(row.rows for row in written if row.kind == "rows")
            self.note(batch, rows, [json.loads(row.metrics) for row in written if row.kind == "metrics"])
        shutil.rmtree(staged.folder, ignore_errors=True)

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


def _part(begin: Path, number: int) -> Path:
    return begin.with_name(f"{begin.name}-{number:05d}.parquet")


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
