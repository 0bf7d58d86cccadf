"""Parquet files, read a batch of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.model.errors import InputError
from headgate.model.schema import Column
from headgate.runtime.io.columnar import ColumnarReader
from headgate.runtime.io.format import FileFormat
from headgate.runtime.io.options import Options

_BATCH_BYTES = 1 << 26
_READ_AHEAD = 1 << 20


class ParquetFile:
    """An open file; its groups are row groups."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._source = pq.ParquetFile(
            file,
            # Without this, a whole row group would be in memory at once.
            pre_buffer=False,
            buffer_size=_READ_AHEAD,
            # The old timestamps of Impala and Hive reach further than nanoseconds do.
            coerce_int96_timestamp_unit="us",
            page_checksum_verification=True,
        )
        metadata = self._source.metadata
        self._groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]

    @property
    def schema(self) -> pa.Schema:
        return self._source.schema_arrow

    @property
    def counts(self) -> Sequence[int]:
        return [group.num_rows for group in self._groups]

    def rows_before(self, group: int) -> int:
        return sum(self.counts[:group])

    def batches(self, names: list[str], groups: range, rows: int) -> Iterator[pa.RecordBatch]:
        said, read = sum(self.counts[index] for index in groups), 0
        at_once = self._rows_at_once(rows)
        for batch in self._source.iter_batches(
            at_once, row_groups=list(groups), columns=names, use_threads=False
        ):
            read += batch.num_rows
            yield batch
        if read != said:
            raise InputError(
                f"cannot read {self._file}: it has {read:,} rows and says {said:,}",
                remedy="check that the file is complete",
            )

    def _rows_at_once(self, rows: int) -> int:
        """Fewer rows where rows are large."""
        widths = (group.total_byte_size / group.num_rows for group in self._groups if group.num_rows > 0)
        return max(1, min(rows, int(_BATCH_BYTES / max(1.0, *widths, 1.0))))

    def close(self) -> None:
        self._source.close()


def _reader(columns: tuple[Column, ...], options: Options) -> ColumnarReader:
    return ColumnarReader(ParquetFile, columns)


PARQUET = FileFormat(
    name="parquet",
    suffix=".parquet",
    options=(),
    reader=_reader,
    writer=partial(pq.ParquetWriter, compression="zstd"),
    writes=lambda dtype: True,
    spark_options={},
)
