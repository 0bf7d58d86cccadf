"""Clauses are put into a file, and nothing else in it changes; it is never half-written."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.model.errors import InputError
from headgate.model.source import SourceText
from headgate.profile.constraint import Constraint, Flag, Kind
from headgate.profile.rewrite import rewritten, write_clauses
from headgate.session import read_text

KEY = Constraint(Kind.KEY, "bids", ("bid",), 100)
LAST = Constraint(Kind.PUNCTUATION, "bids", ("item",), 100, flag=Flag("last", True), share=1.0)


def after(text: str, *clauses: Constraint) -> str:
    return rewritten(SourceText("f.cql", text), {"bids": clauses or (KEY,)})


def test_clauses_stand_on_lines_of_their_own_before_using() -> None:
    text = """\
-- Bids.
CREATE STREAM bids (ts TIMESTAMP, bid BIGINT, item BIGINT, last BOOLEAN)
    TIMESTAMP BY ts   -- event time; USING nothing else
    USING csv OPTIONS (path 'b.csv');
SELECT ISTREAM(bid) FROM bids [NOW];  -- all
"""
    wanted = text.replace("    USING csv", "    KEY (bid)\n    PUNCTUATED BY (item) WHEN last\n    USING csv")
    assert after(text, KEY, LAST) == wanted


def test_a_declaration_in_one_line_is_broken_before_using() -> None:
    text = "CREATE STREAM bids (ts TIMESTAMP, bid BIGINT) TIMESTAMP BY ts USING csv OPTIONS (path 'b.csv');"
    assert after(text) == (
        "CREATE STREAM bids (ts TIMESTAMP, bid BIGINT) TIMESTAMP BY ts\n"
        "  KEY (bid)\n"
        "  USING csv OPTIONS (path 'b.csv');"
    )


def test_without_using_clauses_end_the_declaration() -> None:
    text = "CREATE STREAM bids (ts TIMESTAMP, bid BIGINT)\n  TIMESTAMP BY ts -- time\n;\nSELECT bid FROM bids [NOW]"
    assert after(text) == text.replace("BY ts", "BY ts\n  KEY (bid)")


def test_names_that_are_words_of_the_language_mislead_nobody() -> None:
    text = """\
CREATE STREAM bids (ts TIMESTAMP, bid BIGINT, `using` STRING, CHECK (`using` <> ' USING ') )
  TIMESTAMP BY ts /* USING json */ KEY (`using`)
  using csv OPTIONS (path 'USING')"""
    assert after(text) == text.replace("  using csv", "  KEY (bid)\n  using csv")


def test_lines_end_as_they_did() -> None:
    text = "CREATE STREAM bids (ts TIMESTAMP, bid BIGINT)\r\n  TIMESTAMP BY ts\r\n  USING csv OPTIONS (path 'b')\r\n"
    assert after(text) == text.replace("  USING", "  KEY (bid)\r\n  USING")


def test_other_streams_stay_as_they_are() -> None:
    text = "CREATE STREAM asks (ts TIMESTAMP, bid BIGINT);\nCREATE STREAM Bids (ts TIMESTAMP, bid BIGINT);"
    assert after(text) == text[:-1] + "\n  KEY (bid);"


@given(
    st.lists(st.sampled_from([" ", "\n", "\t", "/* USING ( */", "-- USING )\n"]), min_size=14, max_size=14)
)
def test_whatever_stands_between_the_words_only_clauses_are_added(gaps: list[str]) -> None:
    words = ["CREATE", "STREAM", "bids", "(", "ts", "TIMESTAMP", ",", "bid", "BIGINT", ")", "TIMESTAMP BY ts"]
    words += ["USING", "csv", "OPTIONS (path 'b.csv')"]
    text = "".join(f"{word} {gap}" for word, gap in zip(words, gaps, strict=True))
    new = after(text)
    assert "KEY (bid)" in new
    assert "".join(new.replace("KEY (bid)", "").split()) == "".join(text.split())


TEXT = "CREATE STREAM bids (ts TIMESTAMP, bid BIGINT) -- größer\n  USING csv OPTIONS (path 'b');\n"


def test_a_file_keeps_its_mode_its_encoding_and_its_place_behind_a_link(tmp_path: Path) -> None:
    file, link = tmp_path / "f.cql", tmp_path / "link.cql"
    file.write_bytes(b"\xef\xbb\xbf" + TEXT.encode())
    file.chmod(0o640)
    link.symlink_to(file)
    write_clauses(link, read_text(link), {"bids": [KEY]})
    assert file.read_bytes() == b"\xef\xbb\xbf" + TEXT.replace("  USING", "  KEY (bid)\n  USING").encode()
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert link.is_symlink()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["f.cql", "link.cql"]


def test_a_file_that_was_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "f.cql"
    file.write_text(TEXT, encoding="utf-8")
    source = read_text(file)
    file.write_text(TEXT + "-- more\n", encoding="utf-8")
    with pytest.raises(InputError, match="was changed while"):
        write_clauses(file, source, {"bids": [KEY]})
    assert file.read_text(encoding="utf-8") == TEXT + "-- more\n"


def test_a_failed_write_leaves_the_old_file_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "f.cql"
    file.write_text(TEXT, encoding="utf-8")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_clauses(file, read_text(file), {"bids": [KEY]})
    assert file.read_text(encoding="utf-8") == TEXT
    assert [each.name for each in tmp_path.iterdir()] == ["f.cql"]
