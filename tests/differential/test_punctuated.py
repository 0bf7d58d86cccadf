"""Queries that forget by promise: the same answers as with a perfect memory, in a state that stays small."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.differential.local import output_of
from tests.differential.punctuated import Punctuated, Rows, random_rows, tables
from tests.differential.test_cases import row_by_row
from tests.oracle.casefile import Case, all_cases
from tests.oracle.oracle import Oracle
from tests.oracle.values import same_output
from tests.spark.shards import Cluster, stage_of

from headgate.kernels.state import closings
from headgate.physical import purge_lowering
from headgate.physical.compile import compile_query
from headgate.physical.edges import Strategy
from headgate.physical.program import Program
from headgate.runtime.data import frame_of
from headgate.runtime.local.engine import LocalRun
from headgate.session import Session

CYCLE = {
    "s1": Punctuated("ab", ("b",)),
    "s2": Punctuated("bc", ("c",)),
    "s3": Punctuated("ca", ("a",)),
}
TOGETHER = {
    "s1": Punctuated("ab", ("b",)),
    "s2": Punctuated("bc", ("b", "c")),
    "s3": Punctuated("ca", ("ac",)),
}
AUCTION = {"s1": Punctuated("ab", keys=("a",)), "s2": Punctuated("ac", ("a",))}
CLUSTERS = {"s1": Punctuated("ab", clusters=("a",)), "s2": Punctuated("ac", clusters=("a",))}
ORDERED = {"s1": Punctuated("ab", ordered=("a",)), "s2": Punctuated("ac", ordered=("a",))}
MIXED = {"s1": Punctuated("ab", ("a",)), "s2": Punctuated("ac", ordered=("a",))}
ORDERED_CYCLE = {
    "s1": Punctuated("ab", ordered=("b",)),
    "s2": Punctuated("bc", ("c",)),
    "s3": Punctuated("ca", ordered=("a",)),
}
CLUSTERS_IN_TIME = {
    "s1": Punctuated("ab", clusters=("a",), timed=True),
    "s2": Punctuated("ac", clusters=("a",), timed=True),
}
ORDERED_IN_TIME = {
    "s1": Punctuated("ab", ordered=("a",), timed=True),
    "s2": Punctuated("ac", ordered=("a",), timed=True),
}
# In rows here and in time there.
ORDERED_BOTH_WAYS = {
    "s1": Punctuated("ab", ordered=("a",), timed=True),
    "s2": Punctuated("ac", ordered=("a",)),
}
ORDERED_CYCLE_IN_TIME = {
    "s1": Punctuated("ab", ordered=("b",), timed=True),
    "s2": Punctuated("bc", ("c",)),
    "s3": Punctuated("ca", ordered=("a",), timed=True),
}
REFERRING_IN_TIME = {
    "s1": Punctuated("ab", keys=("a",)),
    "s2": Punctuated("ac", refers=(("a", "s1"),), ordered=("a",), timed=True),
}
REFERRING_TWICE_IN_TIME = {
    "s1": Punctuated("ab", keys=("a",)),
    "s2": Punctuated("cd", keys=("c",)),
    "s3": Punctuated("ace", refers=(("a", "s1"), ("c", "s2")), ordered=("a", "c"), timed=True),
}
REFERRING = {
    "s1": Punctuated("ab", keys=("a",)),
    "s2": Punctuated("ac", refers=(("a", "s1"),), ordered=("a",)),
}
# A row of s3 goes when its rows of both others have come or are overdue.
REFERRING_TWICE = {
    "s1": Punctuated("ab", keys=("a",)),
    "s2": Punctuated("cd", keys=("c",)),
    "s3": Punctuated("ace", refers=(("a", "s1"), ("c", "s2")), ordered=("a", "c")),
}
# Many rows of s1 to one of s2 and one of s3, which nothing but windows lets go.
MANY_ONE = {
    "s1": Punctuated("abe", refers=(("a", "s2"), ("b", "s3"))),
    "s2": Punctuated("ac", keys=("a",)),
    "s3": Punctuated("bd", keys=("b",)),
}
PAIR = {"s1": Punctuated("ab", ("a",)), "s2": Punctuated("ac", ("a",))}
BOTH = {"s1": Punctuated("ab", ("ab",)), "s2": Punctuated("ab", ("ab",))}
SUBSET = {"s1": Punctuated("ab", ("a",)), "s2": Punctuated("ab", ("ab",))}
# A row of s1 waits for s3 as long as its partner in the window of s2 does, although s2 is closed at it.
LAGGING = {"s1": Punctuated("ab"), "s2": Punctuated("ac", ("a",)), "s3": Punctuated("ad", lag=4)}
CIRCLE = "s1.b = s2.b AND s2.c = s3.c AND s3.a = s1.a"
MATCH = "SELECT * FROM s2 WHERE s2.a = s1.a"
GROUPS = "SELECT a, SUM(b) AS m FROM s1 GROUP BY a"
WINDOWED = "SELECT * FROM s2 [RANGE 7 SECONDS] WHERE s2.a = s1.a"

QUERIES = {
    "cycle": (CYCLE, f"SELECT s1.a, s2.b, s3.c FROM s1, s2, s3 WHERE {CIRCLE}"),
    "together": (TOGETHER, f"SELECT s1.a, s2.b, s3.c FROM s1, s2, s3 WHERE {CIRCLE}"),
    "windowed cycle": (CYCLE, f"SELECT s1.a, s3.c FROM s1, s2 [RANGE 7 SECONDS], s3 WHERE {CIRCLE}"),
    "auction": (AUCTION, "SELECT ISTREAM(s1.a, b, c) FROM s1, s2 WHERE s1.a = s2.a"),
    "groups": (
        AUCTION,
        "SELECT ISTREAM(s1.a, COUNT(*) AS n, SUM(c) AS c, MIN(c) AS least, MAX(b) AS b, COUNT(DISTINCT c) AS d) "
        "FROM s1, s2 WHERE s1.a = s2.a GROUP BY s1.a",
    ),
    "groups of one stream": (AUCTION, "SELECT a, MEDIAN(c) AS m, COUNT(*) AS n FROM s2 GROUP BY a"),
    "windowed": (
        AUCTION,
        "SELECT b, COUNT(*) AS n FROM s1, s2 [RANGE 9 SECONDS] WHERE s1.a = s2.a GROUP BY b",
    ),
    "sliding": (AUCTION, "SELECT b, c FROM s1, s2 [RANGE 6 SECONDS SLIDE 4 SECONDS] WHERE s1.a = s2.a"),
    "inequality": (AUCTION, "SELECT b, c FROM s1, s2 WHERE s1.a = s2.a AND b < c"),
    "filtered": (AUCTION, "SELECT b, c FROM s1, s2 WHERE s1.a = s2.a AND NOT p0 AND b % 2 = 0"),
    "distinct": (AUCTION, "SELECT DISTINCT a, c FROM s2"),
    "distinct join": (AUCTION, "SELECT ISTREAM(DISTINCT s2.a, b) FROM s1, s2 WHERE s1.a = s2.a"),
    "clusters": (CLUSTERS, "SELECT s1.a, b, c FROM s1, s2 WHERE s1.a = s2.a"),
    "groups of clusters": (CLUSTERS, "SELECT a, SUM(c) AS c FROM s2 GROUP BY a"),
    "windowed cluster": (CLUSTERS, "SELECT b, c FROM s1, s2 [RANGE 5 SECONDS] WHERE s1.a = s2.a"),
    "ordered": (ORDERED, "SELECT s1.a, b, c FROM s1, s2 WHERE s1.a = s2.a"),
    "ordered groups": (
        ORDERED,
        "SELECT s1.a, COUNT(*) AS n, MAX(c) AS c FROM s1, s2 WHERE s1.a = s2.a GROUP BY s1.a",
    ),
    "ordered distinct": (ORDERED, "SELECT ISTREAM(DISTINCT a, c) FROM s2"),
    "groups of one ordered stream": (ORDERED, "SELECT a, MEDIAN(c) AS m, SUM(c) AS n FROM s2 GROUP BY a"),
    "ordered window": (
        ORDERED,
        "SELECT b, c FROM s1, s2 [RANGE 5 SECONDS SLIDE 2 SECONDS] WHERE s1.a = s2.a",
    ),
    "ordered and closed": (MIXED, "SELECT s1.a, SUM(c) AS c FROM s1, s2 WHERE s1.a = s2.a GROUP BY s1.a"),
    "ordered cycle": (ORDERED_CYCLE, f"SELECT s1.a, s2.b, s3.c FROM s1, s2, s3 WHERE {CIRCLE}"),
    "referring": (REFERRING, "SELECT s1.a, b, c FROM s1, s2 WHERE s1.a = s2.a"),
    "referring twice": (
        REFERRING_TWICE,
        "SELECT s1.a, s2.c, b, d, e FROM s1, s2, s3 WHERE s1.a = s3.a AND s2.c = s3.c",
    ),
    "clusters in time": (CLUSTERS_IN_TIME, "SELECT s1.a, b, c FROM s1, s2 WHERE s1.a = s2.a"),
    "groups of clusters in time": (
        CLUSTERS_IN_TIME,
        "SELECT a, SUM(c) AS c, MEDIAN(c) AS m FROM s2 GROUP BY a",
    ),
    "windowed cluster in time": (
        CLUSTERS_IN_TIME,
        "SELECT b, c FROM s1, s2 [RANGE 5 SECONDS] WHERE s1.a = s2.a",
    ),
    "sliding cluster in time": (
        CLUSTERS_IN_TIME,
        "SELECT b, c FROM s1, s2 [RANGE 6 SECONDS SLIDE 4 SECONDS] WHERE s1.a = s2.a",
    ),
    "ordered in time": (ORDERED_IN_TIME, "SELECT s1.a, b, c FROM s1, s2 WHERE s1.a = s2.a"),
    "ordered in time and in rows": (
        ORDERED_BOTH_WAYS,
        "SELECT s1.a, COUNT(*) AS n, MAX(c) AS c FROM s1, s2 WHERE s1.a = s2.a GROUP BY s1.a",
    ),
    "ordered distinct in time": (ORDERED_IN_TIME, "SELECT ISTREAM(DISTINCT a, c) FROM s2"),
    "ordered window in time": (
        ORDERED_IN_TIME,
        "SELECT b, c FROM s1, s2 [RANGE 5 SECONDS SLIDE 2 SECONDS] WHERE s1.a = s2.a",
    ),
    "ordered cycle in time": (
        ORDERED_CYCLE_IN_TIME,
        f"SELECT s1.a, s2.b, s3.c FROM s1, s2, s3 WHERE {CIRCLE}",
    ),
    "not exists in order in time": (ORDERED_IN_TIME, f"SELECT s1.a, b FROM s1 WHERE NOT EXISTS ({MATCH})"),
    "union in order in time": (ORDERED_IN_TIME, "SELECT a, b FROM s1 UNION SELECT a, c FROM s2"),
    "referring in time": (REFERRING_IN_TIME, "SELECT s1.a, b, c FROM s1, s2 WHERE s1.a = s2.a"),
    "referring twice in time": (
        REFERRING_TWICE_IN_TIME,
        "SELECT s1.a, s2.c, b, d, e FROM s1, s2, s3 WHERE s1.a = s3.a AND s2.c = s3.c",
    ),
    "exists of what refers in time": (
        REFERRING_IN_TIME,
        "SELECT s2.a, c FROM s2 WHERE EXISTS (SELECT * FROM s1 WHERE s1.a = s2.a AND s1.b < s2.c)",
    ),
    "many to one": (
        MANY_ONE,
        "SELECT s1.a, s1.b, c, d, e FROM s1, s2 [RANGE 25 SECONDS], s3 [RANGE 15 SECONDS] "
        "WHERE s1.a = s2.a AND s1.b = s3.b",
    ),
    "many to one in turn": (
        MANY_ONE,
        "SELECT ISTREAM(s1.a, c, d, e) FROM s1, s2 [RANGE 25 SECONDS], s3 [RANGE 15 SECONDS] "
        "WHERE s1.a = s2.a AND s2.c = s3.b",
    ),
    "exists": (PAIR, f"SELECT s1.a, b FROM s1 WHERE EXISTS ({MATCH})"),
    "not exists": (PAIR, f"SELECT s1.a, b FROM s1 WHERE NOT EXISTS ({MATCH})"),
    "exists greater": (PAIR, f"SELECT ISTREAM(s1.a, b) FROM s1 WHERE EXISTS ({MATCH} AND s2.c > s1.b)"),
    "not exists greater": (PAIR, f"SELECT s1.a, b FROM s1 WHERE NOT EXISTS ({MATCH} AND s2.c > s1.b)"),
    "exists in a window": (PAIR, f"SELECT s1.a, b FROM s1 WHERE EXISTS ({WINDOWED})"),
    "not exists in a window": (PAIR, f"SELECT s1.a, b FROM s1 WHERE NOT EXISTS ({WINDOWED})"),
    "exists greater in a window": (
        PAIR,
        f"SELECT s1.a, b FROM s1 WHERE EXISTS ({WINDOWED} AND s2.c > s1.b)",
    ),
    "not exists greater in a window": (
        PAIR,
        f"SELECT ISTREAM(s1.a, b) FROM s1 WHERE NOT EXISTS ({WINDOWED} AND s2.c > s1.b)",
    ),
    "windowed exists": (PAIR, f"SELECT s1.a, b FROM s1 [RANGE 6 SECONDS] WHERE EXISTS ({MATCH})"),
    "windowed not exists": (
        PAIR,
        f"SELECT DSTREAM(s1.a, b) FROM s1 [RANGE 6 SECONDS SLIDE 4 SECONDS] WHERE NOT EXISTS ({MATCH})",
    ),
    "windowed exists greater": (
        PAIR,
        f"SELECT s1.a, b FROM s1 [RANGE 6 SECONDS] WHERE EXISTS ({MATCH} AND s2.c > s1.b)",
    ),
    "exists of a key": (AUCTION, f"SELECT s1.a, b FROM s1 WHERE EXISTS ({MATCH} AND s2.c <> s1.b)"),
    "not exists of a key": (
        AUCTION,
        "SELECT s2.a, c FROM s2 WHERE NOT EXISTS (SELECT * FROM s1 WHERE s1.a = s2.a)",
    ),
    "exists of what refers": (
        REFERRING,
        "SELECT s2.a, c FROM s2 WHERE EXISTS (SELECT * FROM s1 WHERE s1.a = s2.a AND s1.b < s2.c)",
    ),
    "exists in order": (ORDERED, f"SELECT s1.a, b FROM s1 WHERE EXISTS ({MATCH})"),
    "not exists in order": (MIXED, f"SELECT s1.a, b FROM s1 WHERE NOT EXISTS ({MATCH} AND s1.b = s2.c)"),
    "except of a subset": (SUBSET, "SELECT a, b FROM s1 EXCEPT SELECT a, b FROM s2"),
    "except of one column": (PAIR, "SELECT a FROM s1 EXCEPT SELECT a FROM s2"),
    "except of more columns": (PAIR, "SELECT a, b FROM s1 EXCEPT SELECT a, c FROM s2"),
    "intersect": (PAIR, "SELECT a, b FROM s1 INTERSECT SELECT a, c FROM s2"),
    "except all": (PAIR, "SELECT a FROM s1 EXCEPT ALL SELECT a FROM s2"),
    "except all in order": (
        ORDERED,
        "SELECT ISTREAM(k) FROM (SELECT a AS k FROM s1 EXCEPT ALL SELECT a FROM s2) x",
    ),
    "union": (PAIR, "SELECT a, b FROM s1 UNION SELECT a, c FROM s2"),
    "union in order": (MIXED, "SELECT a FROM s1 UNION SELECT a FROM s2"),
    "groups of a union": (
        PAIR,
        "SELECT a, SUM(v) AS v, COUNT(DISTINCT v) AS n "
        "FROM (SELECT a, b AS v FROM s1 UNION ALL SELECT a, c FROM s2) x GROUP BY a",
    ),
    "count distinct": (
        PAIR,
        "SELECT COUNT(DISTINCT a) AS n, SUM(DISTINCT a) AS s, COUNT(*) AS m, MAX(b) AS b FROM s1",
    ),
    "count distinct in groups": (
        PAIR,
        "SELECT b, COUNT(DISTINCT a) AS n FROM s1 WHERE b BETWEEN 0 AND 9 GROUP BY b",
    ),
    "count distinct of a pair": (
        BOTH,
        "SELECT b, COUNT(DISTINCT a) AS n FROM s1 WHERE b BETWEEN 0 AND 9 GROUP BY b",
    ),
    "count distinct of a join": (PAIR, "SELECT COUNT(DISTINCT s1.a) AS n FROM s1, s2 WHERE s1.a = s2.a"),
    "count distinct of a key": (
        AUCTION,
        "SELECT ISTREAM(COUNT(DISTINCT a) AS n, AVG(DISTINCT a) AS m) FROM s1",
    ),
    "count distinct in order": (ORDERED, "SELECT COUNT(DISTINCT a) AS n FROM s1"),
    "sums of groups": (
        PAIR,
        f"SELECT COUNT(*) AS n, SUM(m) AS s, AVG(m) AS v FROM ({GROUPS}) x",
    ),
    "extremes of groups": (PAIR, f"SELECT MIN(m) AS x, MAX(m) AS y, COUNT(m) AS n FROM ({GROUPS}) x"),
    "least of large groups": (PAIR, f"SELECT MIN(m + 1) AS x FROM ({GROUPS} HAVING COUNT(*) > 2) x"),
    "greatest of groups by a column": (
        PAIR,
        "SELECT b, MAX(m) AS x FROM (SELECT a, b, SUM(b - 2 * a) AS m FROM s1 WHERE b BETWEEN 0 AND 9 "
        "GROUP BY a, b) x GROUP BY b",
    ),
    "greatest of groups of a join": (
        AUCTION,
        "SELECT MAX(m) AS x FROM (SELECT s1.a, SUM(c) AS m FROM s1, s2 WHERE s1.a = s2.a GROUP BY s1.a) x",
    ),
    "least of ordered groups": (ORDERED, f"SELECT MIN(m) AS x FROM ({GROUPS}) x"),
    "groups of groups": (
        PAIR,
        "SELECT a, MIN(m) AS x, MEDIAN(m) AS z FROM (SELECT a, b, COUNT(*) AS m FROM s1 GROUP BY a, b) x GROUP BY a",
    ),
    "count of not exists": (
        PAIR,
        f"SELECT COUNT(*) AS n, SUM(b) AS b FROM s1 WHERE NOT EXISTS ({MATCH})",
    ),
    "partners in windows": (
        LAGGING,
        "SELECT b, c, d FROM s1, s2 [RANGE 20 SECONDS], s3 [RANGE 9 SECONDS] WHERE s1.a = s2.a AND s2.a = s3.a",
    ),
    "itself": (CYCLE, "SELECT x.a, y.a FROM s1 x, s1 y WHERE x.b = y.b"),
}


def text_of(name: str, *, promises: bool = True) -> str:
    streams, query = QUERIES[name]
    declared = (
        about.declared(stream)
        if promises
        else f"CREATE STREAM {stream} (ts TIMESTAMP, {about.without_promises()}) TIMESTAMP BY ts;\n"
        for stream, about in streams.items()
    )
    return "".join(declared) + f"CREATE QUERY q AS {query};"


@pytest.fixture(autouse=True)
def sweeping_often(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Sweeps after every step in which anything came; closings that nothing counters live for a few rounds."""
    monkeypatch.setattr(purge_lowering, "LIFESPAN", 25)
    monkeypatch.setattr(closings, "_FEW", 1)
    return


@pytest.mark.parametrize("name", QUERIES)
def test_it_is_admitted(name: str) -> None:
    session = Session()
    query = session.sql(text_of(name))
    assert query is not None
    assert query.check().admitted, query.check()


def pieces(rows: dict[str, pa.Table], random: Random) -> list[dict[str, pa.Table]]:
    """The rows of all streams in a few pieces, cut anywhere."""
    found = []
    at = dict.fromkeys(rows, 0)
    while any(at[name] < table.num_rows for name, table in rows.items()):
        piece = {}
        for name, table in rows.items():
            count = random.randint(0, 6)
            piece[name] = table.slice(at[name], count)
            at[name] += count
        found.append(piece)
    return found


@given(name=st.sampled_from(sorted(QUERIES)), seed=st.integers(0, 10_000), rounds=st.integers(1, 8))
def test_forgetting_changes_no_answer(name: str, seed: int, rounds: int) -> None:
    random = Random(seed)
    rows = tables(text_of(name), random_rows(QUERIES[name][0], random, rounds=rounds))
    remembered = output_of(text_of(name, promises=False), "q", [rows], {})
    assert same_output(output_of(text_of(name), "q", pieces(rows, random), {}), remembered)
    restored = output_of(text_of(name), "q", pieces(rows, random), {}, restore_every_step=True)
    assert same_output(restored, remembered)


@given(
    name=st.sampled_from(sorted(QUERIES)),
    seed=st.integers(0, 10_000),
    rounds=st.integers(1, 6),
    way=st.integers(0, 5),
    shards=st.sampled_from((2, 3, 4)),
)
def test_forgetting_in_shards_changes_no_answer(
    name: str, seed: int, rounds: int, way: int, shards: int
) -> None:
    """Closed values reach the shards that hold them, however the plan is cut into stages."""
    random = Random(seed)
    rows = tables(text_of(name), random_rows(QUERIES[name][0], random, rounds=rounds))
    remembered = output_of(text_of(name, promises=False), "q", [rows], {})
    cluster = Cluster(stage_of(text_of(name), "q", {}, shards=shards, way=way))
    for piece in pieces(rows, random):
        cluster.batch({stream: [table] for stream, table in piece.items() if table.num_rows})
    cluster.end()
    assert not any(cluster.late.values())
    assert same_output(cluster.changes(), remembered)


@pytest.mark.parametrize("name", QUERIES)
def test_the_oracle_agrees(name: str) -> None:
    for seed in range(2):
        rows = tables(text_of(name), random_rows(QUERIES[name][0], Random(seed), rounds=4))
        oracle = Oracle(text_of(name), rows, {})
        expected = oracle.output("q")
        assert same_output(output_of(text_of(name), "q", row_by_row(rows), {}), expected)


@pytest.mark.parametrize(
    "case",
    [
        case
        for case in all_cases()
        if any(each in case.text for each in ("PUNCTUATED", "ORDERED", "CLUSTERED"))
    ],
    ids=str,
)
def test_cases_while_sweeping_often(case: Case) -> None:
    for query, expected in case.expected.items():
        assert same_output(output_of(case.text, query, row_by_row(case.inputs), {}), expected)


@pytest.mark.parametrize("strategy", ["NT", "DIRECT"])
@pytest.mark.parametrize(
    "name", ["windowed", "windowed cycle", "sliding", "not exists greater in a window", "windowed exists"]
)
def test_the_other_strategies_forget_too(name: str, strategy: Strategy) -> None:
    rows = random_rows(QUERIES[name][0], Random(7), rounds=60)
    first, second = peaks(name, rows, step=12, strategy=strategy)
    assert second <= 1.5 * first + 10
    few = tables(text_of(name), random_rows(QUERIES[name][0], Random(3), rounds=4))
    expected = Oracle(text_of(name), few, {}).output("q")
    assert same_output(output_of(text_of(name), "q", row_by_row(few), {}, strategy=strategy), expected)


def peaks(name: str, rows: Rows, *, step: int, strategy: Strategy = "UPA") -> tuple[int, int]:
    return peak_rows(text_of(name), rows, step=step, strategy=strategy)


def peak_rows(text: str, rows: Rows, *, step: int, strategy: Strategy = "UPA") -> tuple[int, int]:
    """The largest state, in rows, in the first half of a run and in the second; late rows would be an error."""
    session = Session()
    query = session.sql(text)
    assert query is not None
    ready = compile_query(query.planned, strategy=strategy)
    arrivals = tables(text, rows)
    streams = [
        (stream, frame_of(arrivals[stream.name], stream.columns).iter_slices(step))
        for stream in ready.streams
    ]
    run = LocalRun(Program((ready,)), streams)
    sizes: list[int] = []
    late: list[object] = []
    run.run(
        lambda *_: None, lambda query, stream, frame: late.append(frame), lambda p: sizes.append(p.state_rows)
    )
    assert not late
    half = len(sizes) // 2
    return max(sizes[:half]), max(sizes[half:])


@pytest.mark.parametrize("name", QUERIES)
def test_the_state_does_not_grow(name: str) -> None:
    """Values are open for three rounds: what is kept is that of a few rounds, however many there have been.

    An order is sure of a value only some rows later.
    """
    streams = QUERIES[name][0]
    rounds = (
        400
        if "order" in name or "refer" in name or "in time" in name or "many" in name
        else 100
        if streams in (PAIR, AUCTION)
        else 60
        if streams in (SUBSET, BOTH)
        else 200
    )
    rows = random_rows(QUERIES[name][0], Random(5), rounds=rounds)
    first, second = peaks(name, rows, step=24 if rounds <= 100 else 48)
    total = sum(len(each) for each in rows.values())
    assert second <= 1.5 * first + 10
    assert second < total / 6
