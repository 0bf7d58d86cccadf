"""Every witness that is shown for a random refused query is one: its rows may come, are kept, and change answers."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from tests.oracle.generate import QUERY
from tests.safety.growth import promising_text, windowed_text
from tests.safety.proofs import Proof, assert_tells_all_apart, assert_true
from tests.safety.refusals import refusable_text

from headgate.model.errors import HeadgateError
from headgate.session import Query, Session

ROWS = 48
FEW = 4
"""So few rows that all parts of them can be compared, for every fourth witness."""
LONG_PIECES = 50
LONG_REFUSED = 20
"""Together 1,000 refusals."""


def drawn(random: Random) -> Query | None:
    """A random query; None if it means nothing."""
    write = random.choices((refusable_text, promising_text, windowed_text), (6, 3, 1))[0]
    try:
        session = Session()
        session.sql(write(random))
        return session.query(QUERY)
    except HeadgateError:
        return None


def examine(seed: int, refused: int) -> Counter[str]:
    """Draws queries until so many are refused; looks at every witness; counts what was seen."""
    random, seen = Random(seed), Counter[str]()
    while seen["refused"] < refused:
        query = drawn(random)
        if query is None or query.judged.admitted:
            seen["meaningless" if query is None else "admitted"] += 1
            continue
        seen["refused"] += 1
        shown = query.witness(ROWS)
        seen["no rows known" if shown is None else "shown"] += 1
        if shown is not None:
            try:
                assert_true(Proof(query, shown), random)
                few = query.witness(FEW) if seen["shown"] % 4 == 1 else None
                if few is not None:
                    seen["all parts told apart"] += 1
                    assert_tells_all_apart(Proof(query, few))
            except AssertionError as error:
                raise AssertionError(
                    f"seed {seed}: a false proof, {shown.adversary.reason}: {error}\n{query.session.render()}"
                ) from error
    return seen


def test_no_false_proof_is_shown() -> None:
    seen = examine(1, 24)
    assert seen["shown"] >= 3


@pytest.mark.long
@pytest.mark.parametrize("piece", range(LONG_PIECES))
def test_no_false_proof_among_a_thousand_refusals(piece: int, record_property: pytest.RecordProperty) -> None:
    record_property("seen", dict(examine(1_000 + piece, LONG_REFUSED)))
