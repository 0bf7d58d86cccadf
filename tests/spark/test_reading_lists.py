"""Reading lists: in order, each file in one of them, none lost when a process dies, and no more kept than needed."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.spark.shards import stage_of

from headgate.model.errors import InputError, SetupError
from headgate.plan.catalog import Source
from headgate.runtime.shard import ShardState
from headgate.runtime.sources.source import Slice
from headgate.runtime.spark.aside import Aside
from headgate.runtime.spark.exchange import advance
from headgate.runtime.spark.job import JobStage
from headgate.runtime.spark.reading_lists import UnitLog
from headgate.runtime.spark.units import Unit, read_units, units_of

TEXT = """
CREATE STREAM s (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts;
CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE 5 SECONDS] GROUP BY k;
"""
JOIN = """
CREATE STREAM s (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts;
CREATE STREAM r (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts;
CREATE QUERY q AS SELECT s.k FROM s [RANGE 5 SECONDS], r [RANGE 5 SECONDS] WHERE s.k = r.k;
"""


def log_in(folder: Path, *, tasks: int = 2, text: str = TEXT) -> UnitLog:
    return UnitLog(folder / "units", stage_of(text, "q", {}, shards=2).streams, tasks)


def batch(folder: Path, number: int, *, exists: bool = True) -> list[Unit]:
    if exists:
        (folder / f"s{number}").touch()
    return [Unit("s", Slice(folder / f"s{number}"), 1)]


def lists(folder: Path) -> list[Path]:
    return sorted((folder / "units").glob("*.json"))


def finish(folder: Path, files: list[Path]) -> None:
    """Does as Spark does with the lists of a finished micro-batch."""
    for file in files:
        target = folder / "done" / "as" / "it" / "was" / file.name
        target.parent.mkdir(parents=True, exist_ok=True)
        file.rename(target)


def entries(folder: Path) -> list[dict[str, Any]]:
    """The lines of all lists, as Spark takes them."""
    files = sorted(lists(folder), key=lambda file: file.stat().st_mtime_ns)
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def orders(folder: Path) -> list[int]:
    return [entry["order"] for entry in entries(folder) if "order" in entry]


def ends(folder: Path) -> int:
    return sum("end" in entry for entry in entries(folder))


def names(folder: Path, *numbers: int) -> set[str]:
    return {str(folder / f"s{number}") for number in numbers}


def dying_after(count: int) -> Any:
    """A way to write lists that ends the process after so many."""
    write, calls = UnitLog._write, []

    def dying(self: UnitLog, *arguments: object) -> int:
        calls.append(arguments)
        if len(calls) > count:
            raise KeyboardInterrupt
        return write(self, *arguments)  # type: ignore[arg-type]

    return dying


def test_lists_come_in_the_order_of_their_times(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    log.add([batch(tmp_path, 0), batch(tmp_path, 1)], end=False)
    log.add([batch(tmp_path, 2)], end=True)
    files = lists(tmp_path)
    assert len(files) == 3 * log.files_per_batch
    assert sorted(files, key=lambda file: file.stat().st_mtime_ns // 1_000_000) == files
    assert log.known() == names(tmp_path, 0, 1, 2)
    assert [file for file in files if '"end"' in file.read_text()] == files[-1:]


def test_finished_lists_are_gathered_and_their_files_stay_known(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    log.add([batch(tmp_path, number) for number in range(3)], end=False)
    finish(tmp_path, lists(tmp_path)[: 2 * log.files_per_batch])
    log.gather(least=1)
    assert not list((tmp_path / "done").rglob("*.json"))
    for each in (log, log_in(tmp_path)):
        assert each.known() == names(tmp_path, 0, 1, 2)
    log_in(tmp_path).add([batch(tmp_path, 3)], end=False)
    assert [file.name[:6] for file in lists(tmp_path)] == ["000002", "000002", "000003", "000003"]


def test_times_go_on_after_all_lists_are_gathered(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    log.add([batch(tmp_path, 0)], end=False)
    latest = max(file.stat().st_mtime_ns for file in lists(tmp_path))
    finish(tmp_path, lists(tmp_path))
    log.gather(least=1)
    again = log_in(tmp_path)
    again.add([batch(tmp_path, 1)], end=False)
    assert [file.name[:6] for file in lists(tmp_path)] == ["000001", "000001"]
    assert min(file.stat().st_mtime_ns for file in lists(tmp_path)) > latest


def test_names_of_files_that_are_gone_are_forgotten_when_others_come(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    log.add([batch(tmp_path, 0), batch(tmp_path, 1)], end=False)
    (tmp_path / "s0").unlink()
    finish(tmp_path, lists(tmp_path))
    log.gather(least=1)
    log.add([batch(tmp_path, 2)], end=False)
    assert log.known() == names(tmp_path, 1, 2)
    finish(tmp_path, lists(tmp_path))
    log.gather(least=1)
    assert log_in(tmp_path).known() == names(tmp_path, 1, 2)


def test_a_folder_that_is_away_for_a_while_is_not_forgotten(tmp_path: Path) -> None:
    """Nor is it when files of another stream come meanwhile."""
    log = log_in(tmp_path, text=JOIN)
    log.add([batch(tmp_path, 0, exists=False), batch(tmp_path, 1, exists=False)], end=False)
    for number in range(2, 4):
        finish(tmp_path, lists(tmp_path))
        log.gather(least=1)
        (tmp_path / f"r{number}").touch()
        log.add([[Unit("r", Slice(tmp_path / f"r{number}"), 1)]], end=False)
    for each in (log, log_in(tmp_path, text=JOIN)):
        assert each.known() >= names(tmp_path, 0, 1)


@pytest.mark.parametrize("idle", [False, True], ids=["busy", "idle"])
def test_what_is_kept_stays_small_if_every_finished_file_is_taken_away(tmp_path: Path, idle: bool) -> None:
    """Lists may be gathered when a file has just come, or while none comes."""
    log = log_in(tmp_path, tasks=1)
    for number in range(1_000):
        log.add([batch(tmp_path, number)], end=False)
        if idle:
            log.gather()
        (tmp_path / f"s{number}").unlink()
        finish(tmp_path, lists(tmp_path))
        log.gather()
    assert len(log.known()) < 300
    assert len(log_in(tmp_path).known()) < 300
    assert (tmp_path / "read.json").stat().st_size < 300 * (len(str(tmp_path)) + 20)


def test_lists_stay_few_however_many_there_have_been(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    for number in range(300):
        log.add([batch(tmp_path, number)], end=False)
        if number >= 5:
            (tmp_path / f"s{number - 5}").unlink()
        finish(tmp_path, lists(tmp_path)[: -log.files_per_batch])
        log.gather()
    assert len(list((tmp_path / "done").rglob("*.json"))) < 100
    assert len(lists(tmp_path)) == log.files_per_batch
    assert len(log.known()) < 200
    assert len(json.loads((tmp_path / "read.json").read_text())["files"]) < 200


def test_a_process_that_dies_while_it_writes_lists_loses_no_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file is cut into two units in two micro-batches; the process dies between them."""
    halves = [[Unit("s", Slice(tmp_path / "s0", (part, part + 1)), 1)] for part in (0, 1)]
    log = log_in(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(UnitLog, "_write", dying_after(2))
        with pytest.raises(KeyboardInterrupt):
            log.add(halves, end=True)
    assert len(lists(tmp_path)) == 2
    again = log_in(tmp_path)
    assert again.known() == names(tmp_path, 0)
    text = "".join(file.read_text() for file in lists(tmp_path))
    assert '"groups": [0, 1]' in text
    assert '"groups": [1, 2]' in text
    assert text.count('"end"') == 1
    assert not (tmp_path / "planned.json").exists()


def test_orders_rise_whatever_the_number_of_tasks(tmp_path: Path) -> None:
    """Rows are late by the rows of lower orders, and bad rows are kept under the order of their list."""
    for start, tasks in ((0, 8), (8, 8), (16, 2), (24, 3), (32, 1), (40, 8)):
        units = [unit for number in range(start, start + 8) for unit in batch(tmp_path, number)]
        log_in(tmp_path, tasks=tasks).add([units[:5], units[5:]], end=False)
    found = [(entry["order"], Path(entry["file"]).name) for entry in entries(tmp_path) if "file" in entry]
    assert [name for _, name in found] == [f"s{number}" for number in range(48)]
    assert [order for order, _ in found] == sorted(order for order, _ in found)
    by_list = [
        {entry["order"] for entry in map(json.loads, file.read_text().splitlines()) if "order" in entry}
        for file in lists(tmp_path)
    ]
    assert all(len(each) <= 1 for each in by_list)
    assert sum(map(len, by_list)) == len({order for order, _ in found})


def test_a_backlog_is_read_in_order_by_another_number_of_tasks(tmp_path: Path) -> None:
    """Lists that were written for eight tasks and those for three come in the same micro-batch."""
    text = TEXT.replace("BY ts;", "BY ts USING csv OPTIONS (path 'in');")
    stage = stage_of(text, "q", {}, shards=1)
    for start, stop, tasks in ((0, 8, 8), (8, 16, 8), (16, 19, 3)):
        units = [unit for number in range(start, stop) for unit in batch(tmp_path, number)]
        for number in range(start, stop):
            (tmp_path / f"s{number}").write_text(f"2026-01-01T00:00:{number:02d},{number}\n")
        log_in(tmp_path, tasks=tasks, text=text).add([units], end=False)
    lines = [json.dumps(entry) for entry in entries(tmp_path)]
    state = ShardState.initial(stage)
    for at in range(0, len(lines), 3):
        listed = [pa.record_batch({"value": lines[at : at + 3]})]
        messages = [
            message for piece in read_units(JobStage.of([stage]), listed, Aside()) for _, message in piece
        ]
        state, _ = advance(stage, 0, state, messages, None)
    assert state.query.metrics.late_rows == 0
    assert state.query.metrics.rows_in == 18, "the last row waits"


def test_orders_go_on_after_all_lists_are_gathered(tmp_path: Path) -> None:
    log = log_in(tmp_path, tasks=8)
    log.add([[unit for number in range(8) for unit in batch(tmp_path, number)]], end=False)
    highest = max(orders(tmp_path))
    finish(tmp_path, lists(tmp_path))
    log.gather(least=1)
    log_in(tmp_path, tasks=1).add([batch(tmp_path, 8)], end=False)
    assert orders(tmp_path) == [highest + 1]


def test_lists_that_a_dead_process_had_planned_keep_their_orders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    units = [[unit for number in range(at, at + 8) for unit in batch(tmp_path, number)] for at in (0, 8)]
    with monkeypatch.context() as patch:
        patch.setattr(UnitLog, "_write", dying_after(3))
        with pytest.raises(KeyboardInterrupt):
            log_in(tmp_path, tasks=8).add(units, end=False)
    planned = json.loads((tmp_path / "planned.json").read_text())["lists"]
    again = log_in(tmp_path, tasks=2)
    again.known()
    assert {file.name: file.read_text().splitlines() for file in lists(tmp_path)} == planned
    before = orders(tmp_path)
    again.add([batch(tmp_path, 16)], end=False)
    assert orders(tmp_path) == [*before, max(before) + 1]


def test_whether_the_end_was_said_is_remembered(tmp_path: Path) -> None:
    assert not log_in(tmp_path).open, "there is nothing to end"
    log_in(tmp_path).add([batch(tmp_path, 0)], end=False)
    assert log_in(tmp_path).open
    log = log_in(tmp_path)
    log.add([], end=True)
    assert ends(tmp_path) == 1
    assert not log.open
    assert not log_in(tmp_path).open
    finish(tmp_path, lists(tmp_path)[-1:])
    log.gather(least=1)
    assert not log_in(tmp_path).open, "also if only other lists are left"
    finish(tmp_path, lists(tmp_path))
    log.gather(least=1)
    assert not log_in(tmp_path).open, "also by the record alone"
    log_in(tmp_path).add([batch(tmp_path, 1)], end=False)
    assert log_in(tmp_path).open, "more has come since"


def test_an_end_that_a_dead_process_had_planned_is_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(UnitLog, "_write", dying_after(1))
        with pytest.raises(KeyboardInterrupt):
            log_in(tmp_path).add([batch(tmp_path, 0)], end=True)
    assert not log_in(tmp_path).open
    assert ends(tmp_path) == 1


def test_lists_stay_in_order_when_their_numbers_get_another_digit(tmp_path: Path) -> None:
    content = {"number": 999_999, "order": 0, "latest": 0, "open": False, "files": {}}
    (tmp_path / "read.json").write_text(json.dumps(content))
    log_in(tmp_path).add([batch(tmp_path, number) for number in range(3)], end=True)
    assert orders(tmp_path) == [0, 1, 2]
    assert "end" in entries(tmp_path)[-1]


@pytest.mark.parametrize("text", ["{", "[]", '{"number": 3}'])
def test_a_damaged_record_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "read.json").write_text(text)
    with pytest.raises(SetupError, match=r"read\.json cannot be read"):
        log_in(tmp_path).known()


def test_files_may_come_and_go_while_they_are_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Source("csv", (("path", "in"),))
    stream = replace(stage_of(TEXT, "q", {}, shards=2).streams[0], source=source)
    (tmp_path / "in").mkdir()
    assert units_of(stream, tmp_path, 10, moving=True) == []
    with pytest.raises(InputError, match="there are no files"):
        units_of(stream, tmp_path, 10)
    for name in ("a", "b"):
        (tmp_path / "in" / name).touch()
    # The first file is taken away between listing and reading.
    walk = os.walk

    def walk_then_remove(*arguments: Any, **options: Any) -> Any:
        found = list(walk(*arguments, **options))
        (tmp_path / "in" / "a").unlink()
        return found

    monkeypatch.setattr(os, "walk", walk_then_remove)
    assert [unit.slice.file.name for unit in units_of(stream, tmp_path, 10, moving=True)] == ["b"]
