"""CSV: dialects, headers, quotes across lines, compression, and rows that are none."""

from __future__ import annotations

import bz2
import csv as python_csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runtime.reading import csv, read, refusal, rejected, rows, source

from headgate.model.errors import DataError, InputError, UnsupportedError
from headgate.runtime.io.text import textfile
from headgate.runtime.io.text.records import CsvDialect, csv_records, tidy_end

AB = "a BIGINT, b STRING"
HEADER = "header 'true'"


def write(folder: Path, text: str | bytes, name: str = "a.csv") -> Path:
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as out:
        out.write(data)
    return bytes(sink.getvalue().to_pybytes())


# -- headers ----------------------------------------------------------------------------------------


def test_without_a_header_fields_go_by_position(tmp_path: Path) -> None:
    assert rows(write(tmp_path, "1,x\n2,y\n"), AB, csv()) == [(1, "x"), (2, "y")]


def test_with_a_header_fields_go_by_name_in_any_case_of_letters(tmp_path: Path) -> None:
    write(tmp_path, "B,ignored,A\nx,?,1\ny,?,2\n")
    assert read(tmp_path, AB, csv(options=HEADER)).to_dicts() == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]


def test_a_header_may_be_quoted_and_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    write(tmp_path, '\ufeff"a"," b"\n1,x\n')
    assert rows(tmp_path, AB, csv(options=HEADER)) == [(1, "x")]


def test_a_header_is_read_without_quoting_too(tmp_path: Path) -> None:
    assert rows(write(tmp_path, 'a,"b\n1,x\n'), "a BIGINT", csv(options=f"{HEADER}, quote ''")) == [(1,)]


def test_every_file_has_its_own_header(tmp_path: Path) -> None:
    write(tmp_path, "a,b\n1,x\n", "1.csv")
    write(tmp_path, "b,a,c\ny,2,?\n", "2.csv")
    assert rows(tmp_path, AB, csv("*.csv", HEADER)) == [(1, "x"), (2, "y")]


def test_a_column_that_is_not_in_the_header_is_named(tmp_path: Path) -> None:
    message = refusal(write(tmp_path, "a,bb\n1,x\n"), AB, csv(options=HEADER))
    assert "a.csv: there is no column b in the header" in message
    assert "did you mean bb?" in message


def test_a_column_that_is_in_the_header_twice_is_named(tmp_path: Path) -> None:
    assert "column b twice" in refusal(write(tmp_path, "a,b,B\n1,x,y\n"), AB, csv(options=HEADER))


def test_a_forgotten_header_is_guessed(tmp_path: Path) -> None:
    message = refusal(write(tmp_path, "a,b\n1,x\n"), AB, csv())
    assert "a.csv, row 1 (line 1), column a: 'a' is not of type BIGINT" in message
    assert "add header 'true'" in message


def test_a_header_that_is_not_text_is_an_error(tmp_path: Path) -> None:
    assert "line 1: the header cannot be read" in refusal(
        write(tmp_path, b"a,\xff\n1,x\n"), AB, csv(options=HEADER)
    )


def test_a_header_with_an_open_quote_is_an_error(tmp_path: Path) -> None:
    assert "line 1: a quote is opened" in refusal(write(tmp_path, '"a,b\n1,x\n'), AB, csv(options=HEADER))


@pytest.mark.parametrize("text", ["", "\n", "\r\n\n", "\ufeff"])
def test_a_file_of_nothing_has_no_rows(tmp_path: Path, text: str) -> None:
    assert rows(write(tmp_path, text), AB, csv()) == []
    assert rows(tmp_path, AB, csv(options=HEADER)) == []


# -- dialects ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("sep ';'", "1;x\n"),
        ("delimiter '|'", "1|x\n"),
        ("sep '\\\\t'", "1\tx\n"),
        ("sep '\t'", "1\tx\n"),
        ("quote ''''", "1,'x'\n"),
        ("", '"1","x"\n'),
        ("", "1,x"),
        ("", "1,x\r\n"),
        ("", "1,x\r"),
        ("", "\n\n1,x\n\n"),
    ],
)
def test_dialects_of_the_same_row(tmp_path: Path, options: str, text: str) -> None:
    assert rows(write(tmp_path, text), AB, csv(options=options)) == [(1, "x")]


def test_without_quoting_a_quote_is_a_letter(tmp_path: Path) -> None:
    assert rows(write(tmp_path, '1,"x\n2,y"\n'), AB, csv(options="quote ''")) == [(1, '"x'), (2, 'y"')]


def test_a_quoted_field_may_hold_separators_quotes_and_line_breaks(tmp_path: Path) -> None:
    write(tmp_path, '1,"x, ""y""\nz"\r\n2,w\r\n')
    assert rows(tmp_path, AB, csv()) == [(1, 'x, "y"\nz'), (2, "w")]


def test_a_quote_inside_of_a_plain_field_is_a_letter(tmp_path: Path) -> None:
    assert rows(write(tmp_path, '1,5" pipe\n2,"6"" pipe"\n'), AB, csv()) == [(1, '5" pipe'), (2, '6" pipe')]


def test_an_escape_counts_in_quoted_fields_only(tmp_path: Path) -> None:
    write(tmp_path, '1,"x\\"y\\\\"\n2,C:\\\\dir\n3,"a\\nb""c"\n')
    assert rows(tmp_path, AB, csv(options="escape '\\\\'")) == [
        (1, 'x"y\\'),
        (2, "C:\\\\dir"),
        (3, 'a\\nb"c'),
    ]


def test_a_carriage_return_alone_ends_a_row_too(tmp_path: Path) -> None:
    assert rows(write(tmp_path, "1,x\r2,y\r"), AB, csv()) == [(1, "x"), (2, "y")]


def test_empty_fields_are_null_quoted_or_not(tmp_path: Path) -> None:
    assert rows(write(tmp_path, ',\n"",""\n'), AB, csv()) == [(None, None), (None, None)]


def test_another_word_for_null_leaves_the_quoted_empty_text_alone(tmp_path: Path) -> None:
    write(tmp_path, 'NA,NA\n1,"NA"\n2,""\n,\n')
    assert rows(tmp_path, AB, csv(options="nullValue 'NA'")) == [
        (None, None),
        (1, None),
        (2, ""),
        (None, None),
    ]


def test_csv_has_no_nested_columns(tmp_path: Path) -> None:
    assert "ARRAY<BIGINT>" in refusal(write(tmp_path, "1\n"), "a ARRAY<BIGINT>", csv(), UnsupportedError)


# -- compression ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [("gz", gzip.compress), ("bz2", bz2.compress), ("zst", zstd), ("csv", gzip.compress)],
)
def test_compressed_files_are_told_by_their_first_bytes(tmp_path: Path, suffix: str, compress: Any) -> None:
    write(tmp_path, compress(b"1,x\n" * 1_000), f"a.{suffix}")
    assert rows(tmp_path, AB, csv(f"a.{suffix}")) == [(1, "x")] * 1_000


@pytest.mark.parametrize(
    ("suffix", "compress"), [("gz", gzip.compress), ("bz2", bz2.compress), ("zst", zstd)]
)
def test_files_may_be_compressed_in_several_parts(tmp_path: Path, suffix: str, compress: Any) -> None:
    write(tmp_path, compress(b"1,x\n2,") + compress(b"y\n"), f"a.{suffix}")
    assert rows(tmp_path, AB, csv(f"a.{suffix}")) == [(1, "x"), (2, "y")]


@pytest.mark.parametrize(
    ("suffix", "compress"), [("gz", gzip.compress), ("bz2", bz2.compress), ("zst", zstd)]
)
def test_a_compressed_file_of_nothing_has_no_rows(tmp_path: Path, suffix: str, compress: Any) -> None:
    assert rows(write(tmp_path, compress(b""), f"a.{suffix}"), AB, csv(f"a.{suffix}")) == []


@pytest.mark.parametrize(
    ("suffix", "compress"), [("gz", gzip.compress), ("bz2", bz2.compress), ("zst", zstd)]
)
def test_a_cut_compressed_file_is_named(tmp_path: Path, suffix: str, compress: Any) -> None:
    whole = compress(b"".join(b"%d,x\n" % (i * 7_919) for i in range(1_000)))
    write(tmp_path, whole[: len(whole) * 2 // 3], f"a.{suffix}")
    message = refusal(tmp_path, AB, csv(f"a.{suffix}"), InputError)
    assert f"a.{suffix}: Truncated compressed stream" in message


def test_a_compressed_file_with_wrong_bytes_is_named(tmp_path: Path) -> None:
    whole = bytearray(gzip.compress(b"".join(b"%d,x\n" % (i * 7_919) for i in range(1_000))))
    whole[len(whole) // 2] ^= 0xFF
    write(tmp_path, bytes(whole), "a.gz")
    assert "cannot read" in refusal(tmp_path, AB, csv("a.gz"), InputError)


def test_a_name_that_lies_about_compression_is_said(tmp_path: Path) -> None:
    message = refusal(write(tmp_path, "1,x\n", "a.csv.gz"), AB, csv("a.csv.gz"), InputError)
    assert "a.csv.gz is named as gzip but is not" in message


def test_progress_counts_bytes_of_the_file_and_not_of_the_text(tmp_path: Path) -> None:
    write(tmp_path, gzip.compress(b"1,x\n" * 10_000), "a.gz")
    src = source(tmp_path, AB, csv("a.gz"), chunk=100_000)
    assert sum(chunk.height for chunk in src.chunks()) == 10_000
    assert src.bytes_read == src.total_bytes < 1_000


# -- bad rows ---------------------------------------------------------------------------------------

BAD = [
    ("1,x\n2\n3,z\n", "row 2 (line 2): the row has 1 field where 2 are expected", [2]),
    ("1,x\n2,y,?\n3,z\n", "row 2 (line 2): the row has 3 fields where 2 are expected", [2]),
    ("1,x\ntwo,y\n3,z\n", "row 2 (line 2), column a: 'two' is not of type BIGINT", [2]),
    ("1,x\n99999999999999999999,y\n3,z\n", "'99999999999999999999' is not of type BIGINT", [2]),
    ("1,x\n0x1F,y\n3,z\n", "'0x1F' is not of type BIGINT", [2]),
    ('1,x\n2,"y"y\n3,z\n', "row 2 (line 2): there is text behind the closing quote", [2]),
    ('1,"x\n\n"\n\n"2\n",y\n3,z\n', "row 2 (line 5), column a: '2\\n'", []),
    (b"1,x\n2,\xff\n3,z\n", "row 2 (line 2): the row is not UTF-8 text", [2]),
    (b"1,x\n2,y\0y\n3,z\n", "row 2 (line 2): the row has a NUL byte", [2]),
    ('1,x\n2,"y\n3,z\n', "row 2 (line 2): a quote is opened and never closed", [2]),
    ('1,x\n2,"y', "row 2 (line 2): a quote is opened and never closed", [2]),
    ("1,x\n\u202eabc\x07,y\n3,z\n", "'\\u202eabc\\x07' is not of type BIGINT", [2]),
    (f"1,x\n{'9' * 500},y\n3,z\n", f"'{'9' * 80}…' is not of type BIGINT", [2]),
]


@pytest.mark.parametrize(("text", "message", "bad"), BAD)
def test_a_bad_row_stops_with_its_place_and_its_text(
    tmp_path: Path, text: str | bytes, message: str, bad: list[int]
) -> None:
    if bad:
        assert f"a.csv, row {bad[0]} " in (found := refusal(write(tmp_path, text), AB, csv()))
        assert message in found
        assert "--rejects" in found or "escape" in found
    else:
        assert rows(write(tmp_path, text), AB, csv())[1] == (2, "y")


@pytest.mark.parametrize(("text", "message", "bad"), [each for each in BAD if each[2]])
def test_a_bad_row_can_be_set_aside(tmp_path: Path, text: str | bytes, message: str, bad: list[int]) -> None:
    good, refused = rejected(write(tmp_path, text), AB, csv())
    assert good[0] == (1, "x")
    assert good[1:] in ([(3, "z")], [])
    assert [each["row"] for each in refused] == bad
    assert [each["line"] for each in refused] == bad
    assert refused[0]["file"].endswith("a.csv")
    assert message.rpartition(": ")[2] in refused[0]["reason"]
    assert refused[0]["text"]


def test_a_row_without_time_is_bad_beside_one_whose_time_does_not_parse(tmp_path: Path) -> None:
    write(tmp_path, '2025-01-31\n""\nsoon\n2025-01-31\n')
    good, refused = rejected(tmp_path, "t TIMESTAMP", "TIMESTAMP BY t " + csv())
    assert len(good) == 2
    assert [(each["row"], each["reason"][:22]) for each in refused] == [
        (2, "the event time is NULL"),
        (3, "'soon' is not of type "),
    ]


def test_rejects_keep_the_text_of_the_row(tmp_path: Path) -> None:
    _, refused = rejected(write(tmp_path, "1,x\ntwo,é\n"), AB, csv())
    assert refused == [
        {
            "file": str(tmp_path / "a.csv"),
            "row": 2,
            "line": 2,
            "column": "a",
            "reason": "'two' is not of type BIGINT",
            "text": "two,é",
        }
    ]


def test_the_first_bad_row_of_a_file_is_the_one_that_stops(tmp_path: Path) -> None:
    write(tmp_path, b"1,x\ntwo,y\n3\n4,\xff\n")
    assert "row 2 (line 2)" in refusal(tmp_path, AB, csv())


def test_the_first_bad_column_of_a_row_is_the_one_that_is_named(tmp_path: Path) -> None:
    assert "column a: 'x'" in refusal(write(tmp_path, "x,y\n"), "a BIGINT, b BIGINT", csv())


def test_rejects_are_counted_and_in_order(tmp_path: Path) -> None:
    write(tmp_path, "a,b\n1,x\ntwo,y\n3\n4,z\n5,v,w\n")
    src = source(tmp_path, AB, csv(options=HEADER), rejects=tmp_path / "rejects")
    assert [row for chunk in src.chunks() for row in chunk.rows()] == [(1, "x"), (4, "z")]
    assert (src.rows_read, src.rejected_rows, src.rejected_files) == (2, 3, 0)
    refused = [json.loads(line) for line in (tmp_path / "rejects/s/rejects.json").read_text().splitlines()]
    assert [(each["row"], each["line"]) for each in refused] == [(2, 3), (3, 4), (5, 6)]


def test_rows_and_lines_are_counted_apart(tmp_path: Path) -> None:
    write(tmp_path, 'a,b\n\n1,"x\ny"\n\ntwo,z\n')
    assert "row 2 (line 6), column a" in refusal(tmp_path, AB, csv(options=HEADER))


def test_an_open_quote_costs_one_line_only(tmp_path: Path) -> None:
    good, refused = rejected(write(tmp_path, '1,x\n2,"y\n3,z\n4,w\n'), AB, csv())
    assert good == [(1, "x"), (3, "z"), (4, "w")]
    assert [each["text"] for each in refused] == ['2,"y']


def test_a_row_without_end_is_refused_in_bounded_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(textfile, "BLOCK", 1_000)
    monkeypatch.setattr(textfile, "LONGEST_ROW", 4_000)
    write(tmp_path, f"1,x\n2,{'y' * 50_000}\n3,z\n4,{'y' * 3_000}\n")
    assert "row 2 (line 2): the row is longer than" in refusal(tmp_path, "a BIGINT, b STRING", csv())
    good, refused = rejected(tmp_path, "a BIGINT, b STRING", csv())
    assert [row[0] for row in good] == [1, 3, 4]
    assert [(each["row"], each["line"]) for each in refused] == [(2, 2)]


def test_a_row_is_too_long_however_the_blocks_fall(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(textfile, "BLOCK", 10_000)
    monkeypatch.setattr(textfile, "LONGEST_ROW", 4_000)
    good, refused = rejected(write(tmp_path, f"1,x\n2,{'y' * 5_000}\n3,z\n"), AB, csv())
    assert [row[0] for row in good] == [1, 3]
    assert [each["row"] for each in refused] == [2]


def test_a_quote_that_is_open_for_too_long_costs_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(textfile, "BLOCK", 500)
    monkeypatch.setattr(textfile, "LONGEST_ROW", 1_000)
    good, refused = rejected(write(tmp_path, '1,x\n2,"y\n' + "3,z\n" * 1_000), AB, csv())
    assert good == [(1, "x")] + [(3, "z")] * 1_000
    assert [(each["row"], each["line"]) for each in refused] == [(2, 2)]


def test_a_file_whose_rows_are_all_bad_is_refused_row_by_row(tmp_path: Path) -> None:
    good, refused = rejected(write(tmp_path, "x\n" * 3_000), AB, csv())
    assert good == []
    assert [each["row"] for each in refused] == list(range(1, 3_001))


def test_a_bad_file_among_good_ones_is_set_aside(tmp_path: Path) -> None:
    write(tmp_path, "a,b\n1,x\n", "1.csv")
    write(tmp_path, "a\n2\n", "2.csv")
    write(tmp_path, "a,b\n3,z\n", "3.csv")
    src = source(tmp_path, AB, csv("*.csv", HEADER), rejects=tmp_path / "rejects")
    assert [row for chunk in src.chunks() for row in chunk.rows()] == [(1, "x"), (3, "z")]
    assert (src.rejected_rows, src.rejected_files) == (0, 1)
    assert "there is no column b" in (tmp_path / "rejects" / "s" / "rejects.json").read_text()


def test_if_no_file_can_be_read_that_is_an_error_in_any_case(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no column b"):
        rejected(write(tmp_path, "a\n2\n"), AB, csv(options=HEADER))


# -- quotes at random -------------------------------------------------------------------------------

TEXT = st.text(alphabet='a1,"\n\r é', max_size=6)


@given(table=st.lists(st.tuples(TEXT, TEXT), max_size=12), block=st.integers(1, 40))
def test_what_the_csv_module_writes_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, table: list[tuple[str, str]], block: int
) -> None:
    text = io.StringIO(newline="")
    python_csv.writer(text).writerows(table)
    folder = write(tmp_path_factory.mktemp("csv"), text.getvalue())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(textfile, "BLOCK", block)
        found = rows(folder, "a STRING, b STRING", csv())
    assert found == [(a or None, b or None) for a, b in table]


@given(data=st.binary(max_size=0) | st.lists(st.sampled_from(list(b'a,"\n\r\\')), max_size=40).map(bytes))
def test_the_end_of_tidy_rows_is_where_the_automaton_finds_it(data: bytes) -> None:
    for dialect in (CsvDialect(), CsvDialect(escape="\\")):
        end = tidy_end(data, dialect)
        records = csv_records(data, dialect)
        if end is not None:
            assert end == records.complete
            assert records.torn is not None
            assert not records.torn[records.ends <= end].any()


@given(
    table=st.lists(
        st.lists(
            st.sampled_from(["1", "x", '"y\n"', '"', 'a"b', '"c"d', "", "é", "\x00"]), min_size=1, max_size=3
        ),
        max_size=15,
    ),
    block=st.integers(1, 30),
)
def test_how_the_blocks_fall_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, table: list[list[str]], block: int
) -> None:
    folder = write(tmp_path_factory.mktemp("csv"), "".join(",".join(row) + "\n" for row in table))
    whole = rejected(folder, AB, csv())
    if whole[1]:
        (folder / "rejects").rename(folder / "before")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(textfile, "BLOCK", block)
        assert rejected(folder, AB, csv()) == whole
