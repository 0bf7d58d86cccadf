"""What the gate says of queries, word for word: verdicts, causes, numbers, assumptions, fixes, rows of witnesses."""

from __future__ import annotations

import pytest
from tests.safety.reports import Recorded, recorded


@pytest.mark.parametrize("query", recorded(), ids=lambda each: each.query.partition("\n")[0])
def test_the_gate_says_what_is_written(query: Recorded) -> None:
    assert query.says == query.said
