"""Ticks are reckoned as if they were listed."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headgate.kernels.emit.instants import Moments, Numbered, Ticks
from headgate.model.time import BEGINNING, NEVER


@given(st.integers(-40, 40), st.integers(0, 40), st.integers(1, 12), st.integers(-60, 60))
def test_ticks_and_moments_number_the_same_instants(after: int, length: int, slide: int, asked: int) -> None:
    upto = after + length
    listed = [instant for instant in range(after + 1, upto + 1) if instant % slide == 0]
    numbered: list[Numbered] = [Ticks(after, upto, slide), Moments(np.array(listed, dtype=np.int64))]
    for each in numbered:
        assert each.count == len(listed)
        assert each.at(np.arange(each.count)).tolist() == listed
        since = each.since(np.array([asked, BEGINNING + 1, NEVER]))
        assert since.tolist() == [sum(instant < asked for instant in listed), 0, len(listed)]
