"""ORC files, read a stripe at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from pyarrow import orc

from headgate.model.schema import Column
from headgate.runtime.io.columnar import ColumnarReader
from headgate.runtime.io.format import FileFormat
from headgate.runtime.io.options import Options


class OrcFile:
    """An open file; its groups are stripes, of which only all together say how many rows they have."""

    def __init__(self, file: Path) -> None:
        self._opened = pa.OSFile(str(file), "rb")
        self._source = orc.ORCFile(self._opened)

    @property
    def schema(self) -> pa.Schema:
        return self._source.schema

    @property
    def counts(self) -> Sequence[float]:
        stripes = self._source.nstripes
        return [self._source.nrows / max(1, stripes)] * stripes

    def rows_before(self, group: int) -> int:
        names = self._source.schema.names[:1]
        return sum(self._source.read_stripe(index, names).num_rows for index in range(group))

    def batches(self, names: list[str], groups: range, rows: int) -> Iterator[pa.RecordBatch]:
        for index in groups:
            stripe = self._source.read_stripe(index, names)
            yield from (stripe.slice(start, rows) for start in range(0, stripe.num_rows, rows))

    def close(self) -> None:
        self._opened.close()


class OrcWriter:
    """Writes a file, which has its schema even if it gets no rows."""

    def __init__(self, file: Path, schema: pa.Schema) -> None:
        self._writer = orc.ORCWriter(file, compression="zstd")
        self.write_table(schema.empty_table())

    def write_table(self, table: pa.Table) -> None:
        self._writer.write(table)

    def close(self) -> None:
        self._writer.close()


def _has_no_wall_clock(dtype: pa.DataType) -> bool:
    """Spark writes TIMESTAMP_NTZ in ORC as numbers that only Spark understands, and takes no others for it."""
    if pa.types.is_timestamp(dtype):
        return dtype.tz is not None
    return all(_has_no_wall_clock(dtype.field(index).type) for index in range(dtype.num_fields))


def _reader(columns: tuple[Column, ...], options: Options) -> ColumnarReader:
    return ColumnarReader(OrcFile, columns)


ORC = FileFormat(
    name="orc",
    suffix=".orc",
    options=(),
    reader=_reader,
    writer=OrcWriter,
    writes=_has_no_wall_clock,
    spark_options={},
)
