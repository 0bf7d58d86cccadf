"""A view in a real PostgreSQL holds the query's answer after every micro-batch, however often one comes."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import polars as pl
import psycopg
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.services.conftest import PostgresServer

import headgate as hg
from headgate.model.errors import DataError, InputError, SetupError, UnsupportedError
from headgate.runtime.io.postgres_view import PostgresView

pytestmark = pytest.mark.services

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def log(changes: list[tuple[str, Any]], dtype: pa.DataType) -> pa.Table:
    """A change log of one column `x`."""
    return pa.table(
        {
            "x": pa.array([value for _, value in changes], dtype),
            "_time": pa.array([NOW] * len(changes), pa.timestamp("us", "UTC")),
            "_op": pa.array([op for op, _ in changes], pa.string()),
        }
    )


def contents(server: PostgresServer, table: str) -> list[Any]:
    with psycopg.connect(server.dsn) as connection:
        rows = connection.execute(
            psycopg.sql.SQL("SELECT x, _copies FROM {}").format(psycopg.sql.Identifier(table))
        ).fetchall()
    return sorted([value for value, copies in rows for _ in range(copies)], key=repr)


@pytest.fixture
def view(postgres: PostgresServer) -> PostgresView:
    return PostgresView(postgres.dsn, f"view_{uuid4().hex}")


def test_births_and_deaths_are_applied(view: PostgresView, postgres: PostgresServer) -> None:
    assert view.apply(log([("+", "a"), ("+", "b"), ("+", "a")], pa.string()), 0)
    assert contents(postgres, view.table) == ["a", "a", "b"]
    assert view.apply(log([("-", "a"), ("-", "b"), ("+", "c"), ("+", "d"), ("-", "d")], pa.string()), 1)
    assert contents(postgres, view.table) == ["a", "c"]


def test_a_replay_changes_nothing(view: PostgresView, postgres: PostgresServer) -> None:
    first, second = log([("+", 1), ("+", 2)], pa.int64()), log([("-", 1)], pa.int64())
    for changes, batch, applied in [
        (first, 0, True),
        (first, 0, False),
        (second, 1, True),
        (second, 1, False),
    ]:
        assert view.apply(changes, batch) is applied
    assert contents(postgres, view.table) == [2]


def test_a_view_whose_table_is_gone_is_not_begun_in_the_middle(
    view: PostgresView, postgres: PostgresServer
) -> None:
    view.apply(log([("+", "a")], pa.string()), 0)
    with psycopg.connect(postgres.dsn) as connection:
        connection.execute(psycopg.sql.SQL("DROP TABLE {}").format(psycopg.sql.Identifier(view.table)))
    for _ in range(2):
        with pytest.raises(InputError, match="is gone"):
            view.apply(log([("+", "b")], pa.string()), 1)


def test_another_checkpoint_does_not_change_a_view_that_is_not_its_own(view: PostgresView) -> None:
    view.apply(log([("+", 1)], pa.int64()), 5, run="one")
    with pytest.raises(InputError, match="another checkpoint"):
        view.apply(log([("+", 2)], pa.int64()), 0, run="two")


def together(works: list[Callable[[], object]]) -> list[Exception]:
    """What goes wrong when some works begin at one moment, each in a thread."""
    begin, wrong = threading.Barrier(len(works)), list[Exception]()

    def run(work: Callable[[], object]) -> None:
        begin.wait()
        try:
            work()
        except Exception as error:  # noqa: BLE001 - looked at by the caller
            wrong.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return wrong


def test_views_that_start_together_do_not_disturb_one_another(postgres: PostgresServer) -> None:
    for _ in range(6):
        # A database in which no view has ever been.
        name = f"db_{uuid4().hex}"
        with psycopg.connect(postgres.dsn, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        dsn = postgres.dsn.replace("dbname=postgres", f"dbname={name}")
        views = [PostgresView(dsn, f"view_{number}", retry_seconds=5) for number in range(3)]
        works = [partial(each.apply, log([("+", 1)], pa.int64()), 0, run=each.table) for each in views]
        assert together(works) == []
        with psycopg.connect(dsn) as connection:
            found = connection.execute("SELECT view, run, batch FROM headgate_views ORDER BY view").fetchall()
        assert found == [(f"public.view_{number}", f"view_{number}", 0) for number in range(3)]


@pytest.mark.parametrize("is_there", [False, True])
def test_of_two_runs_that_start_together_one_gets_the_view(is_there: bool, postgres: PostgresServer) -> None:
    for _ in range(6):
        view = PostgresView(postgres.dsn, f"view_{uuid4().hex}", retry_seconds=5)
        if is_there:
            with psycopg.connect(postgres.dsn) as connection:
                connection.execute(
                    f"CREATE TABLE {view.table} (x bigint, _copies bigint NOT NULL, _key bytea PRIMARY KEY)"
                )
        works = [partial(view.apply, log([("+", run)], pa.int64()), 0, run=str(run)) for run in range(3)]
        wrong = together(works)
        assert len(wrong) == 2
        assert all(isinstance(each, InputError) and "another checkpoint" in str(each) for each in wrong)
        [kept] = contents(postgres, view.table)
        with psycopg.connect(postgres.dsn) as connection:
            noted = "SELECT run, batch FROM headgate_views WHERE view = %s"
            assert connection.execute(noted, [f"public.{view.table}"]).fetchall() == [(str(kept), 0)]


def test_a_view_that_is_there_needs_no_right_to_make_tables(
    view: PostgresView, postgres: PostgresServer
) -> None:
    view.apply(log([("+", 1)], pa.int64()), 0)
    user = f"user_{uuid4().hex}"
    with psycopg.connect(postgres.dsn) as connection:
        connection.execute(f"CREATE ROLE {user} LOGIN")
        connection.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {view.table}, headgate_views TO {user}")
    view.dsn = postgres.dsn.replace(f"user={postgres.user}", f"user={user}")
    assert view.apply(log([("+", 2)], pa.int64()), 1)
    assert contents(postgres, view.table) == [1, 2]


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        (pa.string(), ["", None, 'he said "no"', "a,b", "line\nbreak", "back\\slash", "\\N", "é…"]),
        (pa.float64(), [0.1, -0.0, float("inf"), None, 1e300]),
        (pa.bool_(), [True, False, None]),
        (pa.int8(), [-128, 127, None]),
        (pa.decimal128(20, 4), [Decimal("12345678901234.5678"), None]),
        (pa.date32(), [dt.date(1969, 12, 31), None]),
        (pa.timestamp("us", "UTC"), [NOW + dt.timedelta(microseconds=1), None]),
        (pa.timestamp("us"), [dt.datetime(1960, 1, 1, 0, 0, 0, 5), None]),  # noqa: DTZ001 - has no zone
    ],
    ids=str,
)
def test_values_come_back_as_they_were(
    dtype: pa.DataType, values: list[Any], view: PostgresView, postgres: PostgresServer
) -> None:
    view.apply(log([("+", value) for value in values], dtype), 0)
    # -0.0 and 0.0 are one value.
    stored = [0.0 if value == 0 and dtype == pa.float64() else value for value in values]
    assert contents(postgres, view.table) == sorted(stored, key=repr)
    view.apply(log([("-", value) for value in values], dtype), 1)
    assert contents(postgres, view.table) == []


def test_a_death_finds_its_birth_whatever_the_sign_of_zero(
    view: PostgresView, postgres: PostgresServer
) -> None:
    view.apply(log([("+", 0.0), ("+", 1.0)], pa.float64()), 0)
    view.apply(log([("-", -0.0), ("+", 2.0)], pa.float64()), 1)
    assert contents(postgres, view.table) == [1.0, 2.0]


@settings(max_examples=20, deadline=None)
@given(
    batches=st.lists(
        st.lists(st.tuples(st.sampled_from(["a", "b", None, ""]), st.integers(1, 3)), max_size=6), max_size=5
    ),
    again=st.lists(st.booleans(), min_size=5, max_size=5),
)
def test_the_view_is_the_bag_of_what_was_not_taken_back(
    batches: list[list[tuple[str | None, int]]], again: list[bool], postgres: PostgresServer
) -> None:
    view = PostgresView(postgres.dsn, f"view_{uuid4().hex}")
    held: list[str | None] = []
    for number, batch in enumerate(batches):
        changes: list[tuple[str, str | None]] = []
        for value, count in batch:
            if value in held:
                held.remove(value)
                changes.append(("-", value))
            held += [value] * count
            changes += [("+", value)] * count
        for _ in range(1 + again[number]):
            view.apply(log(changes, pa.string()), number)
    if batches:
        assert contents(postgres, view.table) == sorted(held, key=repr)


def test_names_are_names_and_not_sql(postgres: PostgresServer) -> None:
    view = PostgresView(postgres.dsn, 'x"; DROP TABLE y; --')
    view.apply(log([("+", 1)], pa.int64()), 0)
    assert contents(postgres, view.table) == [1]


def test_a_server_that_is_down_for_a_while_loses_nothing(
    view: PostgresView, postgres: PostgresServer
) -> None:
    view.apply(log([("+", 1)], pa.int64()), 0)
    postgres.stop()
    waited: list[str] = []
    view.on_wait = waited.append
    later = threading.Timer(2.0, postgres.start)
    later.start()
    assert view.apply(log([("+", 2)], pa.int64()), 1)
    later.join()
    assert waited
    assert contents(postgres, view.table) == [1, 2]


def test_a_server_that_never_answers_is_given_up_on(postgres: PostgresServer) -> None:
    view = PostgresView("host=127.0.0.1 port=1", "any", retry_seconds=0.3)
    with pytest.raises(SetupError, match="does not answer"):
        view.apply(log([("+", 1)], pa.int64()), 0)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ("dbname=nowhere", 'database "nowhere" does not exist'),
        ("user=nobody", 'role "nobody" does not exist'),
    ],
)
def test_a_refusal_that_will_not_pass_is_not_waited_for(
    part: str, message: str, postgres: PostgresServer
) -> None:
    waited: list[str] = []
    view = PostgresView(f"{postgres.dsn} {part}", "any", on_wait=waited.append)
    with pytest.raises(SetupError, match=message):
        view.apply(log([("+", 1)], pa.int64()), 0)
    assert waited == []


def test_a_wrong_password_is_not_waited_for(postgres: PostgresServer) -> None:
    user = f"user_{uuid4().hex}"
    rules = postgres.data / "pg_hba.conf"
    before = rules.read_text()
    rules.write_text(f"host all {user} 127.0.0.1/32 scram-sha-256\n{before}")
    try:
        with psycopg.connect(postgres.dsn, autocommit=True) as connection:
            connection.execute(f"CREATE ROLE {user} LOGIN PASSWORD 'right'")
            connection.execute("SELECT pg_reload_conf()")
        dsn = postgres.dsn.replace(f"user={postgres.user}", f"user={user}")
        for given, message in (("password=hunter2", "password authentication failed"), ("", "no password")):
            with pytest.raises(SetupError, match=message) as found:
                PostgresView(f"{dsn} {given}", "any").apply(log([("+", 1)], pa.int64()), 0)
            assert "hunter2" not in str(found.value)
    finally:
        rules.write_text(before)
        with psycopg.connect(postgres.dsn, autocommit=True) as connection:
            connection.execute("SELECT pg_reload_conf()")


def test_a_table_that_somebody_changed_is_noticed_and_left_as_it_was(
    view: PostgresView, postgres: PostgresServer
) -> None:
    view.apply(log([("+", 1)], pa.int64()), 0)
    with pytest.raises(DataError, match="not in it"):
        view.apply(log([("-", 7), ("+", 5)], pa.int64()), 1)
    assert contents(postgres, view.table) == [1]


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (pa.table({"x": [1], "_time": [NOW]}), InputError, "answer changes"),
        (log([("+", [1])], pa.list_(pa.int64())), UnsupportedError, "cannot be kept"),
        (log([("+", "a\0b")], pa.string()), DataError, "NUL"),
        (log([("+", 1)], pa.int64()).rename_columns(["_key", "_time", "_op"]), InputError, "of its own"),
    ],
)
def test_what_cannot_be_kept_is_refused(
    changes: pa.Table, error: type[Exception], message: str, view: PostgresView
) -> None:
    with pytest.raises(error, match=message):
        view.apply(changes, 0)


def test_the_password_is_not_shown(view: PostgresView) -> None:
    assert "host" not in repr(view)


def test_a_query_on_spark_keeps_its_answer_in_the_view(
    spark: Any, tmp_path: Path, view: PostgresView, postgres: PostgresServer
) -> None:
    rows = pl.DataFrame({"ts": [1, 2, 3, 40, 41, 100], "x": ["a", "b", "a", "c", "a", "end"]})
    rows = rows.with_columns(pl.from_epoch("ts", time_unit="s").dt.replace_time_zone("UTC"))
    (tmp_path / "rows").mkdir()
    for number, piece in enumerate(rows.iter_slices(2)):
        piece.write_parquet(tmp_path / "rows" / f"{number}.parquet")
    session = hg.Session(spark)
    frame = spark.readStream.schema("ts timestamp, x string").option("maxFilesPerTrigger", 1)
    session.stream("s", frame.parquet(str(tmp_path / "rows")), time="ts")
    query = session.sql("SELECT x FROM s [RANGE 60 SECONDS]")
    assert query is not None
    handle = query.start(view, shards=2, checkpoint=tmp_path / "checkpoint", trigger={"availableNow": True})
    handle.awaitTermination()
    # At 99 seconds, the last instant that is complete, the rows at 40 and 41 are alive.
    assert contents(postgres, view.table) == ["a", "c"]
