"""`headgate reproduce kmon`: runs that take turns, and claims that hold or do not by what was measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.cli_runner import headgate

from headgate.lab.generators import LinearRoad
from headgate.lab.reproduce import kmon, kmon_claims, kmon_experiment, linear_road
from headgate.lab.reproduce.claims import Claim
from headgate.lab.reproduce.kmon import StateLine
from headgate.lab.reproduce.kmon_claims import KMonLines
from headgate.lab.reproduce.linear_road import RoadRun
from headgate.lab.reproduce.watched_run import kept_by_operators, watch, watch_in_turns
from headgate.model.time import SECOND
from headgate.physical.compile import compile_query
from headgate.physical.program import CompiledQuery
from headgate.session import Session


def line(figure: str, way: str, k: int | None, *kept: int, seconds: float = 1.0) -> StateLine:
    """A line with a step for each number of rows kept, of 24 bytes."""
    rows = tuple(1_000 * (step + 1) for step in range(len(kept)))
    return StateLine(figure, way, k, rows, kept, tuple(24 * each for each in kept), kept, seconds)


def curve(figure: str, way: str, shares: dict[int, int], seconds: float = 1.0) -> Iterator[StateLine]:
    """A way that keeps so many per cent of the window join's rows, by k."""
    for k, share in shares.items():
        yield line(figure, "SWJ", k, 100, 100)
        yield line(figure, way, k, share, share, seconds=seconds)


def verdicts(claims: Iterator[Claim]) -> list[bool]:
    return [claim.holds for claim in claims]


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ({0: 2, 5_000: 30, 20_000: 99}, [True, True, True]),
        ({0: 3, 5_000: 30, 20_000: 99}, [True, False, True]),
        ({0: 1, 5_000: 30, 20_000: 20}, [False, True, True]),
        ({0: 1, 5_000: 30, 20_000: 100}, [True, True, False]),
    ],
)
def test_a_curve_rises_from_almost_nothing_to_less_than_windows_keep(
    shares: dict[int, int], expected: list[bool]
) -> None:
    found = KMonLines(tuple(curve("6", "CA", shares)), scale=1.0)
    assert verdicts(kmon_claims._curve(found, "6", "CA")) == expected


def test_claims_speak_of_the_documents_k_whatever_the_scale() -> None:
    found = KMonLines(tuple(curve("6", "CA", {0: 1, 1_000: 9})), scale=0.2)
    assert found.ks("6") == (0, 5_000)
    assert found.share("6", "CA", 5_000) == 0.09
    claim = next(kmon_claims._curve(found, "6", "CA"))
    assert claim.measured == "1.0%, 9.0% of SWJ for k = 0, 5,000"


@pytest.mark.parametrize(
    ("seconds", "expected"), [(1.0, [True, True]), (1.05, [True, False]), (1.2, [False, False])]
)
def test_times_are_held_against_the_documents_and_against_windows(
    seconds: float, expected: list[bool]
) -> None:
    found = KMonLines(tuple(curve("8", "OAP", {5_000: 1, 20_000: 2}, seconds)), scale=1.0)
    if seconds == 1.05:
        # 24/22 and 27/25
        assert kmon_claims.TABLE_1["OAP"][20_000] == 1.08
    assert verdicts(kmon_claims._times(found, "8", "OAP")) == expected


@pytest.mark.parametrize(("together", "holds"), [(30, True), (40, False)])
def test_two_constraints_are_held_against_the_better_of_them(together: int, holds: bool) -> None:
    shares = {"CA": 50, "OAC": 40, "CA and OAC": together}
    lines = [each for way, share in shares.items() for each in curve("10", way, {5_000: share})]
    assert kmon_claims._together(KMonLines(lines, 1.0)).holds is holds


@pytest.mark.parametrize(("at_5000", "holds"), [(35, True), (25, False)])
def test_two_constraints_keep_more_than_one_beyond_a_k(at_5000: int, holds: bool) -> None:
    both = {0: 10, 1_000: 20, 2_000: 31, 5_000: at_5000}
    lines = [*curve("11", "CA and RIDS", both), *curve("11", "CA", dict.fromkeys(both, 30))]
    assert kmon_claims._crossing(KMonLines(lines, 1.0)).holds is holds


def test_windows_are_full_where_nothing_more_is_kept() -> None:
    # A step of 1,000 rows, 600 in all.
    full = KMonLines([line("4", "SWJ", 0, *range(350), *[350] * 250)], scale=1.0)
    later = KMonLines([line("4", "SWJ", 0, *range(600))], scale=1.0)
    assert kmon_claims._filled(full).holds
    assert not kmon_claims._filled(later).holds


def test_the_example_is_told_in_the_documents_bytes() -> None:
    lines = (line("1.1", "SWJ", None, 720_000, 720_000), line("1.1", "RIDS", None, 1_800, 1_800))
    claim = kmon_claims._example(lines, 0.1)
    assert claim.holds
    assert claim.measured.startswith(
        "72 MB → 0.18 MB at the document's rates and size of a row, ratio 0.0025"
    )
    worse = (lines[0], line("1.1", "RIDS", None, 3_600, 3_600))
    assert not kmon_claims._example(worse, 0.1).holds


def test_a_lucky_time_is_no_gain_where_constraints_change_nothing() -> None:
    same = RoadRun("AccSeg", (100.0, 100.0), (900.0, 900.0), (1.0, 0.9), 5)
    less = replace(same, rows=(100.0, 10.0), bytes=(900.0, 90.0))
    assert verdicts(kmon_claims._on_the_road(same)) == [False, False]
    assert verdicts(kmon_claims._on_the_road(less)) == [True, True]


ROAD: dict[str, Any] = {"cars": 60, "cars_per_second": 1.0, "mean_trip": 90 * SECOND, "seed": 1}


@pytest.fixture(scope="module")
def reports() -> dict[str, pa.Table]:
    return {"CarStr": LinearRoad(**ROAD)["CarStr"].table()}


def test_constraints_of_cars_are_read_off_their_reports(reports: dict[str, pa.Table]) -> None:
    rows = reports["CarStr"].to_pylist()
    trips = {
        cid: max(row["ts"] for row in rows if row["cid"] == cid)
        - min(row["ts"] for row in rows if row["cid"] == cid)
        for cid in {row["cid"] for row in rows}
    }
    longest = max(trips.values())
    said = linear_road.constraints(reports["CarStr"])
    assert (longest.total_seconds(), said) == (
        360.0,
        "CLUSTERED BY (cid) WITHIN 6 MINUTES ORDERED BY (cid) WITHIN 6 MINUTES",
    )


def test_roads_answer_alike_with_constraints_and_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_road, "CARS", 60)
    monkeypatch.setattr(linear_road, "CARS_PER_SECOND", 1.0)
    found = linear_road.measure_road(step_rows=150)
    assert [each.query for each in found] == list(kmon_claims.TABLE_3)
    assert all(each.rows[1] <= each.rows[0] for each in found)
    assert found[0].results > 0


@pytest.fixture
def counting() -> Callable[[str], CompiledQuery]:
    def asked(what: str) -> CompiledQuery:
        session = Session()
        session.sql("CREATE STREAM s (ts TIMESTAMP, n BIGINT) TIMESTAMP BY ts")
        query = session.sql(f"SELECT ISTREAM({what}) FROM s [RANGE 3 SECONDS]")
        assert query is not None
        return compile_query(query.planned)

    return asked


def numbers(count: int) -> dict[str, pa.Table]:
    times = pa.array([SECOND * each for each in range(count)], pa.timestamp("us"))
    return {"s": pa.table({"ts": times, "n": pa.array(range(count), pa.int64())})}


def test_runs_in_turns_see_what_each_sees_alone(counting: Callable[[str], CompiledQuery]) -> None:
    compiled = [counting(what) for what in ("n", "SUM(n) AS total", "DISTINCT n")]
    seen: list[int] = []

    def look(state: Any) -> dict[str, int]:
        seen.append(state.metrics.rows_in)
        return dict(kept_by_operators(state))

    together = watch_in_turns(compiled, numbers(20), 5, look)
    alone = [watch(each, numbers(20), 5, kept_by_operators) for each in compiled]
    for mine, its in zip(together, alone, strict=True):
        assert replace(mine, seconds=0.0) == replace(its, seconds=0.0)
    # Each step is taken by all three before the next.
    steps = [seen[at : at + 3] for at in range(0, len(seen), 3)]
    assert len(steps) == len(together[0].rows)
    assert all(len(set(step)) == 1 for step in steps)


def test_a_run_that_fails_does_not_keep_the_others_waiting(
    counting: Callable[[str], CompiledQuery],
) -> None:
    looks = iter(range(10))

    def look(state: Any) -> dict[str, int]:
        if next(looks) == 1:
            raise ValueError("a look that fails")
        return {}

    with pytest.raises(ValueError, match="a look that fails"):
        watch_in_turns([counting("n"), counting("n")], numbers(12), 4, look)


def test_everything_is_measured_judged_and_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = {"10": (5_000,), "11": (0, 5_000)}
    figures = [replace(each, ks=few.get(each.name, (0, 20_000))) for each in kmon.FIGURES]
    monkeypatch.setattr(kmon_experiment, "FIGURES", figures)
    monkeypatch.setattr(kmon, "STEPS", 6)
    monkeypatch.setattr(linear_road, "CARS", 40_000)
    done: list[str] = []
    found = kmon_experiment.reproduce(0.004, on_progress=done.append)
    assert len(done) == len({*done}) == 2 * 4 + 1 + 2 + 1 + 4
    told = found.as_dict()
    assert (told["reproduce"], told["scale"], told["batch_rows"]) == ("kmon", 0.004, 400)
    assert {each["figure"] for each in told["lines"]} == {"1.1", "4", "6", "8", "10", "11", "20"}
    assert len(found.rows) == len(told["lines"])
    # One of the example, three of each curve, when windows are full, what varies, times, two pairs, the road.
    assert len(found.claims) == 1 + 4 * 3 + 1 + 1 + 4 * 2 + 2 + 4 * 2
    pytest.importorskip("matplotlib")
    kmon_experiment.draw(found, tmp_path / "kmon.png")
    assert (tmp_path / "kmon.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        (("windows", "--scale", "1"), "--scale is for kmon, not for windows"),
        (("kmon", "--scale", "0"), "--scale 0: a run is from 0.02 of the document's to all of it, 1"),
        (("kmon", "--scale", "2"), "--scale 2: a run is from 0.02 of the document's to all of it, 1"),
    ],
)
def test_a_scale_that_means_nothing_is_refused(words: tuple[str, ...], cause: str) -> None:
    done = headgate("reproduce", *words)
    assert done.code == 2
    assert cause in done.err
