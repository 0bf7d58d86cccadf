"""Parquet files: columns found by name, read a batch of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.model.errors import DataError, InputError
from headgate.model.schema import Column
from headgate.model.suggest import did_you_mean
from headgate.runtime.io.conform import mismatch
from headgate.runtime.io.literals import TextForms
from headgate.runtime.io.piece import Piece, RowPlace
from headgate.runtime.io.rejects import shown
from headgate.runtime.io.text.bytestream import unreadable

_BATCH_BYTES = 1 << 26
_READ_AHEAD = 1 << 20
# Corrupt files also make Arrow raise these: bad names in the metadata, sizes that do not fit.
_FAILURES = (OSError, pa.ArrowException, UnicodeDecodeError, OverflowError, MemoryError)


@dataclass(frozen=True)
class ParquetFormat:
    """Parquet files with the given columns; all of their row groups, or those from one up to another."""

    columns: tuple[Column, ...]
    groups: tuple[int, int] | None = None

    @property
    def forms(self) -> TextForms | None:
        return None

    def pieces(self, file: Path, rows: int, *, stops: bool) -> Iterator[Piece]:
        with _opened(file) as source:
            size = file.stat().st_size
            groups = list(range(*(self.groups or (0, source.metadata.num_row_groups))))
            before = sum(
                source.metadata.row_group(index).num_rows for index in range(groups[0] if groups else 0)
            )
            last = before + sum(source.metadata.row_group(index).num_rows for index in groups)
            indexes = _indexes(file, source, self.columns)
            names = [source.schema_arrow.names[index] for index in indexes]
            total = max(1, source.metadata.num_rows)
            for batch in _batches(file, source, names, rows, groups):
                if batch.num_rows == 0:
                    continue
                read = size * min(total, before + batch.num_rows) // total
                place = partial(_place, before)
                yield Piece([batch.column(name) for name in names], (), place, read)
                before += batch.num_rows
            if before != last:
                raise InputError(
                    f"cannot read {file}: it has {before:,} rows and says {last:,}",
                    remedy="check that the file is complete",
                )

    def finish(self, name: str) -> None:
        """Every file has been compared with the declaration on its own."""

    def advice(self, place: RowPlace) -> str | None:
        return None


def _place(before: int, index: int) -> RowPlace:
    return RowPlace(before + index + 1)


def _opened(file: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(
            file,
            # Without this, a whole row group would be in memory at once.
            pre_buffer=False,
            buffer_size=_READ_AHEAD,
            # The old timestamps of Impala and Hive reach further than nanoseconds do.
            coerce_int96_timestamp_unit="us",
            page_checksum_verification=True,
        )
    except _FAILURES as error:
        raise unreadable(file, error) from error


def _batches(
    file: Path, source: pq.ParquetFile, names: list[str], rows: int, groups: list[int]
) -> Iterator[pa.RecordBatch]:
    try:
        batches = source.iter_batches(
            _rows_at_once(source, rows), row_groups=groups, columns=names, use_threads=False
        )
        while (batch := next(batches, None)) is not None:
            yield batch
    except _FAILURES as error:
        raise unreadable(file, error) from error


def _rows_at_once(source: pq.ParquetFile, rows: int) -> int:
    """Fewer rows where rows are large."""
    groups = [source.metadata.row_group(index) for index in range(source.metadata.num_row_groups)]
    widest = max(
        (group.total_byte_size / group.num_rows for group in groups if group.num_rows > 0), default=1.0
    )
    return max(1, min(rows, int(_BATCH_BYTES / max(1.0, widest))))


def _indexes(file: Path, source: pq.ParquetFile, columns: tuple[Column, ...]) -> list[int]:
    """Where the declared columns stand in a file; raises on one that is missing or of an unfit type."""
    try:
        schema = source.schema_arrow
    except _FAILURES as error:
        raise unreadable(file, error) from error
    folded = [name.casefold() for name in schema.names]
    found: list[int] = []
    for column in columns:
        name = column.name.casefold()
        if name not in folded:
            raise DataError(
                f"{file}: there is no column {column.name}",
                remedy=did_you_mean(column.name, [shown(each, 40)[1:-1] for each in schema.names]),
            )
        if folded.count(name) > 1:
            raise DataError(f"{file}: column {column.name} is there twice")
        index = folded.index(name)
        reason = mismatch(schema.types[index], column.type, column.name)
        if reason is not None:
            raise DataError(f"{file}: {reason}", remedy="change the declaration, or convert the file")
        found.append(index)
    return found
