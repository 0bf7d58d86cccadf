"""What a view is sent, and what is refused before a server is asked."""

from __future__ import annotations

import datetime as dt

import psycopg
import pyarrow as pa
import pytest

from headgate.model.errors import InputError, SetupError
from headgate.runtime.io.address import sink_at
from headgate.runtime.io.postgres_view import PostgresView, _as_csv, _net
from headgate.runtime.libpq import refusal

NOWHERE = "host=127.0.0.1 port=1"
# 63 bytes, the longest name that PostgreSQL does not cut.
LONGEST = "é" * 31 + "x"

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def log(column: str, values: list[float | None], dtype: pa.DataType, op: str = "+") -> pa.Table:
    """A change log of one column, all births or all deaths."""
    return pa.table(
        {
            column: pa.array(values, dtype),
            "_time": pa.array([NOW] * len(values), pa.timestamp("us", "UTC")),
            "_op": pa.array([op] * len(values), pa.string()),
        }
    )


@pytest.mark.parametrize("dtype", [pa.float32(), pa.float64()], ids=str)
def test_a_negative_zero_is_sent_as_zero(dtype: pa.DataType) -> None:
    # A row is found by a digest of its text, so a death must be written as the birth was.
    for zero in (0.0, -0.0):
        net = _net(log("x", [zero, 1.0, None, float("nan")], dtype), ["x"])
        assert sorted(_as_csv(net).splitlines()) == [b",1", b"0.0,1", b"1.0,1", b"NaN,1"]


@pytest.mark.parametrize("name", ["q" * 64, LONGEST + "q", "", "a\0b"])
def test_a_name_that_postgres_would_cut_or_not_take_is_refused(name: str) -> None:
    for place in ({"table": name}, {"table": "t", "schema": name}):
        with pytest.raises(InputError, match=r"63 bytes|no name|NUL"):
            PostgresView(NOWHERE, **place)
    with pytest.raises(InputError, match=r"63 bytes|no name|NUL"):
        PostgresView(NOWHERE, "t", retry_seconds=0).apply(log(name, [1.0], pa.float64()), 0)


def test_the_longest_names_are_taken() -> None:
    view = PostgresView(NOWHERE, LONGEST, LONGEST, retry_seconds=0)
    with pytest.raises(SetupError, match="does not answer"):
        view.apply(log(LONGEST, [1.0], pa.float64()), 0)


def test_a_query_whose_name_is_too_long_for_a_table_is_refused() -> None:
    with pytest.raises(InputError, match="63 bytes") as found:
        sink_at("postgresql://bob@127.0.0.1/shop", "q" * 64)
    assert "table" in str(found.value)


@pytest.mark.parametrize(
    ("said", "refused"),
    [
        ('connection to server at "::1", port 1 failed: FATAL:  database "a" does not exist', True),
        ('failed: Connection refused\n- failed: FATAL:  role "a" does not exist', True),
        ('failed: FATAL:  password authentication failed for user "a"', True),
        ("failed: fe_sendauth: no password supplied", True),
        ('failed: FATAL:  no pg_hba.conf entry for host "1.2.3.4", user "a", database "a"', True),
        ("failed: FATAL:  the database system is starting up", False),
        ("failed: FATAL:  sorry, too many clients already", False),
        ('failed: FATAL:  too many connections for database "it does not exist"', False),
        ("failed: Connection refused", False),
        ("consuming input failed: server closed the connection unexpectedly", False),
    ],
)
def test_only_what_will_not_pass_by_itself_is_a_refusal(said: str, refused: bool) -> None:
    assert (refusal(psycopg.OperationalError(said)) is not None) is refused
