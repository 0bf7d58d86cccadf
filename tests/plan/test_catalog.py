"""Declarations: what a catalog holds of them, and what contradicts itself."""

from __future__ import annotations

import pytest

from headgate.model import types
from headgate.model.errors import HeadgateError
from headgate.model.schema import Column
from headgate.model.time import SECOND
from headgate.model.adherence import AUTO, WithinRows, WithinTime
from headgate.plan.catalog import Clustered, Ordered, References, Source, StreamDef, TableDef
from headgate.session import Session

BIDS = """
CREATE STREAM items (ts TIMESTAMP, itemid BIGINT) TIMESTAMP BY ts;
CREATE STREAM Bids (
  ts TIMESTAMP, bidid BIGINT, ItemId BIGINT, increase DOUBLE CHECK (increase > 0), closing BOOLEAN,
  CHECK (bidid <> itemid)
)
  TIMESTAMP BY TS WITHIN INTERVAL 5 SECONDS
  KEY (bidid)
  KEY (ts, itemid)
  ORDERED BY (bidid) WITHIN 100 ROWS
  CLUSTERED BY (itemid) WITHIN AUTO
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
    assert bids.ordered == (Ordered(("bidid",), 100),)
    assert bids.clustered == (Clustered(("ItemId",), AUTO),)
    assert bids.references == (References(("ItemId",), "items", ("itemid",), 50),)
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


def test_queries_without_names_are_numbered() -> None:
    session = Session()
    session.sql(
        "CREATE STREAM s (a INT); SELECT a FROM s; CREATE QUERY query_3 AS SELECT a FROM s; SELECT a FROM s"
    )
    assert [query.name for query in session.queries] == ["query_1", "query_3", "query_4"]
