"""The gate against the engine: what is admitted keeps a flat state over unkind streams, or says on what condition."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from tests.oracle.generate import QUERY
from tests.safety.growth import KINDS, ROWS, keeps, promising_text, windowed_text

from headgate.model.errors import HeadgateError
from headgate.safety.assumption import WAITING_ROWS
from headgate.session import Query, Session

LONG_PIECES = 100
LONG_ADMITTED = 100
"""Together 10,000 admitted queries."""


def drawn(random: Random) -> Query | None:
    """A random query; None if it means nothing."""
    text = windowed_text(random) if random.random() < 0.5 else promising_text(random)
    try:
        session = Session()
        session.sql(text)
        return session.query(QUERY)
    except HeadgateError:
        return None


def examine(seed: int, admitted: int) -> Counter[str]:
    """Draws queries until so many are admitted; runs each; counts what was seen. Raises if a proof was wrong."""
    random, seen = Random(seed), Counter[str]()
    while seen["admitted"] < admitted:
        query = drawn(random)
        if query is None or not query.judged.admitted:
            seen["meaningless" if query is None else "refused"] += 1
            continue
        data = random.choice(KINDS)
        kept = keeps(query, data, random)
        # Rows that wait for a silent stream are not in any operator's state.
        conditions = [each for each in query.judged.assumes if each.metric != WAITING_ROWS]
        if kept.grows and not conditions:
            # By chance a join keeps more at the end of a run than before; growth goes on in a longer run.
            # One that says too much in that run is judged by one half as long, or not at all.
            kept = keeps(query, data, random, rows=4 * ROWS)
            kept = keeps(query, data, random, rows=2 * ROWS) if kept.sizes is None else kept
        seen["admitted"] += 1
        seen[query.judged.kind] += 1
        if kept.sizes is None:
            seen["stopped"] += 1
        elif kept.grows:
            seen["grows, as its condition says"] += 1
            assert conditions, (
                f"seed {seed}: {query.judged.kind}, but grows over {data} values: {kept.sizes}\n"
                f"{query.session.render()}\n{query.judged.states}"
            )
        else:
            seen["flat"] += 1
    return seen


@pytest.mark.parametrize("piece", range(2))
def test_what_is_admitted_without_condition_keeps_a_flat_state(piece: int) -> None:
    seen = examine(piece, 15)
    assert seen["flat"] > 7


@pytest.mark.long
@pytest.mark.parametrize("piece", range(LONG_PIECES))
def test_ten_thousand_admitted_queries(piece: int, record_property: pytest.RecordProperty) -> None:
    seen = examine(1_000 + piece, LONG_ADMITTED)
    record_property("seen", dict(seen))
