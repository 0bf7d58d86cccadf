"""Constraints WITHIN AUTO in joins of windows: what their verdicts assume, and that no bound rests on them."""

from __future__ import annotations

import pytest

from headgate.safety.verdict import Verdict
from headgate.session import Session

S = "CREATE STREAM s (ts TIMESTAMP, a BIGINT, b BIGINT) TIMESTAMP BY ts"
T = "CREATE STREAM t (ts TIMESTAMP, a BIGINT) TIMESTAMP BY ts"
JOIN = "SELECT s.b FROM s [RANGE 1 HOUR], t [RANGE 1 HOUR] WHERE s.a = t.a"


def verdict(of_s: str, of_t: str, query: str = JOIN) -> Verdict:
    found = Session().sql(f"{S} {of_s}; {T} {of_t}; CREATE QUERY q AS {query};")
    assert found is not None
    return found.check()


def observed(found: Verdict) -> list[str]:
    return [each.sentence for each in found.assumes if each.metric == "violations"]


@pytest.mark.parametrize(
    ("of_s", "of_t", "constraint"),
    [
        ("", "ORDERED BY (a) WITHIN AUTO", "t ORDERED BY (a) WITHIN AUTO"),
        ("CLUSTERED BY (a) WITHIN AUTO", "", "s CLUSTERED BY (a) WITHIN AUTO"),
        (
            "FOREIGN KEY (a) REFERENCES t (a) WITHIN AUTO",
            "KEY (a)",
            "s FOREIGN KEY (a) REFERENCES t (a) WITHIN AUTO",
        ),
    ],
)
def test_a_query_that_rests_on_what_is_observed_says_so(of_s: str, of_t: str, constraint: str) -> None:
    found = verdict(of_s, of_t)
    assert found.kind == "conditional"
    assert observed(found) == [f"rows go on to keep {constraint} as closely as of late"]
    assert any("dropped sooner" in state.reason and "WITHIN AUTO" in state.reason for state in found.states)


def test_the_windows_bound_it_all_the_same() -> None:
    found = verdict("", "ORDERED BY (a) WITHIN AUTO")
    assert {str(state.by) for state in found.states} == {"window"}


@pytest.mark.parametrize(
    ("of_s", "of_t", "query"),
    [
        # No column of the join.
        ("ORDERED BY (b) WITHIN AUTO", "", JOIN),
        # Another k is declared for it.
        ("", "ORDERED BY (a) WITHIN 5 ROWS", JOIN),
        # More partners may come.
        ("FOREIGN KEY (a) REFERENCES t (a) WITHIN AUTO", "CLUSTERED BY (a) WITHIN 5 ROWS", JOIN),
        # Rows are seen at ticks, and the monitor sees them before.
        (
            "",
            "ORDERED BY (a) WITHIN AUTO",
            "SELECT s.b FROM s [RANGE 1 HOUR], t [RANGE 1 HOUR SLIDE 1 MINUTE] WHERE s.a = t.a",
        ),
        # Row windows end rows.
        ("", "ORDERED BY (a) WITHIN AUTO", "SELECT s.b FROM s [RANGE 1 HOUR], t [ROWS 5] WHERE s.a = t.a"),
    ],
)
def test_what_helps_nobody_is_not_observed(of_s: str, of_t: str, query: str) -> None:
    assert not observed(verdict(of_s, of_t, query))


def test_only_what_the_user_asks_for_is_observed() -> None:
    assert verdict("", "KEY (a)").assumes == verdict("", "").assumes
