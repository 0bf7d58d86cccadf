"""No text, however odd, ends in anything but statements or an error for people."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.language.grammar import texts
from tests.timeout import time_limit

from headgate.language.dialect import Cql
from headgate.model.errors import HeadgateError
from headgate.model.source import SourceText
from headgate.session import Session

DECLARATIONS = """
CREATE STREAM s (ts TIMESTAMP, a BIGINT, b BIGINT, c STRING, d DOUBLE, f BOOLEAN, arr ARRAY<INT>) TIMESTAMP BY ts;
CREATE STREAM itemid (ts TIMESTAMP, a BIGINT, b BIGINT, Price DOUBLE, closing BOOLEAN) TIMESTAMP BY ts;
CREATE TABLE t (a BIGINT, name STRING);
CREATE TABLE b (a BIGINT, name STRING) NON RETROACTIVE;
"""


@pytest.fixture(scope="module")
def declared() -> Session:
    session = Session()
    session.sql(DECLARATIONS)
    return session


def read(text: str, declared: Session) -> str | None:
    """Takes a text as far as it goes: None if it was understood, else the whole message."""
    session = Session()
    session.catalog, session.statements = declared.catalog, declared.statements
    message = None
    try:
        with time_limit():
            session.read(SourceText("fuzz.cql", text))
            for query in session.queries:
                explanation = query.explain(alternatives=True)
                assert explanation.to_json()
                assert explanation.to_svg()
                assert query.check().query == query.name
            assert session.render()
    except HeadgateError as error:
        message = error.render()
    return message


@given(st.text(max_size=200))
def test_random_characters(declared: Session, text: str) -> None:
    read(text, declared)


@given(st.text(alphabet="SELECTFROMabs()[]{}'\"`;,.*=<>!-+/%&|^~?:@#$0123456789 \n\t\r\\_eE", max_size=120))
def test_random_characters_of_sql(declared: Session, text: str) -> None:
    read(text, declared)


KEYWORDS = """
SELECT ISTREAM WSTREAM RESTORE DISTINCT FROM WHERE GROUP BY HAVING UNION ALL EXCEPT JOIN ON USING AS AND OR NOT EXISTS
IN IS NULL BETWEEN LIKE CASE WHEN THEN END CAST INTERVAL CREATE STREAM TABLE QUERY TIMESTAMP KEY WITHIN ROWS RANGE
SLIDE PARTITION NOW INTERNAL OPTIONS WITH ORDER LIMIT OVER LATERAL COUNT SUM BIGINT SECONDS
"""
SIGNS = "( ) [ ] , . * = < + - / || :: -> => ; ? :x @y { } ' \" /* */ -- 🙂 é \x01"
OTHERS = ["a", "b", "s", "t", "itemid", "q", "5", "1.5", "1e999", "'x'", "`y`", "0x1F", "9" * 40]
WORDS = [*KEYWORDS.split(), *SIGNS.split(), *OTHERS, "GROUP BY", "PARTITION BY", "TIMESTAMP BY"]


@given(st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join))
def test_random_words(declared: Session, text: str) -> None:
    read(text, declared)


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """A statement of the grammar in which some tokens are dropped, doubled, swapped or replaced."""
    text = draw(texts("statement", 25))
    tokens = [text[token.start : token.end + 1] for token in Cql().tokenize(text)]
    for _ in range(draw(st.integers(1, 4))):
        at, other = (draw(st.integers(0, len(tokens) - 1)) for _ in range(2))
        match draw(st.sampled_from(["drop", "double", "swap", "replace", "insert"])):
            case "drop" if len(tokens) > 1:
                del tokens[at]
            case "double":
                tokens.insert(at, tokens[at])
            case "swap":
                tokens[at], tokens[other] = tokens[other], tokens[at]
            case "replace":
                tokens[at] = draw(st.sampled_from(WORDS))
            case _:
                tokens.insert(at, draw(st.sampled_from(WORDS)))
    return " ".join(tokens)


@given(damaged())
def test_damaged_statements(declared: Session, text: str) -> None:
    read(text, declared)


@given(texts("statement", 25), st.integers(0, 500), st.integers(0, 20))
def test_statements_with_a_hole(declared: Session, text: str, start: int, length: int) -> None:
    read(text[:start] + text[start + length :], declared)


DEEP = 3000
NESTED = {
    "parentheses": "SELECT " + "(" * DEEP + "a" + ")" * DEEP + " FROM s",
    "open parentheses": "SELECT " + "(" * DEEP,
    "closing parentheses": "SELECT a" + ")" * DEEP,
    "brackets": "SELECT a" + "[" * DEEP,
    "calls": "SELECT " + "abs(" * DEEP + "a" + ")" * DEEP + " FROM s",
    "NOT": "SELECT a FROM s WHERE " + "NOT " * DEEP + "f",
    "minus": "SELECT " + "- " * DEEP + "a FROM s",
    "a sum": "SELECT " + " + ".join(["a"] * DEEP) + " FROM s",
    "CASE": "SELECT " + "CASE WHEN f THEN a ELSE " * DEEP + "1" + " END" * DEEP + " FROM s",
    "sub-queries": "SELECT a FROM " + "(SELECT a FROM " * DEEP + "s" + ")" * DEEP,
    "EXISTS": "SELECT a FROM s" + " WHERE EXISTS (SELECT a FROM s" * DEEP + ")" * DEEP,
    "unions": " UNION ALL ".join(["SELECT a FROM s"] * DEEP),
    "differences": " EXCEPT ".join(["SELECT a FROM s"] * 100),
    "fields": "SELECT a" + ".a" * DEEP + " FROM s",
    "elements": "SELECT arr" + "[1]" * DEEP + " FROM s",
    "types": "SELECT CAST(a AS " + "ARRAY<" * DEEP + "INT" + ">" * DEEP + ") FROM s",
    "comments": "/*" * DEEP + " SELECT a FROM s",
    "named sub-queries": "WITH "
    + ", ".join(f"w{i} AS (SELECT * FROM w{i + 1})" for i in range(200))
    + " SELECT a FROM w0",
    "joins": "SELECT 1 AS x FROM " + ", ".join(f"s AS s{i}" for i in range(DEEP)),
    "doubling": "WITH w0 AS (SELECT a FROM s), "
    + ", ".join(f"w{i} AS (SELECT x.a FROM w{i - 1} x, w{i - 1} y)" for i in range(1, 30))
    + " SELECT a FROM w29",
    "queries that read queries": "".join(
        f"CREATE QUERY q{i} AS SELECT x.a FROM {f'q{i - 1} x, q{i - 1} y' if i else 's x'};"
        for i in range(25)
    ),
    "a chain of queries": "".join(
        f"CREATE QUERY q{i} AS SELECT DISTINCT a FROM {f'q{i - 1}' if i else 's'};" for i in range(60)
    ),
}


@pytest.mark.parametrize("name", NESTED)
def test_what_is_nested_too_deeply_is_refused(declared: Session, name: str) -> None:
    assert read(NESTED[name], declared) is not None


FINE = {
    "a concatenation": "SELECT " + " || ".join(["c"] * DEEP) + " FROM s",
    "OR": "SELECT a FROM s WHERE " + " OR ".join(["a = 1"] * DEEP),
    "AND": "SELECT a FROM s WHERE " + " AND ".join(["a = 1"] * DEEP),
    "40 sums": "SELECT " + " + ".join(["a"] * 40) + " FROM s",
    "20 parentheses": "SELECT " + "(" * 20 + "a" + ")" * 20 + " FROM s",
    "100 alternatives": "SELECT a FROM s WHERE " + " OR ".join(f"a = {i}" for i in range(100)),
    "100 conditions": "SELECT a FROM s WHERE " + " AND ".join(f"a <> {i}" for i in range(100)),
    "1000 constants": "SELECT a FROM s WHERE a IN (" + ", ".join(map(str, range(1000))) + ")",
    "80 unions": " UNION ALL ".join(["SELECT a FROM s [NOW]"] * 80),
    "15 sub-queries": "SELECT a FROM " + "(SELECT DISTINCT a FROM " * 15 + "s" + ")" * 15,
    "30 joins": "SELECT s0.a FROM "
    + ", ".join(f"s [NOW] AS s{i}" for i in range(30))
    + " WHERE "
    + " AND ".join(f"s0.a = s{i}.a" for i in range(1, 30)),
    "300 columns": "SELECT " + ", ".join(f"a AS a{i}" for i in range(300)) + " FROM s",
}


@pytest.mark.parametrize("name", FINE)
def test_what_people_write_is_read(declared: Session, name: str) -> None:
    assert read(FINE[name], declared) is None


ODD = {
    "nothing": "",
    "white space": " \n\t ",
    "a comment": "-- nothing here",
    "semicolons": ";;;",
    "NUL": "SELECT a\x00 FROM s",
    "an open string": "SELECT 'a FROM s",
    "an open name": "SELECT `a FROM s",
    "an open comment": "SELECT a /* FROM s",
    "a lone quote": "'",
    "a backslash at the end": "SELECT 'a\\",
    "half a surrogate pair": "SELECT \ud800 FROM s",
    "right to left": "SELECT \u202ea FROM s",
    "a byte order mark inside": "SELECT \ufeffa FROM s, nosuch",
    "a long name": "SELECT " + "x" * 100_000 + " FROM s",
    "a long number": "SELECT a FROM s [ROWS " + "9" * 5000 + "]",
    "a long duration": "SELECT a FROM s [RANGE " + "9" * 30 + " DAYS]",
    "a duration too long for 64 bits": "SELECT a FROM s [RANGE 9999999999 WEEKS]",
    "a fraction of a microsecond": "SELECT a FROM s [RANGE 0.5 MICROSECONDS]",
    "an odd digit": "SELECT a FROM s [ROWS ²]",
    "10 MB of a": "a" * 10_000_000,
    "10 MB of (": "(" * 10_000_000,
    "10 MB of quotes": "'" * 10_000_000,
    "many (": "(" * 50_000,
    "many ,": "SELECT a" + "," * 50_000,
    "many statements": "SELECT a FROM s;" * 2_000 + "SELECT a FROM nosuch",
}


@pytest.mark.parametrize("name", ODD)
def test_odd_texts_are_refused(declared: Session, name: str) -> None:
    assert read(ODD[name], declared) is not None


ONCE_BROKEN = [
    "SELECT a, WSTREAM(b)[ROWS 1] s",
    "SELECT WSTREAM(b)[ROWS 1] AS x, a FROM s",
    "SELECT a FROM s WHERE a IN (SELECT s.b FROM itemid)",
    "SELECT regexp_replace(c, 'a', 'b', a) FROM s",
    "SELECT to_date(c, b) FROM s",
    "SELECT 1F(a) FROM s",
    "CREATE STREAM x (a DECIMAL(x))",
    "CREATE STREAM x (a DECIMAL(5, 'y' 9))",
    "CREATE STREAM x (a DECIMAL(99999999999999999999))",
    "SELECT x.a FROM s AS `x.a`, itemid AS x",
    "SELECT `x.a`.a FROM s AS `x.a`, itemid AS x",
    "SELECT s.a FROM s, t WHERE EXISTS (SELECT * FROM itemid WHERE itemid.a = s.a AND s.b > 5 LIMIT 3)",
    "SELECT (SELECT a FROM s) FROM s",
    "SELECT a FROM s WHERE a = (SELECT MAX(a) FROM s)",
    "SELECT COUNT(a, b), MAX(a, b) FROM s",
    "SELECT a FROM s [PARTITION BY nosuch ROWS 1]",
    "SELECT a FROM s [PARTITION BY a + 1 ROWS 1]",
    "SELECT a FROM s GROUP BY ()",
    "SELECT a FROM s GROUP BY GROUPING SETS (a, ())",
    "SELECT s.a FROM s LEFT JOIN itemid ON s.a = itemid.a",
    "SELECT '\x1b[31m' AS x, c = '\n\x0b' AS y FROM s",
]


@pytest.mark.parametrize("text", ONCE_BROKEN)
def test_what_once_broke_does_not(declared: Session, text: str) -> None:
    read(text, declared)
