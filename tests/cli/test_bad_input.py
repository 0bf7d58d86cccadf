"""Bad input ends with exit code 2 and one message: the place, the line, a caret, and what may have been meant."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest
from tests.cli_runner import headgate

DECLARATIONS = """\
CREATE STREAM bids (ts TIMESTAMP, bidid BIGINT, itemid BIGINT, increase DOUBLE, note STRING) TIMESTAMP BY ts;
CREATE STREAM items (ts TIMESTAMP, itemid BIGINT, name STRING) TIMESTAMP BY ts;
CREATE TABLE companies (symbol STRING, name STRING);
"""

MESSAGES = {
    "SELECT ISTREAM(itmid) FROM bids [RANGE 1 MINUTE];": """
        f.cql:4:16: error[HG201]: there is no column itmid
           |
         4 | SELECT ISTREAM(itmid) FROM bids [RANGE 1 MINUTE];
           |                ^^^^^
          help: did you mean itemid?
        """,
    "SELECT bidid\nFROM bids\nWHERE note > 5;": """
        f.cql:6:7: error[HG202]: STRING and INT do not go together in note > 5
           |
         6 | WHERE note > 5;
           |       ^^^^^^^^
          help: convert one side with CAST(… AS …)
        """,
    "SELECT SUM(name) FROM items;": """
        f.cql:4:8: error[HG202]: SUM needs a number, not STRING
           |
         4 | SELECT SUM(name) FROM items;
           |        ^^^^^^^^
        """,
    "SELECT name FROM itms;": """
        f.cql:4:18: error[HG201]: there is no stream, table or query named itms
           |
         4 | SELECT name FROM itms;
           |                  ^^^^
          help: did you mean items?
        """,
    "SELECT b.itemid FROM bids;": """
        f.cql:4:8: error[HG201]: there is no input named b in this query
           |
         4 | SELECT b.itemid FROM bids;
           |        ^^^^^^^^
          help: there is bids
        """,
    "SELECT name FROM items [RANGE 10 MINUTES;": """
        f.cql:4:34: error[HG101]: expected ] at the end of the window; the statement ends after 'MINUTES'
           |
         4 | SELECT name FROM items [RANGE 10 MINUTES;
           |                                  ^^^^^^^
        """,
    "SELECT name FROM items [RANGE 10 MINUTES, bids;": """
        f.cql:4:41: error[HG101]: expected ] at the end of the window, found ','
           |
         4 | SELECT name FROM items [RANGE 10 MINUTES, bids;
           |                                         ^
        """,
    "SELECT ISTREAM(name FROM items;": """
        f.cql:4:21: error[HG101]: expected ) after the list of ISTREAM, found 'FROM'
           |
         4 | SELECT ISTREAM(name FROM items;
           |                     ^^^^
        """,
    "SELECT itemid FROM bids, items WHERE bidid = 1;": """
        f.cql:4:8: error[HG201]: itemid is ambiguous: it can be bids.itemid or items.itemid
           |
         4 | SELECT itemid FROM bids, items WHERE bidid = 1;
           |        ^^^^^^
          help: write bids.itemid or items.itemid
        """,
    "SELECT name FROM bids, items [RANGE -10 MINUTES];": """
        f.cql:4:37: error[HG101]: a window cannot be negative
           |
         4 | SELECT name FROM bids, items [RANGE -10 MINUTES];
           |                                     ^^^
        """,
    "SELECT name FROM items [ROWS -3];": """
        f.cql:4:30: error[HG101]: a window cannot be negative
           |
         4 | SELECT name FROM items [ROWS -3];
           |                              ^^
        """,
    "SELECT name FROM items [ROWS 0];": """
        f.cql:4:30: error[HG101]: a window holds between 1 and 2147483647 rows
           |
         4 | SELECT name FROM items [ROWS 0];
           |                              ^
        """,
    "SELECT name FROM items [RANGE 10 MINUTS];": """
        f.cql:4:34: error[HG101]: MINUTS is no unit of time; there are weeks, days, hours, minutes, seconds, \
milliseconds, microseconds
           |
         4 | SELECT name FROM items [RANGE 10 MINUTS];
           |                                  ^^^^^^
          help: did you mean MINUTE?
        """,
    "CREATE STREAM x (a INT) ORDERED BY (a) WITHIN many ROWS;": """
        f.cql:4:47: error[HG101]: expected a number of rows, an interval or AUTO, found 'many'
           |
         4 | CREATE STREAM x (a INT) ORDERED BY (a) WITHIN many ROWS;
           |                                               ^^^^
          help: write WITHIN 100 ROWS, WITHIN 5 MINUTES or WITHIN AUTO
        """,
    "CREATE STREAM x (a INT) ORDERED BY (a) WITHIN -5 MINUTES;": """
        f.cql:4:47: error[HG101]: a k cannot be negative
           |
         4 | CREATE STREAM x (a INT) ORDERED BY (a) WITHIN -5 MINUTES;
           |                                               ^^
          help: write WITHIN 100 ROWS, WITHIN 5 MINUTES or WITHIN AUTO
        """,
    "CREATE STREAM x (a INT) CLUSTERED BY (a) WITHIN 5;": """
        f.cql:4:49: error[HG101]: expected ROWS or a unit of time after 5; the statement ends after '5'
           |
         4 | CREATE STREAM x (a INT) CLUSTERED BY (a) WITHIN 5;
           |                                                 ^
          help: write WITHIN 100 ROWS, WITHIN 5 MINUTES or WITHIN AUTO
        """,
    "CREATE STREAM x (a INT) CLUSTERED BY (a) WITHIN 5 MINUTS;": """
        f.cql:4:51: error[HG101]: expected ROWS or a unit of time after 5, found 'MINUTS'
           |
         4 | CREATE STREAM x (a INT) CLUSTERED BY (a) WITHIN 5 MINUTS;
           |                                                   ^^^^^^
          help: did you mean MINUTE?
        """,
    "CREATE STREAM x (a INT) ORDERED BY (a) WITHIN 9 ROWS ORDERED BY (a) WITHIN 5 ROWS;": """
        f.cql:4:66: error[HG203]: ORDERED BY (a) is declared WITHIN 9 ROWS and WITHIN 5 ROWS
           |
         4 | CREATE STREAM x (a INT) ORDERED BY (a) WITHIN 9 ROWS ORDERED BY (a) WITHIN 5 ROWS;
           |                                                                  ^
          help: write WITHIN 5 ROWS alone if every row keeps it, for then it keeps WITHIN 9 ROWS too; otherwise \
WITHIN 9 ROWS alone
        """,
    "CREATE STREAM x (a BIGINT) FOREIGN KEY (a) REFERENCES items (itemid) WITHIN 1 HOUR;": """
        f.cql:4:62: error[HG203]: FOREIGN KEY refers to items (itemid), which is no KEY: rows may have many partners
           |
         4 | CREATE STREAM x (a BIGINT) FOREIGN KEY (a) REFERENCES items (itemid) WITHIN 1 HOUR;
           |                                                              ^^^^^^
          help: write KEY (itemid) in CREATE STREAM items if no two of its rows agree in it; otherwise leave the \
FOREIGN KEY out
        """,
    "SELECT symbol FROM companies [ROWS 5];": """
        f.cql:4:30: error[HG301]: companies is a table: its rows have no time for a window to slide over
           |
         4 | SELECT symbol FROM companies [ROWS 5];
           |                              ^^^^^^^^
          help: drop the window, or declare it as a STREAM
        """,
    "CREATE STREAM Bids (a INT);": """
        f.cql:4:15: error[HG203]: there is already a stream named Bids
           |
         4 | CREATE STREAM Bids (a INT);
           |               ^^^^
          help: choose another name
        """,
    "CREATE QUERY companies AS SELECT name FROM items;": """
        f.cql:4:14: error[HG203]: there is already a table named companies
           |
         4 | CREATE QUERY companies AS SELECT name FROM items;
           |              ^^^^^^^^^
          help: choose another name
        """,
    "CREATE STREAM x (a INT, A INT);": """
        f.cql:4:25: error[HG203]: column A is declared twice
           |
         4 | CREATE STREAM x (a INT, A INT);
           |                         ^
        """,
    "CREATE STREAM x (a BIGNIT);": """
        f.cql:4:20: error[HG101]: there is no type BIGNIT
           |
         4 | CREATE STREAM x (a BIGNIT);
           |                    ^^^^^^
          help: did you mean BIGINT?
        """,
    "CREATE STREEM x (a INT);": """
        f.cql:4:8: error[HG101]: expected STREAM, TABLE or QUERY after CREATE, found 'STREEM'
           |
         4 | CREATE STREEM x (a INT);
           |        ^^^^^^
          help: did you mean STREAM?
        """,
    "SELCT a FROM bids;": """
        f.cql:4:1: error[HG101]: expected CREATE STREAM, CREATE TABLE, CREATE QUERY or SELECT, found 'SELCT'
           |
         4 | SELCT a FROM bids;
           | ^^^^^
          help: did you mean SELECT?
        """,
    "SELECT uper(name) FROM items;": """
        f.cql:4:8: error[HG102]: there is no function uper
           |
         4 | SELECT uper(name) FROM items;
           |        ^^^^^^^^^
          help: did you mean upper?
        """,
    "SELECT name, COUNT(*) FROM items GROUP BY itemid;": """
        f.cql:4:8: error[HG201]: name is neither in GROUP BY nor inside an aggregate
           |
         4 | SELECT name, COUNT(*) FROM items GROUP BY itemid;
           |        ^^^^
          help: add it to GROUP BY, or write for example MAX(name)
        """,
    "SELECT name FROM items WHERE;": """
        f.cql:4:24: error[HG101]: something is missing after 'WHERE'
           |
         4 | SELECT name FROM items WHERE;
           |                        ^^^^^
        """,
    "SELECT name FROM items WHERE name = 'x;": """
        f.cql:4:37: error[HG101]: a string begins here and does not end
           |
         4 | SELECT name FROM items WHERE name = 'x;
           |                                     ^
          help: close it with '
        """,
    "SELECT name FROM items ORDER BY name;": """
        f.cql:4:33: error[HG102]: ORDER BY has no meaning for an answer that changes over time
           |
         4 | SELECT name FROM items ORDER BY name;
           |                                 ^^^^
          help: use TOP(value, k) for the most frequent, or MAX/MIN
        """,
}


@pytest.mark.parametrize("statement", MESSAGES)
def test_the_message(statement: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.cql").write_text(DECLARATIONS + statement, encoding="utf-8")
    outcome = headgate("check", "f.cql")
    assert outcome.err == dedent(MESSAGES[statement]).lstrip("\n")
    assert (outcome.code, outcome.out) == (2, "")


FILES = {
    "empty": (b"", "f.cql:1:1: error[HG101]: there is no statement here"),
    "only a comment": (b"-- nothing\n", "f.cql:1:1: error[HG101]: there is no statement here"),
    "text with a NUL": (b"SELECT\x00a", "f.cql:1:7: error[HG001]: this is not text: it has a NUL character"),
    "binary": (bytes(range(256)), "not UTF-8 text"),
    "UTF-16": ("SELECT a".encode("utf-16"), "not UTF-8 text"),
    "10 MB": (b"SELECT a FROM s; " * 620_000, "too long: at most 1,000,000 characters are read"),
    "too long by a little": (
        b"-" * 1_000_001,
        "1,000,001 characters; the longest that is read has 1,000,000",
    ),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("command", ["check", "explain"])
def test_odd_files(name: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, expected = FILES[name]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.cql").write_bytes(data)
    outcome = headgate(command, "f.cql")
    assert expected in outcome.err
    assert "f.cql" in outcome.err
    assert "\n  help: " in outcome.err
    assert (outcome.code, outcome.out) == (2, "")


def test_control_characters_do_not_reach_the_terminal(tmp_path: Path) -> None:
    file = tmp_path / "f.cql"
    file.write_bytes(b"SELECT a \x1b[31m FROM s")
    outcome = headgate("check", file)
    assert outcome.code == 2
    assert " 1 | SELECT a \N{REPLACEMENT CHARACTER}[31m FROM s\n   |           ^" in outcome.err


def test_a_long_line_is_cut_around_the_place(tmp_path: Path) -> None:
    file = tmp_path / "f.cql"
    file.write_text(DECLARATIONS + f"SELECT {'name, ' * 100}nam FROM items", encoding="utf-8")
    outcome = headgate("check", file)
    line, carets = outcome.err.splitlines()[2:4]
    assert line.startswith(" 4 | …")
    assert line[carets.index("^") : carets.index("^") + 3] == "nam"
    assert len(line) < 120


@pytest.mark.parametrize("word", [":smile:", "[red]x[/red]", "[/]"])
def test_data_is_shown_as_it_is(word: str, tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text(f"2026-01-01T00:00:00,{word}\n")
    file = tmp_path / "f.cql"
    file.write_text(
        "CREATE STREAM s (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts USING csv OPTIONS (path 's.csv');"
        "CREATE QUERY q AS SELECT ISTREAM(k) FROM s [RANGE 1 SECOND];"
    )
    outcome = headgate("run", file, "--output", tmp_path / "out", "--engine", "local")
    assert outcome.code == 2
    assert f"'{word}' is not of type BIGINT" in outcome.err


def test_a_folder_is_shown_as_it_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.csv").write_text("2026-01-01T00:00:00,1\n")
    file = tmp_path / "f.cql"
    file.write_text(
        "CREATE STREAM s (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts USING csv OPTIONS (path 's.csv');"
        "CREATE QUERY q AS SELECT ISTREAM(k) FROM s [RANGE 1 SECOND];"
    )
    outcome = headgate("run", file, "--output", ":x: [b]", "--engine", "local")
    assert "results in :x: [b]" in outcome.err
