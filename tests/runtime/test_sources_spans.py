"""Spans: the parts of a text file together have the rows of the whole file, and name bad ones by the same lines."""

from __future__ import annotations

import gzip
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from headgate.model.errors import DataError, InputError
from headgate.model.schema import Column
from headgate.plan.catalog import Source, StreamDef
from headgate.runtime.io.csv import CsvFormat
from headgate.runtime.io.format import Span
from headgate.runtime.io.json import JsonFormat
from headgate.runtime.io.registry import declared_files
from headgate.runtime.io.rejects import BadRow, RejectPolicy, RejectState
from headgate.runtime.io.source import FileSource, Slice
from headgate.runtime.io.text import spans, textfile
from headgate.runtime.io.text.spans import cut_text

COLUMNS = (Column("k", pa.int64()), Column("t", pa.string()))


@dataclass
class Kept(RejectState):
    """Bad rows in memory."""

    bad: list[BadRow] = field(default_factory=list)

    def __post_init__(self) -> None:
        """There is no folder."""

    def _keep(self, rows: object) -> None:
        assert isinstance(rows, list | tuple)
        self.bad += rows


def stream(format: str, **options: str) -> StreamDef:
    return StreamDef("s", COLUMNS, source=Source(format, (("path", "x"), *options.items())))


def read(file: Path, definition: StreamDef, span: Span | None) -> tuple[pl.DataFrame, list[BadRow]]:
    policy = RejectPolicy.rejects("nowhere")
    kept = Kept(policy, "s")
    source = FileSource(
        definition,
        file.parent,
        rows_per_chunk=1_000,
        on_bad_row=policy,
        only=Slice(file, span=span),
        rejects=kept,
    )
    return pl.concat(source.chunks()), kept.bad


def spans_of(file: Path, definition: StreamDef, size: int) -> list[Span]:
    reader = declared_files(definition).reader
    assert isinstance(reader, CsvFormat | JsonFormat)
    return cut_text(file, reader.text, reader.cut, size)


def check(file: Path, definition: StreamDef, size: int) -> list[Span]:
    """All parts of a file are the whole of it."""
    found = spans_of(file, definition, size)
    rows, bad = read(file, definition, None)
    parts = [read(file, definition, span) for span in found]
    if parts:
        assert pl.concat([part for part, _ in parts]).equals(rows)
        assert [each for _, part in parts for each in part] == bad
        assert [span.start for span in found[1:]] == [span.end for span in found[:-1]]
        assert (found[0].start, found[-1].end) == (0, None)
    return found


TIDY = st.sampled_from(["1", "22", "x", "", '"a"', '"b\nc"', '"d""e"', '"\n\n"', '"f,\r\ng"', "é", "h,i"])
UNTIDY = st.sampled_from(['"', 'h"i', '"j"k', '"l\nm'])
BREAKS = st.sampled_from(["\n", "\n", "\n", "\r\n", "\n\n", "\r"])
KEYS = st.sampled_from(["1", "23", "bad", "\ufeff4"])
ROWS = st.lists(st.tuples(KEYS, TIDY, BREAKS), min_size=5, max_size=16)
LAST = st.lists(st.tuples(KEYS, UNTIDY | TIDY, BREAKS), max_size=3)


@given(
    rows=ROWS,
    last=LAST,
    size=st.integers(5, 60),
    header=st.booleans(),
    mark=st.booleans(),
    cut=st.booleans(),
    block=st.sampled_from([64, 1 << 22]),
)
def test_parts_of_a_csv_file_are_the_whole_of_it(
    rows: list[tuple[str, str, str]],
    last: list[tuple[str, str, str]],
    size: int,
    header: bool,
    mark: bool,
    cut: bool,
    block: int,
) -> None:
    """Also with line breaks inside of quotes, rows of another width, and quotes that are not used by the book."""
    text = "".join(f"{key},{value}{end}" for key, value, end in [*rows, *last])
    data = ("\ufeff" if mark else "").encode() + (("k,t\n" if header else "") + text).encode()
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        for module in (textfile, spans):
            patch.setattr(module, "BLOCK", block)
        file = Path(folder) / "x.csv"
        file.write_bytes(data.rstrip(b"\r\n") if cut else data)
        event(f"parts: {min(3, len(check(file, stream('csv', header=str(header).lower()), size)))}")


@pytest.mark.parametrize("options", [{"quote": "'"}, {"quote": ""}, {"escape": "\\"}, {"sep": ";"}])
@given(rows=ROWS, size=st.integers(5, 60))
def test_parts_of_a_csv_file_in_another_dialect_are_the_whole_of_it(
    options: dict[str, str], rows: list[tuple[str, str, str]], size: int
) -> None:
    separator, quote = options.get("sep", ","), options.get("quote", '"') or '"'
    text = "".join(f"{key}{separator}{value}{end}" for key, value, end in rows).replace('"', quote)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "x.csv"
        file.write_bytes(text.encode())
        check(file, stream("csv", **options), size)


LINES = st.sampled_from(
    [
        '{"k": 1, "t": "a"}',
        '{"k": 2}',
        '{"t": "\\n"}',
        '{"k": "x"}',
        "nothing",
        "",
        "  ",
        '{"k": 3, "t": null}',
    ]
)


@given(lines=st.lists(LINES, max_size=20), size=st.integers(5, 60), cut=st.booleans())
def test_parts_of_a_json_file_are_the_whole_of_it(lines: list[str], size: int, cut: bool) -> None:
    both = '{"k": 0, "t": "both fields are somewhere"}'
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "x.json"
        file.write_text("\n".join([*lines, both]) + ("" if cut else "\n"))
        event(f"parts: {min(3, len(check(file, stream('json'), size)))}")


def test_a_file_is_cut_at_the_ends_of_rows_about_as_far_apart_as_wanted(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text("".join(f'{number},"a\nb"\n' for number in range(100, 200)))
    found = check(file, stream("csv"), 100)
    assert len(found) == 10
    assert all(span.start % 10 == 0 for span in found)


def test_parts_are_cut_in_all_blocks_of_a_large_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks end within rows and within quotes."""
    for module in (textfile, spans):
        monkeypatch.setattr(module, "BLOCK", 64)
    file = tmp_path / "x.csv"
    file.write_text("".join(f'{number},"a\nb{"c" * (number % 7)}"\n' for number in range(1_000)))
    assert len(check(file, stream("csv"), 300)) > 30


def test_the_rest_stays_in_one_part_behind_a_quote_that_is_not_by_the_book(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text("".join(f'{number},"a"\n' for number in range(10)) + '7,6" nails\n' * 100)
    assert spans_of(file, stream("csv"), 20) == [], "its block is the first one"
    assert len(spans_of(file, stream("csv", quote=""), 20)) > 10
    file.write_text('1,"a\\"b\n"\n' * 100)
    assert spans_of(file, stream("csv", escape="\\"), 20) == []


def test_a_compressed_file_stays_whole(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_bytes(gzip.compress(b"1,a\n" * 1_000))
    assert spans_of(file, stream("csv"), 10) == []
    named = tmp_path / "x.csv.gz"
    named.write_bytes(b"1,a\n" * 1_000)
    assert spans_of(named, stream("csv"), 10) == [], "whoever reads it says what is wrong"


def test_a_file_whose_header_is_wrong_stays_whole(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text("k,u\n" + "1,a\n" * 100)
    assert spans_of(file, stream("csv", header="true"), 10) == []
    with pytest.raises(DataError, match="no column t in the header"):
        read_stopping(file, stream("csv", header="true"), None)


def test_a_file_that_has_become_shorter_is_named(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text("1,a\n" * 100)
    found = spans_of(file, stream("csv"), 100)
    file.write_text("1,a\n")
    with pytest.raises(InputError, match=r"x\.csv has changed while it was read"):
        read_stopping(file, stream("csv"), found[1])


def test_a_field_of_another_part_is_not_missing(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text('{"k": 1, "t": "a"}\n' + '{"k": 2}\n' * 100)
    assert len(check(file, stream("json"), 100)) > 5
    file.write_text('{"k": 2}\n' * 100)
    with pytest.raises(DataError, match="no row of s has a field t"):
        read_stopping(file, stream("json"), spans_of(file, stream("json"), 100)[1])


def read_stopping(file: Path, definition: StreamDef, span: Span | None) -> None:
    source = FileSource(
        definition,
        file.parent,
        rows_per_chunk=1_000,
        on_bad_row=RejectPolicy.stop(),
        only=Slice(file, span=span),
    )
    list(source.chunks())
