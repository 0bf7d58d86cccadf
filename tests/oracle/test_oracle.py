"""The oracle judged: worked examples, and properties that hold whatever the query."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from sqlglot import exp
from tests.oracle.block import emit_of, without_emit
from tests.oracle.catalog import bare
from tests.oracle.generate import Example, examples
from tests.oracle.oracle import Oracle
from tests.oracle.values import Change, Row, same_output

from headgate.language import nodes
from headgate.language.parse import parse
from headgate.language.render import render, render_all
from headgate.model.source import SourceText

SECOND = 1_000_000
DECLARED = """
CREATE STREAM s (ts TIMESTAMP, k BIGINT, v INT) TIMESTAMP BY ts WITHIN INTERVAL 2 SECONDS;
CREATE STREAM t (ts TIMESTAMP, k BIGINT, v INT) TIMESTAMP BY ts;
"""


def rows(*triples: tuple[int, int | None, int]) -> list[dict[str, Any]]:
    return [{"ts": at * SECOND, "k": k, "v": v} for at, k, v in triples]


def judge(query: str, s: list[dict[str, Any]], t: list[dict[str, Any]] | None = None) -> Oracle:
    return Oracle(f"{DECLARED} CREATE QUERY q AS {query};", {"s": s, "t": t or []})


def said(oracle: Oracle) -> list[tuple[float, str | None, Row]]:
    return [(change.time / SECOND, change.op, change.row) for change in oracle.output("q")]


# -- worked examples --------------------------------------------------------------------------------


def test_the_answer_at_an_instant_is_the_query_over_the_contents() -> None:
    query = "SELECT ISTREAM(k, SUM(v)) FROM s [RANGE 3 SECONDS] GROUP BY k"
    oracle = judge(query, rows((1, 7, 2), (2, 8, 5), (3, 7, 4)))
    assert oracle.answer("q", 1 * SECOND - 1) == Counter()
    assert oracle.answer("q", 3 * SECOND) == Counter({(7, 6): 1, (8, 5): 1})
    assert oracle.answer("q", 4 * SECOND - 1) == oracle.answer("q", 3 * SECOND)
    assert oracle.answer("q", 4 * SECOND) == Counter({(7, 4): 1, (8, 5): 1})
    assert oracle.columns("q") == ("k", "_c1")


def test_instants_to_look_at_surround_every_change() -> None:
    oracle = judge("SELECT k FROM s [RANGE 3 SECONDS]", rows((1, 7, 2)))
    around = [at * SECOND + offset for at in (1, 4) for offset in (-1, 0, 1)]
    assert oracle.instants("q") == tuple(around)


def test_late_rows_are_kept_apart_in_order_of_arrival() -> None:
    arrivals = rows((5, 7, 1), (2, 7, 2), (3, 7, 3), (1, 7, 4))
    oracle = judge("SELECT ISTREAM(v) FROM s", arrivals)
    assert oracle.late("s")["v"].to_pylist() == [2, 4]
    assert said(oracle) == [(3, None, (3,)), (5, None, (1,))]


def test_an_aggregate_in_a_subquery_starts_with_the_whole_query() -> None:
    query = "SELECT c.n, t.v FROM (SELECT COUNT(*) AS n FROM s [RANGE 3 SECONDS]) AS c, t [RANGE 9 SECONDS]"
    oracle = judge(query, rows((5, 7, 1)), rows((2, 8, 1)))
    assert said(oracle)[:3] == [(2, "+", (0, 1)), (5, "-", (0, 1)), (5, "+", (1, 1))]


def test_a_named_aggregate_starts_with_its_own_first_row() -> None:
    text = f"""{DECLARED}
    CREATE QUERY c AS SELECT COUNT(*) AS n FROM s [RANGE 3 SECONDS];
    CREATE QUERY q AS SELECT c.n, t.v FROM c, t [RANGE 9 SECONDS];"""
    oracle = Oracle(text, {"s": rows((5, 7, 1)), "t": rows((2, 8, 1))})
    assert said(oracle)[0] == (5, "+", (1, 1))


def test_rows_of_one_instant_have_no_order_in_a_querys_stream() -> None:
    oracle = judge("SELECT k FROM (SELECT ISTREAM(k) FROM s) AS x [ROWS 1]", rows((1, 8, 1), (1, 7, 1)))
    assert said(oracle) == [(1, "+", (8,))]
    assert oracle.order_matters


def test_restore_counts_each_life_since_the_last_tick() -> None:
    query = "SELECT RSTREAM RESTORE(DISTINCT k) FROM s [RANGE 1 SECOND SLIDE 10 SECONDS]"
    oracle = judge(query, rows((1, 7, 1), (4, 7, 2)))
    assert said(oracle) == [(10, None, (7,)), (10, None, (7,))]


def test_a_restored_query_may_read_a_table() -> None:
    text = f"""{DECLARED} CREATE TABLE names (k BIGINT, n STRING);
    CREATE QUERY q AS SELECT ISTREAM RESTORE(n) FROM s [RANGE 1 SECOND SLIDE 10 SECONDS], names
    WHERE s.k = names.k;"""
    oracle = Oracle(text, {"s": rows((1, 7, 1), (3, 8, 2)), "t": []}, {"names": [{"k": 7, "n": "seven"}]})
    assert said(oracle) == [(10, None, ("seven",))]


def test_an_internal_group_tells_its_changes_though_the_values_only_trade_places() -> None:
    # Group 7 goes from 1 to 2 and group 8 from 2 to 1 at the same instant: outside, nothing changes.
    arrivals = rows((1, 8, 0), (3, 8, 0), (4, 7, 0), (6, 7, 0))
    listed = "COUNT(*)) FROM s [RANGE 5 SECONDS{}] GROUP BY k"
    outside = judge(f"SELECT ISTREAM({listed.format('')}", arrivals)
    inside = judge(f"SELECT ISTREAM({listed.format(' INTERNAL')}", arrivals)
    assert [change for change in said(outside) if change[0] == 6] == []
    assert [change for change in said(inside) if change[0] == 6] == [(6, None, (1,)), (6, None, (2,))]


def test_a_statement_without_a_name_is_called_after_its_place() -> None:
    oracle = Oracle(f"{DECLARED} SELECT ISTREAM(k) FROM s; SELECT v FROM s;", {"s": rows((1, 7, 2)), "t": []})
    assert oracle.queries == ("query1", "query2")
    assert oracle.output("query1") == [Change(SECOND, None, (7,))]


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT DISTINCT k FROM s [RANGE 3 SECONDS INTERNAL]", "DISTINCT over an INTERNAL window"),
        ("SELECT WSTREAM RESTORE(k)[ROWS 1] FROM s [RANGE 3 SECONDS SLIDE 1 SECOND]", "WSTREAM RESTORE"),
        ("SELECT ISTREAM RESTORE(k) FROM s [RANGE 3 SECONDS]", "RESTORE needs a SLIDE"),
        (
            "SELECT RSTREAM(s.k) FROM s [RANGE 3 SECONDS SLIDE 1 SECOND], t [RANGE 3 SECONDS SLIDE 2 SECONDS]",
            "different slides",
        ),
        (
            "SELECT COUNT(*) FROM s [RANGE 3 SECONDS INTERNAL], t [RANGE 3 SECONDS]",
            "INTERNAL and other windows",
        ),
        (
            "SELECT k FROM s [ROWS 1 INTERNAL] WHERE EXISTS (SELECT 1 FROM t WHERE t.k = s.k)",
            "INTERNAL windows beside EXISTS",
        ),
        ("SELECT k FROM s WHERE EXISTS (SELECT ISTREAM(*) FROM t)", "ISTREAM inside a condition"),
        ("SELECT k FROM missing", "no stream, table or query"),
    ],
)
def test_what_means_nothing_is_not_judged(query: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        judge(query, rows((1, 7, 2))).output("q")


def test_a_stream_without_a_time_cannot_run() -> None:
    with pytest.raises(ValueError, match="no TIMESTAMP BY"):
        Oracle("CREATE STREAM s (k BIGINT); SELECT k FROM s;", {"s": []})


# -- properties -------------------------------------------------------------------------------------


def part(of: int) -> settings:
    """A share of the profile's examples, for what takes long."""
    return settings(max_examples=max(1, settings().max_examples // of))


def emitted(example: Example, *kinds: str | None) -> Oracle:
    """The example's query once for each relation-to-stream operator, as queries named `as_…`."""
    statements = parse(SourceText("example", example.text))
    *before, last = statements
    tree = bare(last.tree.args["query"])
    text = render_all(before)
    for kind in kinds:
        query: exp.Expr = without_emit(tree) if isinstance(tree, exp.Select) else tree.copy()
        if kind is not None:
            assert isinstance(query, exp.Select)
            distinct = query.args.pop("distinct", None)
            query.set(
                "expressions", [nodes.Emit(kind=kind, expressions=query.expressions, distinct=bool(distinct))]
            )
        text += f"CREATE QUERY as_{kind or 'relation'} AS {render(query)};\n"
    return Oracle(text, example.inputs, example.tables)


@part(2)
@given(examples(only=frozenset({"select", "nested", "query reads query", "internal"})))
def test_births_less_deaths_are_the_answer(example: Example) -> None:
    oracle = emitted(example, "ISTREAM", "DSTREAM", None)
    events = [(change.time, 1, change.row) for change in oracle.output("as_istream")]
    events += [(change.time, -1, change.row) for change in oracle.output("as_dstream")]
    log = [
        (change.time, 1 if change.op == "+" else -1, change.row) for change in oracle.output("as_relation")
    ]
    assert sorted(events, key=repr) == sorted(log, key=repr)
    for instant in oracle.instants("as_relation"):
        alive: Counter[Row] = Counter()
        for time, sign, row in events:
            alive[row] += sign * (time <= instant)
        assert min(alive.values(), default=0) >= 0
        assert +alive == oracle.answer("as_relation", instant)


@part(3)
@given(examples(only=frozenset({"select", "nested"})))
def test_rstream_lists_the_answer_at_each_of_its_instants(example: Example) -> None:
    oracle = emitted(example, "RSTREAM")
    listed: dict[int, Counter[Row]] = {}
    for change in oracle.output("as_rstream"):
        listed.setdefault(change.time, Counter())[change.row] += 1
    assert all(oracle.answer("as_rstream", instant) == rows_ for instant, rows_ in listed.items())


@part(5)
@given(examples())
def test_asking_for_each_instant_by_itself_makes_no_difference(example: Example) -> None:
    together = Oracle(example.text, example.inputs, example.tables)
    apart = Oracle(example.text, example.inputs, example.tables, plain=True)
    assert same_output(together.output(example.query), apart.output(example.query))


@part(2)
@given(examples())
def test_nothing_changes_between_the_instants_of_change(example: Example) -> None:
    oracle = Oracle(example.text, example.inputs, example.tables)
    output = oracle.output(example.query)
    closer = Oracle(example.text, example.inputs, example.tables, extra=oracle.instants(example.query))
    assert same_output(output, closer.output(example.query), ticking=oracle.ticking(example.query))


@part(3)
@given(examples(only=frozenset({"internal"})))
def test_what_never_expires_may_as_well_be_internal(example: Example) -> None:
    """INTERNAL only says that expiry does not count, so over unbounded streams a join is the same with it."""
    tree = parse(SourceText("example", example.text))[-1].tree.args["query"]
    if any(tree.find_all(exp.AggFunc, exp.Anonymous)):
        return
    texts = []
    for internal in (False, True):
        query = tree.copy()
        for spec in query.find_all(nodes.WindowSpec):
            spec.replace(nodes.WindowSpec(kind="UNBOUNDED", internal=internal))
        found = emit_of(query)
        if found is not None:
            found.set("kind", "ISTREAM")
        declared = example.text.split("CREATE QUERY")[0]
        texts.append(f"{declared} CREATE QUERY q AS {render(query)};")
    one, other = (Oracle(text, example.inputs, example.tables).output("q") for text in texts)
    assert same_output(one, other)
