"""Declarations: what a catalog holds of them, and what contradicts itself."""

from __future__ import annotations

import pytest

from headgate.model import types
from headgate.model.adherence import AUTO, WithinRows, WithinTime
from headgate.model.errors import HeadgateError
from headgate.model.schema import Column
from headgate.model.time import SECOND
from headgate.plan.catalog import Clustered, Ordered, References, Source, StreamDef, TableDef
from headgate.session import Session

BIDS = """
CREATE STREAM items (ts TIMESTAMP, itemid BIGINT) TIMESTAMP BY ts KEY (itemid);
CREATE STREAM Bids (
  ts TIMESTAMP, bidid BIGINT, ItemId BIGINT, increase DOUBLE CHECK (increase > 0), closing BOOLEAN,
  CHECK (bidid <> itemid)
)
  TIMESTAMP BY TS WITHIN INTERVAL 5 SECONDS
  KEY (bidid)
  KEY (ts, itemid)
  ORDERED BY (bidid) WITHIN 100 ROWS
  CLUSTERED BY (itemid) WITHIN AUTO
  CLUSTERED BY (itemid, bidid) WITHIN 90 SECONDS
  FOREIGN KEY (itemid) REFERENCES items (itemid) WITHIN 50 ROWS
  PUNCTUATED BY (itemid) WHEN closing
  PUNCTUATED BY (bidid, itemid)
  USING Kafka OPTIONS (kafka.bootstrap.servers 'h:1', 'start at' 5, fail TRUE);
CREATE TABLE companies (symbol STRING, name STRING) NON RETROACTIVE KEY (symbol);
CREATE TABLE plain (a INT) USING org.example.Format;
"""


@pytest.fixture(scope="module")
def session() -> Session:
    declared = Session()
    declared.sql(BIDS)
    return declared


def test_a_stream_keeps_all_that_was_said(session: Session) -> None:
    bids = session.catalog.find("BIDS")
    assert isinstance(bids, StreamDef)
    assert bids.name == "Bids"
    assert bids.columns[2] == Column("ItemId", types.BIGINT)
    assert (bids.time, bids.slack) == ("ts", 5 * SECOND)
    assert bids.keys == (("bidid",), ("ts", "ItemId"))
    assert bids.ordered == (Ordered(("bidid",), WithinRows(100)),)
    assert bids.clustered == (
        Clustered(("ItemId",), AUTO),
        Clustered(("ItemId", "bidid"), WithinTime(90 * SECOND)),
    )
    assert bids.references == (References(("ItemId",), "items", ("itemid",), WithinRows(50)),)
    assert [(each.columns, each.when and each.when.show()) for each in bids.punctuations] == [
        (("ItemId",), "closing"),
        (("bidid", "ItemId"), None),
    ]
    assert [check.show() for check in bids.checks] == ["increase > 0", "bidid <> ItemId"]
    options = (("kafka.bootstrap.servers", "h:1"), ("start at", "5"), ("fail", "true"))
    assert bids.source == Source("kafka", options)


def test_tables(session: Session) -> None:
    companies, plain = session.catalog.find("companies"), session.catalog.find("plain")
    assert isinstance(companies, TableDef)
    assert isinstance(plain, TableDef)
    assert (companies.retroactive, companies.keys, companies.source) == (False, (("symbol",),), None)
    assert (plain.retroactive, plain.source) == (True, Source("org.example.Format", ()))


CONTRADICTIONS = {
    "CREATE STREAM ITEMS (a INT)": "there is already a stream named ITEMS",
    "CREATE QUERY companies AS SELECT itemid FROM items": "there is already a table named companies",
    "CREATE STREAM x (a INT, A INT)": "column A is declared twice",
    "CREATE STREAM x (_a INT)": "column _a begins with an underscore",
    "CREATE STREAM x (CHECK (1 = 1))": "x has no columns",
    "CREATE STREAM x (a INT) KEY (b)": "there is no column b",
    "CREATE STREAM x (a INT) KEY (a, a)": "column a is listed twice",
    "CREATE STREAM x (a INT) TIMESTAMP BY a": "TIMESTAMP BY needs a TIMESTAMP column; a is INT",
    "CREATE STREAM x (t TIMESTAMP) TIMESTAMP BY t TIMESTAMP BY t": "TIMESTAMP BY is given twice",
    "CREATE STREAM x (a INT) USING csv USING csv": "USING is given twice",
    "CREATE TABLE x (a INT) USING csv OPTIONS (path 'a', Path 'b')": "option Path is given twice",
    "CREATE STREAM x (a INT) FOREIGN KEY (a) REFERENCES nosuch (a) WITHIN 5 ROWS": "FOREIGN KEY refers to nosuch",
    "CREATE STREAM x (a INT) FOREIGN KEY (a) REFERENCES items (nosuch) WITHIN 5 ROWS": "there is no column nosuch",
    "CREATE STREAM x (a INT) FOREIGN KEY (a) REFERENCES items (ts, itemid) WITHIN 5 ROWS": (
        "FOREIGN KEY has 1 columns but refers to 2"
    ),
    "CREATE STREAM x (a INT) FOREIGN KEY (a) REFERENCES items (ts) WITHIN 5 ROWS": (
        "FOREIGN KEY: a is INT, but ts is TIMESTAMP"
    ),
    "CREATE STREAM x (a TIMESTAMP) FOREIGN KEY (a) REFERENCES items (ts) WITHIN 5 ROWS": (
        "FOREIGN KEY refers to items (ts), which is no KEY: rows may have many partners"
    ),
    "CREATE STREAM x (a INT, b INT) ORDERED BY (a, b) WITHIN 5 ROWS ORDERED BY (A, b) WITHIN 9 ROWS": (
        "ORDERED BY (A, b) is declared WITHIN 5 ROWS and WITHIN 9 ROWS"
    ),
    "CREATE STREAM x (a INT, b INT) CLUSTERED BY (a, b) WITHIN 5 ROWS CLUSTERED BY (b, a) WITHIN 9 DAYS": (
        "CLUSTERED BY (b, a) is declared WITHIN 5 ROWS and WITHIN 9 DAYS"
    ),
    "CREATE STREAM x (a BIGINT) FOREIGN KEY (a) REFERENCES items (itemid) WITHIN AUTO "
    "FOREIGN KEY (a) REFERENCES Items (itemid) WITHIN 5 SECONDS": (
        "FOREIGN KEY (a) is declared WITHIN AUTO and WITHIN 5 SECONDS"
    ),
    "CREATE STREAM x (a INT) PUNCTUATED BY (a) WHEN a": "a is INT where BOOLEAN is needed",
    "CREATE STREAM x (a INT, CHECK (a))": "a is INT where BOOLEAN is needed",
    "CREATE STREAM x (a INT CHECK (nosuch > 1))": "there is no column nosuch",
    "CREATE STREAM x (a DECIMAL(50, 2))": "there is no type DECIMAL(50, 2)",
    "CREATE STREAM x (a DECIMAL(x))": "there is no type DECIMAL(X)",
    "CREATE STREAM x (a INT PRIMARY KEY)": "PRIMARY KEY is not supported on a column",
    "CREATE STREAM x (a INT DEFAULT 5)": "DEFAULT 5 is not supported on a column",
}


@pytest.mark.parametrize("text", CONTRADICTIONS)
def test_a_contradiction(session: Session, text: str) -> None:
    fresh = Session()
    fresh.catalog = session.catalog
    with pytest.raises(HeadgateError) as caught:
        fresh.sql(text)
    assert caught.value.cause.startswith(CONTRADICTIONS[text])
    assert caught.value.place is not None
    assert fresh.catalog is session.catalog


@pytest.mark.parametrize(
    ("one", "other", "instead"),
    [
        (
            "9 ROWS",
            "5 ROWS",
            "write WITHIN 5 ROWS alone if every row keeps it, for then it keeps WITHIN 9 ROWS too",
        ),
        ("5 SECONDS", "1 DAY", "write WITHIN 5 SECONDS alone if every row keeps it"),
        ("AUTO", "5 SECONDS", "write WITHIN 5 SECONDS alone: AUTO asks for what it says"),
        (
            "5 ROWS",
            "5 SECONDS",
            "write ORDERED BY (a) once, with a k that every row keeps, in rows or in time",
        ),
    ],
)
def test_of_two_adherences_one_is_to_be_written(one: str, other: str, instead: str) -> None:
    text = "CREATE STREAM x (a INT) ORDERED BY (a) WITHIN {} ORDERED BY (a) WITHIN {}"
    for first, second in ((one, other), (other, one)):
        with pytest.raises(HeadgateError) as caught:
            Session().sql(text.format(first, second))
        assert (caught.value.remedy or "").startswith(instead)


def test_what_is_said_twice_or_said_better_by_a_key_is_no_contradiction() -> None:
    session = Session()
    session.sql(
        "CREATE STREAM x (a INT, b INT) KEY (a) CLUSTERED BY (a) WITHIN 5 ROWS CLUSTERED BY (a) WITHIN 5 ROWS "
        "ORDERED BY (a) WITHIN 5 ROWS ORDERED BY (a, b) WITHIN 5 MINUTES"
    )
    assert len(session.catalog.streams[0].clustered) == 2


@pytest.mark.parametrize("within", ["AUTO", "5 ROWS", "5 MINUTES"])
def test_a_foreign_key_refers_to_a_key_or_to_what_comes_close_together(within: str) -> None:
    for promise in ("KEY (a)", "KEY (b)", "CLUSTERED BY (b) WITHIN 1 DAY"):
        session = Session()
        session.sql(
            f"CREATE STREAM y (a INT, b INT) {promise};"
            f"CREATE STREAM x (c INT, d INT) FOREIGN KEY (c, d) REFERENCES y (b, a) WITHIN {within}"
        )
    with pytest.raises(HeadgateError) as caught:
        Session().sql(
            "CREATE STREAM y (a INT, b INT) KEY (a, b);"
            f"CREATE STREAM x (c INT) FOREIGN KEY (c) REFERENCES y (b) WITHIN {within}"
        )
    assert caught.value.place is not None
    assert (caught.value.remedy or "").startswith(
        "write KEY (b) in CREATE STREAM y if no two of its rows agree"
    )


def test_queries_without_names_are_numbered() -> None:
    session = Session()
    session.sql(
        "CREATE STREAM s (a INT); SELECT a FROM s; CREATE QUERY query_3 AS SELECT a FROM s; SELECT a FROM s"
    )
    assert [query.name for query in session.queries] == ["query_1", "query_3", "query_4"]
