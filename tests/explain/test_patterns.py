"""Update patterns (Windows document, 3.2 to 3.5): rules 1 to 4 and what this project adds to them."""

from __future__ import annotations

import pytest
from tests.explain.plans import ask, pattern, shape, shapes

W = "[RANGE 1 MINUTE]"


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        ("SELECT a FROM S1", "MON"),
        (f"SELECT a FROM S1 {W}", "WKS"),
        ("SELECT a FROM S1 [NOW]", "WKS"),
        ("SELECT a FROM S1 [RANGE 1 MINUTE SLIDE 10 SECONDS]", "WKS"),
        ("SELECT a FROM S1 [RANGE 14 MINUTES SLIDE 3 MINUTES]", "WK"),
        ("SELECT a FROM S1 [ROWS 10]", "STR"),
        ("SELECT a FROM S1 [PARTITION BY b ROWS 10]", "STR"),
        (f"SELECT a FROM S1 {W} WHERE b > 3", "WKS"),
        (f"SELECT S1.a FROM S1 {W}, S2 {W} WHERE S1.a = S2.a", "WK"),
        ("SELECT S1.a FROM S1, S2 WHERE S1.a = S2.a", "MON"),
        (f"SELECT S1.a FROM S1 {W}, S2 [ROWS 5] WHERE S1.a = S2.a", "STR"),
        (f"SELECT a FROM S1 {W} UNION ALL SELECT a FROM S2 {W}", "WKS"),
        (f"SELECT a FROM S1 {W} UNION ALL SELECT a FROM S2 [RANGE 2 MINUTES]", "WK"),
        (f"SELECT DISTINCT a FROM S1 {W}", "WK"),
        ("SELECT DISTINCT a FROM S1", "MON"),
        ("SELECT DISTINCT a FROM S1 [ROWS 5]", "STR"),
        (f"SELECT a, COUNT(*) FROM S1 {W} GROUP BY a", "STR"),
        (f"SELECT a FROM S1 {W} EXCEPT SELECT a FROM S2 {W}", "STR"),
        (f"SELECT a FROM S1 {W} WHERE EXISTS (SELECT * FROM S2 {W} WHERE S2.a = S1.a)", "WK"),
        (f"SELECT name FROM S1 {W}, companies WHERE S1.a = sym", "WKS"),
        ("SELECT name FROM S1, companies WHERE S1.a = sym", "MON"),
        (f"SELECT owner FROM S1 {W}, accounts WHERE S1.a = id", "STR"),
        ("SELECT WSTREAM(a)[ROWS 10] FROM S1 [RANGE 1 MINUTE]", "STR"),
        ("SELECT WSTREAM(a)[RANGE 5 SECONDS] FROM S1 [RANGE 1 MINUTE]", "WKS"),
    ],
)
def test_the_pattern_of_an_answer(select: str, expected: str) -> None:
    assert pattern(select) == expected


def test_internal_windows_make_a_join_and_an_aggregate_monotonic() -> None:
    internal = "[RANGE 1 MINUTE INTERNAL]"
    assert pattern(f"SELECT S1.a FROM S1 {internal}, S2 {internal} WHERE S1.a = S2.a") == "MON"
    assert pattern(f"SELECT a, COUNT(*) FROM S1 {internal} GROUP BY a") == "MON"


def test_one_external_window_among_internal_ones_gives_lives_of_different_lengths() -> None:
    """The document says WKS. An S1 row at 0 lives to 60; S2 rows at 10 and at 50 give lives of 50 and of 10."""
    select = "SELECT S1.a FROM S1 [RANGE 1 MINUTE], S2 [RANGE 1 MINUTE INTERNAL] WHERE S1.a = S2.a"
    assert pattern(select) == "WK"


def test_both_plans_of_figure_3_5() -> None:
    query = ask(
        f"SELECT RSTREAM(*) FROM S1 {W}, S2 {W} WHERE S1.a = S2.a AND NOT EXISTS "
        f"(SELECT RSTREAM(*) FROM S3 {W} WHERE S3.a = S1.a)"
    )
    pulled_up = "negation STR(join WK(window WKS(S1), window WKS(S2)), window WKS(S3))"
    pushed_down = "join STR(negation STR(window WKS(S1), window WKS(S3)), window WKS(S2))"
    assert {pulled_up, pushed_down} <= set(shapes(query))


def test_queries_1_to_4_of_section_3_6() -> None:
    one = ask(f"SELECT RSTREAM(*) FROM S1 {W}, S2 {W} WHERE S1.a = S2.a AND S1.c = 'ftp' AND S2.c = 'ftp'")
    filtered = "join WK(window WKS(filter MON(S1)), window WKS(filter MON(S2)))"
    assert shape(one) == filtered
    two = ask(f"SELECT RSTREAM(DISTINCT a) FROM S1 {W}")
    assert shape(two) == "distinct WK(window WKS(S1))"
    three = ask(f"SELECT RSTREAM(*) FROM S1 {W} WHERE NOT EXISTS (SELECT * FROM S2 {W} WHERE S2.a = S1.a)")
    assert shape(three) == "negation STR(window WKS(S1), window WKS(S2))"
    four = ask(
        f"SELECT RSTREAM(*) FROM S1 {W}, S3 {W} WHERE S1.a = S3.a AND S3.c = 'ftp' "
        f"AND NOT EXISTS (SELECT * FROM S2 {W} WHERE S2.a = S1.a)"
    )
    assert len(shapes(four)) > 1
    assert pattern(f"SELECT a FROM S1 {W} EXCEPT ALL SELECT a FROM S2 {W}") == "STR"


def test_what_is_said_of_a_tumbling_window_lives_for_its_pane() -> None:
    tumbling, counts = "[RANGE 1 MINUTE SLIDE 1 MINUTE]", "SELECT a, COUNT(*) AS n FROM S1"
    assert pattern(f"{counts} {tumbling} GROUP BY a") == "WKS"
    assert pattern(f"SELECT DISTINCT a FROM S1 {tumbling}") == "WKS"
    assert pattern(f"{counts} [NOW] GROUP BY a") == "WKS"
    assert pattern(f"SELECT n, MIN(a) FROM ({counts} {tumbling} GROUP BY a) c GROUP BY n") == "WKS"
    assert pattern(f"SELECT c.n FROM ({counts} {tumbling} GROUP BY a) c, S2 {W} WHERE c.a = S2.a") == "WK"


def test_what_overlaps_or_compares_single_values_or_is_there_over_nothing_may_end_at_any_time() -> None:
    tumbling = "[RANGE 1 MINUTE SLIDE 1 MINUTE]"
    assert pattern("SELECT a, COUNT(*) FROM S1 [RANGE 1 MINUTE SLIDE 30 SECONDS] GROUP BY a") == "STR"
    assert pattern(f"SELECT COUNT(*) FROM S1 {tumbling}") == "STR"
    assert pattern(f"SELECT a, COUNT(DISTINCT c) FROM S1 {tumbling} GROUP BY a") == "STR"
    assert pattern("SELECT DISTINCT a FROM S1 [RANGE 1 MINUTE SLIDE 30 SECONDS]") == "WK"
