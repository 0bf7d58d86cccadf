"""Addresses of sinks, options of Kafka streams and coordinates of connectors: what needs no server."""

from __future__ import annotations

import pytest

from headgate.model.errors import DeclarationError, InputError
from headgate.plan.catalog import StreamDef
from headgate.runtime.sinks.address import formats_of, sink_at, to_console
from headgate.runtime.sinks.kafka import KafkaTopic
from headgate.runtime.sinks.postgres import PostgresView
from headgate.runtime.spark.sources import connectors
from headgate.runtime.spark.sources.kafka import read_kafka_options
from headgate.session import Session


def test_addresses() -> None:
    assert sink_at("console", "q") is to_console
    topic = sink_at("kafka://a:1,b:2/answers-{query}?key=x,y&kafka.acks=all", "q")
    assert topic == KafkaTopic("a:1,b:2", "answers-q", ("x", "y"), {"kafka.acks": "all"})
    view = sink_at("postgresql://me@db:5432/shop?table=wanted_{query}&schema=s&sslmode=require&retry=7", "q")
    assert isinstance(view, PostgresView)
    assert (view.dsn, view.table, view.schema, view.retry_seconds) == (
        "postgresql://me@db:5432/shop?sslmode=require",
        "wanted_q",
        "s",
        7,
    )
    assert formats_of("kafka://a/b") == ["kafka"]
    assert formats_of("console") == formats_of(None) == []


@pytest.mark.parametrize(
    "address",
    [
        "",
        "kafka:",
        "kafka://a",
        "kafka:///t",
        "kafka://a/b/c",
        "ftp://x/y",
        "kafka://a/t?x",
        "postgresql://a/b?retry=x",
    ],
)
def test_wrong_addresses(address: str) -> None:
    with pytest.raises(InputError, match="--to"):
        sink_at(address, "q")


def stream(options: str) -> StreamDef:
    session = Session()
    session.sql(f"CREATE STREAM s (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts USING kafka OPTIONS ({options});")
    found = session.catalog.find("s")
    assert isinstance(found, StreamDef)
    return found


SERVERS = "kafka.bootstrap.servers 'a:1'"


def test_a_stream_begins_where_its_topic_begins() -> None:
    options = read_kafka_options(
        stream(f"{SERVERS}, subscribe 'a, b', KEYCOLUMN 'K', failOnDataLoss 'false'")
    )
    assert options.spark == {
        "startingOffsets": "earliest",
        "kafka.bootstrap.servers": "a:1",
        "subscribe": "a, b",
        "failOnDataLoss": "false",
    }
    assert (options.topics, options.key, options.timestamp) == (["a", "b"], "k", None)


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        ("subscribe 'a'", "no Kafka servers"),
        (SERVERS, "which topics"),
        (f"{SERVERS}, subscribe 'a', assign '{{}}'", "which topics"),
        (f"{SERVERS}, subscribe 'a', keyColumn 'kk'", "names kk"),
        (f"{SERVERS}, subscribe 'a', timestampColumn 'k'", "not a TIMESTAMP"),
        (f"{SERVERS}, subscribe 'a', missingFields 'x'", "missingFields"),
    ],
)
def test_wrong_options(options: str, cause: str) -> None:
    with pytest.raises(DeclarationError, match=cause):
        read_kafka_options(stream(options))


def test_connectors_come_in_the_version_of_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    pyspark = pytest.importorskip("pyspark")
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    wanted = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
    assert connectors.packages_for([stream(SERVERS)]) == {"spark.jars.packages": wanted}
    assert connectors.packages_for([], ["kafka"]) == {"spark.jars.packages": wanted}
    assert connectors.packages_for([]) == {}
    assert wanted in str(connectors.missing("kafka"))
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--jars here.jar pyspark-shell")
    assert connectors.packages_for([stream(SERVERS)]) == {}
