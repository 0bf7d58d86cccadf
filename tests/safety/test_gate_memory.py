"""The gate on joins of unwindowed streams that ranges of values bound: the Memory document's examples as CQL."""

from __future__ import annotations

import pytest

from headgate.safety.verdict import Verdict
from headgate.session import Session

STREAMS = """
CREATE STREAM S (ts TIMESTAMP, A BIGINT, B BIGINT, C BIGINT, x STRING, day DATE, f BOOLEAN, z DOUBLE) TIMESTAMP BY ts;
CREATE STREAM T (ts TIMESTAMP, D BIGINT, E BIGINT, y STRING, w DOUBLE, n INT) TIMESTAMP BY ts;
CREATE STREAM K (ts TIMESTAMP, k STRING CHECK (k IN ('kite', 'globe')), q INT, CHECK (q BETWEEN 1 AND 5))
  TIMESTAMP BY ts;
"""


def verdict(query: str) -> Verdict:
    found = Session().sql(f"{STREAMS} CREATE QUERY q AS {query};")
    assert found is not None
    return found.check()


def reasons(query: str) -> str:
    return "\n".join(f"{state.by}: {state.reason}" for state in verdict(query).states)


TABLE = [
    # conditions, duplicates kept, duplicates removed
    ("A > 10", "S", True, False),
    ("A = D", "S, T", False, False),
    ("A = D AND A > 10 AND D < 20", "S, T", True, True),
    ("B < D AND A > 10 AND A < 20", "S, T", False, True),
    ("B < D AND C < E AND A > 10 AND A < 20", "S, T", False, False),
    ("B < D AND B < E AND C < D AND C < E AND A > 10 AND A < 20", "S, T", False, True),
]


@pytest.mark.parametrize(("conditions", "streams", "kept", "removed"), TABLE)
def test_the_example_queries(conditions: str, streams: str, kept: bool, removed: bool) -> None:
    assert verdict(f"SELECT A FROM {streams} WHERE {conditions}").admitted is kept
    assert verdict(f"SELECT DISTINCT A FROM {streams} WHERE {conditions}").admitted is removed


def test_the_example_with_a_sum() -> None:
    query = "SELECT A, SUM(B) AS total FROM S, T WHERE A = D AND A > 10 AND D < 20 GROUP BY A"
    assert verdict(query).admitted
    assert "at most 9 rows stand for all of S" in reasons(query)


def test_redundant_conditions_do_not_count() -> None:
    ordered = " AND B < C AND D < E AND A > 10 AND A < 20"
    sixth = "B < D AND B < E AND C < D AND C < E"
    assert verdict(f"SELECT DISTINCT A FROM S, T WHERE {sixth} {ordered}").admitted
    assert not verdict(f"SELECT DISTINCT A FROM S, T WHERE B < D AND C < E {ordered}").admitted


def test_every_state_says_values_and_how_many() -> None:
    found = verdict("SELECT DISTINCT A FROM S, T WHERE B < D AND A > 10 AND A < 20")
    assert {state.by for state in found.states} == {"values"}
    said = {state.stream: state.reason for state in found.states if state.operator == "join"}
    assert said["S"].startswith("at most 9 rows stand for all of S")
    assert said["T"].startswith("one row stands for all of T")


@pytest.mark.parametrize(
    ("query", "bounded"),
    [
        ("SELECT DISTINCT f FROM S", True),
        ("SELECT DISTINCT day FROM S WHERE day BETWEEN DATE '2026-01-01' AND DATE '2026-01-31'", True),
        ("SELECT DISTINCT day FROM S WHERE day >= DATE '2026-01-01'", False),
        ("SELECT DISTINCT x FROM S WHERE x IN ('a', 'b')", True),
        ("SELECT DISTINCT x FROM S WHERE x BETWEEN 'a' AND 'b'", False),
        ("SELECT DISTINCT z FROM S WHERE z BETWEEN 1 AND 2", False),
        ("SELECT DISTINCT z FROM S WHERE z = 1.5", True),
        ("SELECT DISTINCT A FROM S WHERE A > 2.5 AND A < 7.5", True),
        ("SELECT DISTINCT A + 1 AS a FROM S WHERE A IN (1, 5, 9)", True),
        ("SELECT DISTINCT x FROM S, T WHERE x = y AND x IN ('a', 'b')", True),
        ("SELECT DISTINCT A FROM S, T WHERE A = n AND n BETWEEN 1 AND 3", True),
        ("SELECT DISTINCT f FROM S, T WHERE z < w", True),
        ("SELECT f FROM S, T WHERE z < w", False),
        ("SELECT A FROM S, T WHERE A <> D AND A = 1", False),
        ("SELECT DISTINCT f FROM S, T WHERE A + 1 < D", True),
        ("SELECT DISTINCT k, q FROM K", True),
        ("SELECT k, COUNT(*) AS n FROM K GROUP BY k", True),
        (
            "SELECT DISTINCT z FROM S, T WHERE z = w AND CAST(z AS BIGINT) = 1 AND CAST(w AS BIGINT) = 1",
            False,
        ),
        ("SELECT DISTINCT A FROM S, T WHERE A IN (D, 11) AND A BETWEEN 1 AND 3", False),
        ("SELECT k, MEDIAN(q) AS n FROM K GROUP BY k", True),
        ("SELECT q.q AS p FROM K, K q WHERE K.q = q.q", True),
    ],
)
def test_domains(query: str, bounded: bool) -> None:
    assert verdict(query).admitted is bounded, reasons(query)


@pytest.mark.parametrize(
    ("call", "conditions", "bounded"),
    [
        ("COUNT(*)", "A = D AND A > 10 AND D < 20", True),
        ("AVG(B)", "A = D AND A > 10 AND D < 20", True),
        ("AVG(z)", "A = D AND A > 10 AND D < 20", False),
        ("COUNT(z)", "A = D AND A > 10 AND D < 20", True),
        ("MAX(B)", "D < B AND A > 10 AND A < 20", True),
        ("MIN(B)", "D < B AND A > 10 AND A < 20", False),
        ("SUM(B)", "D < B AND A > 10 AND A < 20", False),
        ("COUNT(DISTINCT C)", "B < D AND A > 10 AND A < 20 AND C BETWEEN 1 AND 3", True),
        ("COUNT(DISTINCT C)", "B < D AND A > 10 AND A < 20", False),
        ("MEDIAN(C)", "A = D AND A > 10 AND A < 20 AND C BETWEEN 1 AND 3", True),
        ("MEDIAN(C)", "A = D AND A > 10 AND A < 20", False),
    ],
)
def test_aggregates(call: str, conditions: str, bounded: bool) -> None:
    query = f"SELECT A, {call} AS v FROM S, T WHERE {conditions} GROUP BY A"
    assert verdict(query).admitted is bounded, reasons(query)


def test_a_covered_occurrence_is_left_out() -> None:
    """Whatever V could contribute to U.A = 11, U contributes itself."""
    covered = (
        "SELECT DISTINCT U.A FROM S AS U, S AS V WHERE U.A BETWEEN 11 AND 13 AND V.A = U.A AND V.B <= U.B"
    )
    found = verdict(covered)
    assert found.admitted
    assert found.plan == "single"
    assert not verdict(covered.replace("<=", "<") + " AND V.C < U.C").admitted


@pytest.mark.parametrize(
    "condition",
    [
        "A BETWEEN -9223372036854775807 AND 9223372036854775807",
        "A < 100000000000000000000000000 AND A > -5000000000000000000000000",
        "A > -1e400 AND A < 1e400",
        "z = 1e-400",
        "z < 1e400",
    ],
)
def test_bounds_beyond_all_measure_are_no_bounds(condition: str) -> None:
    assert not verdict(f"SELECT DISTINCT A FROM S WHERE {condition}").admitted
    assert not verdict(f"SELECT DISTINCT A FROM S, T WHERE A = D AND {condition}").admitted


def test_many_occurrences_of_one_stream_are_judged_at_once() -> None:
    names = [f"s{n}" for n in range(8)]
    where = " AND ".join(f"{x}.A < {y}.B" for x in names for y in names if x != y)
    inputs = ", ".join(f"S AS {name}" for name in names)
    assert not verdict(f"SELECT DISTINCT s0.A FROM {inputs} WHERE {where} AND s0.A BETWEEN 1 AND 3").admitted


def test_a_refusal_says_which_values_are_too_many() -> None:
    assert "S.A = T.D joins on values of which there can be any number" in reasons(
        "SELECT f FROM S, T WHERE A = D"
    )
    assert "there is always another" in reasons("SELECT DISTINCT z FROM S, T WHERE z = w AND z > 1 AND z < 2")
    assert "A <> T.D is not a comparison" in reasons("SELECT f FROM S, T WHERE A <> D")


def test_the_plan_that_is_bounded_is_taken() -> None:
    """Pushing DISTINCT below the join would be cheaper and would have to remember every B."""
    found = verdict("SELECT DISTINCT A FROM S, T WHERE B < D AND A > 10 AND A < 20")
    assert found.admitted


def test_an_answer_kept_whole_is_bounded_only_without_duplicates() -> None:
    conditions = "A = D AND A > 10 AND D < 20"
    assert verdict(f"SELECT RSTREAM(DISTINCT A) FROM S, T WHERE {conditions}").admitted
    assert not verdict(f"SELECT RSTREAM(A) FROM S, T WHERE {conditions}").admitted


def test_values_bound_a_join_of_which_promises_let_only_one_side_go() -> None:
    promised = STREAMS.replace("w DOUBLE, n INT) TIMESTAMP BY ts", "w DOUBLE, n INT) TIMESTAMP BY ts KEY (D)")
    found = Session().sql(
        f"{promised} CREATE QUERY q AS SELECT A FROM S, T WHERE A = D AND A > 10 AND A < 20;"
    )
    assert found is not None
    assert found.check().admitted
    assert {state.by for state in found.check().states} == {"values"}


def test_a_window_of_rows_is_a_state_and_one_of_time_is_not() -> None:
    def kept(window: str) -> list[str]:
        return [state.operator for state in verdict(f"SELECT DISTINCT A FROM S [{window}]").states]

    assert "window" in kept("ROWS 10")
    assert "window" not in kept("RANGE 10 SECONDS")
