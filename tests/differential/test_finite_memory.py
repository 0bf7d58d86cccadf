"""Queries that few rows of each stream answer: they say what the oracle says, from a state within its bound."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.differential.local import output_of
from tests.differential.punctuated import tables
from tests.differential.test_punctuated import pieces
from tests.oracle.oracle import Oracle
from tests.oracle.values import same_output

from headgate.model.errors import DataError
from headgate.physical.compile import compile_query
from headgate.physical.program import Program
from headgate.runtime.data import frame_of
from headgate.runtime.local.engine import LocalRun
from headgate.safety.verdict import Verdict
from headgate.session import Session

STREAMS = """
CREATE STREAM S (ts TIMESTAMP, A BIGINT, B BIGINT, C BIGINT, x STRING, f BOOLEAN, z DOUBLE, m DECIMAL(9, 2), day DATE)
  TIMESTAMP BY ts;
CREATE STREAM T (ts TIMESTAMP, D BIGINT, E INT, y STRING, w DOUBLE, n DECIMAL(9, 2), date DATE) TIMESTAMP BY ts;
"""
CIRCLE = "B < D AND B < E AND C < D AND C < E AND A > 10 AND A < 13"

QUERIES = [
    "SELECT A FROM S, T WHERE A = D AND A > 10 AND D < 14",
    "SELECT DISTINCT A FROM S, T WHERE A = D AND A > 10 AND D < 14",
    "SELECT DISTINCT A FROM S, T WHERE B < D AND A > 10 AND A < 13",
    f"SELECT DISTINCT A FROM S, T WHERE {CIRCLE}",
    "SELECT DISTINCT A FROM S, T WHERE B <= D AND A >= 10 AND A < 13",
    "SELECT DISTINCT A FROM S, T WHERE B <= D AND C < D AND A BETWEEN 10 AND 12",
    "SELECT A FROM S, T WHERE A = 11 AND D = 11",
    "SELECT DISTINCT f FROM S, T WHERE A = 11 AND D = 11",
    "SELECT DISTINCT f FROM S, T WHERE A <= D AND A = B",
    "SELECT DISTINCT f FROM S, T WHERE A >= B AND D > A AND A = B",
    "SELECT DISTINCT f FROM S, T WHERE z < w",
    "SELECT DISTINCT f, y FROM S, T WHERE A + 1 < D AND y IN ('p', 'q')",
    "SELECT DISTINCT x FROM S, T WHERE x = y AND x IN ('p', 'q')",
    "SELECT x, f FROM S, T WHERE x = y AND x IN ('p', 'q')",
    "SELECT DISTINCT U.A FROM S AS U, S AS V WHERE U.A BETWEEN 11 AND 13 AND V.A = U.A AND V.B <= U.B",
    "SELECT DISTINCT U.A, W.D FROM S AS U, S AS V, T AS W WHERE U.A BETWEEN 11 AND 13 AND V.A = U.A AND U.A = W.D "
    "AND V.B >= U.B AND V.C = 12",
    "SELECT S.A, U.A AS other FROM S, S AS U WHERE S.A = U.A AND S.A BETWEEN 11 AND 12",
    "SELECT A FROM S, T, T AS U WHERE A = T.D AND U.E = T.E AND A BETWEEN 11 AND 13 AND T.E BETWEEN 10 AND 12",
    "SELECT A FROM S, T WHERE A < D AND A BETWEEN 11 AND 13 AND D BETWEEN 10 AND 13",
    "SELECT A, COUNT(*) AS n FROM S, T WHERE A = D AND B = D AND A > 10 AND D < 14 GROUP BY A",
    "SELECT A, SUM(B) AS v, COUNT(*) AS n, COUNT(B) AS m, AVG(C) AS mean FROM S, T WHERE A = D AND A > 10 AND D < 14 "
    "GROUP BY A",
    "SELECT SUM(E) AS v, COUNT(*) AS n FROM S, T WHERE A = D AND A > 10 AND D < 14",
    "SELECT A, MAX(B) AS v FROM S, T WHERE D < B AND A > 10 AND A < 14 GROUP BY A",
    "SELECT A, MAX(B) AS hi, MIN(B) AS lo, MIN(E) AS e FROM S, T WHERE A = D AND A > 10 AND D < 14 GROUP BY A",
    "SELECT A, COUNT(DISTINCT C) AS v FROM S, T WHERE B < D AND A > 10 AND A < 13 AND C BETWEEN 10 AND 12 GROUP BY A",
    "SELECT A, MEDIAN(C) AS v, SUM(C) AS s FROM S, T WHERE A = D AND A > 10 AND A < 14 AND C BETWEEN 10 AND 12 "
    "GROUP BY A",
    "SELECT x, f FROM S, T WHERE x = y AND (x = 'p' OR x = 'q')",
    "SELECT A, COUNT(*) AS n FROM S, T WHERE A = D AND (A BETWEEN 10 AND 11 OR A = 14) GROUP BY A",
    "SELECT A FROM S, T WHERE A = D AND A BETWEEN 11 AND 12 AND (C = 11 OR C IS NULL)",
    "SELECT A FROM S, T WHERE A = D AND A IN (11, 1000000000000)",
    "SELECT DISTINCT A % 3 AS m FROM S, T WHERE B % 4 = D % 4",
    "SELECT DISTINCT B > 12 AS m, y FROM S, T WHERE A < D AND y IN ('p', 'q')",
    "SELECT A % 3 AS m, f, y FROM S, T WHERE C % 2 = E % 2 AND y IN ('p', 'q')",
    "SELECT CASE WHEN A > 12 THEN x ELSE 'low' END AS s, COUNT(*) AS n, SUM(B) AS b FROM S, T WHERE C % 2 = E % 2 "
    "AND x IN ('p', 'q') GROUP BY CASE WHEN A > 12 THEN x ELSE 'low' END",
    "SELECT CASE WHEN B > 12 THEN 'high' WHEN B < 10 THEN 'low' END AS s, MAX(D % 5) AS v FROM S, T "
    "WHERE C % 2 = E % 2 GROUP BY CASE WHEN B > 12 THEN 'high' WHEN B < 10 THEN 'low' END",
    "SELECT COUNT(DISTINCT A % 3) AS v, COALESCE(f, x IS NULL) AS g FROM S, T WHERE B < D "
    "GROUP BY COALESCE(f, x IS NULL)",
    "SELECT DISTINCT hour(S.ts) AS h, IF(f, 'a', 'b') AS g FROM S, T WHERE A < D",
    "SELECT A, x FROM S, T WHERE A = D AND A > 13 AND D < 11",
    "SELECT COUNT(*) AS n, MAX(A) AS a FROM S, T WHERE A < D AND D < A",
    "SELECT ISTREAM(A, COUNT(*) AS n) FROM S, T WHERE A = D AND A > 10 AND D < 14 GROUP BY A HAVING COUNT(*) > 2",
]


def rows_of(
    random: Random, count: int, numbers: Sequence[int] = range(8, 17)
) -> dict[str, list[dict[str, object]]]:
    """Rows with values around the constants, some of them NULL."""
    rows: dict[str, list[dict[str, object]]] = {"S": [], "T": []}
    decimals = [*map(Decimal, ("9.50", "10.00", "11.00", "11.25", "12.50")), None]
    days = [*(date(2024, 1, day) for day in range(1, 5)), None]
    clock = 0
    for _ in range(count):
        clock += random.randint(0, 2)

        def number() -> int | None:
            return random.choice([*numbers, None])

        if random.random() < 0.5:
            row = {"A": number(), "B": number(), "C": number(), "x": random.choice(["p", "q", "r", None])}
            z = random.choice([0.5, 1.5, 2.5, None])
            row |= {"f": random.choice([True, False, None]), "z": z}
            rows["S"].append({"ts": clock, **row, "m": random.choice(decimals), "day": random.choice(days)})
        else:
            row = {"D": number(), "E": number(), "y": random.choice(["p", "q", "r", None])}
            row |= {"w": random.choice([0.5, 1.5, 2.5, None])}
            rows["T"].append({"ts": clock, **row, "n": random.choice(decimals), "date": random.choice(days)})
    return rows


def text_of(query: str) -> str:
    return f"{STREAMS} CREATE QUERY q AS {query};"


def verdict(query: str) -> Verdict:
    found = Session().sql(text_of(query))
    assert found is not None
    return found.check()


@pytest.mark.parametrize("query", QUERIES)
def test_it_is_admitted_by_values(query: str) -> None:
    found = verdict(query)
    assert found.admitted, found
    assert {state.by for state in found.states} == {"values"}


@pytest.mark.parametrize("query", QUERIES)
def test_the_oracle_agrees(query: str) -> None:
    for seed in range(2):
        rows = tables(text_of(query), rows_of(Random(seed), 40))
        oracle = Oracle(text_of(query), rows, {})
        expected = oracle.output("q")
        for pieces_ in ([rows], pieces(rows, Random(seed))):
            assert same_output(output_of(text_of(query), "q", pieces_, {}), expected)


@given(query=st.sampled_from(QUERIES), seed=st.integers(0, 100_000), count=st.integers(0, 60))
def test_any_cut_and_any_restart_say_the_same(query: str, seed: int, count: int) -> None:
    random = Random(seed)
    rows = tables(text_of(query), rows_of(random, count))
    whole = output_of(text_of(query), "q", [rows], {})
    restored = output_of(text_of(query), "q", pieces(rows, random), {}, restore_every_step=True)
    assert same_output(restored, whole)


def peaks(query: str) -> tuple[int, int]:
    """The largest state, in rows, within the first third of long streams and in all of it."""
    found = Session().sql(text_of(query))
    assert found is not None
    ready = compile_query(found.planned)
    rows = tables(text_of(query), rows_of(Random(3), 2_400))
    streams = [(s, frame_of(rows[s.name], s.columns).iter_slices(60)) for s in ready.streams]
    sizes: list[int] = []
    LocalRun(Program((ready,)), streams).run(
        lambda *_: None, lambda query, stream, late: None, lambda progress: sizes.append(progress.state_rows)
    )
    return max(sizes[: len(sizes) // 3]), max(sizes)


@pytest.mark.parametrize("query", QUERIES)
def test_the_state_does_not_grow_with_the_input(query: str) -> None:
    first, second = peaks(query)
    assert second <= 1.5 * first + 20
    assert second < 900


def test_wide_values_change_nothing() -> None:
    """Values far outside the constants share a cell, also at the ends of the type."""
    query = "SELECT DISTINCT A FROM S, T WHERE B < D AND A > 10 AND A < 13"
    ends = [-(2**63), 2**63 - 1, 11]
    rows = {
        "S": [
            {"ts": n, "A": a, "B": b, "C": 0, "x": "p", "f": True, "z": 0.0, "m": None, "day": None}
            for n, (a, b) in enumerate((a, b) for a in ends for b in ends)
        ],
        "T": [
            {"ts": n, "D": d, "E": 0, "y": "p", "w": 0.0, "n": None, "date": None} for n, d in enumerate(ends)
        ],
    }
    given_ = tables(text_of(query), rows)
    expected = Oracle(text_of(query), given_, {}).output("q")
    assert same_output(output_of(text_of(query), "q", [given_], {}), expected)


@pytest.mark.parametrize("signs", [(1, 1, 1), (-1, -1, -1), (1, 1, -1, 1, -1, -1)])
def test_sums_are_exact_on_the_way_and_an_error_if_they_do_not_fit(signs: Sequence[int]) -> None:
    text = text_of(
        "SELECT A, SUM(B) AS s, AVG(B) AS m, COUNT(B) AS n FROM S, T WHERE A = D AND A = 11 GROUP BY A"
    )
    names = ("C", "x", "f", "z", "m", "day")
    rows = {
        "S": [{"ts": n, "A": 11, "B": sign * 2**62, **dict.fromkeys(names)} for n, sign in enumerate(signs)],
        "T": [{"ts": 9, "D": 11, **dict.fromkeys(("E", "y", "w", "n", "date"))}],
    }
    if abs(sum(signs)) > 1:
        with pytest.raises(DataError, match=r"SUM\(S.B\) overflowed"):
            output_of(text, "q", [tables(text, rows)], {})
    else:
        [said] = output_of(text, "q", [tables(text, rows)], {})
        assert said.row == (11, 0, 0.0, 6)


BESIDE_A_WINDOW = [
    "SELECT DISTINCT A, E FROM S [RANGE 5 SECONDS], T WHERE A = D AND D BETWEEN 10 AND 13 AND E BETWEEN 10 AND 12",
    "SELECT ISTREAM(DISTINCT A) FROM S [ROWS 4], T WHERE A = D AND D BETWEEN 10 AND 13",
    "SELECT DISTINCT f, y FROM S, T [RANGE 4 SECONDS SLIDE 2 SECONDS] WHERE x = y AND x IN ('p', 'q')",
    "SELECT DISTINCT A FROM S [RANGE 3 SECONDS], T WHERE B < D AND D BETWEEN 10 AND 13",
]


@pytest.mark.parametrize("query", BESIDE_A_WINDOW)
def test_few_values_beside_a_window(query: str) -> None:
    """One input windowed, the other bounded by values: each value is remembered once."""
    found = verdict(query)
    assert found.admitted, found
    assert {state.by for state in found.states} == {"values", "window"}
    for seed in range(3):
        rows = tables(text_of(query), rows_of(Random(seed), 40))
        expected = Oracle(text_of(query), rows, {}).output("q")
        for pieces_ in ([rows], pieces(rows, Random(seed))):
            assert same_output(output_of(text_of(query), "q", pieces_, {}), expected)
    first, second = peaks(query)
    assert second <= 1.5 * first + 10


def test_every_copy_counts_without_distinct() -> None:
    found = verdict(
        "SELECT A, E FROM S [RANGE 5 SECONDS], T WHERE A = D AND D BETWEEN 10 AND 13 AND E BETWEEN 10 AND 12"
    )
    reason = next(state.reason for state in found.unbounded if state.operator == "join")
    assert "otherwise every copy of a row counts" in reason
    assert any(fix.kind == "distinct" for fix in found.fixes)
