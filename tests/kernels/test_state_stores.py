"""What runs, calendar and scan have in common, and what each is for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.kernels.state import lifetime_run
from headgate.kernels.state.calendar import Calendar
from headgate.kernels.state.endings import Endings
from headgate.kernels.state.lifetime_runs import LifetimeRuns
from headgate.kernels.state.scan import Scan
from headgate.kernels.state.sorted_runs import Run, SortedRuns
from headgate.kernels.state.store import Layout, Probes, Store
from headgate.model.batch import BORN, DIES
from headgate.model.time import BEGINNING, NEVER, Clock

SCHEMA = {"k": pl.Int64(), "v": pl.String()}
LAYOUT = Layout(SCHEMA, (("k",), ("v", "k")))

STORES: dict[str, Callable[[], Store]] = {
    "runs": lambda: LifetimeRuns(LAYOUT),
    "calendar": lambda: Calendar.empty(LAYOUT),
    "busy calendar": lambda: Calendar.empty(LAYOUT, days=3, smallest=1),
    "endings": lambda: Endings.empty(LAYOUT, ("k", "v")),
    "scan": lambda: Scan(LAYOUT),
}

Row = tuple[int, str, int, int]
"""k, v, birth, death."""


def frame(rows: Iterable[Row]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema={**SCHEMA, BORN: pl.Int64, DIES: pl.Int64}, orient="row")


def stored(store: Any, batches: Sequence[Sequence[Row]]) -> Any:
    """The store after one step for each batch; births of batch n are in (10 (n - 1), 10 n]."""
    for number, rows in enumerate(batches):
        store = store.insert(frame(rows), Clock(10 * (number - 1) if number else BEGINNING, 10 * number, 0))
    return store


def partners(store: Store, k: int, born: int, ends: int) -> list[tuple[Any, ...]]:
    """Payload and lifetime of everything that a probe for k finds."""
    probes = Probes(pl.DataFrame({"x": [k]}), ("x",), np.array([born]), np.array([ends]))
    found = []
    for match in store.probe(0, probes):
        lives = zip(match.born.tolist(), match.dies.tolist(), strict=True)
        found += [(*row, *life) for row, life in zip(match.right.rows(), lives, strict=True)]
    return sorted(found)


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest) -> Store:
    return STORES[request.param]()


def test_finds_equal_keys_with_overlapping_lifetimes(store: Store) -> None:
    store = stored(store, [[(1, "a", 0, 25), (2, "b", 0, 25)], [(1, "c", 5, 30)], [(1, "d", 15, 40)]])
    assert partners(store, 1, 24, 25) == [(1, "a", 0, 25), (1, "c", 5, 30), (1, "d", 15, 40)]
    assert partners(store, 1, 25, 40) == [(1, "c", 5, 30), (1, "d", 15, 40)]
    assert partners(store, 1, 11, 15) == [(1, "a", 0, 25), (1, "c", 5, 30)]
    assert partners(store, 3, 0, 99) == []


def test_partners_come_in_pieces_of_about_one_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifetime_run, "_GATHERED", 3)
    batches: list[list[Row]] = [[(1, f"{n}", n, 90) for n in range(10 * b, 10 * b + 3 - b)] for b in range(3)]
    probes = Probes(pl.DataFrame({"x": [1]}), ("x",), np.array([0]), np.array([90]))
    pieces = [match.right["v"].to_list() for match in stored(LifetimeRuns(LAYOUT), batches).probe(0, probes)]
    assert pieces == [["0", "1", "2"], ["10", "11", "20"]]


def test_one_copy_of_the_rows_serves_every_key(store: Store) -> None:
    store = stored(store, [[(1, "a", 0, 10), (1, "b", 0, 10), (2, "a", 0, 10)]])
    both = pl.DataFrame({"text": ["a", "b"], "number": [1, 2]})
    probes = Probes(both, ("text", "number"), np.array([0, 0]), np.array([9, 9]))
    [match] = store.probe(1, probes)
    assert match.right.rows() == [(1, "a")]
    assert match.left.rows() == [("a", 1)]
    assert match.probe.tolist() == [0]


def test_what_was_there_before_an_insertion_is_still_there_after_it(store: Store) -> None:
    before = stored(store, [[(1, "a", 0, 10)]])
    after = before.insert(frame([(1, "b", 5, 15)]), Clock(0, 10, 0)).expire(12)
    assert partners(before, 1, 0, 99) == [(1, "a", 0, 10)]
    assert partners(after, 1, 0, 99) == [(1, "b", 5, 15)]


def test_nothing_is_left_when_all_are_dead(store: Store) -> None:
    store = stored(store, [[(1, "a", 0, 10), (2, "b", 0, 12)], [(3, "c", 5, 15)]])
    assert store.expire(14).rows == 1
    gone = store.expire(15)
    assert gone.rows == 0
    assert gone.nbytes == 0
    assert not gone.chunks()


def test_inserting_nothing_changes_nothing(store: Store) -> None:
    filled = stored(store, [[(1, "a", 0, 10)]])
    assert filled.insert(frame([]), Clock(0, 1, 0)).chunks().keys() == filled.chunks().keys()


@given(st.sampled_from(sorted(STORES)), st.data())
def test_a_restored_store_answers_as_the_original(name: str, data: st.DataObject) -> None:
    deaths = st.integers(1, 60) | st.just(NEVER)
    batches = [
        [
            (k, "x", born, min(NEVER, born + death))
            for k, born, death in data.draw(
                st.lists(st.tuples(st.integers(0, 3), st.integers(10 * n - 9, 10 * n), deaths), max_size=6)
            )
        ]
        for n in range(1, 6)
    ]
    original: Any = STORES[name]()
    names: dict[str, pl.DataFrame] = {}
    for number, rows in enumerate(batches, start=1):
        clock = Clock(10 * (number - 1), 10 * number, 0)
        original = original.insert(frame(rows), clock).expire(clock.upto)
        restored = STORES[name]().restored(original.chunks())
        assert restored.chunks().keys() == original.chunks().keys()
        for chunk, contents in original.chunks().items():
            assert names.setdefault(chunk, contents).equals(contents), "a name stands for two contents"
        live = [row for batch in batches[:number] for row in batch if row[3] > clock.upto]
        for k in range(4):
            expected = sorted(row for row in live if row[0] == k)
            assert partners(original, k, clock.upto, NEVER) == expected
            assert partners(restored, k, clock.upto, NEVER) == expected
        original = data.draw(st.sampled_from([original, restored]))


def test_a_layout_only_has_keys_over_its_columns() -> None:
    with pytest.raises(ValueError, match="'x'"):
        Layout(SCHEMA, (("k", "x"),))


# --- cost ---------------------------------------------------------------------------------------------------


def numbered(step: int, size: int, lifetime: int) -> list[Row]:
    return [(n, "x", 10 * step, 10 * step + lifetime) for n in range(step * size, (step + 1) * size)]


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows of runs that were written anew, each time."""
    copies: list[int] = []
    plain, live = SortedRuns._merged, LifetimeRuns.live

    def merging(store: Any, runs: Sequence[Run], now: int, dead: int) -> tuple[Run, ...]:
        copies.append(sum(run.height for run in runs))
        return plain(store, runs, now, dead)

    def filing(store: LifetimeRuns, upto: int) -> pl.DataFrame:
        copies.append(store.rows)
        return live(store, upto)

    monkeypatch.setattr(SortedRuns, "_merged", merging)
    monkeypatch.setattr(LifetimeRuns, "live", filing)
    return copies


@pytest.mark.parametrize("name", ["runs", "calendar", "endings"])
def test_each_row_is_copied_a_few_times_however_many_there_are(name: str, copied: list[int]) -> None:
    store: Any = STORES[name]()
    for step in range(400):
        clock = Clock(10 * (step - 1), 10 * step, 0)
        store = store.insert(frame(numbered(step, 8, 2_000)), clock).expire(clock.upto)
    # 400 batches make at most log4(400) = 4.3 merges of a row, and two more when a run is half dead.
    assert sum(copied) <= 7 * 400 * 8


def test_the_scan_copies_everything_at_every_step(copied: list[int]) -> None:
    stored(Scan(LAYOUT), [numbered(step, 8, 2_000) for step in range(100)])
    assert sum(copied) >= 8 * 100 * 100 // 2


def test_there_are_few_runs_however_many_batches_came() -> None:
    store = stored(LifetimeRuns(LAYOUT), [numbered(step, 8, NEVER - 10_000) for step in range(500)])
    assert store.rows == 4_000
    assert len(store.runs) <= 3 * 5


# --- deaths in the order of births --------------------------------------------------------------------------


def test_a_store_of_rows_that_die_in_order_holds_little_more_than_its_window() -> None:
    store: Any = LifetimeRuns(LAYOUT)
    for step in range(300):
        clock = Clock(10 * (step - 1), 10 * step, 0)
        store = store.insert(frame(numbered(step, 20, 500)), clock).expire(clock.upto)
        assert store.rows <= 2 * 20 * 51


def test_a_store_of_rows_that_die_in_order_lets_go_of_a_row_at_the_instant_of_its_death() -> None:
    store = LifetimeRuns(LAYOUT).insert(frame([(1, "x", 0, 10), (2, "x", 1, 11)]), Clock(BEGINNING, 1, 0))
    assert [store.expire(upto).rows for upto in (9, 10, 11)] == [2, 1, 0]


def test_a_half_dead_run_is_masked_and_a_mostly_dead_one_is_written_anew() -> None:
    rows = [(n, "x", n, n + 1_000) for n in range(1_000)]
    store = LifetimeRuns(LAYOUT).insert(frame(rows), Clock(BEGINNING, 1_000, 0))
    masked = store.expire(1_400)
    assert masked.chunks().keys() == store.chunks().keys()
    assert partners(masked, 300, 1_400, NEVER) == []
    assert masked.expire(1_600).rows == 399


# --- calendar -----------------------------------------------------------------------------------------------


def days(store: Calendar) -> set[str]:
    return {name.partition("/")[0] for name in store.chunks() if name.startswith("day.")}


def test_a_calendar_files_by_day_of_death_and_drops_whole_days() -> None:
    rows = [(n, "x", 0, 1 + (37 * n) % 64) for n in range(64)]
    store = Calendar.empty(LAYOUT, days=4, smallest=10).insert(frame(rows), Clock(BEGINNING, 0, 0))
    assert days(store) == {"day.16.0", "day.16.1", "day.16.2", "day.16.3", "day.16.4"}
    later = store.expire(40)
    assert days(later) == {"day.16.2", "day.16.3", "day.16.4"}
    kept = {name: chunk for name, chunk in store.chunks().items() if name.partition("/")[0] in days(later)}
    assert all(later.chunks()[name] is chunk for name, chunk in kept.items())
    assert sum(len(partners(later, k, 40, NEVER)) for k in range(64)) == 24


def test_rows_that_never_die_have_a_partition_of_their_own() -> None:
    rows = [(1, "x", 0, NEVER), (2, "x", 0, 30), (3, "x", 0, NEVER)]
    store = Calendar.empty(LAYOUT, smallest=1).insert(frame(rows), Clock(BEGINNING, 0, 0))
    assert "day.0.0" in days(store)
    assert [row for k in (1, 2, 3) for row in partners(store.expire(99), k, 99, NEVER)] == [rows[0], rows[2]]


def test_days_get_wider_when_deaths_are_farther_away() -> None:
    store = Calendar.empty(LAYOUT, days=4, smallest=1)
    store = store.insert(frame([(n, "x", 0, n) for n in range(1, 9)]), Clock(BEGINNING, 0, 0))
    far = [(n, "x", 1, 1_000 * n) for n in range(1, 100)]
    wider = store.insert(frame(far), Clock(0, 1, 0))
    assert {name.split(".")[1] for name in days(store)} == {"2"}
    assert {name.split(".")[1] for name in days(wider)} == {"2", "32768"}
    assert wider.expire(2 * 32_768).rows == 34
