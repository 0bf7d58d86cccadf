"""The demo's picture shows the time of the data, and says of a state only what it does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from headgate.lab import demo_picture
from headgate.lab.demo import DemoState, note_batch, prepare_demo, run_demo
from headgate.lab.demo_picture import Course, course, draw, headline, label
from headgate.lab.plots import figure
from headgate.model.time import MINUTE

TEN_MINUTES = tuple(float(minute) for minute in range(11))


def test_lines_begin_with_the_data_and_end_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    @contextmanager
    def watched(path: Path, **size: Any) -> Iterator[Any]:
        with figure(path, **size) as axes:
            yield axes
            seen.extend(axes)

    monkeypatch.setattr(demo_picture, "figure", watched)
    prepared = prepare_demo(items=900, seed=3)
    state = run_demo(prepared, lambda state: None)
    # Windows are ten minutes long: the answers go on for about as long when the data has ended.
    assert max(time for time, _, _ in state.category_history) > state.ends
    draw(state, tmp_path / "demo.png")
    length = (state.ends - state.begins) / MINUTE
    top, bottom = seen
    assert len(top.lines) == 10
    assert len(bottom.lines) == len(prepared.admitted) + 1
    for axes in (top, bottom):
        assert axes.get_xlim() == (0, length)
        assert axes.get_ylim()[0] == 0
        for line in axes.lines:
            assert 0 <= min(line.get_xdata()) <= max(line.get_xdata()) <= length
    assert (tmp_path / "demo.png").stat().st_size > 0


def test_what_came_after_the_data_is_left_out() -> None:
    state = DemoState(begins=0, ends=10 * MINUTE)
    followed = course(state, [-MINUTE, MINUTE, 10 * MINUTE, 11 * MINUTE], [1, 2, 3, 4])
    assert followed == Course((1.0, 10.0), (2, 3), 10.0)


@pytest.mark.parametrize(
    ("sizes", "flat"),
    [
        ([100] * 11, True),
        ([0, 40, 80, 100, 100, 100, 100, 100, 100, 100, 100], True),
        ([100, 100, 100, 100, 100, 100, 160, 100, 100, 160, 100], True),
        ([10 * minute for minute in range(11)], False),
        ([100, 100, 100, 100, 100, 100, 110, 120, 130, 140, 150], False),
        ([100, 100, 100, 100, 100, 100, 90, 80, 70, 60, 50], False),
    ],
)
def test_flat_is_what_does_not_change_in_the_second_half(sizes: list[int], flat: bool) -> None:
    followed = Course(TEN_MINUTES, tuple(sizes), 10.0)
    assert followed.flat is flat
    assert ("flat" in label("q", followed)) is flat
    assert ("flat" in headline({"q": followed})) is flat


def test_a_trend_is_the_growth_over_the_second_half() -> None:
    followed = Course(TEN_MINUTES, tuple(100 + 10 * minute for minute in range(11)), 10.0)
    assert followed.trend == pytest.approx(50 / 175)
    assert label("q", followed) == "state of q: +29% in the second half"


@pytest.mark.parametrize("minutes", [(), (1.0, 2.0, 3.0), (8.0, 9.0), (9.0, 9.0, 9.0)])
def test_of_too_little_nothing_is_said(minutes: tuple[float, ...]) -> None:
    followed = Course(minutes, (100,) * len(minutes), 10.0)
    assert followed.trend is None
    assert label("q", followed) == "state of q"
    assert headline({"q": followed}) == "state and rows read"


def test_only_flat_states_are_called_so() -> None:
    flat = Course(TEN_MINUTES, (100,) * 11, 10.0)
    growing = Course(TEN_MINUTES, tuple(range(100, 1200, 100)), 10.0)
    assert headline({"a": flat, "b": growing}) == "state of a stays flat while rows keep coming"
    assert headline({"a": flat, "b": flat}) == "state stays flat while rows keep coming"
    assert headline({"b": growing}) == "state and rows read"


def test_on_spark_the_states_shown_are_those_of_the_data() -> None:
    state = DemoState(begins=0, ends=100)
    for clock, rows in ((40, 7), (90, 8), (700, 0)):
        note_batch(state, {"query": "q", "clock": clock, "rows_out": clock, "rows_in": 5, "state_rows": rows})
    assert state.state_rows == {"q": [7, 8]}
    assert (state.clock, state.rows_out["q"]) == (90, 700)
