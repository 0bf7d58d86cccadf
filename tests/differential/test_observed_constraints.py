"""Constraints WITHIN AUTO whose k rises: what is missing until that is seen, and that nothing is otherwise."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from tests.differential.local import ran
from tests.differential.punctuated import tables
from tests.differential.test_cases import row_by_row

from headgate.kernels.join import settle_early
from headgate.kernels.punctuation.monitor import chosen
from headgate.model import monitoring
from headgate.model.monitoring import Monitoring
from headgate.runtime.query import Metrics

JOIN = """
    CREATE STREAM s (ts TIMESTAMP, a BIGINT) TIMESTAMP BY ts FOREIGN KEY (a) REFERENCES t (a) WITHIN AUTO;
    CREATE STREAM t (ts TIMESTAMP, a BIGINT) TIMESTAMP BY ts KEY (a);
    CREATE QUERY q AS SELECT ISTREAM(s.a) FROM s [RANGE 1 HOUR], t [RANGE 1 HOUR] WHERE s.a = t.a;
"""
COUNT, RISE = 60, 20
"""Pairs of rows, and the first that is later than those before."""


@pytest.fixture(autouse=True)
def small_windows(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Stored rows are looked at in every step, and a k is found from ten rows."""
    monkeypatch.setattr(settle_early, "_FEW", 1)
    monkeypatch.setattr(monitoring, "DEFAULT", Monitoring(window=10, sampled=0.2))
    return


def came(late: int) -> list[tuple[int, int]]:
    """When rows of s come, with their values: after their partner, and from some on so many rows of t before it."""
    return sorted((10 * a + 6 if a < RISE else 10 * (a - late) + 14, a) for a in range(COUNT))


def answer(late: int) -> tuple[list[int], Metrics]:
    """The values of the answer, and what the run has measured; a row of t with each value comes every ten seconds."""
    rows = {
        "s": [{"ts": ts, "a": a} for ts, a in came(late)],
        "t": [{"ts": 10 * a + 5, "a": a} for a in range(COUNT)],
    }
    found, metrics = ran(JOIN, "q", row_by_row(tables(JOIN, rows)), {})
    return sorted(change.row[0] for change in found), metrics


def test_nothing_is_missing_while_rows_keep_to_what_was_seen() -> None:
    found, metrics = answer(0)
    assert found == list(range(COUNT))
    (known,) = metrics.constraints.values()
    assert (known["k"], known["changes"], known["violations"]) == (0, 1, 0)


def test_a_rise_that_is_just_detectable_costs_the_rows_that_came_before_it_was_seen() -> None:
    found, metrics = answer(1)
    assert sorted(set(range(COUNT)) - set(found)) == [RISE]
    (known,) = metrics.constraints.values()
    assert (known["k"], known["changes"], known["violations"]) == (1, 3, 1)
    # The 60 rows of t: a k after ten, none any more with the one at the rise, another after ten more.
    assert known["changed"] == (10 * (RISE + 10) + 5) * 1_000_000


def test_a_greater_rise_costs_what_comes_until_a_row_of_the_sample_meets_its_partner() -> None:
    late = 5
    found, metrics = answer(late)
    sampled = chosen(np.arange(COUNT), monitoring.DEFAULT.sampled)
    seen = min(a for place, (_, a) in enumerate(came(late)) if a >= RISE and sampled[place])
    assert sorted(set(range(COUNT)) - set(found)) == list(range(RISE, seen + late))
    (known,) = metrics.constraints.values()
    assert (known["k"], known["violations"]) == (late, 1)


def test_rows_that_break_what_is_only_observed_are_not_late() -> None:
    _, metrics = answer(5)
    assert metrics.late_rows == 0
