"""What check says of plans and promises of joins that forget: trees, the cheapest, smallest sets, lifespans."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.safety.test_gate_punctuation import CYCLE, streams

from headgate.explain.check_report import page
from headgate.optimize.statistics import Statistics, read_statistics
from headgate.safety.reasons.join_plans import JoinPlans
from headgate.session import Session

AUCTION = Path(__file__).parents[2] / "examples" / "auction.cql"
BOTH = "PUNCTUATED BY (a) WHEN p PUNCTUATED BY (b) WHEN p"
CHAIN = streams(f"s1(a, b) {BOTH}", f"s2(a, b) {BOTH}", f"s3(a, b) {BOTH}") + (
    "CREATE QUERY q AS SELECT s1.a FROM s1, s2, s3 WHERE s1.b = s2.b AND s2.a = s3.a;"
)
TRIANGLE = (
    streams(
        "s1(a, b) PUNCTUATED BY (b) WHEN p",
        "s2(b, c) PUNCTUATED BY (c) WHEN p",
        "s3(c, a) PUNCTUATED BY (a) WHEN p",
    )
    + CYCLE
)


def plans(text: str) -> JoinPlans:
    query = Session().sql(text)
    assert query is not None
    (found,) = query.checked.plans
    return found


def test_no_tree_of_the_triangle_is_safe_but_the_join_of_all_three_is() -> None:
    found = plans(TRIANGLE)
    assert found.trees == (0, 3)
    assert found.plans == (1, 4)
    assert {each.plan: each.safe for each in found.listed} == {
        "(s1 ⋈ s2 ⋈ s3)": True,
        "(s1 ⋈ (s2 ⋈ s3))": False,
        "((s1 ⋈ s2) ⋈ s3)": False,
        "((s1 ⋈ s3) ⋈ s2)": False,
    }
    assert found.cheapest == "(s1 ⋈ s2 ⋈ s3)"
    unsafe = next(each for each in found.listed if each.plan == "((s1 ⋈ s2) ⋈ s3)").unsafe
    assert unsafe[0] == "(s1 ⋈ s2) keeps the rows of s1 for good"


def test_trees_of_a_chain_are_safe_where_their_joins_are() -> None:
    found = plans(CHAIN)
    assert found.trees == (2, 3)
    assert not next(each for each in found.listed if each.plan == "((s1 ⋈ s3) ⋈ s2)").safe


def test_two_streams_have_no_trees_to_choose_from() -> None:
    text = streams(f"s1(a, b) {BOTH}", f"s2(a, b) {BOTH}")
    found = plans(text + "CREATE QUERY q AS SELECT s1.a FROM s1, s2 WHERE s1.b = s2.b;")
    assert (found.trees, found.plans) == (None, None)
    assert [each.plan for each in found.listed] == ["(s1 ⋈ s2)"]


def test_trees_are_not_judged_where_a_window_bounds_a_stream() -> None:
    text = CHAIN.replace("FROM s1, s2, s3", "FROM s1 [RANGE 1 HOUR], s2, s3")
    found = plans(text)
    assert (found.trees, found.plans, found.cheapest, found.listed) == (None, None, None, ())


def test_the_cheapest_plan_follows_the_rates() -> None:
    session = Session()
    session.sql(CHAIN)
    cheapest = []
    for fast in ("s1", "s3"):
        session.statistics = _rates(session, fast)
        found = session.query("q").join_plans[0]
        assert found.cheapest_cost is not None
        cheapest.append(found.cheapest)
    assert cheapest == ["((s1 ⋈ s2) ⋈ s3)", "(s1 ⋈ (s2 ⋈ s3))"]


def _rates(session: Session, fast: str) -> Statistics:
    distinct = "distinct: {a: 100000, b: 100000}"
    entries = ", ".join(
        f"{name}: {{rate: {50 if name == fast else 1}, {distinct}}}" for name in ("s1", "s2", "s3")
    )
    return read_statistics(f"streams: {{{entries}}}", "stats", session.catalog)


def test_promises_that_are_needed_and_those_that_are_of_no_use() -> None:
    found = plans(CHAIN)
    assert found.all_sets
    assert found.needed == (
        ("s1 PUNCTUATED BY (b)", "s2 PUNCTUATED BY (a)", "s2 PUNCTUATED BY (b)", "s3 PUNCTUATED BY (a)"),
    )
    assert found.useless == ("s1 PUNCTUATED BY (a)", "s3 PUNCTUATED BY (b)")


def test_several_smallest_sets_are_told_apart() -> None:
    text = TRIANGLE.replace(
        "PUNCTUATED BY (c) WHEN p", "PUNCTUATED BY (c) WHEN p PUNCTUATED BY (b) WHEN p"
    ).replace("PUNCTUATED BY (a) WHEN p", "PUNCTUATED BY (a) WHEN p PUNCTUATED BY (c) WHEN p")
    found = plans(text)
    assert len(found.needed) == 2
    assert [line.split()[0] for line in found.needs] == ["either", "or"]
    assert not found.useless


def test_a_promise_that_only_a_group_needs_is_of_use() -> None:
    session = Session.from_file(AUCTION)
    (closing,) = session.query("closing").checked.plans
    assert closing.needed == (("i KEY (itemid)", "b PUNCTUATED BY (itemid)"),)
    assert closing.useless == ("b KEY (bidid)",)
    (hot,) = session.query("hot").checked.plans
    assert hot.windowed == ("b",)
    assert hot.needed == (("b PUNCTUATED BY (itemid)",),)
    assert hot.trees is None


def test_how_long_promises_are_remembered() -> None:
    lifespans = {each.promise: each.lifespan for each in plans(TRIANGLE).remembered}
    assert lifespans == {
        "s1 PUNCTUATED BY (b)": 65_536,
        "s2 PUNCTUATED BY (c)": 65_536,
        "s3 PUNCTUATED BY (a)": 65_536,
    }
    assert {each.lifespan for each in plans(CHAIN).remembered} == {None}


def test_text_json_and_html_say_it() -> None:
    query = Session().sql(CHAIN)
    assert query is not None
    text = query.checked.to_text().plain
    assert "  plan   mjoin: all inputs are joined at once" in text
    assert "  needs  s1 PUNCTUATED BY (b)" in text
    assert "  spare  s1 PUNCTUATED BY (a), s3 PUNCTUATED BY (b): of no use here" in text
    data = json.loads(json.dumps(query.checked.as_dict()))
    assert data["plan"] == "mjoin"
    assert data["punctuation"][0]["trees"] == {"safe": 2, "of": 3}
    assert data["punctuation"][0]["punctuations"][0]["lifespan"] is None
    assert "<td>((s1 ⋈ s3) ⋈ s2)</td>" in page([query.checked])


def wide(count: int, *, ring: bool = False) -> str:
    declared = streams(*(f"s{n}(a, b) {BOTH}" for n in range(count)))
    froms = ", ".join(f"s{n}" for n in range(count))
    where = " AND ".join(f"s{n}.b = s{(n + 1) % count}.a" for n in range(count if ring else count - 1))
    return declared + f"CREATE QUERY q AS SELECT s0.a FROM {froms} WHERE {where};"


def test_a_wide_join_is_not_enumerated() -> None:
    count = 12
    found = plans(wide(count))
    assert found.trees is None
    assert len(found.needed) == 1
    assert found.useless == ("s0 PUNCTUATED BY (a)", f"s{count - 1} PUNCTUATED BY (b)")


@pytest.mark.parametrize(("count", "all_sets"), [(6, True), (7, False)])
def test_sets_of_promises_are_all_sought_among_up_to_six_inputs(count: int, all_sets: bool) -> None:
    # Round the ring one promise of each stream is enough, in either direction.
    found = plans(wide(count, ring=True))
    assert (found.all_sets, len(found.needed) > 1) == (all_sets, all_sets)
    assert [line.split()[0] for line in found.needs[:2]] == ["either", "or"]
