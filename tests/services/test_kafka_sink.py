"""Output to a real Kafka: births and deaths as JSON with keys, each with an id that a second copy has too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.services.kafka_server import KafkaServer

import headgate as hg
from headgate.model.errors import InputError
from headgate.runtime.io.kafka_topic import as_messages
from headgate.runtime.spark.filesystem import Folder
from headgate.runtime.spark.job_run import wait
from headgate.runtime.spark.options import SparkOptions
from headgate.runtime.spark.run import RunTarget, run_to_folder

pytestmark = pytest.mark.services

ROWS = [
    f'{{"ts": "2026-01-01T00:00:{each:02d}.25Z", "item": "{"ab"[each % 2]}", "n": {each}}}\n'
    for each in range(6)
]
STREAM = """
CREATE STREAM s (ts TIMESTAMP, item STRING, n BIGINT) TIMESTAMP BY ts USING json OPTIONS (path 's.json');
"""


@pytest.fixture
def topic(kafka: KafkaServer) -> str:
    name = f"answers-{uuid4().hex}"
    kafka.create(name, partitions=3)
    return name


def run(spark: Any, folder: Path, query: str, to: str) -> None:
    (folder / "s.json").write_text("".join(ROWS))
    session = hg.Session()
    session.sql(STREAM + query)
    place = RunTarget(folder / "out", to=to)
    run_to_folder(spark, session.compile(None), folder, SparkOptions(shards=2), place)


def identity(message: Any) -> str:
    return next(each.value.decode() for each in message.headers if each.key == "headgate-id")


def test_births_and_deaths_are_messages_with_keys(
    spark: Any, kafka: KafkaServer, topic: str, tmp_path: Path
) -> None:
    query = "CREATE QUERY q AS SELECT item, COUNT(*) AS c FROM s [RANGE 3 SECONDS] GROUP BY item;"
    run(spark, tmp_path, query, f"kafka://{kafka.address}/{topic}?key=item")
    found = kafka.messages(topic)
    local = hg.Session()
    local.base = tmp_path
    local.sql(STREAM + query)
    expected = local.run()["q"].to_dicts()
    values = [json.loads(each.value) for each in found]
    form = "%Y-%m-%dT%H:%M:%S.%fZ"
    assert sorted((each["_time"], each["item"], each["c"], each["_op"]) for each in values) == sorted(
        (each["_time"].strftime(form), each["item"], each["c"], each["_op"]) for each in expected
    )
    assert all(each.key == json.loads(each.value)["item"] for each in found)
    # What has one key is in one partition, in the order of time.
    for item in "ab":
        mine = [each for each in found if each.key == item]
        assert len({each.partition for each in mine}) == 1
        times = [json.loads(each.value)["_time"] for each in mine]
        assert times == sorted(times)
    assert len({identity(each) for each in found}) == len(found)
    # Rows went to the topic; what the run did is told in the folder.
    metrics = json.loads((tmp_path / "out" / "q" / "metrics.json").read_text())
    assert metrics["rows_out"] == len(found)


def test_a_second_copy_has_the_same_id(spark: Any) -> None:
    rows = spark.createDataFrame([(1, None), (1, None), (2, "x")], "n int, t string")
    first, again = (as_messages(rows.repartition(1), 7, "run", ()).collect() for _ in range(2))
    assert {identity(each) for each in first} == {identity(each) for each in again}
    assert len({identity(each) for each in first}) == 3
    assert [each.key for each in first] == [None] * 3


def test_a_micro_batch_that_comes_again_adds_what_is_missing(
    spark: Any, kafka: KafkaServer, topic: str, tmp_path: Path
) -> None:
    sink = hg.KafkaTopic(kafka.address, topic, ("n",)).beside(Folder(spark, str(tmp_path)), "q")
    rows = spark.createDataFrame([(n,) for n in (1, 1, 2, 3)], "n int").coalesce(1)
    sink(rows.limit(1), 0)
    # A crash after two of four messages, then the whole micro-batch, once and again.
    for part in (rows.limit(2), rows, rows):
        sink(part.coalesce(1), 1)
    found = kafka.messages(topic)
    assert sorted(json.loads(each.value)["n"] for each in found) == [1, 1, 1, 2, 3]
    assert len({identity(each) for each in found}) == 5


def test_a_topic_that_does_not_exist(spark: Any, kafka: KafkaServer, topic: str, tmp_path: Path) -> None:
    query = "CREATE QUERY q AS SELECT ISTREAM(item) FROM s [NOW];"
    with pytest.raises(InputError, match=f"there is no topic {topic}x"):
        run(spark, tmp_path, query, f"kafka://{kafka.address}/{topic}x")


def test_a_started_query_writes_to_kafka_by_name(
    spark: Any, kafka: KafkaServer, topic: str, tmp_path: Path
) -> None:
    """From a topic to a topic; rows of ISTREAM are keyed as the options say."""
    source = f"in-{uuid4().hex}"
    kafka.create(source)
    kafka.send(source, [each.strip() for each in ROWS])
    session = hg.Session(spark)
    session.sql(
        STREAM.replace(
            "json OPTIONS (path 's.json')",
            f"kafka OPTIONS (kafka.bootstrap.servers '{kafka.address}', subscribe '{source}')",
        )
    )
    query = session.sql("CREATE QUERY q AS SELECT ISTREAM(item, n) FROM s [RANGE 1 SECOND];")
    assert query is not None
    options = {"kafka.bootstrap.servers": kafka.address, "topic": topic, "keyColumn": "n"}
    handle = query.start(
        "kafka", checkpoint=tmp_path / "state", sink_options=options, trigger={"availableNow": True}, shards=2
    )
    wait(handle)
    found = kafka.messages(topic)
    # The last row waits for the clock to pass it.
    assert sorted(json.loads(each.value)["n"] for each in found) == [0, 1, 2, 3, 4]
    assert all(each.key == str(json.loads(each.value)["n"]) for each in found)
