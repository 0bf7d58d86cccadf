"""The graph of a join as it is shown to people."""

from __future__ import annotations

import pytest

from headgate.safety.reasons.join_graph import Arrow, JoinGraph


@pytest.mark.parametrize(
    ("arrow", "relied"),
    [
        (Arrow("a", "b", "KEY (k)"), True),
        (Arrow("a", "b", "KEY (k)", relied=False), False),
        (Arrow("a", "b", None), False),
    ],
)
def test_rows_are_dropped_by_a_promise_that_there_is_and_that_is_of_use(arrow: Arrow, relied: bool) -> None:
    assert JoinGraph(("a", "b"), frozenset(), (), (arrow,)).relied is relied
