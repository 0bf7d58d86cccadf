"""Which files a path means, and which options a source has."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest
from tests.runtime.reading import csv, declare, jsonl, parquet, read, refusal, rows, source

from headgate.language.parse import parse
from headgate.model.errors import DeclarationError, HeadgateError, InputError, UnsupportedError
from headgate.model.source import SourceText
from headgate.plan.catalog import StreamDef, build_catalog
from headgate.runtime.io import FileSource, RejectPolicy, open_source
from headgate.runtime.io import source as sources
from headgate.runtime.io.files import find_files


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A folder with a few files, some of them hidden."""
    for name in ("b.csv", "a.csv", "sub/c.csv", "sub/_d.csv", ".e.csv", "_temporary/f.csv", "g.txt"):
        file = tmp_path / "data" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("1\n")
    return tmp_path


def names(path: str, base: Path) -> list[str]:
    return [file.relative_to(base).as_posix() for file in find_files(path, base)]


def test_a_file_is_itself(base: Path) -> None:
    assert names("data/a.csv", base) == ["data/a.csv"]


def test_a_file_named_outright_is_read_even_if_its_name_hides_it(base: Path) -> None:
    assert names("data/.e.csv", base) == ["data/.e.csv"]


def test_a_folder_is_all_its_files_by_name_without_the_hidden_ones(base: Path) -> None:
    assert names("data", base) == ["data/a.csv", "data/b.csv", "data/g.txt", "data/sub/c.csv"]


def test_a_folder_may_be_named_like_a_file(base: Path) -> None:
    (base / "part.csv").mkdir()
    (base / "part.csv" / "part-0.csv").write_text("1\n")
    assert names("part.csv", base) == ["part.csv/part-0.csv"]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("data/*.csv", ["data/a.csv", "data/b.csv"]),
        ("data/[b-z].csv", ["data/b.csv"]),
        ("data/{a,b,x}.csv", ["data/a.csv", "data/b.csv"]),
        ("data/**/*.csv", ["data/a.csv", "data/b.csv", "data/sub/c.csv"]),
        ("data/su?", ["data/sub/c.csv"]),
        ("d*/sub/_*.csv", []),
        ("data/sub/{_d,c}.csv", ["data/sub/_d.csv", "data/sub/c.csv"]),
    ],
)
def test_a_pattern_is_what_it_matches(base: Path, pattern: str, found: list[str]) -> None:
    if found:
        assert names(pattern, base) == found
    else:
        with pytest.raises(InputError, match="no file matches"):
            find_files(pattern, base)


def test_a_name_with_brackets_is_taken_by_its_letters_first(base: Path) -> None:
    (base / "x[1].csv").write_text("1\n")
    assert names("x[1].csv", base) == ["x[1].csv"]


def test_an_absolute_path_may_lead_anywhere(base: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "a.csv"
    elsewhere.write_text("1\n")
    assert find_files(str(elsewhere), base / "data") == (elsewhere,)
    assert find_files(f"file://{elsewhere}", base / "data") == (elsewhere,)


@pytest.mark.parametrize("path", ["../a.csv", "sub/../../a.csv", "../data/../../x", "sub/../../*.csv"])
def test_a_relative_path_does_not_leave_its_folder(base: Path, path: str) -> None:
    with pytest.raises(InputError, match=r"leads out of .*relative paths"):
        find_files(path, base / "data")


def test_a_link_does_not_lead_out_either(base: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    secret = tmp_path_factory.mktemp("secret") / "secret.csv"
    secret.write_text("1\n")
    (base / "data" / "link.csv").symlink_to(secret)
    with pytest.raises(InputError, match="leads out of"):
        find_files("data/link.csv", base)
    with pytest.raises(InputError, match="leads out of"):
        find_files("data", base)


def test_a_link_inside_is_followed_once(base: Path) -> None:
    (base / "data" / "sub" / "up").symlink_to(base / "data")
    assert names("data", base) == ["data/a.csv", "data/b.csv", "data/g.txt", "data/sub/c.csv"]


def test_the_base_may_itself_be_a_link(base: Path) -> None:
    (base / "link").symlink_to(base / "data")
    assert [file.name for file in find_files("a.csv", base / "link")] == ["a.csv"]


def test_a_path_inside_may_take_a_detour(base: Path) -> None:
    assert [file.name for file in find_files("sub/../a.csv", base / "data")] == ["a.csv"]


def test_a_missing_file_is_named_with_one_that_is_there(base: Path) -> None:
    with pytest.raises(InputError, match=r"there is no file .*data/aa\.csv") as caught:
        find_files("data/aa.csv", base)
    assert caught.value.remedy == "did you mean a.csv?"


def test_a_missing_folder_is_said(base: Path) -> None:
    with pytest.raises(InputError, match="there is no file") as caught:
        find_files("nowhere/a.csv", base)
    assert "no folder" in str(caught.value.remedy)


def test_an_empty_folder_is_an_error(base: Path) -> None:
    (base / "empty").mkdir()
    (base / "empty" / "_SUCCESS").write_text("")
    with pytest.raises(InputError, match="there are no files in"):
        find_files("empty", base)


def test_what_is_no_file_is_not_waited_for(base: Path) -> None:
    os.mkfifo(base / "pipe.csv")
    with pytest.raises(InputError, match="neither a file nor a folder"):
        find_files("pipe.csv", base)


@pytest.mark.parametrize("path", ["", "a\0b", "x" * 5_000, "{a,b}" * 12, "a**b/x{"])
def test_odd_paths_are_errors_of_the_user(base: Path, path: str) -> None:
    with pytest.raises(InputError):
        find_files(path, base)


def test_other_machines_are_for_spark(base: Path) -> None:
    with pytest.raises(UnsupportedError, match="s3a://bucket/x is not on this machine"):
        find_files("s3a://bucket/x", base)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_said(base: Path) -> None:
    (base / "data" / "a.csv").chmod(0)
    assert "Permission denied" in refusal(base, "a BIGINT", csv("data/a.csv"), InputError)


@pytest.mark.parametrize("using", [csv("data/*.csv"), jsonl("data/*.csv"), parquet("data/*.csv")])
def test_a_file_that_goes_away_before_it_is_read_is_said(base: Path, using: str) -> None:
    src = source(base, "a BIGINT", using)
    (base / "data" / "a.csv").unlink()
    with pytest.raises(InputError, match=r"cannot read .*a\.csv: No such file"):
        list(src.chunks())


def test_files_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name in ("2", "10", "1"):
        (tmp_path / f"{name}.csv").write_text(f"{name}\n")
    assert rows(tmp_path, "a BIGINT", csv("*.csv")) == [(1,), (10,), (2,)]


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 100])
def test_chunks_have_the_asked_number_of_rows_across_files(tmp_path: Path, chunk: int) -> None:
    for file in range(3):
        (tmp_path / f"{file}.csv").write_text("".join(f"{file * 5 + i}\n" for i in range(5)))
    chunks = list(source(tmp_path, "a BIGINT", csv("."), chunk=chunk).chunks())
    assert [x for each in chunks for x in each["a"]] == list(range(15))
    assert all(each.height == chunk for each in chunks[:-1])
    assert 0 < chunks[-1].height <= chunk


def test_chunks_of_large_rows_are_shorter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "_CHUNK_BYTES", 10_000)
    for file in range(6):
        (tmp_path / f"{file}.csv").write_text(f"{'x' * 4_000}\n")
    chunks = list(source(tmp_path, "a STRING", csv("*.csv"), chunk=100).chunks())
    assert [chunk.height for chunk in chunks] == [3, 3]


def test_a_source_without_rows_gives_its_schema(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a\n")
    (chunk,) = source(tmp_path, "a BIGINT", csv(options="header 'true'")).chunks()
    assert chunk.is_empty()
    assert chunk.schema == {"a": pl.Int64}


def test_progress_ends_at_the_size_of_the_files(tmp_path: Path) -> None:
    for file in range(3):
        (tmp_path / f"{file}.csv").write_text("12345\n" * 100)
    src = source(tmp_path, "a BIGINT", csv("*.csv"), chunk=100)
    assert (src.total_bytes, src.bytes_read) == (1_800, 0)
    seen = [src.bytes_read for _ in src.chunks()]
    assert seen == sorted(seen)
    assert (src.bytes_read, src.rows_read, src.rejected_rows) == (1_800, 300, 0)


def test_a_table_is_read_like_a_stream(base: Path) -> None:
    text = SourceText("test", f"CREATE TABLE t (a BIGINT) {csv('data/*.csv')}")
    (table,) = build_catalog(parse(text)).tables
    (chunk,) = open_source(table, base, rows_per_chunk=5, on_bad_row=RejectPolicy.stop()).chunks()
    assert chunk.rows() == [(1,), (1,)]


def test_open_source_is_the_same(base: Path) -> None:
    src = open_source(
        declare("a BIGINT", csv("data/a.csv")), base, rows_per_chunk=5, on_bad_row=RejectPolicy.stop()
    )
    assert isinstance(src, FileSource)


# -- options ----------------------------------------------------------------------------------------


def test_an_unknown_option_is_refused_with_the_nearest(base: Path) -> None:
    with pytest.raises(DeclarationError, match="no option heeder") as caught:
        read(base, "a BIGINT", csv("data/a.csv", "heeder 'true'"))
    assert caught.value.remedy == "did you mean header?"


def test_options_are_known_in_any_case_of_letters(base: Path) -> None:
    assert rows(base, "a BIGINT", "USING csv OPTIONS (PATH 'data/a.csv', HEADER 'False')") == [(1,)]


@pytest.mark.parametrize(
    ("using", "message"),
    [
        (csv("data/a.csv", "path 'b.csv'"), "given twice"),
        (csv("data/a.csv", "sep ';', delimiter ';'"), "the same option"),
        (csv("data/a.csv", "header 'maybe'"), "header is true or false"),
        (csv("data/a.csv", "sep '\"'"), "the same character"),
        (csv("data/a.csv", "sep ''"), "sep is empty"),
        ("USING csv OPTIONS (header 'true')", "has no path"),
        ("USING csv", "has no path"),
        (parquet("data/a.csv", "header 'true'"), "no option header"),
    ],
)
def test_options_that_contradict_are_refused(base: Path, using: str, message: str) -> None:
    assert message in refusal(base, "a BIGINT", using, DeclarationError)


@pytest.mark.parametrize(
    ("using", "message"),
    [
        ("USING kafka OPTIONS (subscribe 'bids')", "run other sources on Spark"),
        ("USING rate", "reads from rate"),
        (csv("data/a.csv", "encoding 'latin1'"), "UTF-8"),
        (csv("data/a.csv", "mode 'PERMISSIVE'"), "--rejects"),
        (csv("data/a.csv", "multiLine 'false'"), "line breaks"),
        (jsonl("data/a.csv", "multiLine 'true'"), "one JSON object to a line"),
        (csv("data/a.csv", "sep '||'"), "not one plain character"),
        (csv("data/a.csv", "timestampFormat 'QQQ'"), "date pattern 'QQQ'"),
        (csv("data/a.csv", "timestampFormat 'yyyy['"), "date pattern"),
        (csv("data/a.csv", "timestampFormat 'yyyy-MM-dd HH'"), "date pattern"),
    ],
)
def test_what_the_local_engine_cannot_do_is_said(base: Path, using: str, message: str) -> None:
    assert message in refusal(base, "a BIGINT", using, UnsupportedError)


@pytest.mark.parametrize(
    "options", ["maxFilesPerTrigger 1", "recursiveFileLookup true", "mode 'FAILFAST'", "charset 'UTF8'"]
)
def test_options_that_change_nothing_are_let_pass(base: Path, options: str) -> None:
    assert rows(base, "a BIGINT", csv("data/a.csv", options)) == [(1,)]


def test_a_stream_without_a_source_is_said(base: Path) -> None:
    stream = StreamDef("s", declare("a BIGINT", csv()).columns)
    with pytest.raises(DeclarationError, match="s has no source") as caught:
        FileSource(stream, base, rows_per_chunk=1, on_bad_row=RejectPolicy.stop())
    assert isinstance(caught.value, HeadgateError)


def test_chunks_of_no_rows_make_no_sense(base: Path) -> None:
    with pytest.raises(ValueError, match="at least one row"):
        source(base, "a BIGINT", csv("data/a.csv"), chunk=0)
