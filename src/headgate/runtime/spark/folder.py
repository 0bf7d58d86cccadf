"""The output folder of a run on Spark on a disk that all machines reach: every micro-batch's rows once.

```
DIR/<query>/part-00003-00001.parquet   rows of micro-batch 3, from one task, in any format of the registry
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
from pyspark.sql import DataFrame

from headgate.runtime.io.format import Writer
from headgate.runtime.io.registry import file_format, is_file_format
from headgate.runtime.output import (
    as_declared,
    clear,
    late_folder,
    late_parts,
    output_places,
    require_writable,
    safe_name,
)
from headgate.runtime.ownership import is_bare
from headgate.runtime.spark.codec import decode
from headgate.runtime.spark.local_folder import LocalFolder
from headgate.runtime.spark.messages import decode_table
from headgate.runtime.spark.query_output import QueryOutput
from headgate.runtime.spark.rejects import REJECTS, RejectSink, TaskRejects, counted

WRITTEN_DDL = "query int, kind string, name string, file string, rows long, content binary"
_WRITTEN = pa.schema(
    [
        ("query", pa.int32()),
        ("kind", pa.string()),
        ("name", pa.string()),
        ("file", pa.string()),
        ("rows", pa.int64()),
        ("content", pa.binary()),
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
        assert is_file_format(self.format)
        self.file_format = file_format(self.format)
        require_writable(self.file_format, self.schemas)

    @property
    def files(self) -> LocalFolder:
        return LocalFolder(self.folder)

    def has_results(self) -> str | None:
        places = output_places(self.root, self.stage.graph.query)
        bare = all(each.is_dir() and is_bare(each) for each in places)
        return None if bare else str(places[-1])

    def clear(self) -> None:
        with self.writable():
            clear(self.root, self.stage.graph.query)

    def take(self, tables: Mapping[str, TaskRejects]) -> None:
        super().take(tables)
        shutil.rmtree(self.staging, ignore_errors=True)

    def has_rows(self) -> bool:
        shutil.rmtree(self.staging, ignore_errors=True)
        return any(self.folder.glob(f"part-*{self.file_format.suffix}"))

    def write_nothing(self) -> None:
        place = self._part(self.folder / "part-00000", 0)
        self.file_format.writer(place, self.schemas["rows"]).close()

    def stage_batch(self, batch: int) -> Staged:
        """Where tasks write a micro-batch of the query; raises if the folder is not this run's any more."""
        if not self.is_mine:
            raise self.foreign()
        return Staged(str(self.staging / f"{batch:05d}-{uuid4().hex}"), self.schemas, self.format)

    def put(self, written: list[Any], batch: int, staged: Staged, rejected: Mapping[str, int]) -> None:
        """Puts what tasks have written of a micro-batch in place, unless that was done before."""
        if not self.is_done(batch):
            self._publish(written, batch)
            rows = sum(row.rows for row in written if row.kind == "rows")
            reports = [json.loads(row.content) for row in written if row.kind == "metrics"]
            self.note(batch, rows, reports, rejected)
        shutil.rmtree(staged.folder, ignore_errors=True)

    def _publish(self, written: list[Any], batch: int) -> None:
        """Moves files to their names; what an interrupted attempt left under such names is replaced."""
        late = late_parts(self.stage.graph.query)
        answer = self.folder / f"part-{batch:05d}"
        begins = {name: folder / f"{late}{batch:05d}" for name, folder in self.late.items()}
        for begin in (answer, *begins.values()):
            if not self._part(begin, 0).exists():
                continue
            # The first goes last: while it is there, others may be.
            for old in sorted(begin.parent.glob(f"{begin.name}-*{self.file_format.suffix}"), reverse=True):
                old.unlink()
        counts: dict[Path, int] = {}
        for row in sorted((each for each in written if each.file), key=lambda each: each.file):
            begin = answer if row.kind == "rows" else begins[row.name]
            begin.parent.mkdir(parents=True, exist_ok=True)
            number = counts.get(begin, 0)
            counts[begin] = number + 1
            Path(row.file).rename(self._part(begin, number))

    def _part(self, begin: Path, number: int) -> Path:
        return begin.with_name(f"{begin.name}-{number:05d}{self.file_format.suffix}")


@dataclass(frozen=True)
class Staged:
    """Where tasks write a query's part of a micro-batch, and in which forms."""

    folder: str
    schemas: Mapping[str, pa.Schema]
    format: str = "parquet"


def write_batch(
    folders: Sequence[QueryFolder], answer: DataFrame, batch: int, rejects: RejectSink | None = None
) -> None:
    """Puts a micro-batch's answers of all queries of a job in their folders, once; their kernels run once."""
    staged = [each.stage_batch(batch) for each in folders]
    written = answer.mapInArrow(_writing(staged), WRITTEN_DDL).collect()
    bad = [row for row in written if row.kind == REJECTS]
    if rejects is not None and not all(folder.is_done(batch) for folder in folders):
        rejects.put(batch, bad)
    for query, folder in enumerate(folders):
        mine = [row for row in written if row.query == query and row.kind != REJECTS]
        folder.put(mine, batch, staged[query], counted(bad))


def _writing(staged: Sequence[Staged]) -> Any:
    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from write_parts(staged, batches)

    return write


def write_parts(staged: Sequence[Staged], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Writes the rows of a task's answers to files, one for each query and kind; says which, and metrics."""
    found: list[dict[str, Any]] = []
    writers: dict[tuple[int, str], tuple[Path, Writer]] = {}
    counts: dict[tuple[int, str], int] = {}
    for batch in batches:
        for row in batch.to_pylist():
            query, kind = row["query"], "rows" if row["kind"] == "rows" else f"late/{row['name']}"
            key = (query, kind)
            schemas = staged[query].schemas
            if row["kind"] in ("metrics", REJECTS):
                said = {name: row[name] for name in ("query", "kind", "name", "rows")}
                found.append({**said, "content": row["blob"]})
            elif kind in schemas:
                if key not in writers:
                    folder = Path(staged[query].folder)
                    folder.mkdir(parents=True, exist_ok=True)
                    assert is_file_format(staged[query].format)
                    format = file_format(staged[query].format)
                    path = folder / f"{uuid4().hex}{format.suffix}"
                    writers[key] = (path, format.writer(path, schemas[kind]))
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
    rows = [{"file": None, "content": None, **each} for each in found]
    yield pa.RecordBatch.from_pylist(rows, schema=_WRITTEN)
