"""A user's mistake ends in exit code 2 and one message that says where, what and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli_runner import headgate
from tests.explain.plans import STREAMS

BAD = {
    "unknown column": ("SELECT aa FROM S1", "there is no column aa", "^^", "did you mean a?"),
    "wrong type": ("SELECT a FROM S1 WHERE a = 'x'", "do not go together", "^^^^^^^", "CAST"),
    "sum of text": ("SELECT SUM(c) FROM S1", "SUM needs a number, not STRING", "^^^", ""),
    "unknown stream": ("SELECT a FROM S11", "no stream, table or query named S11", "^^^", "did you mean S1?"),
    "missing bracket": ("SELECT a FROM S1 [RANGE 1 MINUTE", "expected ]", "^", ""),
    "ambiguous name": ("SELECT a FROM S1, S2", "a is ambiguous", "^", "S1.a or S2.a"),
    "negative window": ("SELECT a FROM S1 [RANGE -5 SECONDS]", "cannot be negative", "^", ""),
    "window on a table": ("SELECT name FROM companies [ROWS 3]", "is a table", "^^^^^^^^", "drop the window"),
    "duplicate stream": ("CREATE STREAM S1 (a INT)", "already a stream named S1", "^^", "another name"),
    "misspelled function": ("SELECT lenght(c) FROM S1", "no function lenght", "^", "did you mean length?"),
    "not CQL": ("SELEC a FROM S1", "expected CREATE STREAM", "^^^^^", ""),
    "self-reference": ("CREATE QUERY q AS SELECT a FROM q", "reads itself", "^", ""),
    "different slides": (
        "SELECT S1.a FROM S1 [RANGE 1 MINUTE SLIDE 5 SECONDS], S2 [RANGE 1 MINUTE SLIDE 7 SECONDS]",
        "slide together",
        "^",
        "same SLIDE",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_the_message_says_where_what_and_what_to_do(name: str, tmp_path: Path) -> None:
    text, cause, carets, remedy = BAD[name]
    file = tmp_path / "bad.cql"
    file.write_text(STREAMS + text + ";\n")
    done = headgate("explain", str(file))
    line = STREAMS.count("\n") + 1
    assert done.code == 2
    assert done.out == ""
    assert f"{file}:{line}:" in done.err
    assert cause in done.err
    assert remedy in done.err
    source, marks = done.err.splitlines()[2:4]
    assert text[:20] in source
    assert carets in marks
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (b"", "no statement"),
        (b"-- only a comment\n", "no statement"),
        (b"\x00\x01\x02\xff\xfe" * 100, "not"),
        (b"PK\x03\x04\x00\x00binary", "NUL character"),
        (b"SELECT a FROM s;\n" * 700_000, "too long"),
        (b"(" * 20_000, "bad.cql:1:"),
        (b"SELECT " + b"(" * 5_000 + b"1" + b")" * 5_000 + b" FROM s", "bad.cql:1:"),
        (b"SELECT 'never closed FROM s", "does not end"),
    ],
    ids=["empty", "comment", "binary", "zip", "10 MB", "parentheses", "nested", "quote"],
)
def test_files_that_are_not_cql(content: bytes, cause: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.cql"
    file.write_bytes(content)
    done = headgate("explain", str(file))
    assert done.code == 2
    assert cause in done.err
    assert "Traceback" not in done.err


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    for path in (tmp_path / "none.cql", tmp_path):
        done = headgate("check", str(path))
        assert done.code == 2
        assert f"cannot read {path}" in done.err


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("streams: [", "not YAML"),
        ("streams: {S9: {rate: 3}}", "no such stream"),
        ("streams: {S1: {rate: fast}}", "must be a number"),
        ("streams: {S1: {distinct: {zz: 3}}}", "no such column"),
        ("streams: {S1: {speed: 3}}", "unknown entry speed"),
        ("[1, 2]", "must be a mapping"),
    ],
)
def test_statistics_that_do_not_fit(text: str, cause: str, tmp_path: Path) -> None:
    file, stats = tmp_path / "q.cql", tmp_path / "stats.yaml"
    file.write_text(STREAMS + "SELECT a FROM S1;")
    stats.write_text(text)
    done = headgate("explain", str(file), "--stats", str(stats))
    assert done.code == 2
    assert cause in done.err
