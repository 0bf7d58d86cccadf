"""Queries that parse and bind but cannot mean anything are refused with the reason."""

from __future__ import annotations

import pytest
from tests.explain.plans import ask

from headgate.model.errors import MeaninglessError

INTERNAL = "[RANGE 1 MINUTE INTERNAL]"


@pytest.mark.parametrize(
    ("select", "reason"),
    [
        (f"SELECT DISTINCT a FROM S1 {INTERNAL}", "INTERNAL under DISTINCT"),
        (f"SELECT a FROM S1 {INTERNAL} EXCEPT SELECT a FROM S2", "INTERNAL under"),
        (
            f"SELECT a FROM S1 {INTERNAL} WHERE NOT EXISTS (SELECT * FROM S2 WHERE S2.a = S1.a)",
            "INTERNAL under negation",
        ),
        ("SELECT WSTREAM(DISTINCT a)[ROWS 3] FROM S1 [NOW]", "WSTREAM takes its input windows as internal"),
        (
            "SELECT SUM(a) FROM (SELECT SUM(a) FROM S1 [RANGE 6 SECONDS]) [ROWS 10]",
            "a window over an aggregate's output",
        ),
        ("SELECT a FROM (SELECT a FROM S1 [RANGE 6 SECONDS]) [ROWS 10]", "a window needs a stream"),
        (
            "SELECT WSTREAM RESTORE (a)[ROWS 3] FROM S1 [RANGE 1 MINUTE SLIDE 1 MINUTE]",
            "WSTREAM cannot RESTORE",
        ),
        ("SELECT WSTREAM(a) FROM S1", "needs an output window"),
        ("SELECT ISTREAM RESTORE (a) FROM S1 [RANGE 1 MINUTE]", "needs windows with SLIDE"),
        ("SELECT name FROM S1 [ROWS 3], companies WHERE a = sym", "above a ROWS window"),
        (
            "SELECT name FROM (SELECT a FROM S1 [RANGE 1 MINUTE] EXCEPT SELECT a FROM S2 [RANGE 1 MINUTE]) x, "
            "companies WHERE x.a = sym",
            "above a negation",
        ),
        ("SELECT name FROM companies", "only answers for rows that arrive on a stream"),
    ],
)
def test_refused_with_the_reason(select: str, reason: str) -> None:
    with pytest.raises(MeaninglessError) as caught:
        ask(select)
    assert reason in caught.value.cause
    assert caught.value.place is not None
