"""Parsing, rendering and parsing again gives the same tree, and the text in between reads well."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.language.printed import DECLARATIONS, PRINTED

from headgate.language.parse import parse
from headgate.language.render import render, render_all
from headgate.model.source import SourceText

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.cql"))


def canonical(text: str) -> str:
    """The one statement of a text as canonical CQL, which must parse to the same tree."""
    (statement,) = parse(SourceText("<test>", text))
    rendered = render(statement.tree)
    (again,) = parse(SourceText("<rendered>", rendered))
    assert again.tree == statement.tree
    return rendered


SAME = [
    # windows
    "SELECT a\nFROM s [RANGE 10 MINUTES]",
    "SELECT a\nFROM s [RANGE 10 MINUTES SLIDE 30 SECONDS]",
    "SELECT a\nFROM s [ROWS 100]",
    "SELECT a\nFROM s [PARTITION BY a, s.b ROWS 3]",
    "SELECT a\nFROM s [NOW]",
    "SELECT a\nFROM s [UNBOUNDED]",
    "SELECT a\nFROM s [RANGE 1 DAY INTERNAL]",
    "SELECT a\nFROM s [RANGE 1 DAY SLIDE 1 HOUR INTERNAL]",
    "SELECT a\nFROM s [PARTITION BY a ROWS 1 INTERNAL]",
    "SELECT a\nFROM s [UNBOUNDED INTERNAL] AS x",
    "SELECT a\nFROM s [NOW] AS x, t AS y, u",
    # results
    "SELECT ISTREAM(a, b AS c)\nFROM s",
    "SELECT DSTREAM(*)\nFROM s",
    "SELECT RSTREAM(DISTINCT s.a)\nFROM s",
    "SELECT WSTREAM(*)[ROWS 10]\nFROM s",
    "SELECT WSTREAM(a)[RANGE 1 MINUTE]\nFROM s",
    "SELECT ISTREAM RESTORE(a)\nFROM s [RANGE 1 MINUTE SLIDE 10 SECONDS]",
    "SELECT RSTREAM RESTORE(a)\nFROM s [RANGE 1 MINUTE SLIDE 10 SECONDS]",
    "SELECT SUM(WSTREAM(SUM(a))[ROWS 10])\nFROM s [RANGE 6 SECONDS SLIDE 6 SECONDS]",
    # relations
    "SELECT DISTINCT a\nFROM s",
    "SELECT s.*\nFROM s, t\nWHERE s.a = t.a AND s.b > 10",
    "SELECT a\nFROM s\nJOIN t ON s.a = t.a\nJOIN u USING (a, b)",
    "SELECT a\nFROM s [NOW]\nCROSS JOIN t [ROWS 1] AS x",
    "SELECT a, COUNT(*)\nFROM s\nGROUP BY a, b + 1\nHAVING COUNT(DISTINCT c) > 1",
    "SELECT a\nFROM s\nWHERE EXISTS (SELECT * FROM t WHERE t.a = s.a)",
    "SELECT a\nFROM s\nWHERE NOT EXISTS (SELECT * FROM t [ROWS 1] WHERE t.a = s.a)",
    "SELECT a\nFROM s\nWHERE a IN (SELECT b FROM t)",
    "SELECT a\nFROM (SELECT a FROM s [ROWS 1]) [ROWS 10] AS x, (SELECT b FROM t) AS y",
    "SELECT a\nFROM s\nUNION ALL\nSELECT a\nFROM t\nUNION ALL\nSELECT a\nFROM u",
    "SELECT a\nFROM s\nUNION\nSELECT a\nFROM t",
    "SELECT a\nFROM s\nEXCEPT\nSELECT a\nFROM t",
    "SELECT a\nFROM s\nEXCEPT ALL\nSELECT a\nFROM t",
    "SELECT a\nFROM s\nINTERSECT\nSELECT a\nFROM t",
    "(SELECT a FROM s)\nUNION ALL\n(SELECT a FROM t EXCEPT SELECT a FROM u)",
    "WITH w AS (SELECT a FROM s [NOW]) SELECT a\nFROM w",
    "SELECT a\nFROM s\nWHERE EXISTS (WITH w AS (SELECT a FROM t) SELECT * FROM w WHERE w.a = s.a)",
    # aggregates
    "SELECT COUNT(*), SUM(a), AVG(a), MIN(a), MAX(a), MEDIAN(a), QUANTILE(a, 0.9), TOP(a, 3)\nFROM s",
    "SELECT COUNT(*) FILTER (WHERE a > 1)\nFROM s",
    # expressions
    "SELECT a\nFROM s\nWHERE a NOT IN (1, 2) AND b IS NOT NULL AND c NOT BETWEEN 1 AND 2 AND d NOT LIKE 'x%'",
    "SELECT CASE WHEN a > 1 THEN 'x' ELSE 'y' END, CAST(a AS DECIMAL(10, 2)), -a, a % 2, a DIV 2\nFROM s",
    "SELECT arr[0], st.x.y, `odd name`.`a b`\nFROM `odd name`",
    "SELECT ts + INTERVAL '5' SECONDS\nFROM s",
    "SELECT a AS istream, `istream`\nFROM s",
    # declarations
    "CREATE STREAM s (ts TIMESTAMP, a BIGINT)\n  TIMESTAMP BY ts",
    "CREATE STREAM s (ts TIMESTAMP, a INT NOT NULL, b STRUCT<x: INT, y: ARRAY<STRING>>, CHECK (a > 5))\n"
    "  TIMESTAMP BY ts WITHIN INTERVAL 5 SECONDS\n"
    "  KEY (a)\n"
    "  ORDERED BY (a) WITHIN 100 ROWS\n"
    "  CLUSTERED BY (a) WITHIN 1000 ROWS\n"
    "  CLUSTERED BY (b) WITHIN AUTO\n"
    "  CLUSTERED BY (a, b) WITHIN 90 MINUTES\n"
    "  ORDERED BY (b) WITHIN 0 SECONDS\n"
    "  FOREIGN KEY (a) REFERENCES items (itemid) WITHIN 50 ROWS\n"
    "  PUNCTUATED BY (a, b) WHEN a > 5 AND NOT c\n"
    "  PUNCTUATED BY (b)\n"
    "  USING kafka OPTIONS (kafka.bootstrap.servers 'h:1', subscribe 'bids', n 5, flag TRUE, 'a b' 'c')",
    "CREATE TABLE t (a INT, b MAP<STRING, INT>)\n  NON RETROACTIVE\n  KEY (a)\n  USING csv OPTIONS (header TRUE)",
    "CREATE TABLE t (a INT)",
    "CREATE STREAM `select` (`from` INT)\n  KEY (`from`)\n  USING `odd format`",
    "CREATE QUERY q AS\nSELECT ISTREAM(a)\nFROM s [NOW]\nWHERE a > 1",
    "CREATE QUERY q AS\n(SELECT a FROM s)",
]


@pytest.mark.parametrize("text", SAME)
def test_canonical_text_stays_as_it_is(text: str) -> None:
    assert canonical(text) == text


OTHERWISE = [
    ("select Istream a, b from s", "SELECT ISTREAM(a, b)\nFROM s"),
    ("SELECT ISTREAM DISTINCT a FROM s", "SELECT ISTREAM(DISTINCT a)\nFROM s"),
    ("SELECT ISTREAM (a + 1) * 2 FROM s", "SELECT ISTREAM((a + 1) * 2)\nFROM s"),
    ("SELECT ISTREAM (a), b FROM s", "SELECT ISTREAM((a), b)\nFROM s"),
    ("SELECT RSTREAM-RESTORE(a) FROM s", "SELECT RSTREAM RESTORE(a)\nFROM s"),
    ("SELECT a FROM s x [RANGE 90 sec]", "SELECT a\nFROM s [RANGE 90 SECONDS] AS x"),
    ("SELECT a FROM (s [ROWS 1]) AS x", "SELECT a\nFROM s [ROWS 1] AS x"),
    ("SELECT a FROM s [RANGE 1 HOUR 30 MINUTES]", "SELECT a\nFROM s [RANGE 90 MINUTES]"),
    ("SELECT a FROM s [RANGE INTERVAL '1.5' SECONDS]", "SELECT a\nFROM s [RANGE 1500 MILLISECONDS]"),
    ("SELECT a FROM s [RANGE '10 minutes']", "SELECT a\nFROM s [RANGE 10 MINUTES]"),
    ("SELECT a FROM s [WINDOW 10 min SLIDE 2 min]", "SELECT a\nFROM s [RANGE 10 MINUTES SLIDE 2 MINUTES]"),
    ("SELECT a FROM s [RANGE UNBOUNDED]", "SELECT a\nFROM s [UNBOUNDED]"),
    ("SELECT a FROM s [RANGE NOW]", "SELECT a\nFROM s [NOW]"),
    ("SELECT a FROM s [ROWS 50,000]", "SELECT a\nFROM s [ROWS 50000]"),
    ("SELECT 'it''s', 'a' 'b', r'\\d', \"x\" FROM s", "SELECT 'it\\'s', 'ab', '\\\\d', 'x'\nFROM s"),
    ("SELECT percentile(a, 0.5) FROM s", "SELECT QUANTILE(a, 0.5)\nFROM s"),
    ("SELECT a::int, a != b, +a FROM s -- a comment", "SELECT CAST(a AS INT), a <> b, a\nFROM s"),
    (
        "CREATE STREAM s (a INT) ORDERED BY (a) WITHIN INTERVAL 5 MINUTES CLUSTERED BY (a) WITHIN '90 sec'",
        "CREATE STREAM s (a INT)\n  ORDERED BY (a) WITHIN 5 MINUTES\n  CLUSTERED BY (a) WITHIN 90 SECONDS",
    ),
    (
        "CREATE STREAM s (a INT) ORDERED BY (a) WITHIN 1 hour 30 min CLUSTERED BY (a) WITHIN 50,000 row",
        "CREATE STREAM s (a INT)\n  ORDERED BY (a) WITHIN 90 MINUTES\n  CLUSTERED BY (a) WITHIN 50000 ROWS",
    ),
    (
        "CREATE STREAM s (a INT) USING parquet OPTIONS ('path' = 'x', \"q\" false)",
        "CREATE STREAM s (a INT)\n  USING parquet OPTIONS (path 'x', q FALSE)",
    ),
]


@pytest.mark.parametrize(("text", "expected"), OTHERWISE)
def test_other_spellings_become_canonical(text: str, expected: str) -> None:
    assert canonical(text) == expected


@pytest.mark.parametrize("name", PRINTED)
def test_every_printed_query_survives(name: str) -> None:
    canonical(PRINTED[name])


@pytest.mark.parametrize("text", [DECLARATIONS, *(path.read_text("utf-8") for path in EXAMPLES)])
def test_whole_files_survive(text: str) -> None:
    statements = parse(SourceText("<file>", text))
    again = parse(SourceText("<rendered>", render_all(statements)))
    assert [each.tree for each in again] == [each.tree for each in statements]


def test_the_examples_are_there() -> None:
    assert {"auction.cql", "network.cql", "linear_road.cql"} <= {path.name for path in EXAMPLES}


def test_statements_are_parted_by_empty_lines() -> None:
    text = "SELECT a FROM s; ; SELECT b FROM s;"
    assert render_all(parse(SourceText("<two>", text))) == "SELECT a\nFROM s;\n\nSELECT b\nFROM s;\n"


def test_a_statement_knows_its_place() -> None:
    first, second = parse(SourceText("f.cql", "SELECT a FROM s;\n  SELECT b\nFROM t;"))
    assert (first.span.start, first.span.end) == (0, 15)
    assert second.source.locate(second.span.start) == "f.cql:2:3"
