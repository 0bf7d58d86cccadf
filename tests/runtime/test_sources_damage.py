"""Damaged files: whatever happens to the bytes, rows are read or an error of the user's world is raised."""

from __future__ import annotations

import gzip
import json
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runtime.reading import csv, jsonl, parquet, rejected, rows

from headgate.model.errors import HeadgateError

ROWS = 30
FLAT = "a BIGINT, b STRING, c DOUBLE, t TIMESTAMP, d DECIMAL(8, 2)"
NESTED = "a BIGINT, b STRING, l ARRAY<INT>, m MAP<STRING, INT>, s STRUCT<x: STRING>, t TIMESTAMP"


def csv_bytes() -> bytes:
    lines = [
        f'{i},"x ""{i}"" é\n",{i / 3},2025-01-{i % 28 + 1:02} 10:00:00.{i},{i}.25\n' for i in range(ROWS)
    ]
    return ("a,b,c,t,d\n" + "".join(lines)).encode()


def json_bytes() -> bytes:
    each = [
        {
            "a": i,
            "b": f'x"{i}é',
            "l": [i, None],
            "m": {f"k{i}": i},
            "s": {"x": "}"},
            "t": "2025-01-31T10:00:00Z",
        }
        for i in range(ROWS)
    ]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in each).encode()


def parquet_bytes(*, checksums: bool) -> bytes:
    sink = pa.BufferOutputStream()
    table = pa.table(
        {
            "a": range(ROWS),
            "b": [f"x{i}é" for i in range(ROWS)],
            "l": pa.array([[i, None] for i in range(ROWS)], pa.list_(pa.int32())),
            "m": pa.array([[(f"k{i}", i)] for i in range(ROWS)], pa.map_(pa.string(), pa.int32())),
            "s": [{"x": f"y{i}"} for i in range(ROWS)],
            "t": pa.array(range(ROWS), pa.timestamp("ms")),
        }
    )
    pq.write_table(table, sink, row_group_size=7, write_page_checksum=checksums)
    return bytes(sink.getvalue().to_pybytes())


FILES = {
    "csv": (csv_bytes(), FLAT, csv("file", "header 'true'")),
    "csv.gz": (gzip.compress(csv_bytes()), FLAT, csv("file", "header 'true'")),
    "json": (json_bytes(), NESTED, jsonl("file")),
    "json.gz": (gzip.compress(json_bytes()), NESTED, jsonl("file")),
    "parquet": (parquet_bytes(checksums=False), NESTED, parquet("file")),
    "parquet with checksums": (parquet_bytes(checksums=True), NESTED, parquet("file")),
}


@pytest.mark.parametrize("kind", FILES)
def test_undamaged_files_are_read_whole(tmp_path: Path, kind: str) -> None:
    data, columns, using = FILES[kind]
    (tmp_path / "file").write_bytes(data)
    assert len(rows(tmp_path, columns, using)) == ROWS


@given(
    kind=st.sampled_from(list(FILES)),
    damages=st.lists(
        st.tuples(
            st.floats(0, 1), st.sampled_from([b"", b"\0", b"\xff", b'"', b"\n", b",{", b"\x7f\xff\xff\xff"])
        ),
        min_size=1,
        max_size=3,
    ),
    removed=st.integers(0, 5),
)
def test_a_damaged_file_is_read_in_part_or_refused(
    tmp_path_factory: pytest.TempPathFactory, kind: str, damages: list[tuple[float, bytes]], removed: int
) -> None:
    data, columns, using = FILES[kind]
    for where, put in damages:
        at = int(where * len(data))
        data = data[:at] + put + data[at + removed :]
    folder = tmp_path_factory.mktemp("damage")
    (folder / "file").write_bytes(data)
    found: list[int] = []
    with suppress(HeadgateError):
        found.append(len(rows(folder, columns, using)))
    with suppress(HeadgateError):
        found.append(len(rejected(folder, columns, using)[0]))
    # What can be read without a stop has nothing to set aside.
    assert len(set(found)) < 2
