"""Addresses of sinks, options of Kafka streams and coordinates of connectors: what needs no server."""

from __future__ import annotations

import pytest
from psycopg.conninfo import conninfo_to_dict

from headgate.model.errors import DeclarationError, InputError
from headgate.plan.catalog import StreamDef, TableDef
from headgate.runtime.io.address import formats_of, shown, sink_at, to_console
from headgate.runtime.io.kafka_options import read_kafka_options
from headgate.runtime.io.kafka_topic import KafkaTopic
from headgate.runtime.io.postgres_table import read_postgres
from headgate.runtime.io.postgres_view import PostgresView
from headgate.runtime.spark.sources import connectors
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


PASSWORDS = [
    "hunter2",
    "hun%zzter2",
    "hun/ter2",
    "hun@ter2",
    "hun?ter2",
    "hun#ter2",
    "hun:ter2",
    "hun&ter2",
    "hun ter2",
]
JAAS = "kafka.sasl.jaas.config=x required username=bob password="


@pytest.mark.parametrize("password", PASSWORDS)
@pytest.mark.parametrize(
    "address",
    [
        "postgresql://bob:{}@db:5432/shop?table=x&retry=1m",
        "postgresql://bob:{}@db/shop?table=x&retry",
        "postgresql://bob:{}@db/shop?passwrd={}",
        "postgresql://bob:{}@db:x/shop?password={}",
        "postgresql://db/shop?password={}&x=1",
        "postgresql:/bob:{}@db/shop",
        "postgress://bob:{}@db/shop",
        "bob:{}@db/shop",
        "kafka://bob:{}@h:9092/t",
        "kafka://bob:{}@h:9092",
        "kafka://h:9092/?" + JAAS + "{}",
        "kafka://h:9092/t?" + JAAS + "{}&x",
        "kafak://h:9092/t?" + JAAS + "{}",
    ],
)
def test_a_wrong_address_is_refused_without_its_password(address: str, password: str) -> None:
    with pytest.raises(InputError) as refused:
        sink_at(address.replace("{}", password), "q")
    message = str(refused.value)
    assert "--to" in message
    assert "hun" not in message
    assert "ter2" not in message
    # Nor in what Python prints of an error that nobody catches.
    assert refused.value.__cause__ is None


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("postgresql://bob:hunter2@db:5432/shop?retry=1m", "postgresql://…@db:5432/shop?…"),
        ("postgresql://a:1,[::1]:2/shop?retry=1m", "postgresql://a:1,[::1]:2/shop?…"),
        ("kafka://a:1,b:2/?key=x", "kafka://a:1,b:2/?…"),
        ("kafka://a:1", "kafka://a:1"),
        ("kafka://bob:hunter2/t?x=@", "kafka://…"),
        ("postgresql://bob:hunter2/shop", "postgresql://…"),
        ("consol", "consol"),
        ("bob:hunter2", "…"),
        ("", ""),
    ],
)
def test_what_is_shown_of_an_address(address: str, words: str) -> None:
    assert shown(address) == words


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("postgresql://db/{query}?retry=1", {"dbname": "odd q", "host": "db"}),
        ("postgres://db/x%7Bquery%7D", {"dbname": "xodd q", "host": "db"}),
        (
            "postgresql://bob:{query}@db/shop",
            {"dbname": "shop", "user": "bob", "password": "{query}", "host": "db"},
        ),
        ("postgresql:///shop?host=/run/pg", {"dbname": "shop", "host": "/run/pg"}),
        (
            "postgresql://db/shop?options=-c%20search_path%3Dx",
            {"dbname": "shop", "host": "db", "options": "-c search_path=x"},
        ),
        ("postgresql://db/shop?password=a+b%26c", {"dbname": "shop", "host": "db", "password": "a+b&c"}),
        (
            "postgresql://bob:a?b%40c@db/shop?application_name={query}",
            {"dbname": "shop", "host": "db", "user": "bob", "password": "a?b@c", "application_name": "odd q"},
        ),
    ],
)
def test_libpq_reads_what_the_address_says(address: str, parts: dict[str, str]) -> None:
    view = sink_at(address, "odd q")
    assert isinstance(view, PostgresView)
    assert conninfo_to_dict(view.dsn) == parts
    assert (view.table, view.schema) == ("odd q", "public")


def test_the_query_may_stand_anywhere_behind_the_user() -> None:
    view = sink_at("postgresql://db/shop?schema={query}s&table=t{query}", "q")
    assert isinstance(view, PostgresView)
    assert (view.schema, view.table) == ("qs", "tq")
    assert sink_at("kafka://a/{query}?kafka.client.id=x+{query}", "q") == KafkaTopic(
        "a", "q", (), {"kafka.client.id": "x q"}
    )


@pytest.mark.parametrize("password", PASSWORDS)
@pytest.mark.parametrize(
    "dsn", ["postgresql://bob:{}@db:x/shop", "host=db passwrd={}", "host=db password={} x y"]
)
def test_a_wrong_dsn_is_refused_without_its_password(dsn: str, password: str) -> None:
    text = dsn.replace("{}", password)
    with pytest.raises(InputError, match="cannot be read") as refused:
        PostgresView(text, "t")
    session = Session()
    session.sql(
        f"CREATE TABLE t (k INT) USING postgres OPTIONS (dsn '{text}');"
        f"CREATE TABLE u (k INT) USING jdbc OPTIONS (url 'jdbc:postgresql://{text}', dbtable 'u');"
    )
    messages = [str(refused.value)]
    for name in "tu":
        table = session.catalog.find(name)
        assert isinstance(table, TableDef)
        with pytest.raises(DeclarationError, match="cannot be read") as wrong:
            read_postgres(table)
        messages.append(str(wrong.value))
    assert not [each for each in messages if "hun" in each or "ter2" in each]


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
        ("kafka.bootstrap.servers 'a:1,bob:pw@b:1', subscribe 'a'", "no user in their address"),
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
