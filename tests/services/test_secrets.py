"""Passwords of servers stay in memory: a run leaves none in its checkpoint, its output or what it prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from tests.services.conftest import PostgresServer
from tests.services.kafka_server import KafkaServer

from headgate.model.errors import SetupError
from headgate.runtime.spark.options import SparkOptions
from headgate.runtime.spark.run import RunTarget, run_to_folder
from headgate.session import Session

pytestmark = pytest.mark.services

SECRET = "hunter2"
JAAS = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="bob" password="{SECRET}";'
QUERY = """
CREATE STREAM s (ts TIMESTAMP, k INT) TIMESTAMP BY ts USING kafka OPTIONS (
  kafka.bootstrap.servers '{servers}', subscribe '{topic}', kafka.sasl.jaas.config '{jaas}',
  kafka.ssl.key.password '{secret}'{more});
CREATE TABLE names (k INT, name STRING) NON RETROACTIVE USING postgres OPTIONS (dsn '{dsn}', table '{table}');
CREATE QUERY q AS SELECT s.k, names.name FROM s [RANGE 5 SECONDS], names WHERE s.k = names.k;
"""


@pytest.fixture
def name(kafka: KafkaServer, postgres: PostgresServer) -> str:
    """A topic with two messages, and a table with two rows."""
    name = f"t_{uuid4().hex}"
    kafka.create(name)
    kafka.send(name, [f'{{"ts": "2026-01-01T00:00:0{each}Z", "k": {each}}}' for each in (1, 2)])
    with psycopg.connect(postgres.dsn) as connection:
        connection.execute(f"CREATE TABLE {name} (k integer, name text)")
        connection.execute(f"INSERT INTO {name} VALUES (1, 'one'), (2, 'two')")
    return name


def run(spark: Any, folder: Path, kafka: KafkaServer, postgres: PostgresServer, name: str, **how: str) -> Any:
    dsn = f"{postgres.dsn} password={SECRET}"
    session = Session()
    text = QUERY.format(
        servers=kafka.address, topic=name, jaas=how.get("jaas", JAAS), secret=SECRET, dsn=dsn, table=name,
        more=how.get("more", ""),
    )  # fmt: skip
    session.sql(text)
    place = RunTarget(folder / "out", folder / "state", to=how.get("to"))
    options = SparkOptions(shards=2, drain=True)
    return run_to_folder(spark, session.compile(None), folder, options, place)


def holding(folder: Path) -> list[Path]:
    """The files that hold the secret."""
    files = [each for each in folder.rglob("*") if each.is_file()]
    assert len(files) > 10
    return [each for each in files if SECRET.encode() in each.read_bytes()]


def test_files_of_a_run_hold_no_password(
    spark: Any,
    kafka: KafkaServer,
    postgres: PostgresServer,
    name: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    kafka.create(f"{name}-out")
    view = f"postgresql://{postgres.user}:{SECRET}@127.0.0.1:{postgres.port}/postgres?table={name}_view"
    topic = f"kafka://{kafka.address}/{name}-out?kafka.ssl.key.password={SECRET}"
    for number, to in enumerate((view, topic)):
        run(spark, tmp_path / str(number), kafka, postgres, name, to=to)
    with psycopg.connect(postgres.dsn) as connection:
        assert connection.execute(f"SELECT count(*) FROM {name}_view").fetchone() == (0,)
    assert len(kafka.messages(f"{name}-out")) == 4
    assert holding(tmp_path) == []
    assert SECRET not in "".join(capfd.readouterr())


@pytest.mark.parametrize(
    ("jaas", "protocol"),
    [(JAAS, "SASL_SSL"), (JAAS.rstrip(";"), "SASL_PLAINTEXT"), (f"x y password={SECRET}", "SASL_PLAINTEXT")],
)
def test_a_failure_to_sign_in_tells_no_password(
    spark: Any,
    kafka: KafkaServer,
    postgres: PostgresServer,
    name: str,
    tmp_path: Path,
    jaas: str,
    protocol: str,
) -> None:
    more = f", kafka.security.protocol '{protocol}', kafka.sasl.mechanism 'PLAIN'"
    with pytest.raises(SetupError, match="Kafka at") as failed:
        run(spark, tmp_path, kafka, postgres, name, jaas=jaas, more=more)
    assert SECRET not in str(failed.value)
