"""Values that were closed: found as long as they are among the last, at a cost that does not grow with them."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.kernels.state.index import HashIndex
from headgate.runtime.promise_checker import PromiseState
from headgate.runtime.recent_values import RecentValues

SCHEMA = {"a": pl.Int64()}


def values(*numbers: int) -> pl.DataFrame:
    return pl.DataFrame({"a": numbers}, schema=SCHEMA)


@given(sizes=st.lists(st.integers(0, 40), max_size=30), most=st.integers(1, 50))
def test_the_last_ones_are_remembered_and_not_many_more(sizes: list[int], most: int) -> None:
    known, count = RecentValues(SCHEMA, most), 0
    for step, size in enumerate(sizes):
        known = known.adding(values(*range(count, count + size)), step)
        count += size
    found = known.has(values(*range(count))).tolist()
    assert all(found[max(0, count - most) :])
    assert known.rows <= 2 * most + 40


def test_what_is_remembered_comes_back_from_its_chunks() -> None:
    state = PromiseState()
    for step in range(5):
        state.version += 1
        state.close(values(*range(10 * step, 10 * step + 10)), 25)
    again = PromiseState.restored(state.chunks(), state.version, 25)
    asked = values(*range(50))
    assert again.has_closed(asked, ["a"]).to_list() == state.has_closed(asked, ["a"]).to_list()


def test_a_step_looks_at_what_comes_and_not_at_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    known = RecentValues(SCHEMA, 1 << 16)
    for step in range(1 << 6):
        known = known.adding(values(*range(step << 10, (step + 1) << 10)), step)
    built: list[int] = []
    of = HashIndex.of
    monkeypatch.setattr(HashIndex, "of", lambda hashes: (built.append(len(hashes)), of(hashes))[1])
    known.adding(values(-1, -2, -3), 1 << 6)
    assert sum(built) == 3
