"""Every format of the registry: what it writes is what it reads, in spans too, and the docs know it."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from pyarrow import orc
from tests.runtime.reading import declare

from headgate.model import types
from headgate.model.errors import DataError
from headgate.model.schema import Column
from headgate.plan.catalog import Source, StreamDef
from headgate.runtime.io import FileSource, RejectPolicy
from headgate.runtime.io.format import Span
from headgate.runtime.io.options import ALL_FILES
from headgate.runtime.io.registry import FILE_FORMATS, FormatName, declared_files, file_format
from headgate.runtime.io.source import Slice
from headgate.runtime.output import as_declared

INSTANT = dt.datetime(2026, 3, 1, 12, 0, 0, 1, tzinfo=dt.UTC)
VALUES: dict[str, tuple[pa.DataType, list[object]]] = {
    "flag": (pa.bool_(), [True, None, False]),
    "tiny": (pa.int8(), [-128, None, 127]),
    "long": (pa.int64(), [-(2**63), None, 2**63 - 1]),
    "real": (pa.float32(), [1.5, None, -0.0]),
    "double": (pa.float64(), [0.1, None, 1e300]),
    "money": (pa.decimal128(38, 3), [Decimal("1.500"), None, Decimal("-" + "9" * 35 + ".999")]),
    "text": (pa.string(), ['a,"b\n;\t\\', None, "ü"]),
    "bytes": (pa.binary(), [b"\xff\x00", None, b"ab"]),
    "day": (types.DATE, [dt.date(1583, 1, 1), None, dt.date(9999, 12, 31)]),
    "instant": (types.TIMESTAMP, [INSTANT, None, INSTANT + dt.timedelta(days=1)]),
    "wall": (types.TIMESTAMP_NTZ, [INSTANT.replace(tzinfo=None), None, dt.datetime(1990, 1, 1)]),  # noqa: DTZ001
    "list": (pa.list_(pa.int64()), [[1, None], None, []]),
    "struct": (pa.struct([("x", pa.float64()), ("t", pa.string())]), [{"x": 1.0, "t": None}, None, {}]),
    "map": (pa.map_(pa.string(), pa.int64()), [[("a", 1), ("b", None)], None, []]),
}


def written(folder: Path, name: FormatName) -> StreamDef:
    """A file with all values that the format can hold, as the stream that reads it."""
    format = file_format(name)
    held = {each: value for each, value in VALUES.items() if format.writes(value[0])}
    columns = {each: pa.array(values, dtype) for each, (dtype, values) in held.items()}
    table = pa.table(columns)
    file = format.writer(folder / f"a{format.suffix}", table.schema)
    file.write_table(table.slice(0, 2))
    file.write_table(table.slice(2))
    file.close()
    options = {key: value for key, value in format.spark_options.items() if key in ("header", "escape")}
    declared = tuple(Column(each, dtype) for each, (dtype, _) in held.items())
    return StreamDef("s", declared, source=Source(name, (("path", f"a{format.suffix}"), *options.items())))


@pytest.mark.parametrize("name", FILE_FORMATS)
def test_what_is_written_is_read(tmp_path: Path, name: FormatName) -> None:
    stream = written(tmp_path, name)
    source = FileSource(stream, tmp_path, rows_per_chunk=10, on_bad_row=RejectPolicy.stop())
    schema = pa.schema([(column.name, column.type) for column in stream.columns])
    found = as_declared(pl.concat(source.chunks()), schema)
    expected = {column.name: VALUES[column.name][1] for column in stream.columns}
    if "struct" in expected:
        expected["struct"] = [{"x": 1.0, "t": None}, None, {"x": None, "t": None}]
    assert found.to_pydict() == expected
    assert {"flag", "money", "instant"} <= expected.keys()
    assert ("wall" in expected) == (name != "orc")


@pytest.mark.parametrize("name", FILE_FORMATS)
def test_a_file_without_rows_can_be_read(tmp_path: Path, name: FormatName) -> None:
    format = file_format(name)
    format.writer(tmp_path / "a", pa.schema([("k", pa.int64())])).close()
    stream = declare("k BIGINT", f"USING {name} OPTIONS (path 'a')")
    if "header" in format.spark_options:
        stream = declare("k BIGINT", f"USING {name} OPTIONS (path 'a', header 'true')")
    source = FileSource(stream, tmp_path, rows_per_chunk=10, on_bad_row=RejectPolicy.stop())
    assert pl.concat(source.chunks()).schema == {"k": pl.Int64}


@pytest.mark.parametrize("name", FILE_FORMATS)
def test_the_docs_know_its_name_and_options(name: FormatName) -> None:
    text = (Path(__file__).parents[2] / "docs" / "sources.md").read_text()
    for option in (*ALL_FILES, *file_format(name).options):
        assert f"`{option}`" in text, option
    assert f"`{name}`" in text


def test_stripes_of_orc_are_spans(tmp_path: Path) -> None:
    file = tmp_path / "a.orc"
    with orc.ORCWriter(file, stripe_size=1 << 16, compression="uncompressed") as out:
        for start in range(0, 300_000, 1_000):
            words = [f"{number:040d}" for number in range(start, start + 1_000)]
            out.write(pa.table({"k": range(start, start + 1_000), "word": words}))
    stream = declare("k BIGINT", "USING orc OPTIONS (path 'a.orc')")
    spans = [span for span, _ in declared_files(stream).reader.spans(file, 1_000)]
    assert len(spans) == orc.ORCFile(file).nstripes > 2
    parts = [rows_of(stream, file, span) for span in spans]
    assert pl.concat(parts)["k"].to_list() == list(range(300_000))
    # A bad row is counted from the beginning of the file.
    narrow = declare("k SMALLINT", "USING orc OPTIONS (path 'a.orc')")
    before = sum(part.height for part in parts[:-1])
    with pytest.raises(DataError, match=rf"a\.orc, row {before + 1}, column k"):
        rows_of(narrow, file, spans[-1])


def rows_of(stream: StreamDef, file: Path, span: Span) -> pl.DataFrame:
    only = Slice(file, span)
    return pl.concat(
        FileSource(
            stream, file.parent, rows_per_chunk=10_000, on_bad_row=RejectPolicy.stop(), only=only
        ).chunks()
    )
