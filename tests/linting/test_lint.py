"""Lint reads Spark's plans; what it says of a state is what Spark is then seen to do."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from tests.linting.streams import CASES, Streams, kept

import headgate as hg
from headgate.linting.report import pack, read_report


@pytest.fixture(scope="module")
def functions(spark: Any) -> Any:
    return pytest.importorskip("pyspark.sql.functions")


@pytest.mark.parametrize("name", CASES)
def test_each_state_is_judged(name: str, streams: Streams, functions: Any) -> None:
    case = CASES[name]
    report = hg.lint(case.build(streams, functions), case.mode)
    assert tuple(state.bounded for state in report.states) == case.bounded, report
    assert report.refusal is None
    assert report.bounded == all(case.bounded)
    assert all(state.fixes for state in report.states if not state.bounded)


def agree(name: str, streams: Streams, functions: Any, folder: Path) -> None:
    """The state of a query found bounded stays level over the last batches with rows; else it grows in each."""
    case = CASES[name]
    rows = kept(case.build(streams, functions), case.mode, folder)
    late = rows[3:7]
    level = all(after <= before for before, after in pairwise(late))
    assert level == all(case.bounded), rows


def test_spark_does_as_lint_says(streams: Streams, functions: Any, tmp_path: Path) -> None:
    agree("dropDuplicates with a watermark elsewhere", streams, functions, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_spark_does_as_lint_says_of_all(name: str, streams: Streams, functions: Any, tmp_path: Path) -> None:
    agree(name, streams, functions, tmp_path)


@pytest.mark.parametrize(
    "name",
    [
        "dropDuplicates with a watermark elsewhere",
        "dropDuplicates without a watermark",
        "aggregate without event time",
        "aggregate by an hour that lost its watermark",
    ],
)
def test_a_fix_pasted_in_bounds_the_state(name: str, streams: Streams, functions: Any) -> None:
    case = CASES[name]
    report = hg.lint(case.build(streams, functions), case.mode)
    assert report.fixes
    marked = "without a watermark" not in name
    for fix in report.fixes:
        source = streams.wa if marked else streams.a
        count = ".count()" if "groupBy" in fix.edit else ""
        fixed = eval(f"source{fix.edit}{count}", {"source": source, "window": functions.window})
        assert hg.lint(fixed, case.mode).bounded, fix.edit


@pytest.mark.parametrize(
    ("marked", "condition", "expected"),
    [
        ((), "id = id2", ["left", "right", "AND"]),
        (("left",), "id = id2", ["right", "AND"]),
        (("left",), "id = id2 AND ts BETWEEN ts2 AND ts2 + INTERVAL 1 HOUR", ["right"]),
        ((), "id = id2 AND ts BETWEEN ts2 AND ts2 + INTERVAL 1 HOUR", ["left", "right"]),
        (("left", "right"), "id = id2 AND ts <= ts2", ["AND"]),
    ],
)
def test_a_join_is_told_exactly_what_it_lacks(
    marked: tuple[str, ...], condition: str, expected: list[str], streams: Streams, functions: Any
) -> None:
    def build(more: tuple[str, ...], condition: str) -> Any:
        left = streams.wa if "left" in more else streams.a
        right = streams.wb if "right" in more else streams.b
        return left.join(right, functions.expr(condition))

    (fix,) = hg.lint(build(marked, condition)).fixes
    parts = fix.edit.splitlines()
    assert [part.split(".")[0].split()[0] for part in parts] == expected
    added = tuple(part.split(".")[0] for part in parts if not part.startswith("AND"))
    terms = "".join(" " + part for part in parts if part.startswith("AND"))
    assert hg.lint(build((*marked, *added), condition + terms)).bounded


def test_columns_that_the_query_drops_can_still_be_named(streams: Streams, functions: Any) -> None:
    joined = streams.a.join(streams.b, functions.expr("id = id2")).select("id")
    (fix,) = hg.lint(joined).fixes
    assert fix.edit.splitlines()[:2] == [
        'left.withWatermark("ts", "10 minutes")',
        'right.withWatermark("ts2", "10 minutes")',
    ]


def test_what_spark_would_refuse_is_said_with_the_mode_that_would_do(streams: Streams) -> None:
    report = hg.lint(streams.a.groupBy("id").count())
    assert report.refusal is not None
    assert report.refusal.endswith('it starts with outputMode("update")')
    assert report.verdict == "unbounded"


def test_an_outer_join_that_spark_would_refuse(streams: Streams, functions: Any) -> None:
    joined = streams.wa.join(streams.wb, functions.expr("id = id2 AND ts <= ts2"), "left")
    report = hg.lint(joined)
    assert report.refusal is not None
    assert [state.bounded for state in report.states] == [False, True]


def test_a_join_without_an_equality_cannot_start(streams: Streams, functions: Any) -> None:
    joined = streams.wa.join(streams.wb, functions.expr("ts BETWEEN ts2 AND ts2 + INTERVAL 1 HOUR"))
    assert hg.lint(joined).verdict == "refused"


def test_a_group_that_collects_its_rows_grows_although_there_is_one_group(
    streams: Streams, functions: Any
) -> None:
    (state,) = hg.lint(streams.a.groupBy().agg(functions.collect_list("id")), "update").states
    assert not state.bounded
    assert "collect_list" in state.reason


@pytest.mark.parametrize("cast", [False, True])
def test_the_current_day_is_not_a_constant(cast: bool, streams: Streams, functions: Any) -> None:
    day = functions.current_date()
    grouped = streams.a.groupBy((day.cast("string") if cast else day).alias("day")).count()
    assert not hg.lint(grouped, "update").bounded


def test_sort_and_limit_in_complete_mode_do_not_bound_the_groups(streams: Streams) -> None:
    report = hg.lint(streams.a.groupBy("id").count().orderBy("count").limit(3), "complete")
    (state,) = report.states
    assert not state.bounded
    assert "not what is kept" in state.reason


def test_distinct_in_sql_is_named_so(streams: Streams) -> None:
    streams.wa.createOrReplaceTempView("l")
    spark = streams.a.sparkSession
    (bad,) = hg.lint(spark.sql("SELECT DISTINCT id FROM l"), "update").states
    (good,) = hg.lint(spark.sql("SELECT DISTINCT id, ts FROM l"), "update").states
    assert (bad.operator, bad.bounded, good.bounded) == ("distinct", False, True)


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize(
    ("clock", "says"),
    [("None", "there are no timers and no TTL"), ("ProcessingTime", "timers in processing")],
)
def test_own_state_cannot_be_known(clock: str, says: str, streams: Streams) -> None:
    pytest.importorskip("pandas", reason="PySpark's own-state operators need pandas")
    streaming = pytest.importorskip("pyspark.sql.streaming")

    class Nothing(streaming.StatefulProcessor):
        def init(self, handle: Any) -> None: ...
        def handleInputRows(self, key: Any, rows: Any, timers: Any) -> Any: ...  # noqa: N802
        def close(self) -> None: ...

    frame = streams.a.groupBy("id").transformWithState(Nothing(), "id long", "append", clock)
    report = hg.lint(frame)
    (state,) = report.states
    assert (state.bounded, report.verdict) == (None, "unknown")
    assert state.reason.startswith(says)


def test_a_report_survives_the_way_between_processes(streams: Streams, functions: Any) -> None:
    report = hg.lint(streams.wa.join(streams.b, functions.expr("id = id2")), name="joined")
    assert read_report(json.loads(json.dumps(pack(report)))) == report


def test_a_batch_frame_is_turned_down(spark: Any) -> None:
    with pytest.raises(hg.HeadgateError, match="not a streaming one"):
        hg.lint(spark.range(3))
    with pytest.raises(hg.HeadgateError, match="takes a streaming DataFrame"):
        hg.lint([1, 2])


def test_an_unknown_mode_is_turned_down(streams: Streams) -> None:
    with pytest.raises(hg.HeadgateError, match="no output mode upsert"):
        hg.lint(streams.a, "upsert")


def test_without_pyspark_the_extra_is_named() -> None:
    with (
        mock.patch.object(importlib.util, "find_spec", return_value=None),
        pytest.raises(hg.HeadgateError, match=r"headgate\[spark\]"),
    ):
        hg.lint(None)


def test_without_java_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(hg.HeadgateError, match="needs Java"):
        hg.lint(None)


def test_importing_headgate_does_not_import_spark() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import sys, headgate; headgate.lint; assert 'pyspark' not in sys.modules"],
        check=False,
    )
    assert done.returncode == 0
