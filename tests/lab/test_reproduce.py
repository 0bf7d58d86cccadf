"""The experiments compare like with like: every strategy and algorithm finds the same results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from headgate.kernels.join import settle_early
from headgate.lab.generators import Auction, Triangle
from headgate.lab.reproduce import joins, kmon, punctuation, windows
from headgate.lab.reproduce.claims import require_same
from headgate.lab.reproduce.traffic import LINKS, Traffic, slices
from headgate.lab.reproduce.watched_run import growth
from headgate.model.errors import DisagreementError, InputError
from headgate.model.time import SECOND

_HEAD = "#separator \\x09\n#set_separator\t,\n#empty_field\t(empty)\n#unset_field\t-\n"
_FIELDS = "#fields\tts\tuid\tid.orig_h\tid.orig_p\tid.resp_h\tid.resp_p\n"
_TYPES = "#types\ttime\tstring\taddr\tport\taddr\tport\n"


def write_log(path: Path, rows: list[tuple[float, str, int]]) -> None:
    lines = "".join(
        f"{ts:.6f}\tC{i}\t{source}\t1000\t10.0.0.9\t{port}\n" for i, (ts, source, port) in enumerate(rows)
    )
    path.write_text(_HEAD + _FIELDS + _TYPES + lines)


@pytest.fixture(scope="module")
def traffic() -> Traffic:
    return Traffic.generated(3_000)


@pytest.mark.parametrize("query", ["1 ftp", "2 pairs", "3"])
def test_every_strategy_finds_the_same(query: str, traffic: Traffic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "STEPS", 3)
    text = windows.QUERIES[query]
    results = [windows._measure(text, strategy, 500, traffic)[2] for strategy in windows.STRATEGIES]
    assert results[0] > 0
    require_same(results, query)


@pytest.mark.parametrize("state", ["nested loops", "5 buckets"])
def test_buckets_and_loops_find_what_runs_find(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joins, "WINDOW", 20)
    data = joins.Synthetic(joins._SHAPES, steps=1_500, seed=3)
    tables = {shape.name: data[shape.name].table() for shape in joins._SHAPES}
    found = [
        joins._measure(joins._query("eager", 0, buckets), order, "eager", 0, buckets, tables)[1]
        for buckets in (None, joins.BUCKETS[state])
        for order in ((1, 0, 2, 3), (3, 2, 1, 0))
    ]
    assert found[0] > 0
    require_same(found, state)


def test_different_results_are_not_compared() -> None:
    with pytest.raises(DisagreementError, match="different numbers"):
        require_same([1, 2], "two runs")


def test_logs_become_links_in_time_order_with_the_usual_port_as_telnet(tmp_path: Path) -> None:
    for name in ("dns", "ssl", "weird"):
        write_log(
            tmp_path / f"{name}.log", [(3.0, "10.0.0.1", 53), (1.0, "10.0.0.2", 53), (2.0, "10.0.0.3", 99)]
        )
    link = Traffic.zeek(tmp_path).tables["link1"].to_pydict()
    assert link["source"] == ["10.0.0.2", "10.0.0.3", "10.0.0.1"]
    assert link["protocol"] == ["telnet", "ftp", "telnet"]


def test_a_folder_without_logs_says_which_are_missing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no dns\.log"):
        Traffic.zeek(tmp_path)


def test_slices_end_at_the_cuts() -> None:
    frame = pl.DataFrame({"n": [0, 1, 2, 3, 4]})
    pieces = [piece["n"].to_list() for piece in slices(frame, [0, 10, 20, 30, 40], np.array([5, 8, 20, 35]))]
    assert pieces == [[0], [1, 2], [3]]


def test_a_window_is_filled_before_steps_are_measured(traffic: Traffic) -> None:
    cuts = traffic.cuts(500, 100, 3)
    steps = np.diff(cuts[-4:])
    assert len(cuts) == 23
    assert set(traffic.tables) == set(LINKS)
    assert np.allclose(steps / 1e6, 100 * traffic.seconds_per_row, rtol=0.01)


@pytest.fixture(scope="module")
def small() -> Iterator[dict[str, dict[str, punctuation.StateGrowth]]]:
    """Every way of forgetting, on an auction and a triangle of few rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(punctuation, "STEP_ROWS", 200)
        found: dict[str, dict[str, punctuation.StateGrowth]] = {}
        for workload in (
            replace(
                punctuation.workloads()[0], data=Auction(items=500, mean_bids=3.0, mean_duration=10 * SECOND)
            ),
            replace(punctuation.workloads()[1], data=Triangle(rows=1_200, open=20, uses=5)),
        ):
            tables = {name: stream.table() for name, stream in workload.data.streams.items()}
            ways = punctuation.variants(workload)
            found[workload.name] = {way.name: punctuation.measure(workload, way, tables) for way in ways}
        yield found


@pytest.mark.parametrize("workload", ["auction", "triangle"])
def test_every_way_of_forgetting_finds_the_same(
    small: dict[str, dict[str, punctuation.StateGrowth]], workload: str
) -> None:
    results = [each.results for each in small[workload].values()]
    assert results[0] > 0
    require_same(results, workload)


@pytest.mark.parametrize("workload", ["auction", "triangle"])
def test_eager_purge_keeps_no_more_than_lazy_and_lazy_at_most_twice_as_much(
    small: dict[str, dict[str, punctuation.StateGrowth]], workload: str
) -> None:
    without, lazy, eager = (small[workload][name] for name in ("no punctuations", "lazy", "eager"))
    assert growth(without.joined_rows) > 2
    assert growth(eager.joined_rows) < 1.3
    assert max(eager.joined_rows) <= max(lazy.joined_rows) < max(without.joined_rows)
    kept = [max(each.joined_rows) + max(each.closed_values) for each in (lazy, eager)]
    # And what a step brings before it can be looked at.
    assert kept[0] <= 2 * kept[1] + 2 * 200


def test_punctuations_that_nothing_counters_are_kept_as_long_as_they_last(
    small: dict[str, dict[str, punctuation.StateGrowth]],
) -> None:
    auction = small["auction"]
    kept, dropped = auction["punctuations kept for ever"], auction["punctuations dropped at once"]
    # Each item is closed once on either stream.
    assert kept.closed_values[-1] == 2 * 500
    assert growth(dropped.joined_rows) > 1.5
    assert max(auction["lifespan of 125"].closed_values) < 500 < kept.closed_values[-1]


def test_only_the_schemes_of_all_columns_purge_punctuations_too(
    small: dict[str, dict[str, punctuation.StateGrowth]],
) -> None:
    fewest, every = small["triangle"]["eager"], small["triangle"]["all schemes, eager"]
    assert growth(fewest.closed_values) > 1.5 > growth(every.closed_values)


def test_a_triangle_is_safe_as_one_join_only() -> None:
    found = punctuation._safe_trees(punctuation.workloads()[1].asked("fewest"))
    assert found == "conditional, 0 of 3 trees are safe"


@pytest.mark.parametrize("figure", kmon.FIGURES, ids=lambda figure: f"Figure {figure.name}")
def test_constraints_change_no_answer_and_keep_no_more_than_windows(
    figure: kmon.Figure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kmon, "STEPS", 12)
    # Of so few rows, all that are stored are looked at as soon as it is worth it.
    monkeypatch.setattr(settle_early, "_FEW", 1)
    # Windows of 200 rows, 2,400 rows in all.
    by_windows, *others = kmon.measure_figure(replace(figure, ks=(5_000,)), scale=0.004)
    assert by_windows.results[-1] > 0
    assert [each.k for each in others] == [20] * len(others)
    for each in others:
        assert each.results == by_windows.results
        # For fewer rows than this nobody looks whether they may go.
        assert max(each.state_rows) <= max(by_windows.state_rows) + 128


def test_a_window_join_keeps_whole_windows_of_rows_that_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kmon, "STEPS", 12)
    first = replace(kmon.FIGURES[0], ks=(0,), passing=100)
    by_windows = kmon.measure_figure(first, scale=0.004)[0]
    # 200 rows of each of three streams; those that die with the last instant of a step are still there.
    assert 600 <= by_windows.state_rows[-1] <= 610


def test_traffic_over_three_links_is_the_same_with_constraints() -> None:
    by_windows, constrained = kmon.measure_example(scale=0.02, minutes=0.5)
    assert by_windows.results == constrained.results
    # 20 + 200 + 20 packets a second, for half a minute.
    assert max(by_windows.state_rows) > 6_500
    assert constrained.share_of(by_windows) <= 1.0


def test_results_that_are_missing_are_counted_by_step() -> None:
    exact, found = (
        kmon.StateLine("5", way, None, (10, 20, 30, 40), (4, 4, 4, 4), (96, 96, 96, 96), results, 0.0)
        for way, results in (("SWJ", (8, 8, 12, 16)), ("RIDS", (8, 8, 11, 15)))
    )
    assert found.false_negatives(exact) == (0.0, 0.0, 0.25, 0.0)
    assert found.share_of(exact) == 1.0


def test_the_time_of_a_row_is_compared_with_that_of_the_window_join_of_the_same_k() -> None:
    lines = [
        kmon.StateLine("4", way, k, (1, 2), (1, 1), (24, 24), (0, 1), seconds)
        for way, k, seconds in (("SWJ", 0, 2.0), ("RIDS", 0, 1.0), ("SWJ", 9, 4.0), ("RIDS", 9, 1.0))
    ]
    assert list(kmon.times(lines)) == [("RIDS", 0, 0.5), ("RIDS", 9, 0.25)]
