"""Servers that go away under way: a query waits or stops, as it was told, and in the end nothing is lost or twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import polars as pl
import psycopg
import pytest
from tests.services.conftest import PostgresServer
from tests.services.kafka_server import KafkaServer

from headgate.model.errors import SetupError
from headgate.runtime.spark.options import SparkOptions
from headgate.runtime.spark.run import RunTarget, run_to_folder
from headgate.session import Session

pytestmark = pytest.mark.services

QUERY = """
CREATE STREAM s (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts
  USING kafka OPTIONS (kafka.bootstrap.servers '{servers}', subscribe '{topic}', maxOffsetsPerTrigger '5');
CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE 5 SECONDS] GROUP BY k;
"""
OUTAGE_S = 60


def values(first: int, last: int) -> list[str]:
    return [json.dumps({"ts": f"2026-01-01T00:00:{each:02d}Z", "k": each % 3}) for each in range(first, last)]


@pytest.fixture
def text(kafka: KafkaServer) -> str:
    topic = f"in-{uuid4().hex}"
    kafka.create(topic)
    kafka.send(topic, values(0, 20))
    return QUERY.format(servers=kafka.address, topic=topic)


def run(spark: Any, folder: Path, text: str, to: str) -> None:
    session = Session()
    session.sql(text)
    place = RunTarget(folder / "out", folder / "state", to=to)
    run_to_folder(spark, session.compile(None), folder, SparkOptions(shards=1), place)


def address(postgres: PostgresServer, table: str, retry: int) -> str:
    return f"postgresql://{postgres.user}@127.0.0.1:{postgres.port}/postgres?table={table}&retry={retry}"


def contents(postgres: PostgresServer, table: str) -> list[Any]:
    with psycopg.connect(postgres.dsn) as connection:
        return sorted(connection.execute(f"SELECT k, n, _copies FROM {table}").fetchall())


def expected(last: int) -> list[Any]:
    """What the five seconds before the clock hold; the clock stands before the last second that was seen."""
    held = [each % 3 for each in range(last - 6, last - 1)]
    return sorted((k, held.count(k), 1) for k in set(held))


def test_a_view_waits_for_its_server(spark: Any, postgres: PostgresServer, text: str, tmp_path: Path) -> None:
    table = f"v_{uuid4().hex}"
    postgres.stop()
    later = threading.Timer(OUTAGE_S, postgres.start)
    later.start()
    try:
        run(spark, tmp_path, text, address(postgres, table, 120))
    finally:
        later.join()
    assert contents(postgres, table) == expected(20)


def test_a_query_that_stops_goes_on_from_its_checkpoint(
    spark: Any, postgres: PostgresServer, kafka: KafkaServer, text: str, tmp_path: Path
) -> None:
    table = f"v_{uuid4().hex}"
    run(spark, tmp_path, text, address(postgres, table, 1))
    topic = text.partition("subscribe '")[2].partition("'")[0]
    kafka.send(topic, values(20, 40))
    postgres.stop()
    try:
        with pytest.raises(SetupError, match="PostgreSQL does not answer") as stopped:
            run(spark, tmp_path, text, address(postgres, table, 1))
        assert stopped.value.remedy is not None
        assert "nothing is lost" in stopped.value.remedy
    finally:
        postgres.start()
    run(spark, tmp_path, text, address(postgres, table, 1))
    assert contents(postgres, table) == expected(40)


def headgate(folder: Path, jars: Sequence[Path], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "headgate.cli.main", "run", "q.cql", "--output", "out", *words],
        cwd=folder,
        env={**os.environ, "PYSPARK_SUBMIT_ARGS": f"--jars {','.join(map(str, jars))} pyspark-shell"},
        text=True,
        capture_output=True,
        check=False,
        timeout=600,
    )


def test_the_command_reads_and_writes_topics(
    spark: Any, kafka: KafkaServer, connector_jars: Sequence[Path], text: str, tmp_path: Path
) -> None:
    answers = f"answers-{uuid4().hex}"
    kafka.create(answers)
    (tmp_path / "q.cql").write_text(text)
    words = ("--master", "local[1]", "--quiet", "--drain", "--to", f"kafka://{kafka.address}/{answers}?key=k")
    done = headgate(tmp_path, connector_jars, *words)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    found = [json.loads(each.value) for each in kafka.messages(answers)]
    births = sum(1 if each["_op"] == "+" else -1 for each in found)
    assert len(found) > 20
    # Everything that was born has died by the end of the last window.
    assert births == 0
    (tmp_path / "q.cql").write_text(text.replace("subscribe 'in-", "subscribe 'out-"))
    done = headgate(tmp_path, connector_jars, *words, "--overwrite")
    assert done.returncode == 2
    assert "there is no topic out-" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_stream_waits_for_its_server(spark: Any, kafka: KafkaServer, text: str, tmp_path: Path) -> None:
    session = Session(spark)
    session.sql(
        text.replace("SELECT k, COUNT(*) AS n FROM", "SELECT ISTREAM(ts, k) FROM").replace("GROUP BY k", "")
    )
    topic = text.partition("subscribe '")[2].partition("'")[0]
    handle = session.query("q").start(tmp_path / "out", checkpoint=tmp_path / "state", shards=1)

    def until(rows: int) -> list[Any]:
        for _ in range(600):
            files = sorted((tmp_path / "out" / "q").glob("*.parquet"))
            found = [row for file in files for row in pl.read_parquet(file).select("ts", "k").rows()]
            if len(found) >= rows or not handle.isActive:
                break
            time.sleep(0.2)
        return sorted(found)

    try:
        assert len(until(19)) == 19
        kafka.stop()
        time.sleep(10)
        kafka.start()
        kafka.send(topic, values(20, 40))
        # The last row waits for the clock to pass it.
        assert [ts.second for ts, _ in until(39)] == list(range(39))
        assert handle.exception() is None
    finally:
        handle.stop()
