"""The keyed table against a plain dict: same contents after any batches, bounded rows, exact restore."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.kernels import keys
from headgate.kernels.state import sorted_runs
from headgate.kernels.state import table as table_module
from headgate.kernels.state.table import Table
from headgate.model.time import NEVER

SCHEMA = {"k": pl.Int64(), "s": pl.String(), "v": pl.Int64(), "until": pl.Int64()}
KEYS = ("k", "s")
Key = tuple[int | None, str | None]


def rows(*values: tuple[int | None, str | None, int, int]) -> pl.DataFrame:
    return pl.DataFrame(list(values), schema=SCHEMA, orient="row")


def plain() -> Table:
    return Table(SCHEMA, KEYS)


def timed() -> Table:
    return Table(SCHEMA, KEYS, deadline="until")


def put(table: Table, now: int, frame: pl.DataFrame, gone: Sequence[bool] | None = None) -> Table:
    at = table.find(frame, KEYS)
    table, _ = table.expire(table.now, now)
    return table.put(frame, at, None if gone is None else np.array(gone))


def contents(table: Table, known: Sequence[Key]) -> dict[Key, int]:
    """What the table says about each of the keys."""
    asked = pl.DataFrame(list(known), schema={"k": pl.Int64, "s": pl.String}, orient="row")
    at = table.find(asked, KEYS)
    (values,) = table.numbers(at, ["v"], absent=-1)
    return {key: int(value) for key, value, where in zip(known, values, at, strict=True) if where >= 0}


def test_a_key_is_found_with_its_newest_values() -> None:
    table = put(plain(), 1, rows((1, "a", 10, 0), (2, "b", 20, 0)))
    table = put(table, 2, rows((1, "a", 11, 0)))
    assert contents(table, [(1, "a"), (2, "b"), (1, "b")]) == {(1, "a"): 11, (2, "b"): 20}
    assert table.live == 2


def test_null_is_a_key_like_any_other() -> None:
    table = put(plain(), 1, rows((None, None, 1, 0), (None, "a", 2, 0)))
    assert contents(table, [(None, None), (None, "a"), (1, "a")]) == {(None, None): 1, (None, "a"): 2}


def test_a_deleted_key_is_found_no_more_and_can_come_back() -> None:
    table = put(plain(), 1, rows((1, "a", 10, 0), (2, "b", 20, 0)))
    table = put(table, 2, rows((1, "a", 0, 0)), gone=[True])
    assert contents(table, [(1, "a"), (2, "b")]) == {(2, "b"): 20}
    table = put(table, 3, rows((1, "a", 12, 0)))
    assert contents(table, [(1, "a"), (2, "b")]) == {(1, "a"): 12, (2, "b"): 20}


def test_an_old_state_does_not_see_what_came_later() -> None:
    old = put(plain(), 1, rows((1, "a", 10, 0)))
    put(old, 2, rows((1, "a", 11, 0)))
    assert contents(old, [(1, "a")]) == {(1, "a"): 10}


def test_rows_are_due_in_the_step_that_contains_their_deadline() -> None:
    table = put(timed(), 1, rows((1, "a", 0, 5), (2, "b", 0, 7), (3, "c", 0, NEVER)))
    table, due = table.expire(1, 4)
    assert table.take(due).is_empty()
    table, due = table.expire(4, 5)
    assert table.take(due)["k"].to_list() == [1]
    assert contents(table, [(1, "a"), (2, "b")]) == {(2, "b"): 0}
    table, due = table.expire(5, NEVER)
    assert table.take(due)["k"].to_list() == [2]
    assert table.live == 1


def test_a_row_that_was_superseded_is_not_due() -> None:
    table = put(timed(), 1, rows((1, "a", 0, 5), (2, "b", 0, 5), (3, "c", 0, 9)))
    table = put(table, 2, rows((1, "a", 1, 8)))
    table, due = table.expire(2, 6)
    assert table.take(due)["k"].to_list() == [2]


def test_an_expired_row_can_be_found_until_the_next_put() -> None:
    table = put(timed(), 1, rows((1, "a", 3, 5)))
    table, _ = table.expire(1, 9)
    asked = rows((1, "a", 0, 0))
    assert (table.find(asked, KEYS) < 0).all()
    assert table.take(table.find(asked, KEYS, since=1))["v"].to_list() == [3]


def test_take_keeps_the_order_of_the_positions() -> None:
    table = plain()
    for now in range(1, 6):
        table = put(table, now, rows((now, "a", now, 0), (-now, "a", -now, 0)))
    asked = rows(*((k, "a", 0, 0) for k in (3, -5, 1, 4, -2)))
    assert table.take(table.find(asked, KEYS))["k"].to_list() == [3, -5, 1, 4, -2]


def test_a_second_put_in_one_step_is_refused() -> None:
    table = put(plain(), 1, rows((1, "a", 0, 0)))
    with pytest.raises(ValueError, match="has built its chunk"):
        put(table, 1, rows((2, "a", 0, 0)))


def test_the_number_of_runs_grows_with_the_logarithm() -> None:
    table = plain()
    most = 0
    for now in range(1, 600):
        table = put(table, now, rows((now, "a", 0, 0)))
        most = max(most, len(table.runs))
    assert table.rows == 599
    assert most <= 3 * 8


def test_a_run_of_which_all_rows_have_expired_is_dropped_in_that_step() -> None:
    table = put(timed(), 1, rows(*((key, "long", 0, 100) for key in range(50))))
    table = put(table, 2, rows((1, "short", 0, 10), (2, "short", 0, 9)))
    table = put(table, 10, rows((3, "long", 0, 100)))
    assert table.rows == 51


def test_unchanged_chunks_are_shared_and_new_ones_have_new_names() -> None:
    table = plain()
    seen: dict[str, pl.DataFrame] = {}
    for now in range(1, 200):
        table = put(table, now, rows((now % 50, "a", now, 0)))
        for name, frame in table.chunks().items():
            assert seen.setdefault(name, frame) is frame


def test_a_restore_sorts_anew_when_the_hash_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    table = plain()
    for now in range(1, 4):
        table = put(table, now, rows(*((k, "a", now, 0) for k in range(now, 20))))
    for module in (table_module, sorted_runs):
        monkeypatch.setattr(module, "key_hash", lambda frame, columns: ~keys.key_hash(frame, columns))
    restored = plain().restored(table.chunks())
    assert contents(restored, [(k, "a") for k in range(25)]) == {(k, "a"): min(k, 3) for k in range(1, 20)}


change = st.tuples(
    st.one_of(st.none(), st.integers(0, 6)),
    st.one_of(st.none(), st.sampled_from("ab")),
    st.integers(0, 99),
    st.integers(1, 12),
    st.booleans(),
)


@given(
    hash_values=st.sampled_from([1, 2, 2**63]),
    deadline=st.sampled_from([None, "until"]),
    batches=st.lists(st.lists(change, max_size=12), max_size=20),
)
def test_the_table_is_a_dict(
    hash_values: int,
    deadline: str | None,
    batches: list[list[tuple[int | None, str | None, int, int, bool]]],
) -> None:
    def few_hashes(frame: pl.DataFrame, columns: Sequence[str]) -> keys.Hashes:
        return keys.key_hash(frame, columns) % np.uint64(hash_values)

    known: list[Key] = [(k, s) for k in (None, *range(7)) for s in (None, "a", "b")]
    empty = Table(SCHEMA, KEYS, deadline)
    with pytest.MonkeyPatch.context() as patch:
        for module in (table_module, sorted_runs):
            patch.setattr(module, "key_hash", few_hashes)
        table, model = empty, dict[Key, tuple[int, int]]()
        for now, batch in enumerate(batches, start=1):
            table, due = table.expire(now - 1, now)
            falling = {key for key, (_, until) in model.items() if deadline and until <= now}
            assert sorted(table.take(due).select(KEYS).rows(), key=str) == sorted(falling, key=str)
            model = {key: row for key, row in model.items() if key not in falling}
            # A deadline moves forward only.
            news = {
                (k, s): (v, max(now + life, model.get((k, s), (0, 0))[1]), gone)
                for k, s, v, life, gone in batch
            }
            frame = rows(*((k, s, v, until) for (k, s), (v, until, _) in news.items()))
            gone = np.array([gone for _, _, gone in news.values()], dtype=np.bool_)
            table = table.put(frame, table.find(frame, KEYS), gone)
            for key, (v, until, leaves) in news.items():
                model.pop(key, None)
                if not leaves:
                    model[key] = (v, until)
            again, _ = empty.restored(table.chunks()).expire(now, now)
            for candidate in (table, again):
                assert contents(candidate, known) == {key: v for key, (v, _) in model.items()}
                assert candidate.live == len(model)
                assert candidate.rows <= 2 * len(model)
