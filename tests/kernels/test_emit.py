"""ISTREAM, DSTREAM, RSTREAM, WSTREAM and change logs say how the contents change, at every instant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernels.stepping import (
    CUTS,
    INSTANTS,
    Checkpoints,
    clocked,
    lifetimes,
    rows,
    run,
    start_of,
    stream,
    timeline,
)  # fmt: skip

from headgate.kernels.emit.emit import OP, TIME, ChangeLog, Dstream, Emit, Istream
from headgate.kernels.emit.net_change import copies
from headgate.kernels.emit.presence_spans import PresenceSpans
from headgate.kernels.emit.rstream import Rstream
from headgate.kernels.emit.wstream import Wstream
from headgate.kernels.state.timer_queue import COUNT
from headgate.kernels.window.time_window import Range, Rows, Window
from headgate.model.batch import BORN, DIES, SIGN, Batch
from headgate.model.time import BEGINNING, DAY, NEVER, Clock, tick_at_or_after

PAYLOAD: dict[str, pl.DataType] = {"v": pl.Int64()}
Bag = Counter[tuple[Any, ...]]
Said = dict[int, Bag]
END = INSTANTS.stop - 1


def emitted(
    kernel: Emit, frame: pl.DataFrame, cuts: list[int], *, restore: bool = False
) -> tuple[Any, pl.DataFrame]:
    """The final state and everything that goes outside."""
    state, outputs, checkpoints = kernel.initial(), [], Checkpoints()
    for clock, [batch] in clocked([frame], cuts):
        state, pieces = kernel.emit(state, batch, clock)
        output = pieces.whole()
        assert pieces.height == output.height
        assert output.filter((pl.col(TIME) <= clock.after) | (pl.col(TIME) > clock.upto)).is_empty()
        outputs.append(output)
        chunks = checkpoints.of(state)
        state = kernel.restore(chunks) if restore else state
    return state, pl.concat(outputs)


def said(output: pl.DataFrame) -> Said:
    """What was said at each instant that is looked at; a change log has its sign in front."""
    bags: Said = {}
    columns = [TIME, *([OP] if OP in output.columns else []), *PAYLOAD]
    for time, *row in output.select(columns).iter_rows():
        if time <= END:
            bags.setdefault(time, Counter())[tuple(row)] += 1
    return bags


def opening(frame: pl.DataFrame, ticking: int) -> int:
    """The first instant with an answer: the first tick at or after the first birth."""
    start = start_of([frame])
    return NEVER if start is None else tick_at_or_after(start, ticking)


def answers(frame: pl.DataFrame, ticking: int = 1) -> dict[int, Bag]:
    """The answer at each instant: nothing before the first one that has any."""
    opens = opening(frame, ticking)
    moments = dict(zip(INSTANTS, timeline(frame), strict=True))
    return {t: bag if t >= opens else Counter() for t, bag in moments.items()}


def filled(bags: Said) -> Said:
    return {t: bag for t, bag in bags.items() if bag}


def births(frame: pl.DataFrame, ticking: int = 1) -> Said:
    at = answers(frame, ticking)
    return filled({t: at[t] - at.get(t - 1, Counter()) for t in at})


def deaths(frame: pl.DataFrame, ticking: int = 1) -> Said:
    at = answers(frame, ticking)
    return filled({t: at.get(t - 1, Counter()) - at[t] for t in at})


def changes(frame: pl.DataFrame, ticking: int = 1) -> Said:
    log: Said = {}
    for sign, bags in (("-", deaths(frame, ticking)), ("+", births(frame, ticking))):
        for t, bag in bags.items():
            log.setdefault(t, Counter()).update({(sign, *row): count for row, count in bag.items()})
    return log


def at_ticks(frame: pl.DataFrame, slide: int, ticking: int = 1) -> Said:
    at = answers(frame, ticking)
    return filled({t: bag for t, bag in at.items() if t % slide == 0})


def at_changes(frame: pl.DataFrame, ticking: int = 1) -> Said:
    at = answers(frame, ticking)
    return filled({t: bag for t, bag in at.items() if bag != at.get(t - 1, Counter())})


def births_by_tick(frame: pl.DataFrame, slide: int, ticking: int = 1) -> Said:
    found: Said = {}
    for t, bag in births(frame, ticking).items():
        found.setdefault(tick_at_or_after(t, slide), Counter()).update(bag)
    return {t: bag for t, bag in found.items() if t <= END}


def lived_by_tick(frame: pl.DataFrame, slide: int, ticking: int = 1) -> Said:
    """Alive at the first instant after the tick before, or born from then on."""
    at, born, opens = answers(frame, ticking), births(frame, ticking), opening(frame, ticking)
    found: Said = {}
    for t in at:
        if t % slide == 0 and t >= opens:
            first = t - slide + 1
            bag = Counter(at.get(first, Counter()))
            for later in range(first + 1, t + 1):
                bag.update(born.get(later, Counter()))
            found[t] = bag
    return filled(found)


def busy(random: Random, *, endings: bool) -> pl.DataFrame:
    """Few values, many lifetimes, so that much begins and ends at the same instants."""
    data = []
    for _ in range(60):
        value, born = random.choice([None, 0, 1]), random.randrange(40)
        dies = random.choice([NEVER, born + 5, born + random.randint(1, 12)])
        data.append((value, born, dies, 1))
        if endings and random.random() < 0.6 and dies > born + 1:
            data.append((value, random.randrange(born + 1, min(dies, born + 12)), dies, -1))
    return rows(PAYLOAD, sorted(data, key=lambda row: row[1]))


KINDS: dict[str, tuple[Emit, Callable[[pl.DataFrame], Said]]] = {
    "ISTREAM": (Istream(PAYLOAD), births),
    "DSTREAM": (Dstream(PAYLOAD), deaths),
    "change log": (ChangeLog(PAYLOAD), changes),
    "RSTREAM": (Rstream(PAYLOAD), at_changes),
    "RSTREAM SLIDE 5": (Rstream(PAYLOAD, slide=5), lambda f: at_ticks(f, 5)),
    "RSTREAM SLIDE 1": (Rstream(PAYLOAD, slide=1), lambda f: at_ticks(f, 1)),
    "ISTREAM RESTORE 5": (Istream(PAYLOAD, restore_slide=5), lambda f: births_by_tick(f, 5)),
    "RSTREAM RESTORE 5": (Rstream(PAYLOAD, slide=5, restoring=True), lambda f: lived_by_tick(f, 5)),
    "RSTREAM RESTORE 1": (Rstream(PAYLOAD, slide=1, restoring=True), lambda f: at_ticks(f, 1)),
    "ISTREAM from a tick on": (Istream(PAYLOAD, ticking=7), lambda f: births(f, 7)),
    "DSTREAM from a tick on": (Dstream(PAYLOAD, ticking=7), lambda f: deaths(f, 7)),
    "change log from a tick on": (ChangeLog(PAYLOAD, ticking=7), lambda f: changes(f, 7)),
    "RSTREAM from a tick on": (Rstream(PAYLOAD, ticking=7), lambda f: at_changes(f, 7)),
    "RSTREAM SLIDE 5 from a tick on": (Rstream(PAYLOAD, slide=5, ticking=7), lambda f: at_ticks(f, 5, 7)),
    "ISTREAM RESTORE 5 from a tick on": (
        Istream(PAYLOAD, restore_slide=5, ticking=7),
        lambda f: births_by_tick(f, 5, 7),
    ),
    "RSTREAM RESTORE 5 from a tick on": (
        Rstream(PAYLOAD, slide=5, restoring=True, ticking=7),
        lambda f: lived_by_tick(f, 5, 7),
    ),
}
VALUES = st.one_of(st.none(), st.integers(0, 2))
EDGE = st.one_of(lifetimes(VALUES, endings=True), lifetimes(VALUES, endings=False)).map(
    lambda d: rows(PAYLOAD, d)
)


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=25, deadline=None)
@given(frame=EDGE, cuts=CUTS, restore=st.booleans())
def test_what_is_said_is_what_changes(name: str, frame: pl.DataFrame, cuts: list[int], restore: bool) -> None:
    kernel, expected = KINDS[name]
    _, output = emitted(kernel, frame, cuts, restore=restore)
    assert said(output) == expected(frame)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_what_is_said_of_busy_contents(name: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.kernels.state.timer_queue._SLACK", 0 if seed % 2 else 1024)
    monkeypatch.setattr("headgate.kernels.emit.rstream.BLOCK", (1, 5, 1 << 20)[seed % 3])
    kernel, expected = KINDS[name]
    frame = busy(Random(seed), endings=seed % 3 > 0)
    _, output = emitted(kernel, frame, Random(seed).sample(range(50), 10), restore=seed % 2 == 0)
    assert said(output) == expected(frame)


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=15, deadline=None)
@given(frame=EDGE, cuts=CUTS)
def test_output_is_the_same_row_by_row_however_the_input_is_cut(
    name: str, frame: pl.DataFrame, cuts: list[int]
) -> None:
    kernel, _ = KINDS[name]
    assert emitted(kernel, frame, cuts)[1].rows() == emitted(kernel, frame, [])[1].rows()


@pytest.mark.parametrize("name", ["ISTREAM", "DSTREAM", "change log", "RSTREAM", "ISTREAM RESTORE 5"])
@settings(max_examples=15, deadline=None)
@given(frame=EDGE, cuts=CUTS)
def test_nothing_is_remembered_of_rows_that_are_gone(name: str, frame: pl.DataFrame, cuts: list[int]) -> None:
    mortal = frame.with_columns(pl.min_horizontal(DIES, pl.lit(100)).alias(DIES))
    state, _ = emitted(KINDS[name][0], mortal, cuts)
    assert state.rows == 0


@settings(max_examples=30, deadline=None)
@given(frame=EDGE, cuts=CUTS, restore=st.booleans())
def test_a_change_log_adds_up_to_the_answer(frame: pl.DataFrame, cuts: list[int], restore: bool) -> None:
    _, output = emitted(ChangeLog(PAYLOAD), frame, cuts, restore=restore)
    sign = pl.when(pl.col(OP) == "+").then(1).otherwise(-1).cast(pl.Int8)
    replayed = output.select(*PAYLOAD, pl.col(TIME).alias(BORN), pl.lit(NEVER).alias(DIES), sign.alias(SIGN))
    assert timeline(replayed) == list(answers(frame).values())


def test_a_birth_and_a_death_of_equal_rows_at_one_instant_cancel() -> None:
    frame = rows(PAYLOAD, [(1, 0, 10, 1), (1, 10, 20, 1), (2, 10, 20, 1)])
    for cuts in ([], [5], [9], [10]):
        assert emitted(Istream(PAYLOAD), frame, cuts)[1].rows() == [(1, 0), (2, 10)]
        assert emitted(Dstream(PAYLOAD), frame, cuts)[1].rows() == [(1, 20), (2, 20)]


def test_deaths_come_before_births_and_rows_in_the_order_of_their_columns() -> None:
    frame = rows(PAYLOAD, [(5, 0, 10, 1), (4, 0, 10, 1), (2, 10, NEVER, 1), (1, 10, NEVER, 1)])
    _, output = emitted(ChangeLog(PAYLOAD), frame, [])
    assert output.select("v", TIME, OP).rows() == [
        (4, 0, "+"), (5, 0, "+"), (4, 10, "-"), (5, 10, "-"), (1, 10, "+"), (2, 10, "+"),
    ]  # fmt: skip


def test_arrival_order_is_kept_on_demand() -> None:
    frame = stream(PAYLOAD, [(3, 0), (1, 0), (2, 0)])
    assert emitted(Istream(PAYLOAD, arrival=True), frame, [])[1]["v"].to_list() == [3, 1, 2]
    assert emitted(Istream(PAYLOAD), frame, [])[1]["v"].to_list() == [1, 2, 3]


def test_a_monotonic_input_leaves_nothing_to_remember() -> None:
    state, _ = emitted(Istream(PAYLOAD), stream(PAYLOAD, [(t % 3, t) for t in range(40)]), list(range(40)))
    assert state.rows == 0


def test_rows_that_were_there_before_the_start_are_born_at_the_start() -> None:
    frame = rows(PAYLOAD, [(7, BEGINNING + 1, NEVER, 1), (8, BEGINNING + 1, NEVER, 1), (1, 20, NEVER, 1)])
    frame = pl.concat([frame, rows(PAYLOAD, [(8, 30, NEVER, -1)])])
    for cuts in ([], [-5], [10], [19, 20, 25]):
        _, output = emitted(ChangeLog(PAYLOAD), frame, cuts, restore=True)
        assert output.rows() == [(1, 20, "+"), (7, 20, "+"), (8, 20, "+"), (8, 30, "-")]
        _, output = emitted(Rstream(PAYLOAD, slide=25), frame, cuts, restore=True)
        assert output.filter(pl.col(TIME) <= 50).rows() == [(1, 25), (7, 25), (8, 25), (1, 50), (7, 50)]


def test_an_ending_and_the_death_it_takes_back_leave_the_state_together() -> None:
    kernel = Istream(PAYLOAD)
    data = [(v, 0, 1000, 1) for v in range(50)] + [(v, 5, 1000, -1) for v in range(50)]
    state = kernel.initial()
    for clock, [batch] in clocked([rows(PAYLOAD, data)], [3, 6]):
        state, _ = kernel.emit(state, batch, clock)
        if clock.upto >= 6:
            assert state.rows == 0


def test_many_ticks_over_a_large_answer_are_written_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.kernels.emit.rstream.BLOCK", 7)
    frame = rows(PAYLOAD, [(v, v, v + 10, 1) for v in range(10)])
    kernel = Rstream(PAYLOAD, slide=2)
    _, output = emitted(kernel, frame, [4])
    assert said(output) == at_ticks(frame, 2)
    _, pieces = kernel.emit(kernel.initial(), Batch(frame), Clock(-1, 30, 0))
    sizes = [piece.height for piece in pieces.frames]
    assert len(sizes) > 5
    assert max(sizes) <= 10  # one tick at least, and no tick has more


@pytest.mark.parametrize("restoring", [False, True])
def test_ticks_at_which_nothing_is_there_take_neither_time_nor_memory(restoring: bool) -> None:
    years = 10 * 365 * DAY
    frame = rows(PAYLOAD, [(1, 5, 25, 1), (2, years, years + 20, 1)])
    kernel = Rstream(PAYLOAD, slide=10, restoring=restoring)
    _, pieces = kernel.emit(kernel.initial(), Batch(frame), Clock(0, 2 * years, 5))
    expected = [(1, 10), (1, 20), (2, years), (2, years + 10)]
    if restoring:
        # They died between ticks.
        expected = sorted([*expected, (1, 30), (2, years + 20)])
    assert pieces.height == len(expected)
    assert pieces.whole().rows() == expected


def test_a_long_answer_is_made_piece_by_piece() -> None:
    kernel = Rstream(PAYLOAD, slide=1)
    _, pieces = kernel.emit(
        kernel.initial(), Batch(rows(PAYLOAD, [(1, 1, NEVER, 1)])), Clock(0, 100 * DAY, 1)
    )
    assert pieces.height == 100 * DAY
    first = next(pieces.frames)
    assert first.height <= 1 << 20
    assert first[TIME].head(3).to_list() == [1, 2, 3]


def test_more_rows_than_can_be_numbered_are_counted_all_the_same() -> None:
    one = np.ones(1, dtype=np.int64)
    assert PresenceSpans(one * 0, one * 0, one * 8, one * 2**61).height == 2**64


def test_what_does_not_change_is_said_in_ranges_as_long_as_a_block() -> None:
    one = np.array([1])
    lasting = PresenceSpans(one * 0, one * 0, one * 1_000, one * 2)
    assert list(lasting.ranges(1_000, 500)) == [(0, 250), (250, 500), (500, 750), (750, 1_000)]


def _work(
    kernel: Rstream, frame: pl.DataFrame, upto: int, monkeypatch: pytest.MonkeyPatch
) -> tuple[int, int]:
    """The spans and the copies that were made for a step, and the rows that it said."""
    made: list[int] = []
    between = PresenceSpans.between

    def counted(self: PresenceSpans, low: int, high: int) -> Any:
        found = between(self, low, high)
        made.append(len(self.row) + len(found[0]))
        return found

    with monkeypatch.context() as patch:
        patch.setattr(PresenceSpans, "between", counted)
        _, pieces = kernel.emit(kernel.initial(), Batch(frame), Clock(0, upto, 1))
        output = pieces.whole()
    return sum(made), output.height


@pytest.mark.parametrize("slide", [None, 10])
def test_the_work_of_saying_what_is_there_follows_rows_in_and_out(
    slide: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an aggregate says it: each value is announced without an end, and taken back by the next."""
    for changes, pause in ((50, 10), (800, 10), (50, 10_000)):
        times = [1 + pause * n for n in range(changes)]
        data = [(n, t, NEVER, 1) for n, t in enumerate(times)]
        data += [(n, t, NEVER, -1) for n, t in enumerate(times[1:])]
        frame = rows(PAYLOAD, data)
        kernel = Rstream(PAYLOAD, slide=slide)
        work, height = _work(kernel, frame, times[-1], monkeypatch)
        assert height == (changes if slide is None else times[-1] // slide)
        assert work <= 2 * (frame.height + height)


def test_a_stream_inside_the_plan_lives_from_its_time_on() -> None:
    frame = rows(PAYLOAD, [(1, 0, 10, 1), (1, 10, 20, 1), (2, 10, 20, 1)])
    _, output = run(Istream(PAYLOAD), [frame], [5])
    assert output.rows() == [(1, 0, NEVER, 1), (2, 10, NEVER, 1)]


def test_a_change_log_is_not_a_stream() -> None:
    kernel = ChangeLog(PAYLOAD)
    with pytest.raises(TypeError, match="change log"):
        kernel.advance(kernel.initial(), [Batch(rows(PAYLOAD, []))], Clock(0, 1, None))


def test_restore_makes_no_sense_without_ticks() -> None:
    with pytest.raises(ValueError, match="SLIDE"):
        Rstream(PAYLOAD, restoring=True)
    with pytest.raises(ValueError, match="slide"):
        Wstream(PAYLOAD, spec=Range(10, 5))


@settings(max_examples=60, deadline=None)
@given(
    frame=EDGE,
    cuts=CUTS,
    restore=st.booleans(),
    spec=st.sampled_from([Rows(1), Rows(3), Range(4), Range(100)]),
)
def test_an_output_window_shows_recent_births(
    frame: pl.DataFrame, cuts: list[int], restore: bool, spec: Any
) -> None:
    born = [
        (*row, t)
        for t, bag in births(frame).items()
        for row in sorted(bag.elements(), key=lambda r: (r[0] is not None, r))
    ]
    _, window = run(Window(spec, PAYLOAD), [stream(PAYLOAD, born)], [])
    kernel = Wstream(PAYLOAD, spec=spec)
    _, output = emitted(kernel, frame, cuts, restore=restore)
    log: Said = {}
    at = timeline(window)
    for t, before, now in zip(INSTANTS, [Counter(), *at], at, strict=False):
        bag = Counter({("-", *row): n for row, n in (before - now).items()})
        bag.update({("+", *row): n for row, n in (now - before).items()})
        if bag:
            log[t] = bag
    assert said(output) == log
    _, relation = run(kernel, [frame], cuts, restore=restore)
    assert timeline(relation) == at


def test_an_output_window_of_rows() -> None:
    frame = rows(PAYLOAD, [(1, 1, 3, 1), (2, 4, 5, 1), (3, 9, 30, 1)])
    _, output = emitted(Wstream(PAYLOAD, spec=Rows(2)), frame, [4])
    assert output.select("v", TIME, OP).rows() == [(1, 1, "+"), (2, 4, "+"), (1, 9, "-"), (3, 9, "+")]


@pytest.mark.parametrize("counts", [[1, 1], [2, 3], [1, 3], []])
def test_each_row_comes_as_often_as_it_counts(counts: list[int]) -> None:
    rows = pl.DataFrame({"v": range(len(counts)), COUNT: counts}, schema={"v": pl.Int64, COUNT: pl.Int64})
    expected = [value for value, count in enumerate(counts) for _ in range(count)]
    assert copies(rows).to_dict(as_series=False) == {"v": expected}
