"""The experiments compare like with like: every strategy and algorithm finds the same results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from headgate.lab.reproduce import joins, windows
from headgate.lab.reproduce.claims import require_same
from headgate.lab.reproduce.traffic import LINKS, Traffic, slices
from headgate.model.errors import DisagreementError, InputError

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
