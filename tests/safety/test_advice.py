"""Every fix that is proposed for a refused query, applied to its text, passes the gate."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pytest
import yaml
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st
from sqlglot import exp
from tests.cli_runner import headgate
from tests.oracle.generate import Example, examples

from headgate.language import nodes
from headgate.language.parse import parse
from headgate.language.render import render
from headgate.model.adherence import WithinRows
from headgate.model.errors import HeadgateError
from headgate.model.scalar import Scalar
from headgate.model.source import SourceText
from headgate.plan.nodes import Emit
from headgate.runtime.promise_checker import PromiseChecker
from headgate.safety.advice import advise as advising
from headgate.safety.advice.data_checks import disordered, failing, missing, reopened, repeated
from headgate.safety.advice.edit import Burden, Edit, Fix, Trees, apply, fix_of
from headgate.safety.advice.promises import promise_edits
from headgate.safety.advice.tables import table_edits
from headgate.safety.promise import Promise, PromiseKind, not_null
from headgate.session import Session

ROOT = Path(__file__).parents[2]
STREAMS = """
CREATE STREAM a (ts TIMESTAMP, id BIGINT, x BIGINT, done BOOLEAN) TIMESTAMP BY ts;
CREATE STREAM b (ts TIMESTAMP, id BIGINT, y BIGINT, name STRING) TIMESTAMP BY ts;
CREATE STREAM c (ts TIMESTAMP, id BIGINT, y BIGINT, w DOUBLE) TIMESTAMP BY ts KEY (id);
"""
REFUSED = {
    "join": "SELECT ISTREAM(a.x, b.y) FROM a, b WHERE a.id = b.id",
    "join on two columns": "SELECT ISTREAM(a.x) FROM a, b WHERE a.id = b.id AND a.x = b.y",
    "join on an inequality": "SELECT ISTREAM(a.x, b.y) FROM a, b WHERE a.id < b.id",
    "join of three": "SELECT ISTREAM(a.x) FROM a, b, c WHERE a.id = b.id AND b.y = c.y",
    "join on numbers that are not whole": "SELECT ISTREAM(a.x) FROM a, c WHERE a.x = c.w",
    "half a window": "SELECT ISTREAM(a.x) FROM a [RANGE 5 SECONDS], b WHERE a.id = b.id",
    "self join": "SELECT ISTREAM(p.x) FROM a AS p, a AS q WHERE p.id = q.x",
    "distinct": "SELECT ISTREAM(DISTINCT id) FROM a",
    "distinct, not a stream": "SELECT DISTINCT id FROM a WHERE x > 3 OR x < 1",
    "groups": "SELECT name, COUNT(*) AS n FROM b GROUP BY name",
    "median": "SELECT MEDIAN(x) AS m FROM a",
    "last rows of each": "SELECT id, COUNT(*) AS n FROM a [PARTITION BY id ROWS 4] GROUP BY id",
    "negation": "SELECT ISTREAM(a.id) FROM a WHERE NOT EXISTS (SELECT * FROM b WHERE b.id = a.id)",
    "rstream": "SELECT RSTREAM(id) FROM a",
    "union": "SELECT id FROM a UNION SELECT id FROM b",
    "except": "SELECT id FROM a EXCEPT SELECT id FROM b",
    "join of ten": (
        "SELECT ISTREAM(s0.x) FROM "
        + ", ".join(f"a AS s{number}" for number in range(10))
        + " WHERE "
        + " AND ".join(f"s{number}.id = s{number + 1}.x" for number in range(9))
    ),
    "sub-query": "SELECT ISTREAM(q.n) FROM (SELECT id, COUNT(*) AS n FROM a GROUP BY id) AS q WHERE q.n > 2",
    "with": "WITH w AS (SELECT id FROM a) SELECT DISTINCT id FROM w",
    "last rows of each, internal": "SELECT RSTREAM(id) FROM a [PARTITION BY id ROWS 4 INTERNAL]",
    "unbounded and internal": "SELECT RSTREAM(id) FROM a [UNBOUNDED INTERNAL]",
    "in": "SELECT ISTREAM(id) FROM a WHERE id IN (SELECT id FROM b)",
}


def declared(text: str) -> str | None:
    """What a statement declares; None for a bare query."""
    tree = parse(SourceText("<statement>", text))[0].tree
    if isinstance(tree, (nodes.CreateStream, nodes.CreateTable, nodes.CreateQuery)):
        return str(tree.this.name).casefold()
    return None


def pasted(session: Session, query: str, fix: Fix) -> Session:
    """A session over the same text, with the fix's statements in place of those they edit."""
    bare = session.query(query).definition.statement
    new = {declared(text): text for text in fix.statements}
    texts = []
    for statement in session.statements:
        text = render(statement.tree)
        name = declared(text)
        texts.append(new.get(name, text) if name is not None or statement is bare else text)
    edited = Session()
    edited.read(SourceText("<fixed>", ";\n".join(texts)))
    return edited


def assert_advice_holds(session: Session) -> int:
    """Tries all fixes of all refused queries of a session; how many queries were refused."""
    refused = [query for query in session.queries if not query.judged.admitted]
    for query in refused:
        fixes = query.check().fixes
        assert fixes, f"no fix for {query.name}: {render(query.definition.statement.tree)}"
        for fix in fixes:
            assert pasted(session, query.name, fix).query(query.name).check().admitted, fix
    return len(refused)


@pytest.mark.parametrize("name", REFUSED)
def test_every_fix_passes_the_gate(name: str) -> None:
    session = Session()
    session.sql(STREAMS + REFUSED[name])
    assert assert_advice_holds(session) == 1


def written() -> Iterator[tuple[str, str]]:
    """All CQL of the examples, the documents and the cases."""
    for file in sorted((ROOT / "examples").glob("*.cql")):
        yield file.name, file.read_text(encoding="utf-8")
    for file in sorted((ROOT / "docs").glob("*.md")):
        for number, block in enumerate(
            re.findall(r"^```sql\n(.*?)^```", file.read_text("utf-8"), re.M | re.S)
        ):
            yield f"{file.name} {number}", block
    for file in sorted((ROOT / "tests" / "cases").glob("*.yaml")):
        yield file.name, yaml.safe_load(file.read_text(encoding="utf-8"))["text"]


WRITTEN = dict(written())


@pytest.mark.parametrize("name", WRITTEN)
def test_every_fix_for_what_is_written_here_passes_the_gate(name: str) -> None:
    session = Session()
    try:
        session.read(SourceText(name, WRITTEN[name]))
    except HeadgateError:
        pytest.skip("a fragment that declares too little to be judged")
    assert_advice_holds(session)


@settings(max_examples=60, suppress_health_check=list(HealthCheck), phases=(Phase.explicit, Phase.generate))
@given(examples())
def test_every_fix_for_random_queries_passes_the_gate(example: Example) -> None:
    session = Session()
    session.read(SourceText("<random>", example.text))
    event("refused" if assert_advice_holds(session) else "admitted")


MANY_EDITS = """
CREATE STREAM s (ts TIMESTAMP, k BIGINT, x DOUBLE) TIMESTAMP BY ts WITHIN INTERVAL 5 SECONDS;
CREATE STREAM t (ts TIMESTAMP, k BIGINT, d DATE) TIMESTAMP BY ts;
CREATE STREAM u (ts TIMESTAMP, k BIGINT, x DOUBLE) TIMESTAMP BY ts WITHIN INTERVAL 5 SECONDS;
CREATE QUERY first AS SELECT DISTINCT q.k AS c0, q.d AS c1
  FROM u [RANGE 3 SECONDS] p, t [UNBOUNDED] q, s [ROWS 2] r
  WHERE q.k = p.k AND q.ts >= p.ts AND r.k = q.k
    AND EXISTS (SELECT 1 FROM s [PARTITION BY k, x ROWS 1] v WHERE v.k = q.k AND v.k < 1);
CREATE QUERY answer AS SELECT DISTINCT y.k AS c0, y.k | 4 AS c1, y.ts AS c2
  FROM first w, u [PARTITION BY k, x ROWS 3] y WHERE y.k = w.c0 AND y.k IN (1, 0);
"""
INTERNAL_BELOW_A_WINDOW = """
CREATE STREAM u (ts TIMESTAMP, k BIGINT, a INT, d DATE) TIMESTAMP BY ts;
CREATE QUERY answer AS SELECT r.n
  FROM (SELECT q.a, TOP(q.d, 2) AS days, COUNT(*) AS n
    FROM u [PARTITION BY k, d ROWS 2 INTERNAL] p, u [NOW INTERNAL] q
    WHERE q.k = p.k GROUP BY q.a) r [RANGE 2 SECONDS];
"""


@pytest.mark.parametrize("text", [MANY_EDITS, INTERNAL_BELOW_A_WINDOW], ids=["many edits", "internal"])
def test_where_nothing_lighter_is_found_another_question_is_proposed(text: str) -> None:
    session = Session()
    session.sql(text)
    assert_advice_holds(session)
    [fix] = session.query("answer").check().fixes
    assert "asks something else" in fix.effect


def fixes_of(query: str, statistics: str | None = None, tmp_path: Path | None = None) -> tuple[Fix, ...]:
    session = Session()
    session.sql(STREAMS + query)
    if statistics is not None:
        assert tmp_path is not None
        (tmp_path / "stats.yaml").write_text(statistics, encoding="utf-8")
        session.use_statistics(tmp_path / "stats.yaml")
    return session.queries[-1].check().fixes


def test_what_only_the_data_can_prove_comes_last() -> None:
    values, windows, *rest = fixes_of(REFUSED["join"])
    assert values.edit.splitlines() == [
        f"WHERE … AND {column} BETWEEN 0 AND 999" for column in ("a.x", "b.y", "a.id")
    ]
    assert windows.edit.splitlines() == ["FROM a [RANGE 10 MINUTES]", "FROM b [RANGE 10 MINUTES]"]
    assert "placeholder" in windows.effect
    proved = next(each for each in rest if each.needs_proof)
    assert (proved.kind, proved.changes_answer) == ("key", False)
    assert proved.edit.splitlines() == [
        "CREATE STREAM a … PUNCTUATED BY (id) WHEN done",
        "CREATE STREAM b … KEY (id)",
    ]


@pytest.mark.parametrize("name", REFUSED)
def test_a_promise_is_never_called_harmless(name: str) -> None:
    fixes = fixes_of(REFUSED[name])
    assert not any("stays" in each.effect for each in fixes)
    for fix in fixes:
        assert fix.needs_proof == ("right only if" in fix.effect) == bool(fix.checks)
    promised = [each.needs_proof for each in fixes if not each.effect.startswith("asks something else")]
    assert promised == sorted(promised)


ORDERS = """
CREATE STREAM o (ts TIMESTAMP, orderid BIGINT, is_gift BOOLEAN, paid_at TIMESTAMP, country STRING) TIMESTAMP BY ts;
CREATE STREAM p (ts TIMESTAMP, orderid BIGINT, {}) TIMESTAMP BY ts;
CREATE TABLE t (orderid BIGINT, w BIGINT);
"""


def order_fixes(query: str, columns: str = "amount BIGINT") -> tuple[Fix, ...]:
    session = Session()
    found = session.sql(ORDERS.format(columns) + query)
    assert found is not None
    if not found.judged.admitted:
        assert_advice_holds(session)
    return found.check().fixes


def test_several_edits_change_the_answer_if_one_of_them_does() -> None:
    session = Session()
    session.sql(ORDERS.format("amount BIGINT"))
    trees = {str(declared(render(each.tree))): each.tree for each in session.statements}
    window, promise = (
        Edit(kind, "o", lambda _: None, kind, kind, "o", burden, changes_answer=changes)
        for kind, burden, changes in (("window", Burden.WINDOW, True), ("constraint", Burden.ORDER, False))
    )
    for edits, changes, needs_proof in (
        ((window,), True, False),
        ((promise,), False, True),
        ((window, promise), True, True),
    ):
        fix = fix_of(edits, trees)
        assert (fix.changes_answer, fix.needs_proof) == (changes, needs_proof)


def test_a_flag_whose_name_says_nothing_closes_nothing() -> None:
    edits = [fix.edit for fix in order_fixes("SELECT orderid, COUNT(*) AS n FROM o GROUP BY orderid")]
    assert not any("is_gift" in edit for edit in edits)
    assert "CREATE STREAM o (…, closing BOOLEAN) … PUNCTUATED BY (orderid) WHEN closing" in edits


@pytest.mark.parametrize("flag", ["is_last", "closing", "isFinal", "order_closed", "END"])
def test_a_flag_whose_name_says_so_may_close(flag: str) -> None:
    query = "SELECT orderid, COUNT(*) AS n FROM p GROUP BY orderid"
    fixes = order_fixes(query, f"is_gift BOOLEAN, {flag} BOOLEAN")
    edits = [fix.edit for fix in fixes if fix.kind == "punctuation"]
    assert edits == [f"CREATE STREAM p … PUNCTUATED BY (orderid) WHEN {flag}"]


def test_of_many_flags_two_are_proposed() -> None:
    query = "SELECT orderid, COUNT(*) AS n FROM p GROUP BY orderid"
    fixes = order_fixes(query, "is_last BOOLEAN, closing BOOLEAN, is_final BOOLEAN")
    assert [fix.edit for fix in fixes if fix.kind == "punctuation"] == [
        f"CREATE STREAM p … PUNCTUATED BY (orderid) WHEN {flag}" for flag in ("is_last", "closing")
    ]


@pytest.mark.parametrize(
    ("column", "check"),
    [("orderid", "orderid BETWEEN 0 AND 999"), ("country", "country IN ('value 1', 'value 2')")],
)
def test_the_last_rows_of_each_value_are_not_taken_for_those_of_a_time(column: str, check: str) -> None:
    fixes = order_fixes(f"SELECT orderid, country FROM o [PARTITION BY {column} ROWS 1]")
    assert f"CREATE STREAM o (…, CHECK ({check}))" in [fix.edit for fix in fixes]
    windows = [fix for fix in fixes if fix.kind == "window"]
    assert windows == [fixes[-1]]
    assert windows[0].effect == (
        "asks something else: the rows of o from the last 10 MINUTES (a placeholder) "
        f"in place of the last 1 of each {column}"
    )


@pytest.mark.parametrize(
    ("query", "edit"),
    [
        ("SELECT country FROM o [PARTITION BY orderid ROWS 1]", "WHERE orderid BETWEEN 0 AND 999"),
        (
            "SELECT o.country FROM o [PARTITION BY orderid ROWS 1], p [RANGE 5 SECONDS] WHERE o.ts = p.ts",
            "WHERE … AND o.orderid BETWEEN 0 AND 999",
        ),
    ],
)
def test_the_values_of_which_last_rows_stay_may_be_bounded(query: str, edit: str) -> None:
    assert [fix.edit for fix in order_fixes(query) if fix.kind == "values"] == [edit]


def test_an_interval_of_the_join_is_the_length_of_its_windows() -> None:
    query = (
        "SELECT DISTINCT o.country FROM o, p WHERE o.orderid = p.orderid "
        "AND p.ts BETWEEN o.paid_at AND o.paid_at + INTERVAL 2 HOURS"
    )
    (windows,) = [fix for fix in order_fixes(query) if fix.kind == "window"]
    assert windows.edit.splitlines() == ["FROM o [RANGE 2 HOURS]", "FROM p [RANGE 2 HOURS]"]
    assert windows.effect == "only rows of o and p from the last 2 HOURS (the interval of the join) count"


def test_an_interval_of_nothing_is_no_length() -> None:
    query = (
        "SELECT DISTINCT o.country FROM o, p WHERE p.ts BETWEEN o.paid_at AND o.paid_at + INTERVAL 0 SECONDS"
    )
    (windows,) = [fix for fix in order_fixes(query) if fix.kind == "window"]
    assert windows.edit.splitlines() == ["FROM o [RANGE 10 MINUTES]", "FROM p [RANGE 10 MINUTES]"]


def test_an_interval_of_several_units_is_no_length() -> None:
    query = (
        "SELECT DISTINCT o.country FROM o, p WHERE p.ts > o.paid_at - INTERVAL '1 hour 11 seconds' "
        "AND p.ts <= o.paid_at + INTERVAL '1 12:30' DAY TO MINUTE"
    )
    (windows,) = [fix for fix in order_fixes(query) if fix.kind == "window"]
    assert windows.edit.splitlines() == ["FROM o [RANGE 10 MINUTES]", "FROM p [RANGE 10 MINUTES]"]


def test_a_query_by_the_hour_gets_windows_of_an_hour() -> None:
    query = (
        "SELECT date_trunc('hour', paid_at) AS h, COUNT(*) AS n FROM o GROUP BY date_trunc('hour', paid_at)"
    )
    first = order_fixes(query)[0]
    assert first.edit == "FROM o [RANGE 1 HOUR SLIDE 1 HOUR]"
    assert first.effect == (
        "the rows of each HOUR of o are answered by themselves, once it is over; "
        "HOURS are those of ts, not of paid_at"
    )


def test_an_hour_in_a_condition_says_nothing_about_windows() -> None:
    query = "SELECT DISTINCT country FROM o WHERE date_trunc('hour', paid_at) = paid_at"
    assert not any("1 HOUR" in fix.edit for fix in order_fixes(query))


def test_values_of_text_are_listed() -> None:
    edits = [fix.edit for fix in order_fixes("SELECT country, COUNT(*) AS n FROM o GROUP BY country")]
    assert "WHERE country IN ('value 1', 'value 2')" in edits
    assert "CREATE STREAM o (…, CHECK (country IN ('value 1', 'value 2')))" in edits


def test_a_table_may_be_declared_non_retroactive() -> None:
    session = Session()
    found = session.sql(
        ORDERS.format("amount BIGINT") + "SELECT o.country, t.w FROM o, t WHERE o.orderid = t.orderid"
    )
    assert found is not None
    edits = list(table_edits(found.plan, session.trees))
    assert [edit.shown for edit in edits] == ["CREATE TABLE t … NON RETROACTIVE"]
    edited = apply(edits, session.trees)
    assert "NON RETROACTIVE" in edited["t"]
    if not found.judged.admitted:
        assert found.check().fixes[0].kind == "table"


VALUES = st.lists(st.tuples(st.integers(0, 3) | st.none(), st.booleans()), max_size=12)


@settings(max_examples=60, suppress_health_check=list(HealthCheck), deadline=None)
@given(VALUES, st.integers(0, 3))
def test_a_check_finds_what_breaks_the_promise(values: list[tuple[int | None, bool]], within: int) -> None:
    """The queries that are named with a fix find rows exactly if the engine would call some late."""
    start = datetime(2026, 1, 1, tzinfo=UTC)
    rows = pl.DataFrame(
        [(start + timedelta(seconds=at), k, last) for at, (k, last) in enumerate(values)],
        schema={"ts": pl.Datetime("us", "UTC"), "k": pl.Int64, "last": pl.Boolean},
        orient="row",
    )
    session = Session()
    session.sql("CREATE STREAM s (ts TIMESTAMP, k BIGINT, last BOOLEAN) TIMESTAMP BY ts")
    (stream,) = session.catalog.streams
    last = Scalar(exp.column("last"), pa.bool_())
    bound = exp.Between(this=exp.column("k"), low=exp.Literal.number(1), high=exp.Literal.number(2))
    pairs = [
        (Promise("s", ("k",), None, PromiseKind.KEY), [repeated(stream, ["k"])]),
        (Promise("s", ("k",), last, PromiseKind.PUNCTUATION), list(reopened(stream, ["k"], "last"))),
        (
            Promise("s", ("k",), None, PromiseKind.ORDER, WithinRows(within)),
            list(disordered(stream, "k", within)),
        ),
        (not_null(stream, ["k"]), [missing(stream, ["k"])]),
        (Promise("s", (), Scalar(bound, pa.bool_()), PromiseKind.CHECK), [failing(stream, bound)]),
    ]
    with duckdb.connect() as connection:
        connection.register("s", rows.to_arrow())
        for promise, (check,) in pairs:
            _, broken = PromiseChecker([promise]).split(rows)
            found = connection.execute(check).fetchall()
            # Duplicates of NULL are no matter for a promise that closes values.
            known = [row for row in found if row[0] is not None or promise.cause == "check"]
            assert bool(known) == (broken.height > 0), (promise, check)


def test_only_the_input_without_a_window_gets_one() -> None:
    windows = [fix.edit for fix in fixes_of(REFUSED["half a window"]) if fix.kind == "window"]
    assert windows == ["FROM b [RANGE 10 MINUTES]"]


def test_a_distinct_may_be_dropped() -> None:
    first, *rest = [fix.kind for fix in fixes_of(REFUSED["distinct"])]
    assert first == "distinct"
    assert "punctuation" in rest
    first = fixes_of("SELECT DISTINCT id, x FROM a")[0]
    assert (first.edit, first.effect) == ("SELECT id, x", "a value may be answered several times")


def test_a_distinct_may_be_added() -> None:
    first = fixes_of("SELECT RSTREAM(a.x) FROM a, b WHERE a.x = b.y AND a.x > 10 AND b.y < 20")[0]
    assert first.edit == "SELECT RSTREAM(DISTINCT a.x)"
    assert first.effect == "each value is answered once"


@pytest.mark.parametrize(
    ("statistics", "length"),
    [
        ("streams: {b: {rate: 100, distinct: {name: 5000}}}", "10 MINUTES"),
        ("streams: {b: {rate: 1000}}", "2 MINUTES"),
        ("streams: {b: {rate: 0.001}}", "4 WEEKS"),
    ],
)
def test_statistics_choose_the_length(statistics: str, length: str, tmp_path: Path) -> None:
    (window,) = [f for f in fixes_of(REFUSED["groups"], statistics, tmp_path) if f.kind == "window"]
    assert window.edit == f"FROM b [RANGE {length}]"
    assert "from the statistics" in window.effect


def test_a_query_that_reads_a_refused_one_is_fixed_there() -> None:
    session = Session()
    session.sql(STREAMS + "CREATE QUERY p AS SELECT id, COUNT(*) AS n FROM a GROUP BY id")
    session.sql("CREATE QUERY q AS SELECT ISTREAM(id) FROM p WHERE n > 3")
    edits = [fix.edit for fix in session.query("q").check().fixes]
    assert "CREATE QUERY p: FROM a [RANGE 10 MINUTES]" in edits


def test_a_stream_without_a_declaration_is_not_edited() -> None:
    session = Session()
    session.stream("s", [{"k": 1, "flag": True, "ts": datetime(2026, 1, 1, tzinfo=UTC)}])
    session.sql("SELECT DISTINCT k FROM s")
    assert {fix.kind for fix in session.queries[0].check().fixes} <= {"window", "values", "distinct"}


def test_run_says_the_first_fix(tmp_path: Path) -> None:
    file = tmp_path / "q.cql"
    file.write_text(STREAMS + REFUSED["distinct"], encoding="utf-8")
    done = headgate("run", file, "--output", tmp_path / "out", "--engine", "local")
    assert done.code == 1
    assert "help: SELECT ISTREAM(id) (a value may be answered several times)" in done.err


def test_an_order_of_the_rows_is_proposed_too() -> None:
    found = next(each for each in fixes_of(REFUSED["join"]) if each.kind == "constraint")
    assert found.edit.splitlines() == [
        "CREATE STREAM a … ORDERED BY (id) WITHIN 1000 ROWS",
        "CREATE STREAM b … ORDERED BY (id) WITHIN 1000 ROWS",
    ]
    assert not found.changes_answer


def test_instants_may_come_in_order_and_text_need_not() -> None:
    fixes = order_fixes("SELECT o.country, o.paid_at, COUNT(*) AS n FROM o GROUP BY o.country, o.paid_at")
    ordered = [fix.edit for fix in fixes if "ORDERED" in fix.edit]
    assert ordered == ["CREATE STREAM o … ORDERED BY (paid_at) WITHIN 1000 ROWS"]


def test_of_columns_that_are_equal_one_is_bounded() -> None:
    (bound,) = [each for each in fixes_of(REFUSED["join"]) if each.kind == "values"]
    assert bound.edit.count("BETWEEN") == len({"a.x", "b.y", "a.id"})


@pytest.mark.parametrize("condition", ["id = x OR x > 3", "NOT id = x"])
def test_columns_that_need_not_be_equal_are_bounded_each(condition: str) -> None:
    query = f"SELECT id, x, COUNT(*) AS n FROM a WHERE {condition} GROUP BY id, x"
    (bound,) = [each for each in fixes_of(query) if each.kind == "values"]
    assert bound.edit.count("BETWEEN") == len({"id", "x"})


def test_promises_for_a_wide_join_are_found_without_trying_each_and_none_can_be_left_out() -> None:
    count = 10
    streams = [f"CREATE STREAM s{n} (ts TIMESTAMP, a BIGINT, b BIGINT) TIMESTAMP BY ts" for n in range(count)]
    where = " AND ".join(f"s{n}.b = s{n + 1}.a" for n in range(count - 1))
    query = f"SELECT s0.a FROM {', '.join(f's{n}' for n in range(count))} WHERE {where}"

    def bounded(declared: list[str]) -> bool:
        found = Session().sql(";".join([*declared, query]))
        assert found is not None
        return found.judged.admitted

    session = Session()
    found = session.sql(";".join([*streams, query]))
    assert found is not None
    fix = next(each for each in found.check().fixes if each.kind == "key")
    edits = [re.fullmatch(r"CREATE STREAM (s\d) … (KEY \(\w\))", line) for line in fix.edit.splitlines()]
    clauses = [(int(edit[1][1:]), edit[2]) for edit in edits if edit is not None]
    assert len(clauses) == len(edits)
    for left_out in (None, *clauses):
        kept = [each for each in clauses if each != left_out]
        edited = [" ".join([text, *(c for at, c in kept if at == n)]) for n, text in enumerate(streams)]
        assert bounded(edited) is (left_out is None)


def test_no_promise_is_proposed_over_a_fraction() -> None:
    columns = "(ts TIMESTAMP, k BIGINT, z DOUBLE)"
    text = f"CREATE STREAM a {columns} TIMESTAMP BY ts; CREATE STREAM b {columns} TIMESTAMP BY ts;"
    session = Session()
    session.sql(f"{text} CREATE QUERY q AS SELECT ISTREAM(a.k) FROM a, b WHERE a.k = b.k AND a.z = b.z;")
    trees = {str(declared(render(each.tree))): each.tree for each in session.statements}
    edits = list(promise_edits(session.query("q").plan, trees))
    assert {edit.columns for edit in edits} == {("k",)}


def test_a_group_may_be_closed_by_columns_that_a_join_sets_equal_to_its_keys() -> None:
    columns = "(ts TIMESTAMP, k BIGINT, m BIGINT)"
    text = f"CREATE STREAM a {columns} TIMESTAMP BY ts; CREATE STREAM b {columns} TIMESTAMP BY ts;"
    session = Session()
    grouped = "SELECT a.k, b.m, COUNT(*) AS n FROM a, b WHERE a.k = b.k GROUP BY a.k, b.m"
    session.sql(f"{text} CREATE QUERY q AS {grouped};")
    trees = {str(declared(render(each.tree))): each.tree for each in session.statements}
    edits = list(promise_edits(session.query("q").plan, trees))
    assert {edit.columns for edit in edits if edit.target == "a"} == {("k",)}
    assert {edit.columns for edit in edits if edit.target == "b"} == {("k",), ("m",), ("k", "m")}


def test_a_large_query_has_fewer_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    allowed: list[int] = []

    class Noting(advising._Search):
        def __init__(self, plan: Emit, trees: Trees, admits: advising.Admits, trials: int) -> None:
            allowed.append(trials)
            super().__init__(plan, trees, admits, trials)

    monkeypatch.setattr(advising, "_Search", Noting)
    fixes_of("SELECT DISTINCT id FROM a")
    fixes_of(REFUSED["join of ten"])
    assert allowed[0] == advising.MOST_TRIALS
    assert allowed[1] < advising.MOST_TRIALS


def test_of_many_windows_none_is_tried_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []

    def admits(texts: Mapping[str, str]) -> bool:
        tried.append(len(texts))
        return len(texts) == 8

    monkeypatch.setattr(advising, "apply", lambda edits, trees: {each.target: "" for each in edits})
    family = [
        Edit("window", f"s{number}", lambda tree: None, "", "", "", Burden.WINDOW) for number in range(8)
    ]
    session = Session()
    session.sql("CREATE STREAM s (ts TIMESTAMP) TIMESTAMP BY ts; CREATE QUERY q AS SELECT ts FROM s;")
    search = advising._Search(session.query("q").plan, {}, admits, advising.MOST_TRIALS)
    assert list(search.smallest(family)) == [tuple(family)]
    assert min(tried) == 7
