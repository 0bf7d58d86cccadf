"""Rows that are taken back: which one goes, that it is gone, and that nothing of it stays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.kernels import keys
from headgate.kernels.state import ending_matches, lifetime_runs, sorted_runs
from headgate.kernels.state.endings import Endings
from headgate.kernels.state.store import ENDS, Layout, Probes
from headgate.model.batch import BORN, DIES
from headgate.model.time import BEGINNING, NEVER, Clock

SCHEMA = {"k": pl.Int64(), "v": pl.Float64()}
EMPTY = Endings.empty(Layout(SCHEMA, (("k",),)), ("k", "v"))

Row = tuple[int | None, float | None, int, int]
"""k, v, birth, death; for an ending, birth is the instant at which it comes."""


def frame(rows: Iterable[Row]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema={**SCHEMA, BORN: pl.Int64, DIES: pl.Int64}, orient="row")


def live(store: Endings) -> list[tuple[object, ...]]:
    """The rows that a probe can still find, key by key."""
    ks = pl.DataFrame({"k": [1, 2, 3]}, schema={"k": pl.Int64})
    probes = Probes(ks, ("k",), np.full(3, BEGINNING), np.full(3, NEVER))
    found = [m.right.with_columns(pl.Series(BORN, m.born)) for m in store.probe(0, probes)]
    return sorted((row for rows in found for row in rows.rows()), key=repr)


def test_an_ending_takes_the_row_with_its_payload_and_its_death() -> None:
    rows = [(1, 0.5, 0, NEVER), (1, 0.5, 0, 9), (2, 0.5, 0, NEVER)]
    store = EMPTY.insert(frame(rows), Clock(BEGINNING, 0, 0))
    taken = store.end(frame([(1, 0.5, 5, 9)]), Clock(0, 5, 0))
    assert taken.rows.to_dicts() == [{"k": 1, "v": 0.5, BORN: 0, DIES: 9, ENDS: 5}]
    assert taken.rest.is_empty()
    assert live(taken.store) == [(1, 0.5, 0), (2, 0.5, 0)]
    assert len(live(store)) == 3, "the store before is a value of its own"


def test_of_equal_rows_the_oldest_goes_first() -> None:
    store = EMPTY
    for step in range(1, 6):
        store = store.insert(frame([(1, 0.5, step, NEVER)]), Clock(step - 1, step, 0))
    taken = store.end(frame([(1, 0.5, 9, NEVER), (1, 0.5, 8, NEVER)]), Clock(5, 9, 0))
    assert taken.rows.select(BORN, ENDS).rows() == [(1, 8), (2, 9)]
    again = taken.store.end(frame([(1, 0.5, 10, NEVER)]), Clock(9, 10, 0))
    assert again.rows.select(BORN, ENDS).rows() == [(3, 10)]
    assert live(again.store) == [(1, 0.5, 4), (1, 0.5, 5)]


def test_an_ending_that_finds_nothing_is_handed_back() -> None:
    store = EMPTY.insert(frame([(1, 0.5, 0, NEVER)]), Clock(BEGINNING, 0, 0))
    endings = frame([(1, 0.5, 4, NEVER), (1, 0.5, 5, NEVER), (3, 0.5, 5, NEVER)])
    taken = store.end(endings, Clock(0, 5, 0))
    assert taken.rest.rows() == [(1, 0.5, 5, NEVER), (3, 0.5, 5, NEVER)]
    assert taken.store.rows == 0


@pytest.mark.parametrize("value", [None, float("nan"), -0.0])
def test_null_and_nan_and_zero_identify_a_row_like_any_value(value: float | None) -> None:
    stored = 0.0 if value == 0 else value
    store = EMPTY.insert(frame([(1, stored, 0, NEVER), (1, 7.0, 0, NEVER)]), Clock(BEGINNING, 0, 0))
    assert live(store.end(frame([(1, value, 5, NEVER)]), Clock(0, 5, 0)).store) == [(1, 7.0, 0)]


def test_partners_go_at_the_earliest_of_their_endings() -> None:
    layout = Layout({"x": pl.Int64(), "y": pl.Int64()}, (("x",), ("y",)))
    rows = pl.DataFrame({"x": [1, 1, 2, 3], "y": [7, 8, 8, 9], BORN: [0] * 4, DIES: [NEVER] * 4})
    store = Endings(layout).insert(rows, Clock(BEGINNING, 0, 0))
    by_x = Probes(pl.DataFrame({"n": [1]}), ("n",), np.array([5]), np.array([6]))
    by_y = Probes(pl.DataFrame({"n": [8]}), ("n",), np.array([3]), np.array([4]))
    taken = store.end_partners([(0, by_x), (1, by_y)], Clock(0, 6, 0))
    assert sorted(taken.rows.select("x", "y", ENDS).rows()) == [(1, 7, 6), (1, 8, 4), (2, 8, 4)]
    assert taken.store.live(0).select("x", "y").rows() == [(3, 9)]


def test_the_store_does_not_grow_with_the_number_of_endings() -> None:
    store, sizes = EMPTY, []
    for step in range(1, 400):
        clock = Clock(step - 1, step, 0)
        store = store.insert(frame([(step % 3, float(n), step, NEVER) for n in range(20)]), clock)
        if step > 30:
            gone = step - 30
            taken = store.end(frame([(gone % 3, float(n), step, NEVER) for n in range(20)]), clock)
            assert taken.rest.is_empty()
            store = taken.store
        store = store.expire(step)
        sizes.append((store.rows, sum(chunk.height for chunk in store.chunks().values())))
    assert max(rows for rows, _ in sizes) <= 2 * 31 * 20
    assert max(written for _, written in sizes) <= 3 * 31 * 20


def test_endings_among_many_copies_look_at_few_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0
    plain = keys.keys_equal

    def counting(left: pl.DataFrame, *others: object, **named: object) -> keys.Mask:
        nonlocal compared
        compared += left.height
        return plain(left, *others, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(ending_matches, "keys_equal", counting)
    store = EMPTY.insert(frame([(1, 0.5, 0, NEVER)] * 5_000), Clock(BEGINNING, 0, 0))
    for step in range(1, 21):
        taken = store.end(frame([(1, 0.5, step, NEVER)] * 50), Clock(step - 1, step, 0))
        assert taken.rows.height == 50
        store = taken.store
    assert compared == 20 * 50


def test_a_row_is_found_where_one_that_shares_its_hash_was_taken_behind_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (sorted_runs, ending_matches):
        monkeypatch.setattr(module, "key_hash", lambda rows, columns: np.zeros(rows.height, dtype=np.uint64))
    store = EMPTY.insert(frame([(1, 0.5, 0, NEVER), (2, 0.5, 0, NEVER)]), Clock(BEGINNING, 0, 0))
    store = store.end(frame([(2, 0.5, 1, NEVER)]), Clock(0, 1, 0)).store
    taken = store.end(frame([(1, 0.5, 2, NEVER)]), Clock(1, 2, 0))
    assert taken.rest.is_empty()
    assert taken.rows.to_dicts() == [{"k": 1, "v": 0.5, BORN: 0, DIES: NEVER, ENDS: 2}]


VALUES = st.sampled_from([(1, 0.0), (1, 1.0), (2, 0.0), (2, None), (3, float("nan"))])


@pytest.mark.parametrize("hash_values", [2**64, 2])
@given(st.lists(st.tuples(st.lists(VALUES, max_size=8), st.data()), min_size=1, max_size=8))
def test_what_is_left_is_what_was_not_taken(
    hash_values: int, steps: list[tuple[list[tuple[int, float | None]], st.DataObject]]
) -> None:
    """Also where different rows share their hash, so that the short way to a match goes wrong."""

    def crowded(rows: pl.DataFrame, columns: Sequence[str]) -> keys.Hashes:
        hashes = keys.key_hash(rows, columns)
        return hashes if hash_values == 2**64 else (hashes % np.uint64(hash_values)) << np.uint64(63)

    expected: list[tuple[int, float | None, int]] = []
    store = EMPTY
    with pytest.MonkeyPatch.context() as patch:
        # What has been taken stays where it is for a while, as in runs that are larger than these.
        patch.setattr(lifetime_runs, "_SMALL", 0)
        patch.setattr(sorted_runs, "key_hash", crowded)
        patch.setattr(ending_matches, "key_hash", crowded)
        for step, (births, data) in enumerate(steps, start=1):
            clock = Clock(step - 1, step, 0)
            store = store.insert(frame([(k, v, step, NEVER) for k, v in births]), clock)
            expected += [(k, v, step) for k, v in births]
            gone = data.draw(st.lists(st.sampled_from(expected), max_size=4)) if expected else []
            taken = store.end(frame([(k, v, step, NEVER) for k, v, _ in gone]), clock)
            missing = 0
            for k, v, _ in gone:
                copies = [row for row in expected if repr(row[:2]) == repr((k, v))]
                missing += not copies
                if copies:
                    expected.remove(min(copies, key=lambda row: row[2]))
            assert taken.rest.height == missing
            store = Endings(store.layout).restored(taken.store.chunks())
            # Which of several equal rows goes is only promised where no other row shares their hash.
            columns = [*SCHEMA, BORN] if hash_values == 2**64 else [*SCHEMA]
            left = Counter(repr(row) for row in store.live(step)[columns].rows())
            assert left == Counter(repr(row[: len(columns)]) for row in expected)
            store = data.draw(st.sampled_from([store, taken.store])).expire(step)
