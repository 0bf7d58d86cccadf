"""Dataset: named streams made from a seed, read as one table, in chunks, or written as files.

A generator works in blocks whose size follows from its parameters alone, each with random numbers of its own.
So the rows depend on the parameters and the seed, never on the chunk size or the number of files, and memory
holds a few blocks and what has begun and not ended, however long the stream.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise, repeat
from pathlib import Path
from typing import Any, Literal, get_args

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from headgate.model.errors import InputError

Format = Literal["parquet", "csv"]

START = 1_735_689_600_000_000
"""The instant at which generated streams begin unless told otherwise: 2025-01-01T00:00:00Z."""

_ROWS_PER_GROUP = 1 << 18


@dataclass(frozen=True)
class GeneratedStream:
    """One stream of a dataset: a recipe that can be followed any number of times.

    `blocks` makes the rows in the order of their arrival, `count` tells how many they will be for far less
    work than making them.
    """

    name: str
    schema: pa.Schema
    blocks: Callable[[], Iterator[pa.Table]]
    count: Callable[[], int]

    def chunks(self, rows_per_chunk: int) -> Iterator[pa.Table]:
        """The stream as tables of `rows_per_chunk` rows, the last one shorter."""
        if rows_per_chunk < 1:
            raise ValueError(f"a chunk has at least one row, not {rows_per_chunk}")
        return self._cut(repeat(rows_per_chunk))

    def table(self) -> pa.Table:
        """All rows at once."""
        return pa.concat_tables([self.schema.empty_table(), *self.blocks()]).combine_chunks()

    def write(self, folder: Path | str, format: Format = "parquet", files: int = 1) -> tuple[Path, ...]:
        """Writes the rows to `files` files of nearly equal size in arrival order and returns their paths."""
        if format not in get_args(Format):
            raise ValueError(f"a format is one of {', '.join(get_args(Format))}, not {format!r}")
        if files < 1:
            raise ValueError(f"a stream is written to at least one file, not {files}")
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise InputError(
                f"{folder} is not empty, and a reader would mix what is there with the stream {self.name}",
                remedy="name another folder, or empty this one",
            )
        rows = self.count()
        bounds = [rows * file // files for file in range(files + 1)]
        groups = [_group_sizes(end - begin) for begin, end in pairwise(bounds)]
        tables = self._cut([size for sizes in groups for size in sizes])
        paths = tuple(folder / f"part-{file:05}.{format}" for file in range(files))
        for path, sizes in zip(paths, groups, strict=True):
            with _writer(path, self.schema, format) as writer:
                for _ in sizes:
                    writer.write_table(next(tables))
        return paths

    def _cut(self, sizes: Iterable[int]) -> Iterator[pa.Table]:
        """Tables of the given sizes until the rows or the sizes run out."""
        blocks, parts, held = self.blocks(), [self.schema.empty_table()], 0
        for size in sizes:
            while held < size and (block := next(blocks, None)) is not None:
                parts.append(block)
                held += block.num_rows
            if held == 0:
                return
            rows = pa.concat_tables(parts)
            yield rows.slice(0, size).combine_chunks()
            parts, held = [rows.slice(size)], max(held - size, 0)


class Dataset(ABC):
    """Streams that belong together. Sub-classes are frozen dataclasses whose fields are the parameters."""

    @property
    @abstractmethod
    def streams(self) -> Mapping[str, GeneratedStream]:
        """The streams by name."""

    def __getitem__(self, name: str) -> GeneratedStream:
        return self.streams[name]

    def write(
        self, folder: Path | str, format: Format = "parquet", files: int = 1
    ) -> Mapping[str, tuple[Path, ...]]:
        """Writes each stream to a sub-folder of its name and returns the paths by stream."""
        return {
            name: stream.write(Path(folder) / name, format, files) for name, stream in self.streams.items()
        }


def _group_sizes(rows: int) -> list[int]:
    whole, rest = divmod(rows, _ROWS_PER_GROUP)
    return [_ROWS_PER_GROUP] * whole + ([rest] if rest else [])


def _writer(path: Path, schema: pa.Schema, format: Format) -> Any:
    match format:
        case "parquet":
            return pyarrow.parquet.ParquetWriter(path, schema)
        case "csv":
            return pyarrow.csv.CSVWriter(path, schema)
