"""A run that stops goes on where it was; a checkpoint that does not fit is refused by name; damage is noticed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from tests.spark.on_spark import folder_at
from tests.spark.shards import Cluster, Memory, stage_of

from headgate.model.errors import InputError, SetupError
from headgate.runtime.io.source import Slice
from headgate.runtime.lateness import Arrivals
from headgate.runtime.spark import store
from headgate.runtime.spark.checkpoint import claim, held, require_free
from headgate.runtime.spark.exchange import advance
from headgate.runtime.spark.job import JobStage
from headgate.runtime.spark.messages import Message
from headgate.runtime.spark.pack import Packer
from headgate.runtime.spark.sources.splits import FileSplit, batches_of
from headgate.runtime.stage import ClockOptions
from headgate.safety.promise import Promise, PromiseKind

pytestmark = pytest.mark.usefixtures("spark")

TEXT = """
CREATE STREAM s (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts;
CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE {seconds} SECONDS] GROUP BY k;
"""


def rows(*pairs: tuple[int, int]) -> pa.Table:
    instants = pa.array([time * 1_000_000 for time, _ in pairs], pa.timestamp("us", tz="UTC"))
    return pa.table({"ts": instants, "k": [key for _, key in pairs]})


def test_a_changed_query_is_refused_and_the_change_named(tmp_path: Path) -> None:
    before = stage_of(TEXT.format(seconds=5), "q", {}, shards=2)
    first = claim(folder_at(tmp_path), [before])
    assert first.fresh
    first.keep()
    assert claim(folder_at(tmp_path), [before]) == replace(first, fresh=False)
    after = stage_of(TEXT.format(seconds=6), "q", {}, shards=2)
    with pytest.raises(InputError, match="another form of query q") as refused:
        claim(folder_at(tmp_path), [after])
    assert "- step 2: window(1) Window(spec=Range(length=5000000" in refused.value.cause
    assert "+ step 2: window(1) Window(spec=Range(length=6000000" in refused.value.cause


def test_another_number_of_shards_is_refused(tmp_path: Path) -> None:
    claim(folder_at(tmp_path), [stage_of(TEXT.format(seconds=5), "q", {}, shards=2)]).keep()
    with pytest.raises(InputError, match="shards 2"):
        claim(folder_at(tmp_path), [stage_of(TEXT.format(seconds=5), "q", {}, shards=4)])


def test_another_format_is_refused(tmp_path: Path) -> None:
    stage = stage_of(TEXT.format(seconds=5), "q", {}, shards=2)
    claim(folder_at(tmp_path), [stage]).keep()
    path = tmp_path / "headgate" / "query.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 99}))
    with pytest.raises(InputError, match="format 99"):
        claim(folder_at(tmp_path), [stage])


def test_a_foreign_checkpoint_is_refused(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    with pytest.raises(InputError, match="not one of Headgate's"):
        claim(folder_at(tmp_path), [stage_of(TEXT.format(seconds=5), "q", {}, shards=2)])


def test_a_checkpoint_that_another_run_uses_is_refused(tmp_path: Path) -> None:
    with held(tmp_path / "q"):
        with pytest.raises(InputError, match=r"another run is using the checkpoint .*/q"):
            require_free(folder_at(tmp_path / "q"))
        require_free(folder_at(tmp_path / "other"))
        assert not (tmp_path / "other").exists()
    require_free(folder_at(tmp_path / "q"))
    # What only holds a checkpoint does not use it up.
    assert claim(folder_at(tmp_path / "q"), [stage_of(TEXT.format(seconds=5), "q", {}, shards=2)]).fresh


def test_what_is_below_a_checkpoint_is_not_taken_for_it(tmp_path: Path) -> None:
    stage = stage_of(TEXT.format(seconds=5), "q", {}, shards=2)
    claim(folder_at(tmp_path / "day"), [stage]).keep()
    assert claim(folder_at(tmp_path), [stage]).fresh
    # A version of old had a folder for each query.
    (tmp_path / "q" / "headgate").mkdir(parents=True)
    (tmp_path / "q" / "headgate" / "query.json").write_text(
        '{"format": 5, "run": "x", "query": "q", "stage": []}'
    )
    with pytest.raises(InputError, match="has format 5; this version reads format 9"):
        claim(folder_at(tmp_path), [stage])


def test_a_missing_chunk_is_noticed() -> None:
    cluster = Cluster(stage_of(TEXT.format(seconds=5), "q", {}, shards=1))
    cluster.batch({"s": [rows((1, 7), (2, 8))]})
    store._CACHE.clear()
    cluster.stores[0][0].held.popitem()
    with pytest.raises(SetupError, match="missing in the checkpoint"):
        cluster.batch({"s": [rows((3, 7))]})


def test_a_failed_attempt_leaves_nothing_behind() -> None:
    """The state that a failed attempt put into the cache is not believed, for the store does not bear its token."""
    stage = stage_of(TEXT.format(seconds=5), "q", {}, shards=1)
    cluster = Cluster(stage)
    cluster.batch({"s": [rows((1, 7), (2, 8))]})
    text, held = cluster.stores[0][0].text, dict(cluster.stores[0][0].held)
    lost = Cluster(stage)
    lost.stores[0][0] = Memory(text, dict(held))
    lost.batch({"s": [rows((3, 9), (4, 9))]})
    again = Cluster(stage)
    again.stores[0][0] = Memory(text, held)
    again.batch({"s": [rows((3, 7), (4, 8))]})
    again.end()
    kept = pl.concat(again.rows)
    assert set(kept["k"]) == {7, 8}


def test_the_state_before_is_not_changed() -> None:
    stage = stage_of(TEXT.format(seconds=5), "q", {}, shards=1)
    memory = Memory()
    before = store.load({0: stage}, memory).states[0]
    inbox: list[Message] = [
        message
        for piece in Packer.of(JobStage.of([stage]), "s").messages(rows((1, 7), (9, 8)).to_batches(), 0)
        for _, message in piece
    ]
    facts = before.facts()
    first, outcome = advance(stage, 0, before, inbox, None)
    second, again = advance(stage, 0, before, inbox, None)
    assert before.facts() == facts
    assert [reply.blob for reply in outcome.replies] == [reply.blob for reply in again.replies]
    drop = {"metrics"}
    assert {k: v for k, v in first.facts().items() if k not in drop} == {
        k: v for k, v in second.facts().items() if k not in drop
    }


def test_an_idle_stream_holds_the_clock_no_more() -> None:
    text = """
    CREATE STREAM a (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts;
    CREATE STREAM b (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts;
    CREATE QUERY q AS SELECT ISTREAM(a.k) FROM a [RANGE 9 SECONDS], b [RANGE 9 SECONDS] WHERE a.k = b.k;
    """
    stage = stage_of(text, "q", {}, shards=1, clock=ClockOptions(ordered=True, idle_ms=1_000))
    cluster = Cluster(stage)
    cluster.batch({"a": [rows((1, 7))], "b": [rows((1, 7))]}, now_ms=0)
    cluster.batch({"a": [rows((5, 8))]}, now_ms=900)
    assert not cluster.rows, "the clock waits for b"
    cluster.batch({"a": [rows((6, 8))]}, now_ms=5_000)
    assert pl.concat(cluster.rows)["k"].to_list() == [7]


def test_a_row_from_the_far_future_does_not_move_the_clock() -> None:
    stage = stage_of(TEXT.format(seconds=5), "q", {}, shards=2, clock=ClockOptions(future_us=60_000_000))
    cluster = Cluster(stage)
    now = pa.array([10_000_000] * 3, pa.timestamp("us", tz="UTC"))
    cluster.batch({"s": [rows((1, 7), (10_000, 8), (3, 9)).append_column("_headgate_now", now)]})
    assert cluster.late == {"s": 1}
    now = pa.array([10_000_000], pa.timestamp("us", tz="UTC"))
    cluster.batch({"s": [rows((4, 7)).append_column("_headgate_now", now)]})
    cluster.end()
    assert set(pl.concat(cluster.rows)["k"]) == {7, 9}


@pytest.mark.parametrize("ordered", [True, False])
def test_shards_count_what_comes_late_and_by_how_much(ordered: bool) -> None:
    stage = stage_of(TEXT.format(seconds=5), "q", {}, shards=3, clock=ClockOptions(ordered=ordered))
    cluster = Cluster(stage)
    # Without an order among partitions a row is late by the micro-batches before.
    cluster.batch({"s": [rows((10, 7), (20, 8), (30, 9))]})
    cluster.batch({"s": [rows((12, 7), (31, 8), (29, 8), (33, 9))]})
    found = Arrivals.together(
        store.load({0: stage}, each).states[0].query.metrics.streams for each in cluster.stores[0]
    )
    # Within a partition that has an order, 29 comes after 31.
    late = {12: 18, 29: 2 if ordered else 1}
    expected = Arrivals()
    expected.note("s", 7, pl.Series([each * 1_000_000 for each in late.values()]))
    assert found == expected
    assert cluster.late == {"s": 2}


def test_streams_advance_together() -> None:
    many = [FileSplit("a", Slice(Path(f"a{n}")), 10) for n in range(8)]
    few = [FileSplit("b", Slice(Path(f"b{n}")), 10) for n in range(2)]
    batches = batches_of({"a": many, "b": few}, 50)
    assert [[split.slice.file.name for split in batch] for batch in batches] == [
        ["a0", "a1", "a2", "a3", "b0"],
        ["a4", "a5", "a6", "a7", "b1"],
    ]


def test_stages_differ_by_their_streams_too() -> None:
    stage = stage_of(TEXT.format(seconds=5), "q", {}, shards=2)
    other = replace(stage, streams=tuple(replace(each, slack=1) for each in stage.streams))
    assert stage.fingerprint != other.fingerprint


def test_rows_that_fail_a_check_that_is_relied_on_are_late() -> None:
    text = """
    CREATE STREAM s (ts TIMESTAMP, k BIGINT, CHECK (k < 10)) TIMESTAMP BY ts;
    CREATE QUERY q AS SELECT ISTREAM(k) FROM s [RANGE 5 SECONDS];
    """
    stage = stage_of(text, "q", {}, shards=2)
    stream = stage.streams[0]
    promise = Promise("s", (), stream.checks[0], PromiseKind.CHECK)
    cluster = Cluster(replace(stage, graph=replace(stage.graph, promises=(promise,))))
    cluster.batch({"s": [rows((1, 7), (2, 80), (3, 9))]})
    cluster.end()
    assert cluster.late == {"s": 1}
    assert sorted(pl.concat(cluster.rows)["k"]) == [7, 9]
