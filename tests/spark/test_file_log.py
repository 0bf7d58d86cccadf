"""The file log: each split is read once, none is lost when a process dies, damage is noticed, and it stays small."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.spark.shards import stage_of

from headgate.model.errors import InputError, SetupError
from headgate.plan.catalog import Source
from headgate.runtime.io.format import Span
from headgate.runtime.io.source import Slice
from headgate.runtime.shard import ShardState
from headgate.runtime.spark.exchange import advance
from headgate.runtime.spark.job import JobStage
from headgate.runtime.spark.sources.file_log import START, FileBatch, FileLog, Offset
from headgate.runtime.spark.sources.file_planner import FilePlanner
from headgate.runtime.spark.sources.split_reader import SplitReader
from headgate.runtime.spark.sources.splits import FileSplit, batches_of, splits_of

TEXT = """
CREATE STREAM s (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts;
CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE 5 SECONDS] GROUP BY k;
"""


def log_in(folder: Path, *, tasks: int = 2, streams: tuple[str, ...] = ("s",)) -> FileLog:
    return FileLog(folder / "files", streams, tasks)


def batch(folder: Path, number: int, *, exists: bool = True) -> list[FileSplit]:
    if exists:
        (folder / f"s{number}").touch()
    return [FileSplit("s", Slice(folder / f"s{number}"), 1)]


def planned(log: FileLog, start: Offset = START) -> list[FileBatch]:
    return log.between(start, log.last)


def files(batches: list[FileBatch]) -> list[str]:
    return [Path(file).name for each in batches for _, file in each.files]


def orders(batches: list[FileBatch]) -> list[int]:
    return [task.order for each in batches for task in each.tasks]


def names(folder: Path, *numbers: int) -> set[str]:
    return {str(folder / f"s{number}") for number in numbers}


def test_micro_batches_come_as_they_were_added(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    log.add([batch(tmp_path, 0), batch(tmp_path, 1)], end=False)
    first = log.last
    log.add([batch(tmp_path, 2)], end=True)
    for each in (log, log_in(tmp_path)):
        assert files(planned(each)) == ["s0", "s1", "s2"]
        assert [one.ends for one in planned(each)] == [False, False, True]
        assert files(planned(each, first)) == ["s2"]
        assert each.known() == names(tmp_path, 0, 1, 2)
        assert (each.last, each.offset(2)) == (log.last, first)


def test_finished_micro_batches_are_compacted_and_their_files_stay_known(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    log.add([batch(tmp_path, number) for number in range(3)], end=False)
    second, third = log.offset(2), log.last
    log.compact(2, least=1)
    for each in (log, log_in(tmp_path)):
        assert each.known() == names(tmp_path, 0, 1, 2)
        assert files(each.between(second, third)) == ["s2"]
        with pytest.raises(SetupError, match="has micro-batches 3 to 3, and Spark has read 1 of them"):
            each.check(Offset(1, "?"))
    log_in(tmp_path).add([batch(tmp_path, 3)], end=False)
    assert files(planned(log_in(tmp_path), second)) == ["s2", "s3"]


def test_names_of_files_that_are_gone_are_forgotten_when_others_come(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    log.add([batch(tmp_path, 0), batch(tmp_path, 1)], end=False)
    (tmp_path / "s0").unlink()
    log.compact(2, least=1)
    log.add([batch(tmp_path, 2)], end=False)
    assert log.known() == names(tmp_path, 1, 2)
    log.compact(3, least=1)
    assert log_in(tmp_path).known() == names(tmp_path, 1, 2)


def test_a_folder_that_is_away_for_a_while_is_not_forgotten(tmp_path: Path) -> None:
    """Nor is it when files of another stream come meanwhile."""
    log = log_in(tmp_path, streams=("s", "r"))
    log.add([batch(tmp_path, 0, exists=False), batch(tmp_path, 1, exists=False)], end=False)
    for number in range(2, 4):
        log.compact(log.last.batch, least=1)
        (tmp_path / f"r{number}").touch()
        log.add([[FileSplit("r", Slice(tmp_path / f"r{number}"), 1)]], end=False)
    for each in (log, log_in(tmp_path)):
        assert each.known() >= names(tmp_path, 0, 1)


def test_what_is_kept_stays_small_if_every_finished_file_is_taken_away(tmp_path: Path) -> None:
    log = log_in(tmp_path, tasks=1)
    for number in range(1_000):
        log.add([batch(tmp_path, number)], end=False)
        (tmp_path / f"s{number}").unlink()
        log.compact(log.last.batch - 1)
    assert len(log.known()) < 300
    assert len(log_in(tmp_path).known()) < 300
    assert log.path.stat().st_size < 300 * (len(str(tmp_path)) + 200)


def test_orders_rise_whatever_the_number_of_tasks(tmp_path: Path) -> None:
    """Rows are late by the rows of lower orders, and bad rows are kept under the order of their task."""
    for start, tasks in ((0, 8), (8, 8), (16, 2), (24, 3), (32, 1), (40, 8)):
        splits = [split for number in range(start, start + 8) for split in batch(tmp_path, number)]
        log_in(tmp_path, tasks=tasks).add([splits[:5], splits[5:]], end=False)
    found = planned(log_in(tmp_path))
    assert files(found) == [f"s{number}" for number in range(48)]
    assert orders(found) == list(range(len(orders(found))))


def test_orders_go_on_after_all_is_compacted(tmp_path: Path) -> None:
    log = log_in(tmp_path, tasks=8)
    log.add([[split for number in range(8) for split in batch(tmp_path, number)]], end=False)
    last, highest = log.last, max(orders(planned(log)))
    log.compact(1, least=1)
    again = log_in(tmp_path, tasks=1)
    again.add([batch(tmp_path, 8)], end=False)
    assert orders(planned(again, last)) == [highest + 1]


def test_a_backlog_is_read_in_order_by_another_number_of_tasks(tmp_path: Path) -> None:
    """Micro-batches that were planned for eight tasks and for three are read as one."""
    text = TEXT.replace("BY ts;", "BY ts USING csv OPTIONS (path 'in');")
    stage = stage_of(text, "q", {}, shards=1)
    for start, stop, tasks in ((0, 8, 8), (8, 16, 8), (16, 19, 3)):
        splits = [split for number in range(start, stop) for split in batch(tmp_path, number)]
        for number in range(start, stop):
            (tmp_path / f"s{number}").write_text(f"2026-01-01T00:00:{number:02d},{number}\n")
        log_in(tmp_path, tasks=tasks).add([splits], end=False)
    tasks_of_all = [task for each in planned(log_in(tmp_path)) for task in each.tasks]
    reader = SplitReader.of(JobStage.of([stage]), stage.streams, (0,))
    state = ShardState.initial(stage)
    for at in range(0, len(tasks_of_all), 3):
        read = [reader.messages(task, 0) for task in tasks_of_all[at : at + 3]]
        messages = [message for task in read for piece in task for _, message in piece]
        state, _ = advance(stage, 0, state, messages, None)
    assert state.query.metrics.late_rows == 0
    assert state.query.metrics.rows_in == 18, "the last row waits"


def test_whether_the_end_was_said_is_remembered(tmp_path: Path) -> None:
    assert not log_in(tmp_path).open, "there is nothing to end"
    log_in(tmp_path).add([batch(tmp_path, 0)], end=False)
    assert log_in(tmp_path).open
    log = log_in(tmp_path)
    log.add([], end=True)
    assert [each.ends for each in planned(log)] == [False, True]
    for each in (log, log_in(tmp_path)):
        assert not each.open
    log.compact(2, least=1)
    assert not log_in(tmp_path).open, "also by the first line alone"
    log_in(tmp_path).add([batch(tmp_path, 1)], end=False)
    assert log_in(tmp_path).open, "more has come since"


def full_log(folder: Path, *, compacted: bool) -> tuple[FileLog, list[Offset]]:
    log = log_in(folder)
    for number in range(5):
        log.add([batch(folder, number)], end=number == 4)
    offsets = [log.offset(number) for number in range(6)]
    if compacted:
        log.compact(2, least=1)
    return log, offsets


def damages(content: bytes) -> dict[str, bytes]:
    """Ways in which a log of several lines may be damaged, whose last line but one Spark has read."""
    lines = content.splitlines(keepends=True)
    ways = {"empty": b"", "half": content[: len(content) // 2], "turned": b"".join(reversed(lines))}
    for at in range(len(lines) - 1):
        ways[f"without line {at + 1}"] = b"".join([*lines[:at], *lines[at + 1 :]])
        ways[f"line {at + 1} twice"] = b"".join([*lines[: at + 1], *lines[at:]])
        ways[f"cut before line {at + 1}"] = b"".join(lines[:at])
        changed = lines[at].replace(b"s1", b"s9").replace(b"s2", b"s9").replace(b"s3", b"s9")
        ways[f"line {at + 1} edited"] = b"".join([*lines[:at], changed, *lines[at + 1 :]])
        ways[f"line {at + 1} is no JSON"] = b"".join([*lines[:at], b"{\n", *lines[at + 1 :]])
        ways[f"line {at + 1} is another"] = b"".join([*lines[:at], b'{"x": 1}\n', *lines[at + 1 :]])
    return {name: each for name, each in ways.items() if each != content}


@pytest.mark.parametrize("compacted", [False, True], ids=["as added", "compacted"])
def test_any_damage_is_noticed(tmp_path: Path, compacted: bool) -> None:
    log, offsets = full_log(tmp_path, compacted=compacted)
    whole = log.path.read_bytes()
    if compacted:
        # Five micro-batches in the first line and the line behind it.
        assert whole.count(b"\n") == 2
    read = offsets[5 if compacted else 4]
    for name, content in damages(whole).items():
        log.path.write_bytes(content)
        with pytest.raises(SetupError, match="damaged") as refused:
            log_in(tmp_path).check(read)
        assert refused.value.remedy == "restore the checkpoint or choose another", name
    log.path.unlink()
    with pytest.raises(SetupError, match="it has no micro-batch, and Spark has read"):
        log_in(tmp_path).check(read)
    log.path.write_bytes(whole)
    log_in(tmp_path).check(read)


def test_every_changed_byte_of_what_spark_has_read_is_noticed(tmp_path: Path) -> None:
    log, offsets = full_log(tmp_path, compacted=True)
    whole = log.path.read_bytes()
    for at in range(0, len(whole), 7):
        log.path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(SetupError, match="damaged"):
            log_in(tmp_path).check(offsets[5])


def test_a_log_that_is_taken_away_under_a_run_is_not_begun_anew(tmp_path: Path) -> None:
    log, _ = full_log(tmp_path, compacted=False)
    log.path.unlink()
    with pytest.raises(SetupError, match="it is gone"):
        log.add([batch(tmp_path, 7)], end=False)
    with pytest.raises(SetupError, match="it is gone"):
        log.compact(3, least=1)


class Runs(RuleBasedStateMachine):
    """Runs that find files, read micro-batches, compact, and die anywhere, between any two steps or in a write."""

    def __init__(self) -> None:
        super().__init__()
        import tempfile  # noqa: PLC0415

        self.holder = tempfile.TemporaryDirectory()
        self.folder = Path(self.holder.name)
        self.log = log_in(self.folder)
        self.found: list[FileSplit] = []
        self.begun = START
        """Spark's last offset that is written, and that before it, which a repeated micro-batch begins with."""
        self.before = START
        self.read: dict[int, list[Slice]] = {}

    def teardown(self) -> None:
        self.holder.cleanup()

    @rule(parts=st.integers(1, 3), count=st.integers(1, 3))
    def files_come(self, parts: int, count: int) -> None:
        for _ in range(count):
            file = self.folder / f"s{len({each.slice.file for each in self.found})}"
            file.touch()
            self.found += [FileSplit("s", Slice(file, Span(part, part + 1)), 1) for part in range(parts)]

    @rule(rows=st.integers(1, 4), end=st.booleans())
    def plan(self, rows: int, end: bool) -> None:
        known = self.log.known()
        new = [each for each in self.found if str(each.slice.file) not in known]
        self.log.add(batches_of({"s": new}, rows) if new else [], end=end)

    @rule()
    def read_on(self) -> None:
        """Spark writes the next offset; the micro-batch is then read, or read again after a death."""
        self.log.check(self.begun)
        if self.begun != self.log.last:
            self.before, self.begun = self.begun, self.log.offset(self.begun.batch + 1)
        self.read_again()

    @rule()
    def read_again(self) -> None:
        for each in self.log.between(self.before, self.begun):
            slices = [part for task in each.tasks for part in task.slices]
            assert self.read.setdefault(self.begun.batch, slices) == slices

    @rule(least=st.integers(1, 3))
    def compact(self, least: int) -> None:
        self.log.compact(self.before.batch, least=least)

    @rule()
    def die(self) -> None:
        self.log = log_in(self.folder)

    @precondition(lambda self: self.log.path.exists())
    @rule(left=st.floats(0, 1))
    def die_in_a_write(self, left: float) -> None:
        """A line is begun and not ended."""
        before = self.log.path.stat().st_size
        size = self.log.last.batch
        self.plan(2, end=True)
        if self.log.last.batch > size:
            content = self.log.path.read_bytes()
            self.log.path.write_bytes(content[: before + int((len(content) - before - 1) * left)])
        self.log = log_in(self.folder)
        assert self.log.last.batch == size

    @invariant()
    def none_is_read_twice_or_lost(self) -> None:
        read = [each for slices in self.read.values() for each in slices]
        assert len(read) == len(set(read))
        waiting = [
            part for each in planned(self.log, self.begun) for task in each.tasks for part in task.slices
        ]
        known = self.log.known()
        new = [each.slice for each in self.found if str(each.slice.file) not in known]
        assert sorted(map(str, [*read, *waiting, *new])) == sorted(str(each.slice) for each in self.found)


TestRuns = Runs.TestCase
TestRuns.settings = settings(deadline=None, stateful_step_count=30)


def test_an_end_is_due_once_behind_all_files(tmp_path: Path) -> None:
    stream = replace(stage_of(TEXT, "q", {}, shards=2).streams[0], source=Source("csv", (("path", "in"),)))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_text("2026-01-01,1\n")
    planner = FilePlanner(tmp_path / "files", (stream,), tmp_path, 10, 2)
    planner.plan()
    assert [each.ends for each in planned(planner.log)] == [False]
    for _ in range(2):
        planner.plan(ends=True)
        assert [each.ends for each in planned(planner.log)] == [False, True]
    (tmp_path / "in" / "b").write_text("2026-01-01,1\n")
    replace(planner, discovers=False).plan(ends=True)
    again = replace(planner)
    assert [each.ends for each in planned(again.log)] == [False, True, True], "it is asked for once more"
    again.plan(ends=True)
    assert [each.ends for each in planned(again.log)] == [False, True, True, True]
    assert files(planned(again.log)) == ["a", "b"]


def test_what_reads_no_stream_is_answered_with_the_first_micro_batch(tmp_path: Path) -> None:
    for _ in range(2):
        planner = FilePlanner(tmp_path, (), tmp_path, 10, 2, at_once=True)
        planner.look()
        planner.plan()
        assert [(each.tasks, each.ends) for each in planned(planner.log)] == [((), False)]


def test_folders_are_not_looked_at_all_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr("headgate.runtime.spark.sources.file_planner.monotonic", lambda: clock[0])
    stream = replace(stage_of(TEXT, "q", {}, shards=2).streams[0], source=Source("csv", (("path", "in"),)))
    (tmp_path / "in").mkdir()
    planner = FilePlanner(tmp_path / "files", (stream,), tmp_path, 10, 2, moving=True)
    planner.look()
    (tmp_path / "in" / "a").write_text("2026-01-01,1\n")
    for passed, seen in ((0.1, 0), (0.05, 0), (0.1, 1)):
        clock[0] += passed
        planner.look()
        assert planner.log.last.batch == seen


def test_files_may_come_and_go_while_they_are_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Source("csv", (("path", "in"),))
    stream = replace(stage_of(TEXT, "q", {}, shards=2).streams[0], source=source)
    (tmp_path / "in").mkdir()
    assert splits_of(stream, tmp_path, 10, moving=True) == []
    with pytest.raises(InputError, match="there are no files"):
        splits_of(stream, tmp_path, 10)
    for name in ("a", "b"):
        (tmp_path / "in" / name).touch()
    # The first file is taken away between listing and reading.
    walk = os.walk

    def walk_then_remove(*arguments: Any, **options: Any) -> Any:
        found = list(walk(*arguments, **options))
        (tmp_path / "in" / "a").unlink()
        return found

    monkeypatch.setattr(os, "walk", walk_then_remove)
    assert [split.slice.file.name for split in splits_of(stream, tmp_path, 10, moving=True)] == ["b"]


def test_a_large_text_file_is_cut_into_micro_batches(tmp_path: Path) -> None:
    source = Source("csv", (("path", "in.csv"),))
    stream = replace(stage_of(TEXT, "q", {}, shards=2).streams[0], source=source)
    (tmp_path / "in.csv").write_text("".join(f"2026-01-01,{number:09d}\n" for number in range(100_000)))
    splits = splits_of(stream, tmp_path, 20_000)
    assert len(batches_of({"s": splits}, 20_000)) == 5
    assert len(splits) > 10
    assert [each.slice.span for each in splits_of(stream, tmp_path, 100_000)] == [None]


def test_two_streams_may_read_one_file(tmp_path: Path) -> None:
    """A file that comes between the looks for two streams is read by both."""
    log = FileLog(tmp_path / "log", ["s", "t"], 2)
    file = Slice(tmp_path / "a")
    log.add([[FileSplit("t", file, 1.0)]], end=False)
    assert log.known("s") == frozenset()
    assert log.known("t") == {str(tmp_path / "a")}
    log.add([[FileSplit("s", file, 1.0)]], end=False)
    log.compact(2, least=1)
    again = FileLog(tmp_path / "log", ["s", "t"], 2)
    assert again.known("s") == again.known("t") == {str(tmp_path / "a")}


def test_an_end_is_due_although_queries_over_tables_were_answered(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "a.csv").write_text("2026-01-01T00:00:00,1\n")
    [stream] = stage_of(
        TEXT.replace("BY ts;", "BY ts USING csv OPTIONS (path 's');"), "q", {}, shards=1
    ).streams
    for ends, expected in ((False, [False]), (True, [False, True]), (True, [False, True])):
        planner = FilePlanner(tmp_path / "log", (stream,), tmp_path, 10, 2, at_once=True)
        planner.plan(ends=ends)
        assert [each.ends for each in planned(planner.log)] == expected


def test_a_process_that_should_be_dead_is_noticed(tmp_path: Path) -> None:
    """What it adds behind the back of the run that goes on is neither believed nor written over."""
    old, new = (FileLog(tmp_path / "log", ["s"], 2) for _ in range(2))
    new.add([[FileSplit("s", Slice(tmp_path / "a"), 1.0)]], end=False)
    with pytest.raises(SetupError, match="another process has added to it"):
        old.add([[FileSplit("s", Slice(tmp_path / "b"), 1.0)]], end=False)
    assert FileLog(tmp_path / "log", ["s"], 2).known() == {str(tmp_path / "a")}
