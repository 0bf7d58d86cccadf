"""How late rows come, the slack that would have kept them, and runs that stop because of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli_runner import headgate
from tests.runtime.test_sources_arrival import chunk, stream

from headgate.model.errors import DataError
from headgate.model.time import DAY, HOUR, MINUTE, SECOND, in_whole_units
from headgate.runtime.io import Arrival
from headgate.runtime.lateness import Arrivals, added, counted, require_few, slack_for

TIMES = st.lists(st.integers(0, 40) | st.integers(0, 10**15), min_size=1, max_size=60)


def late_by(times: Sequence[int], slack: int) -> pl.Series:
    return Arrival(stream(slack)).admit(chunk(*times)).late_by


@given(times=TIMES, slack=st.integers(0, 10), share=st.sampled_from([0.5, 0.9, 0.999]))
def test_the_slack_that_is_told_keeps_the_share_and_little_more_than_needed(
    times: list[int], slack: int, share: float
) -> None:
    late = late_by(times, slack)
    told = slack_for(counted(late), share)
    if late.is_empty():
        assert told is None
        return
    assert told is not None
    assert len(late_by(times, told)) <= len(late) * (1 - share) + 1e-9
    needed = sorted(late)[max(0, -(-int(share * 1000) * len(late) // 1000) - 1)]
    assert needed <= told <= needed + needed // 16


@given(times=TIMES, cut=st.integers(0, 60))
def test_counts_of_parts_add_up(times: list[int], cut: int) -> None:
    late = late_by(times, 0)
    assert added(counted(late[:cut]), counted(late[cut:])) == counted(late)


def test_what_several_have_counted_is_counted_together() -> None:
    one, two = Arrivals(), Arrivals()
    one.note("s", 10, pl.Series([5, 7]))
    two.note("s", 5)
    two.note("t", 1, pl.Series([100]))
    found = Arrivals.together([one, two])
    assert found["s"] == {"rows": 15, "late_rows": 2, "late_by": {"5": [1, 5], "7": [1, 7]}}
    assert found["t"]["late_rows"] == 1
    assert one["s"]["rows"] == 10, "the parts stay as they were"


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [
        (1, "1 SECOND"),
        (90 * SECOND, "90 SECONDS"),
        (3 * MINUTE + 1, "4 MINUTES"),
        (HOUR, "1 HOUR"),
        (3 * HOUR + 1, "4 HOURS"),
        (3 * DAY + 1, "4 DAYS"),
    ],
)
def test_durations_are_rounded_up_as_people_write_them(microseconds: int, text: str) -> None:
    assert in_whole_units(microseconds) == text


def test_a_share_means_something_after_some_rows_or_at_the_end() -> None:
    found = Arrivals()
    found.note("s", 10, pl.Series([5, 7]))
    require_few({"streams": found}, 0.1)
    require_few({"streams": found}, 0.2, ended=True)
    with pytest.raises(DataError, match="2 of 10 rows of s came late"):
        require_few({"streams": found}, 0.1, ended=True)
    found.note("s", 990, pl.Series([9] * 300))
    with pytest.raises(DataError, match="302 of 1,000 rows of s came late"):
        require_few({"streams": found}, 0.1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A file whose second half is an hour behind its first, with two rows of a far future."""
    times = [*range(600), *range(600 - 3600, 1200 - 3600)]
    lines = [f"1970-01-02 {h:02d}:{m:02d}:{s:02d},1" for h, m, s in map(_clock, times)]
    (tmp_path / "s.csv").write_text(
        "\n".join(["ts,k", *lines, "2190-01-01 00:00:00,2", "2190-01-01 00:00:01,2"])
    )
    (tmp_path / "q.cql").write_text(
        "CREATE STREAM s (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts USING csv "
        "OPTIONS (path 's.csv', header 'true');\n"
        "CREATE QUERY q AS SELECT ISTREAM(k) FROM s [RANGE 1 MINUTE];\n"
    )
    return tmp_path


def _clock(second: int) -> tuple[int, int, int]:
    second += 12 * 3600
    return second // 3600, second // 60 % 60, second % 60


def _run(folder: Path, *words: str) -> tuple[int, str]:
    found = headgate("run", folder / "q.cql", "-o", folder / "out", "--engine", "local", *words)
    return found.code, " ".join(found.err.split())


def test_a_run_warns_of_rows_that_come_late_and_counts_them(folder: Path) -> None:
    code, said = _run(folder, "--max-ahead", "1 DAY")
    assert code == 0
    assert "600 of 1,200 rows of s came late and are in no answer" in said
    assert "TIMESTAMP BY … WITHIN INTERVAL 1 HOUR in CREATE STREAM s" in said
    metrics = json.loads((folder / "out" / "q" / "metrics.json").read_text())
    assert metrics["streams"]["s"]["rows"] == 1200
    assert metrics["streams"]["s"]["late_rows"] == metrics["late_rows"] == 600
    assert metrics["future_rows"] == 2
    assert pl.read_parquet(folder / "out" / "_late" / "s" / "*.parquet").height == 602


def test_rows_of_a_far_future_move_the_clock_unless_they_are_set_aside(folder: Path) -> None:
    assert _run(folder, "--batch-rows", "100")[0] == 0
    assert json.loads((folder / "out" / "q" / "metrics.json").read_text())["clock"] > 200 * 365 * DAY
    assert _run(folder, "--batch-rows", "100", "--max-ahead", "1 DAY", "--overwrite")[0] == 0
    assert json.loads((folder / "out" / "q" / "metrics.json").read_text())["clock"] < 3 * DAY


def test_a_run_stops_at_too_many_late_rows_and_leaves_nothing(folder: Path) -> None:
    code, said = _run(folder, "--max-late", "0.1")
    assert code == 2
    assert "600 of 1,202 rows of s came late" in said
    assert "--max-late 0.1 allows 10.0%" in said
    assert not (folder / "out" / "q").exists()
    assert _run(folder, "--max-late", "0.6")[0] == 0


def test_a_duration_that_is_none_is_refused(folder: Path) -> None:
    code, said = _run(folder, "--max-ahead", "soon")
    assert code == 2
    assert "--max-ahead soon is not a duration" in said
