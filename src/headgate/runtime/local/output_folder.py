"""The output folder of a local run: what it writes is complete or not there at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from headgate.runtime.disk import writing
from headgate.runtime.io.format import FileFormat, Writer
from headgate.runtime.io.registry import FormatName, file_format
from headgate.runtime.output import late_folder, late_parts, require_writable
from headgate.runtime.staging import staging

_ROWS_PER_FILE = 1_000_000


class OutputFolder:
    """Collects everything a run writes, and puts it in place when the run has succeeded.

    `answers` and `late` are the schemas of the queries' rows and of the streams' late rows. A query's folder will
    exist even if no row comes. Names that cannot be folders are refused before anything is read.
    """

    def __init__(
        self,
        folder: Path,
        answers: Mapping[str, pa.Schema],
        late: Mapping[str, pa.Schema],
        *,
        format: FormatName,
        overwrite: bool,
    ) -> None:
        self.folder, self._format = folder, file_format(format)
        self._answers, self._late_schemas = answers, late
        self._overwrite = overwrite
        self._held = ExitStack()
        self._writers: dict[str, _PartWriter] = {}
        self._late: dict[tuple[str, str], _PartWriter] = {}

    def __enter__(self) -> OutputFolder:
        for stream in self._late_schemas:
            late_folder(self.folder, stream)
        require_writable(self._format, {**self._late_schemas, **self._answers})
        self._staging = self._held.enter_context(
            staging(self.folder, list(self._answers), overwrite=self._overwrite)
        )
        try:
            with self._writing():
                for query, schema in self._answers.items():
                    self._writers[query] = self._parts(self._staging.folder / query, "part-", schema)
        except BaseException:
            self._held.close()
            raise
        return self

    def append(self, query: str, table: pa.Table) -> None:
        """Adds rows of an answer."""
        with self._writing():
            self._writers[query].append(table)

    def append_late(self, stream: str, query: str, table: pa.Table) -> None:
        """Adds late rows of a query."""
        with self._writing():
            if (stream, query) not in self._late:
                folder = late_folder(self._staging.folder, stream)
                self._late[stream, query] = self._parts(folder, late_parts(query), self._late_schemas[stream])
            self._late[stream, query].append(table)

    def write_json(self, query: str, file: str, content: Mapping[str, Any]) -> None:
        """Writes a file beside the rows of an answer."""
        with self._writing():
            (self._staging.folder / query / file).write_text(json.dumps(content, indent=2) + "\n")

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        with self._held:
            # What a run has failed with is what is told of it, not that its files could not be ended either.
            with suppress(OSError) if kind is not None else self._writing():
                for writer in (*self._writers.values(), *self._late.values()):
                    writer.close()
            if kind is None:
                self._staging.publish()

    def _parts(self, folder: Path, prefix: str, schema: pa.Schema) -> _PartWriter:
        return _PartWriter(folder, prefix, schema, self._format)

    def _writing(self) -> AbstractContextManager[None]:
        return writing(self.folder, "--output")


class _PartWriter:
    """Files of bounded size in one folder; at least one, so that the schema can be read."""

    def __init__(self, folder: Path, prefix: str, schema: pa.Schema, format: FileFormat) -> None:
        self._folder, self._prefix, self._schema, self._format = folder, prefix, schema, format
        self._number, self._rows = 0, 0
        folder.mkdir(parents=True, exist_ok=True)
        self._writer = self._open()

    def _open(self) -> Writer:
        path = self._folder / f"{self._prefix}{self._number:05d}{self._format.suffix}"
        return self._format.writer(path, self._schema)

    def append(self, table: pa.Table) -> None:
        if self._rows >= _ROWS_PER_FILE:
            self._writer.close()
            self._number, self._rows = self._number + 1, 0
            self._writer = self._open()
        if table.num_rows:
            self._writer.write_table(table)
            self._rows += table.num_rows

    def close(self) -> None:
        self._writer.close()
