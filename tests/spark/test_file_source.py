"""The file source, asked as Spark asks it: offsets go on, a repeated micro-batch is the same, damage is noticed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.spark.shards import stage_of

from headgate.model.errors import SetupError
from headgate.runtime.spark.job import JobStage
from headgate.runtime.spark.messages import END
from headgate.runtime.spark.sources.file_planner import FilePlanner
from headgate.runtime.spark.sources.file_source import FileDataSource, FileStreamReader, _packed
from headgate.runtime.spark.sources.split_reader import SplitReader

TEXT = """
CREATE STREAM s (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts USING csv OPTIONS (path 'in');
CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE 5 SECONDS] GROUP BY k;
"""


def add(folder: Path, number: int) -> None:
    (folder / "in").mkdir(exist_ok=True)
    (folder / "in" / f"{number}.csv").write_text(f"2026-01-01T00:00:{number:02d},{number}\n")


def opened(folder: Path, *, ends: bool = True) -> FileStreamReader:
    """The source as a new run opens it, over all that is there."""
    stage = stage_of(TEXT, "q", {}, shards=1)
    planner = FilePlanner(folder / "files", stage.streams, folder, 1, 2, ends=ends)
    reader = SplitReader.of(JobStage.of([stage]), stage.streams, (0,))
    source = FileDataSource({"planner": _packed(planner), "reader": _packed(reader)})
    found = source.streamReader(None)
    found.prepareForTriggerAvailableNow()
    return found


def through(source: FileStreamReader, start: dict[str, Any]) -> tuple[list[list[int]], dict[str, Any]]:
    """By micro-batch, the feeds of the messages of all that there is; and the last offset, as Spark writes it."""
    batches = []
    while (end := json.loads(json.dumps(source.latestOffset(start, source.getDefaultReadLimit())))) != start:
        batches.append(read(source, start, end))
        source.commit(end)
        start = end
    return batches, start


def read(source: FileStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[int]:
    rows = [
        row
        for part in source.partitions(start, end)
        for batch in source.read(part)
        for row in batch.to_pylist()
    ]
    return [row["feed"] for row in rows]


def test_a_run_reads_all_that_is_there_and_ends_once(tmp_path: Path) -> None:
    for number in range(3):
        add(tmp_path, number)
    source = opened(tmp_path, ends=False)
    batches, last = through(source, source.initialOffset())
    assert batches == [[0], [0], [0]]
    assert through(opened(tmp_path), last)[0] == [[END]], "it is due behind files that were read before"
    _, last = through(opened(tmp_path), last)
    assert through(opened(tmp_path), last)[0] == []
    add(tmp_path, 3)
    assert through(opened(tmp_path), last)[0] == [[0, END]]


def test_a_run_that_died_goes_on_with_what_was_planned(tmp_path: Path) -> None:
    for number in range(2):
        add(tmp_path, number)
    source = opened(tmp_path)
    start = source.initialOffset()
    end = source.latestOffset(start, source.getDefaultReadLimit())
    parts = [each.splits for each in source.partitions(start, end)]
    # The log has it and Spark has not; then Spark has its offset, and reads the micro-batch again.
    add(tmp_path, 2)
    for _ in range(2):
        again = opened(tmp_path)
        assert again.latestOffset(start, again.getDefaultReadLimit()) == end
        assert [each.splits for each in again.partitions(start, end)] == parts
    batches, _ = through(opened(tmp_path), end)
    assert sum(each.count(0) for each in batches) == 2


def without(lines: int) -> Callable[[bytes], bytes]:
    return lambda content: b"".join(content.splitlines(keepends=True)[:-lines])


@pytest.mark.parametrize("compacted", [False, True], ids=["as added", "compacted"])
@pytest.mark.parametrize(
    "damage",
    [
        None,
        without(1),
        without(2),
        lambda content: b"".join(content.splitlines(keepends=True)[1:]),
        lambda content: content.replace(b"0.csv", b"7.csv"),
        lambda content: content.replace(b"2.csv", b"7.csv"),
        lambda content: content[:-20],
    ],
    ids=["gone", "one line cut", "two lines cut", "first line gone", "first edited", "last edited", "torn"],
)
def test_a_damaged_log_is_refused_and_left_as_it_is(
    tmp_path: Path, damage: Callable[[bytes], bytes] | None, compacted: bool
) -> None:
    last = opened(tmp_path).initialOffset()
    for number in range(3):
        add(tmp_path, number)
        source = opened(tmp_path, ends=False)
        _, last = through(source, last)
    log = tmp_path / "files" / "log.jsonl"
    if compacted:
        source._log.compact(2, least=1)
        assert log.read_bytes().count(b"\n") == 2
    if damage is None:
        log.unlink()
    else:
        log.write_bytes(damage(log.read_bytes()))
    left = log.read_bytes() if log.exists() else None
    add(tmp_path, 3)
    for ask in (lambda each: through(each, last), lambda each: each.partitions(last, last)):
        with pytest.raises(SetupError, match=r"the log of files .* is damaged") as refused:
            ask(opened(tmp_path))
        assert refused.value.remedy == "restore the checkpoint or choose another"
    assert (log.read_bytes() if log.exists() else None) == left
