"""Files of columns, which are found by name: Parquet and ORC. What they differ in is how a file is opened."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from headgate.model.errors import DataError
from headgate.model.schema import Column
from headgate.model.suggest import did_you_mean
from headgate.runtime.io.conform import mismatch
from headgate.runtime.io.format import PARTS, Piece, RowPlace, Span
from headgate.runtime.io.literals import TextForms
from headgate.runtime.io.rejects import shown
from headgate.runtime.io.text.bytestream import unreadable

# Corrupt files also make Arrow raise these: bad names in the metadata, sizes that do not fit.
_FAILURES = (OSError, pa.ArrowException, UnicodeDecodeError, OverflowError, MemoryError)


class ColumnarFile(Protocol):
    """An open file, whose rows come in groups: row groups of Parquet, stripes of ORC."""

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def counts(self) -> Sequence[float]:
        """About how many rows each group has."""

    def rows_before(self, group: int) -> int:
        """How many rows the groups before this one have."""

    def batches(self, names: list[str], groups: range, rows: int) -> Iterator[pa.RecordBatch]:
        """Columns of consecutive groups, at most so many rows at a time."""

    def close(self) -> None: ...


@dataclass(frozen=True)
class ColumnarReader:
    """Files with the given columns; a span of one is some of its groups."""

    open: Callable[[Path], ColumnarFile]
    columns: tuple[Column, ...]

    @property
    def forms(self) -> TextForms | None:
        return None

    def pieces(self, file: Path, span: Span | None, rows: int, *, stops: bool) -> Iterator[Piece]:
        with _reading(file), closing(self.open(file)) as source:
            names = _names(file, source.schema, self.columns)
            start, end = (0, None) if span is None else (span.start, span.end)
            counts, size, read = source.counts, file.stat().st_size, 0
            total, before = max(1, sum(counts)), sum(counts[:start])
            for batch in source.batches(names, range(len(counts))[start:end], rows):
                if batch.num_rows:
                    place = partial(_place, source, start, read)
                    read += batch.num_rows
                    done = int(size * min(total, before + read) / total)
                    yield Piece([batch.column(name) for name in names], (), place, done)

    def spans(self, file: Path, batch_rows: int) -> Sequence[tuple[Span, float]]:
        try:
            with closing(self.open(file)) as source:
                counts = source.counts
        except _FAILURES:
            return []
        found: list[tuple[Span, float]] = []
        start, rows = 0, 0.0
        for index, count in enumerate(counts, 1):
            rows += count
            if rows >= batch_rows / PARTS or index == len(counts):
                found.append((Span(start, index), rows))
                start, rows = index, 0.0
        return found

    def finish(self, name: str) -> None:
        """Every file has been compared with the declaration on its own."""

    def advice(self, place: RowPlace) -> str | None:
        return None


@contextmanager
def _reading(file: Path) -> Iterator[None]:
    """Within it, what Arrow says against a file is said in our words."""
    try:
        yield
    except _FAILURES as error:
        raise unreadable(file, error) from error


def _place(source: ColumnarFile, group: int, read: int, index: int) -> RowPlace:
    return RowPlace(source.rows_before(group) + read + index + 1)


def _names(file: Path, schema: pa.Schema, columns: tuple[Column, ...]) -> list[str]:
    """The names of the declared columns in a file; raises on one that is missing or of an unfit type."""
    folded = [name.casefold() for name in schema.names]
    found: list[str] = []
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
        found.append(schema.names[index])
    return found
