"""Streams from a real Kafka: the answer is the local engine's over the same rows; what is wrong is said clearly."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import polars as pl
import pytest
from tests.services.conftest import free_port
from tests.services.kafka_server import KafkaServer

from headgate.model.errors import DataError, InputError, SetupError
from headgate.runtime.spark.options import SparkOptions
from headgate.runtime.spark.run import RunTarget, run_to_folder
from headgate.session import Session

pytestmark = pytest.mark.services

QUERY = "CREATE QUERY q AS SELECT ISTREAM(k, COUNT(*) AS n) FROM s [RANGE 5 SECONDS] GROUP BY k;"


@pytest.fixture
def topic(kafka: KafkaServer) -> str:
    name = f"topic-{uuid4().hex}"
    kafka.create(name, partitions=2)
    return name


def value(second: int, k: Any, **more: Any) -> str:
    return json.dumps({"ts": f"2026-01-01T00:{second // 60:02d}:{second % 60:02d}Z", "k": k, **more})


def declared(
    kafka: KafkaServer, topic: str, *, columns: str = "ts TIMESTAMP, k BIGINT", options: str = ""
) -> str:
    return (
        f"CREATE STREAM s ({columns}) TIMESTAMP BY ts WITHIN INTERVAL 30 SECONDS USING kafka OPTIONS "
        f"(kafka.bootstrap.servers '{kafka.address}', subscribe '{topic}'{options});\n"
    )


def run(spark: Any, folder: Path, text: str, **options: Any) -> Any:
    session = Session()
    session.sql(text)
    place = RunTarget(folder / "out", folder / "state")
    return run_to_folder(
        spark, session.compile(None), folder, SparkOptions(**{"shards": 2, **options}), place
    )


def output(folder: Path, *columns: str) -> list[Any]:
    return sorted(pl.read_parquet(folder / "out" / "q" / "*.parquet").select(*columns).rows())


def test_the_answer_is_that_of_the_local_engine(
    spark: Any, kafka: KafkaServer, topic: str, tmp_path: Path
) -> None:
    rows = [(second, second * 7 % 3) for second in range(40)]
    for partition in (0, 1):
        kafka.send(topic, [value(*each) for each in rows[partition::2]], partition=partition)
    summary = run(spark, tmp_path, declared(kafka, topic) + QUERY, drain=True)
    assert summary.metrics["q"]["rows_in"] == len(rows)
    local = Session()
    local.sql("CREATE STREAM s (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts;" + QUERY)
    start = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    local.stream("s", [{"ts": start + dt.timedelta(seconds=each), "k": k} for each, k in rows])
    expected = local.run()["q"].to_polars().select("_time", "k", "n").rows()
    assert output(tmp_path, "_time", "k", "n") == sorted(expected)


def test_a_later_run_goes_on_behind_the_last_message(
    spark: Any, kafka: KafkaServer, topic: str, tmp_path: Path
) -> None:
    text = declared(kafka, topic) + "CREATE QUERY q AS SELECT ISTREAM(k) FROM s [RANGE 5 SECONDS];"
    kafka.send(topic, [value(0, 1), value(1, 2)])
    run(spark, tmp_path, text)
    kafka.send(topic, [value(2, 3)])
    kafka.send(topic, [value(3, 4)], partition=1)
    run(spark, tmp_path, text)
    run(spark, tmp_path, text, drain=True)
    assert output(tmp_path, "k") == [(1,), (2,), (3,), (4,)]


def test_keys_and_timestamps_can_be_columns(
    spark: Any, kafka: KafkaServer, topic: str, tmp_path: Path
) -> None:
    kafka.send(topic, ['{"k": 7}'], key="42")
    columns = "ts TIMESTAMP, k BIGINT, id INT"
    text = declared(kafka, topic, columns=columns, options=", keyColumn 'id', timestampColumn 'TS'")
    run(spark, tmp_path, text + "CREATE QUERY q AS SELECT ISTREAM(k, id) FROM s [NOW];", drain=True)
    assert output(tmp_path, "k", "id") == [(7, 42)]


def test_a_topic_that_does_not_exist(spark: Any, kafka: KafkaServer, topic: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"there is no topic {topic}x at {kafka.address}") as refused:
        run(spark, tmp_path, declared(kafka, f"{topic}x") + QUERY)
    assert refused.value.remedy is not None
    assert topic in refused.value.remedy


def test_a_server_that_does_not_answer(spark: Any, kafka: KafkaServer, tmp_path: Path) -> None:
    text = declared(kafka, "t").replace(kafka.address, f"127.0.0.1:{free_port()}")
    with pytest.raises(SetupError, match="does not answer"):
        run(spark, tmp_path, text + QUERY)


def test_a_malformed_message_stops_the_run_and_nothing_is_lost(
    spark: Any, kafka: KafkaServer, topic: str, tmp_path: Path
) -> None:
    """Also when the schema of the values changes under way."""
    text = declared(kafka, topic) + "CREATE QUERY q AS SELECT ISTREAM(k) FROM s [RANGE 5 SECONDS];"
    kafka.send(topic, [value(0, 1)])
    run(spark, tmp_path, text)
    kafka.send(topic, [value(1, 2), value(2, "three"), value(3, 4), None, "{"])
    message = f"topic {topic}, partition 0, offset 2, column k: .*three"
    with pytest.raises(DataError, match=message) as stopped:
        run(spark, tmp_path, text)
    assert stopped.value.remedy is not None
    assert "--rejects" in stopped.value.remedy
    summary = run(spark, tmp_path, text, rejects=str(tmp_path / "bad"), drain=True)
    assert output(tmp_path, "k") == [(1,), (2,), (4,)]
    assert summary.rejected_rows == 3
    (file,) = (tmp_path / "bad" / "s").glob("*.json")
    bad = [json.loads(line) for line in file.read_text().splitlines()]
    assert [each["file"].rpartition(" ")[2] for each in bad] == ["2", "4", "5"]
    assert json.loads(bad[0]["text"])["k"] == "three"


def test_a_field_that_goes_missing_can_be_a_flaw(
    spark: Any, kafka: KafkaServer, topic: str, tmp_path: Path
) -> None:
    columns = "ts TIMESTAMP, k BIGINT, name STRING"
    text = declared(kafka, topic, columns=columns, options=", missingFields 'reject'") + QUERY
    kafka.send(topic, [value(0, 1, name=None), value(1, 2, label="x")])
    with pytest.raises(DataError, match="offset 1, column name: the field is missing"):
        run(spark, tmp_path, text)


def test_values_may_count_time_from_1970(spark: Any, kafka: KafkaServer, topic: str, tmp_path: Path) -> None:
    text = declared(kafka, topic, options=", timestampFormat 'epoch_millis'")
    kafka.send(topic, [json.dumps({"ts": millis, "k": 1}) for millis in (1_000, 2_500, 90_000)])
    run(spark, tmp_path, text + "CREATE QUERY q AS SELECT ISTREAM(k) FROM s [RANGE 5 SECONDS];", drain=True)
    assert [each.timestamp() for (each,) in output(tmp_path, "_time")] == [1.0, 2.5, 90.0]
