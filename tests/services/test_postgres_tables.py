"""Tables from a real PostgreSQL: rows in the declared types, on both engines; names are names, not SQL."""

from __future__ import annotations

import datetime as dt
import threading
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import polars as pl
import psycopg
import pytest
from psycopg import sql
from tests.services.conftest import PostgresServer, free_port

from headgate.model.errors import DataError, DeclarationError, SetupError, UnsupportedError
from headgate.plan.catalog import TableDef
from headgate.runtime.io.postgres_table import read_postgres, read_relation
from headgate.runtime.spark.options import SparkOptions
from headgate.runtime.spark.run import RunTarget, run_to_folder
from headgate.session import Session

pytestmark = pytest.mark.services

NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)


def execute(server: PostgresServer, *commands: Any) -> None:
    with psycopg.connect(server.dsn) as connection:
        for command in commands:
            connection.execute(command)


@pytest.fixture
def relation(postgres: PostgresServer) -> str:
    """A relation with a row of many types and one of NULLs."""
    name = f"t_{uuid4().hex}"
    execute(
        postgres,
        f"CREATE TABLE {name} (i integer, b bigint, x double precision, n numeric(12, 3), t text, f boolean, "
        "d date, at timestamptz, raw bytea)",
        f"INSERT INTO {name} VALUES (7, 1234567890123, 0.5, 12.125, 'é\"…', true, '2026-01-31', "
        f"'{NOON.isoformat()}', '\\x00ff'), (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    )
    return name


def table(postgres: PostgresServer, columns: str, name: str, **options: str) -> TableDef:
    session = Session()
    given = {"dsn": postgres.dsn, "table": name, **options}
    listed = ", ".join(f"{key} '{value}'" for key, value in given.items())
    session.sql(f"CREATE TABLE t ({columns}) USING postgres OPTIONS ({listed});")
    found = session.catalog.find("t")
    assert isinstance(found, TableDef)
    return found


def test_values_come_as_they_are(postgres: PostgresServer, relation: str) -> None:
    columns = (
        "b BIGINT, i INT, x DOUBLE, n DECIMAL(12, 3), t STRING, f BOOLEAN, d DATE, at TIMESTAMP, raw BINARY"
    )
    rows = read_postgres(table(postgres, columns, relation)).rows()
    assert rows == [
        (1234567890123, 7, 0.5, Decimal("12.125"), 'é"…', True, dt.date(2026, 1, 31), NOON, b"\x00\xff"),
        (None,) * 9,
    ]
    assert read_postgres(table(postgres, "n DOUBLE, i BIGINT", f"public.{relation}")).rows()[0] == (12.125, 7)


@pytest.mark.parametrize("columns", ["t BIGINT", "x BIGINT", "b INT", "d TIMESTAMP", "raw STRING"])
def test_values_of_other_types_are_refused(postgres: PostgresServer, relation: str, columns: str) -> None:
    with pytest.raises(DataError, match=r"table t, column \w+: a value is not of type"):
        read_postgres(table(postgres, columns, relation))


def test_names_are_names_and_not_sql(postgres: PostgresServer) -> None:
    odd = 'x"; DROP TABLE y; --.z'
    name = sql.Identifier(odd)
    execute(postgres, sql.SQL("CREATE TABLE IF NOT EXISTS {} (i integer)").format(name))
    execute(postgres, sql.SQL("INSERT INTO {} VALUES (1)").format(name))
    quoted = '"' + odd.replace('"', '""') + '"'
    assert read_postgres(table(postgres, "i INT", quoted)).rows() == [(1,)]
    for wrong in ["pg_class; SELECT 1", "(SELECT 1) x", "pg_class WHERE true"]:
        with pytest.raises(SetupError, match="refuses to read"):
            read_postgres(table(postgres, "relname STRING", wrong))
    for wrong in ["a.b.c", "", '"a', ".b"]:
        with pytest.raises(DeclarationError, match="not the name of a relation"):
            read_relation(table(postgres, "i INT", wrong))


def test_jdbc_words_mean_the_same(postgres: PostgresServer, relation: str) -> None:
    session = Session()
    session.sql(
        f"CREATE TABLE t (i INT) USING jdbc OPTIONS (url 'jdbc:postgresql://127.0.0.1:{postgres.port}/postgres', "
        f"dbtable '{relation}', user '{postgres.user}', driver 'org.postgresql.Driver');"
        "CREATE TABLE u (i INT) USING jdbc OPTIONS (url 'jdbc:mysql://x/y', dbtable 'u');"
    )
    found, other = (session.catalog.find(name) for name in "tu")
    assert isinstance(found, TableDef)
    assert isinstance(other, TableDef)
    assert read_postgres(found).rows() == [(7,), (None,)]
    with pytest.raises(UnsupportedError, match="jdbc:postgresql"):
        read_postgres(other)


def test_a_server_that_comes_back_is_waited_for(postgres: PostgresServer, relation: str) -> None:
    definition = table(postgres, "i INT", relation)
    postgres.stop()
    later = threading.Timer(2.0, postgres.start)
    later.start()
    assert read_postgres(definition).height == 2
    later.join()


def test_a_server_that_never_answers_is_given_up_on(postgres: PostgresServer) -> None:
    away = table(postgres, "i INT", "t", dsn=f"host=127.0.0.1 port={free_port()}", retrySeconds="0.5")
    with pytest.raises(SetupError, match="does not answer"):
        read_postgres(away)


def test_a_refusal_that_will_not_pass_is_not_waited_for(postgres: PostgresServer) -> None:
    nowhere = table(postgres, "i INT", "t", dsn=f"{postgres.dsn} dbname=nowhere", retrySeconds="300")
    with pytest.raises(SetupError, match=r'refuses the connection.*database "nowhere" does not exist'):
        read_postgres(nowhere)


QUERY = """
CREATE STREAM s (ts TIMESTAMP, k INT) TIMESTAMP BY ts USING json OPTIONS (path 's.json');
CREATE TABLE names (k INT, name STRING) NON RETROACTIVE USING postgres OPTIONS (dsn '{dsn}', table '{table}');
CREATE QUERY q AS SELECT ISTREAM(s.k, names.name) FROM s [RANGE 5 SECONDS], names WHERE s.k = names.k;
"""


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_a_stream_is_joined_with_a_table(
    engine: str, request: pytest.FixtureRequest, postgres: PostgresServer, tmp_path: Path
) -> None:
    name = f"t_{uuid4().hex}"
    execute(
        postgres,
        f"CREATE TABLE {name} (k integer, name text)",
        f"INSERT INTO {name} VALUES (1, 'one'), (2, 'two')",
    )
    lines = [f'{{"ts": "2026-01-01T00:00:0{each}Z", "k": {each}}}\n' for each in (1, 2, 3)]
    (tmp_path / "s.json").write_text("".join(lines))
    session = Session()
    session.base = tmp_path
    session.sql(QUERY.format(dsn=postgres.dsn, table=name))
    if engine == "local":
        rows = session.run()["q"].to_polars()
    else:
        spark = request.getfixturevalue("spark")
        run_to_folder(
            spark, session.compile(None), tmp_path, SparkOptions(shards=2), RunTarget(tmp_path / "out")
        )
        rows = pl.read_parquet(tmp_path / "out" / "q" / "*.parquet")
    assert rows.select("k", "name").sort("k").rows() == [(1, "one"), (2, "two")]
