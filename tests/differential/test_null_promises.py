"""NULL in the columns of a promise: nothing can close it, so where it would be kept as a value its row is late."""

from __future__ import annotations

import polars as pl
import pyarrow as pa
import pytest
from tests.differential.local import output_of
from tests.differential.test_cases import row_by_row
from tests.oracle.oracle import Oracle
from tests.oracle.values import same_output
from tests.spark.shards import Cluster, stage_of

from headgate.physical.compile import compile_query
from headgate.physical.program import Program
from headgate.runtime.data import frame_of
from headgate.runtime.local.engine import LocalRun
from headgate.session import Session

KEY, FLAGGED = "KEY (a)", "PUNCTUATED BY (a) WHEN p"
ORDERED, CLUSTERED = "ORDERED BY (a) WITHIN 20 ROWS", "CLUSTERED BY (a) WITHIN 20 ROWS"
IN_TIME = ("ORDERED BY (a) WITHIN 20 SECONDS", "CLUSTERED BY (a) WITHIN 20 SECONDS")
EVERY = "PUNCTUATED BY (a)"
PAIR = "KEY (a, c)"
PROMISES = (KEY, FLAGGED, EVERY, ORDERED, CLUSTERED, *IN_TIME, PAIR)

DISTINCT = "SELECT DISTINCT a, c FROM s"
GROUPS = "SELECT a, c, COUNT(*) AS n, MEDIAN(d) AS d FROM s GROUP BY a, c"

TWO = {
    "union": "SELECT a, c FROM s UNION SELECT a, c FROM t",
    "except": "SELECT a, c FROM s EXCEPT SELECT a, c FROM t",
    "except all": "SELECT a, c FROM s EXCEPT ALL SELECT a, c FROM t",
    "intersect": "SELECT a, c FROM s INTERSECT SELECT a, c FROM t",
    "extremes": "SELECT MIN(m) AS m FROM (SELECT a, MAX(d) AS m FROM s GROUP BY a) x",
}
"""Where NULL would be kept as a value, over two streams with the same promise."""

COLUMNS = "ts TIMESTAMP, a BIGINT, c BIGINT, d BIGINT, p BOOLEAN"


def declared(promise: str, query: str, *, names: tuple[str, ...] = ("s",)) -> str:
    streams = "".join(f"CREATE STREAM {name} ({COLUMNS}) TIMESTAMP BY ts {promise};\n" for name in names)
    return f"{streams}CREATE QUERY q AS {query};"


def arrived(promise: str, count: int, *, nulls: bool) -> pa.Table:
    """Rows that keep a promise but for NULLs: one in three has NULL in `a`, and every second of these is flagged."""
    number = pl.int_range(count, dtype=pl.Int64, eager=True)
    once = promise in (KEY, EVERY)
    frame = pl.DataFrame({"n": number}).select(
        (pl.col("n") * 1_000_000).cast(pl.Datetime("us")).alias("ts"),
        pl.when(pl.lit(value=nulls) & (pl.col("n") % 3 == 0))
        .then(None)
        .otherwise(pl.col("n") if once else pl.col("n") // 6)
        .alias("a"),
        pl.col("n").alias("c"),
        (pl.col("n") % 5).alias("d"),
        ((pl.col("n") % 6 == 5) | (pl.col("n") % 6 == 0)).alias("p")
        if nulls
        else (pl.col("n") % 6 == 5).alias("p"),
    )
    return frame.to_arrow()


def played(text: str, rows: dict[str, pa.Table], *, step: int = 200) -> tuple[int, pl.DataFrame]:
    """The largest state of a query, in rows, and the rows that came late."""
    session = Session()
    session.sql(text)
    query = session.query("q")
    assert query.check().admitted
    ready = compile_query(query.planned)
    streams = [
        (stream, frame_of(rows[stream.name], stream.columns).iter_slices(step)) for stream in ready.streams
    ]
    sizes: list[int] = []
    late: list[pl.DataFrame] = []
    LocalRun(Program((ready,)), streams).run(
        lambda *_: None, lambda query, stream, frame: late.append(frame), lambda p: sizes.append(p.state_rows)
    )
    return max(sizes), pl.concat(late) if late else pl.DataFrame()


@pytest.mark.parametrize("query", [DISTINCT, GROUPS], ids=["distinct", "groups"])
@pytest.mark.parametrize("promise", PROMISES)
def test_nulls_do_not_grow_the_state(promise: str, query: str) -> None:
    text, rows = declared(promise, query), 6000
    usual, none_late = played(text, {"s": arrived(promise, rows, nulls=False)})
    assert none_late.is_empty()
    largest, late = played(text, {"s": arrived(promise, rows, nulls=True)})
    assert largest <= usual + 10 < rows / 2
    assert late["a"].is_null().all()
    assert late.height == rows / 3


@pytest.mark.parametrize("query", [DISTINCT, GROUPS], ids=["distinct", "groups"])
@pytest.mark.parametrize("promise", PROMISES)
def test_the_answer_is_that_of_the_rows_that_were_not_late(promise: str, query: str) -> None:
    text, rows = declared(promise, query), arrived(promise, 60, nulls=True)
    kept = {"s": rows.filter(rows["a"].is_valid())}
    expected = Oracle(text, kept, {}).output("q")
    assert expected
    assert same_output(output_of(text, "q", row_by_row({"s": rows}, step=3), {}), expected)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a, c FROM s",
        "SELECT a, COUNT(*) AS n FROM s [RANGE 9 SECONDS] GROUP BY a",
        "SELECT DISTINCT a, c FROM s [ROWS 7]",
        "SELECT DISTINCT p FROM s",
        "SELECT s.c, t.c FROM s, t WHERE s.a = t.a",
        "SELECT ISTREAM(DISTINCT s.a, s.c) FROM s, t WHERE s.a = t.a",
        "SELECT s.a, COUNT(*) AS n FROM s, t WHERE s.a = t.a GROUP BY s.a",
        "SELECT DISTINCT a, c FROM s WHERE a IS NOT NULL",
        "SELECT a, c, COUNT(*) AS n FROM s WHERE a > 3 AND c < 50 GROUP BY a, c",
        "SELECT c FROM s [RANGE 9 SECONDS] "
        "WHERE NOT EXISTS (SELECT * FROM t [RANGE 5 SECONDS] WHERE t.a = s.a)",
        "SELECT a FROM s [RANGE 9 SECONDS] EXCEPT ALL SELECT a FROM t [RANGE 3 SECONDS]",
    ],
)
@pytest.mark.parametrize("promise", [KEY, FLAGGED, ORDERED])
def test_no_row_is_late_where_null_is_not_kept_by_promise(promise: str, query: str) -> None:
    names = ("s", "t") if " t " in query else ("s",)
    text = declared(promise, query, names=names)
    rows = {name: arrived(promise, 60, nulls=True) for name in names}
    _, late = played(text, rows, step=7)
    assert late.is_empty()
    expected = Oracle(text, rows, {}).output("q")
    assert same_output(output_of(text, "q", row_by_row(rows, step=3), {}), expected)


@pytest.mark.parametrize(
    "where", ["a IS NULL", "a IS NULL OR a > 3", "COALESCE(a, 7) > 3", "c > 3", "NOT (a > 3 AND c > 3)"]
)
def test_a_filter_that_lets_null_through_changes_nothing(where: str) -> None:
    text = declared(KEY, f"SELECT DISTINCT a, c FROM s WHERE {where}")
    _, late = played(text, {"s": arrived(KEY, 60, nulls=True)})
    assert late.height == 20


def test_the_gate_says_that_rows_with_null_are_late() -> None:
    session = Session()
    session.sql(declared(PAIR, GROUPS))
    assert [state.reason for state in session.query("q").check().states] == [
        "a group is forgotten when its s.a, s.c is closed on s (KEY (a, c)); a row with NULL there is late"
    ]
    session.sql(f"CREATE QUERY filled AS {DISTINCT} WHERE a IS NOT NULL AND c = d")
    assert "NULL" not in session.query("filled").check().states[0].reason


def test_queries_that_run_together_miss_only_what_breaks_their_own_promises() -> None:
    session = Session()
    session.sql(declared(KEY, DISTINCT))
    session.sql("CREATE QUERY plain AS SELECT ISTREAM(a, c) FROM s;")
    session.stream("s", pl.from_arrow(arrived(KEY, 60, nulls=True)))
    found = session.run()
    assert {name: (each.metrics.late_rows, each.table.num_rows) for name, each in found.items()} == {
        "q": (20, 40),
        "plain": (0, 60),
    }


@pytest.mark.parametrize("query", [DISTINCT, GROUPS], ids=["distinct", "groups"])
@pytest.mark.parametrize("promise", [KEY, FLAGGED, ORDERED, CLUSTERED, *IN_TIME])
def test_shards_set_the_same_rows_aside(promise: str, query: str) -> None:
    text, rows = declared(promise, query), arrived(promise, 60, nulls=True)
    cluster = Cluster(stage_of(text, "q", {}, shards=3, narrow=True))
    for start in range(0, 60, 15):
        cluster.batch({"s": [rows.slice(start, 15)]})
    cluster.end()
    assert cluster.late == {"s": 20}
    expected = Oracle(text, {"s": rows.filter(rows["a"].is_valid())}, {}).output("q")
    assert same_output(cluster.changes(), expected)


@pytest.mark.parametrize("name", TWO)
def test_nulls_of_either_side_are_late(name: str) -> None:
    text, rows = declared(FLAGGED, TWO[name], names=("s", "t")), 2000
    usual, none_late = played(text, {each: arrived(FLAGGED, rows, nulls=False) for each in "st"})
    assert none_late.is_empty()
    largest, late = played(text, {each: arrived(FLAGGED, rows, nulls=True) for each in "st"})
    assert largest <= usual + 20 < rows
    assert late["a"].is_null().all()


@pytest.mark.parametrize("name", TWO)
def test_the_answer_of_two_streams_is_that_of_the_rows_that_were_not_late(name: str) -> None:
    text, rows = declared(FLAGGED, TWO[name], names=("s", "t")), arrived(FLAGGED, 40, nulls=True)
    all_rows = {"s": rows.slice(1), "t": rows.slice(10)}
    kept = {each: table.filter(table["a"].is_valid()) for each, table in all_rows.items()}
    expected = Oracle(text, kept, {}).output("q")
    assert same_output(output_of(text, "q", row_by_row(all_rows), {}), expected)
    cluster = Cluster(stage_of(text, "q", {}, shards=3))
    cluster.batch({each: [table] for each, table in all_rows.items()})
    cluster.end()
    assert same_output(cluster.changes(), expected)


def test_a_null_key_of_exists_is_not_late_and_not_kept() -> None:
    query = "SELECT s.a, s.c FROM s WHERE NOT EXISTS (SELECT * FROM t WHERE t.a = s.a)"
    text = declared(FLAGGED, query, names=("s", "t"))
    usual, _ = played(text, {each: arrived(FLAGGED, 2000, nulls=False) for each in "st"})
    largest, late = played(text, {each: arrived(FLAGGED, 2000, nulls=True) for each in "st"})
    assert late.is_empty()
    assert largest <= usual + 20


def test_a_null_that_count_distinct_does_not_count_is_not_late() -> None:
    text = declared(FLAGGED, "SELECT COUNT(DISTINCT a) AS n, COUNT(*) AS m FROM s")
    usual, _ = played(text, {"s": arrived(FLAGGED, 2000, nulls=False)})
    largest, late = played(text, {"s": arrived(FLAGGED, 2000, nulls=True)})
    assert late.is_empty()
    assert largest <= usual + 20
