"""Which k monitors put in use as rows come, and what they close with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.kernels.punctuation.monitor import MonitorState, Watch, chosen
from headgate.kernels.punctuation.monitored_age import MonitoredAgePunctuator
from headgate.kernels.punctuation.monitored_clusters import MonitoredClusterPunctuator
from headgate.kernels.punctuation.monitored_order import MonitoredOrderPunctuator
from headgate.model.batch import BORN, DIES, SIGN, Batch
from headgate.model.monitoring import Monitoring
from headgate.model.time import NEVER, Clock

Values = list[int | None]
Rows = list[tuple[int, int | None]]
"""The instant and the value of each."""

FOUR = Monitoring(window=4, sampled=0.0)
ORDER = MonitoredOrderPunctuator(FOUR, "", "a", pl.Int64())
CLUSTERS = MonitoredClusterPunctuator(FOUR, "", {"a": pl.Int64()})
AGE = MonitoredAgePunctuator(FOUR, "", "aged", {"a": pl.Int64()}, ("x",))


def batch(rows: Rows, name: str = "a") -> Batch:
    return Batch(
        pl.DataFrame(
            {
                name: pl.Series([value for _, value in rows], dtype=pl.Int64),
                BORN: pl.Series([at for at, _ in rows], dtype=pl.Int64),
                DIES: pl.Series([NEVER] * len(rows), dtype=pl.Int64),
                SIGN: pl.Series([1] * len(rows), dtype=pl.Int8),
            }
        )
    )


@dataclass
class Monitored:
    """A monitor that is told rows by their instants, and is restored before each step."""

    kernel: Any
    said: list[tuple[int | None, int]] | None = None

    def __post_init__(self) -> None:
        self.state: MonitorState = self.kernel.initial()
        self.upto = -1

    def step(self, upto: int, *streams: Rows) -> Watch:
        """Tells it the rows up to an instant; returns what it knows then, and keeps what it says with its sign."""
        clock = Clock(self.upto, upto, 0)
        names = ("a", "x")
        new = [
            batch([row for row in rows if self.upto < row[0] <= upto], name)
            for rows, name in zip(streams, names, strict=False)
        ]
        self.state = self.kernel.restore(self.state.chunks())
        self.state, said = self.kernel.advance(self.state, new, clock)
        said.check(clock)
        column = said.frame.columns[0]
        self.said = list(zip(said.frame[column].to_list(), said.frame[SIGN].to_list(), strict=True))
        self.upto = upto
        return self.state.watch


def used(kernel: Any, *streams: Rows, upto: int) -> list[int | None]:
    """The k in use after each instant."""
    monitored = Monitored(kernel)
    return [monitored.step(at, *streams).k for at in range(upto + 1)]


def rows(*values: int | None) -> Rows:
    return list(enumerate(values))


def test_nothing_is_used_before_a_window_has_come() -> None:
    assert used(ORDER, rows(1, 0, 2, 3, 4), upto=4) == [None, None, None, 1, 1]


def test_a_smaller_k_is_used_after_a_window_that_keeps_to_it() -> None:
    values = rows(5, 6, 4, 7, 8, 7, 9, 10, 11, 12, 13, 14)
    assert used(ORDER, values, upto=11) == [*[None] * 3, 2, 2, 2, 2, 1, 1, 1, 1, 0]


def test_a_greater_distance_ends_the_use_at_once_until_another_window_has_come() -> None:
    values = rows(1, 2, 3, 4, 5, 3, 6, 7, 8, 9, 10)
    assert used(ORDER, values, upto=10) == [*[None] * 3, 0, 0, *[None] * 4, 0, 0]


def test_a_break_takes_back_what_was_said() -> None:
    monitored = Monitored(ORDER)
    values = rows(1, 2, 3, 4, 5, 3, 6)
    monitored.step(4, values)
    assert monitored.said == [(5, 1)]
    monitored.step(5, values)
    assert monitored.said == [(None, -1)]
    monitored.step(6, values)
    assert monitored.said == []


def test_clusters_are_closed_by_the_k_in_use_and_opened_again_by_a_break() -> None:
    monitored = Monitored(CLUSTERS)
    values = rows(1, 1, 2, 2, 3, 2)
    assert monitored.step(3, values).k == 0
    assert monitored.said == [(1, 1)]
    monitored.step(4, values)
    assert monitored.said == [(2, 1)]
    # One row more than the k in use is always seen.
    assert monitored.step(5, values).violations == 1
    assert monitored.said == [(None, -1)]


def test_a_value_comes_back_unseen_after_more_rows_than_are_detectable() -> None:
    values = rows(1, 1, 2, 2, 3, 4, 5, 1)
    assert Monitored(CLUSTERS).step(7, values).violations == 0
    every = MonitoredClusterPunctuator(Monitoring(window=4, sampled=1.0), "", {"a": pl.Int64()})
    assert Monitored(every).step(7, values).violations == 1


def test_partners_are_late_by_rows_of_their_stream() -> None:
    stream = rows(*range(10))
    referring = [(0, 2), (3, 3), (3, 5), (7, 8)]
    monitored = Monitored(AGE)
    # 2 comes two rows after the row at 0 that refers to it, for that at the same instant does not count.
    assert monitored.step(3, stream, referring).k == 2
    assert monitored.said == [(2, 1)]
    assert monitored.step(7, stream, referring).k == 2
    assert monitored.step(9, stream, referring).k == 2


def test_a_partner_that_comes_later_than_in_use_ends_the_use() -> None:
    stream, referring = rows(*range(12)), [(2, 3), (5, 6), (8, 10)]
    monitored = Monitored(AGE)
    assert monitored.step(7, stream, referring).k == 1
    found = monitored.step(10, stream, referring)
    assert (found.k, found.violations, found.changed) == (None, 1, 10)
    assert monitored.said == [(None, -1)]


def test_a_distance_as_long_as_the_limit_is_never_used() -> None:
    kernel = MonitoredOrderPunctuator(Monitoring(window=4, limit=3), "", "a", pl.Int64())
    values = rows(9, 1, 2, 3, *[1] * 20)
    assert set(used(kernel, values, upto=23)) == {None}
    assert Monitored(kernel).step(23, values).arrived == 24


def test_what_is_remembered_follows_the_k_in_use() -> None:
    options = Monitoring(window=10, sampled=0.0)
    values, stream = rows(*range(1000)), rows(*range(1000))
    order = Monitored(MonitoredOrderPunctuator(options, "", "a", pl.Int64()))
    clusters = Monitored(MonitoredClusterPunctuator(options, "", {"a": pl.Int64()}))
    age = Monitored(MonitoredAgePunctuator(options, "", "aged", {"a": pl.Int64()}, ("x",)))
    for upto in range(49, 1000, 50):
        order.step(upto, values)
        clusters.step(upto, values)
        age.step(upto, stream, values)
        assert order.state.rows <= 3
        assert clusters.state.rows <= 3
        assert age.state.rows <= 70
    assert [each.state.watch.k for each in (order, clusters, age)] == [0, 0, 0]


# -- against a definition --------------------------------------------------------------------------


def defined(
    options: Monitoring, count: int, seen: Callable[[int, int], int], ahead: int = 0
) -> list[int | None]:
    """The k after each row; of each row the greatest distance that is seen from it, and how far back it looks."""
    found: list[int | None] = []
    k: int | None = None
    window: list[int] = []
    floor = 0
    for at in range(count):
        floor = max(floor, at + ahead - options.detectable(k))
        distance = seen(at, floor)
        if k is not None and distance > k:
            k, window = None, []
        else:
            window.append(distance)
        if len(window) == options.window:
            if max(window) < (options.limit if k is None else k):
                k = max(window)
            window = []
        found.append(k)
    return found


def at_cuts(kernel: Any, count: int, cuts: set[int], *streams: Rows) -> dict[int, int | None]:
    """The k after some prefixes of so many instants."""
    monitored = Monitored(kernel)
    ends = sorted({count, *(cut for cut in cuts if cut < count)} - {0})
    return {end: monitored.step(end - 1, *streams).k for end in ends}


OPTIONS = st.builds(
    Monitoring,
    margin=st.sampled_from((1.0, 1.2, 3.0)),
    sampled=st.sampled_from((0.0, 0.3, 1.0)),
    window=st.integers(1, 6),
    limit=st.sampled_from((4, 100)),
)
VALUES = st.lists(st.none() | st.integers(0, 12), min_size=1, max_size=40)
CUTS = st.sets(st.integers(1, 40))


def in_sample(position: int, options: Monitoring) -> bool:
    return bool(chosen(np.array([position]), options.sampled)[0])


@given(values=VALUES, cuts=CUTS, options=OPTIONS)
def test_orders_use_the_k_of_the_definition(values: Values, cuts: set[int], options: Monitoring) -> None:
    def seen(at: int, floor: int) -> int:
        """Every break is seen; it counts from the last record before the floor, or from what came after."""
        value = values[at]
        greatest = max((each for each in values[:floor] if each is not None), default=None)
        first = floor if greatest is None else values.index(greatest)
        greater = (
            past
            for past in range(first, at)
            if (other := values[past]) is not None and value is not None and other > value
        )
        return at - next(greater, at)

    kernel = MonitoredOrderPunctuator(options, "", "a", pl.Int64())
    found = at_cuts(kernel, len(values), cuts, list(enumerate(values)))
    by_row = defined(options, len(values), seen)
    assert found == {end: by_row[end - 1] for end in found}


@given(values=VALUES, cuts=CUTS, options=OPTIONS)
def test_clusters_use_the_k_of_the_definition(values: Values, cuts: set[int], options: Monitoring) -> None:
    def seen(at: int, floor: int) -> int:
        before = [past for past in range(at) if values[at] is not None and values[past] == values[at]]
        if not before:
            return 0
        distance = at - before[-1] - 1
        sampled = in_sample(before[-1], options) and distance <= options.limit
        return distance if before[-1] >= floor or sampled else 0

    kernel = MonitoredClusterPunctuator(options, "", {"a": pl.Int64()})
    found = at_cuts(kernel, len(values), cuts, list(enumerate(values)))
    by_row = defined(options, len(values), seen, ahead=-1)
    assert found == {end: by_row[end - 1] for end in found}


@given(
    keys=st.permutations(range(30)),
    gaps=st.lists(st.integers(0, 2), min_size=30, max_size=30),
    referring=st.lists(st.tuples(st.integers(0, 40), st.none() | st.integers(0, 30)), max_size=40),
    cuts=CUTS,
    options=OPTIONS,
)
def test_references_use_the_k_of_the_definition(
    keys: list[int], gaps: list[int], referring: Rows, cuts: set[int], options: Monitoring
) -> None:
    instants = list(accumulate(gaps))
    stream: Rows = list(zip(instants, keys, strict=True))
    referring = sorted(referring, key=lambda row: row[0])

    def seen(at: int, floor: int) -> int:
        found = 0
        for place, (instant, value) in enumerate(referring):
            count = sum(each <= instant for each in instants)
            if value == keys[at] and count <= at:
                sampled = in_sample(place, options) and at + 1 - count <= options.limit
                found = max(found, at + 1 - count if count >= floor or sampled else 0)
        return found

    by_row = defined(options, len(keys), seen, ahead=1)
    kernel = MonitoredAgePunctuator(options, "", "aged", {"a": pl.Int64()}, ("x",))
    found = at_cuts(kernel, 60, cuts, stream, referring)
    come = {end: sum(each < end for each in instants) for end in found}
    assert found == {end: by_row[count - 1] if count else None for end, count in come.items()}


@pytest.mark.parametrize(("kernel", "streams"), [(ORDER, 1), (CLUSTERS, 1), (AGE, 2)])
def test_a_silent_stream_changes_nothing(kernel: Any, streams: int) -> None:
    monitored = Monitored(kernel)
    assert monitored.step(5, *[[]] * streams) == Watch()
    assert not monitored.state.chunks()
    assert monitored.said == []
