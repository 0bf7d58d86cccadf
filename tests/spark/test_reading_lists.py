"""Reading lists: in order, each file in one of them, none lost when a process dies, and no more kept than needed."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.spark.shards import stage_of

from headgate.model.errors import InputError, SetupError
from headgate.plan.catalog import Source
from headgate.runtime.sources.source import Slice
from headgate.runtime.spark.reading_lists import UnitLog
from headgate.runtime.spark.units import Unit, units_of

TEXT = """
CREATE STREAM s (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts;
CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE 5 SECONDS] GROUP BY k;
"""


def log_in(folder: Path) -> UnitLog:
    return UnitLog(folder / "units", stage_of(TEXT, "q", {}, shards=2).streams, 2)


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


def names(folder: Path, *numbers: int) -> set[str]:
    return {str(folder / f"s{number}") for number in numbers}


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


def test_names_of_files_that_are_gone_are_forgotten(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    log.add([batch(tmp_path, 0), batch(tmp_path, 1)], end=False)
    (tmp_path / "s0").unlink()
    finish(tmp_path, lists(tmp_path))
    log.gather(least=1)
    assert log.known() == names(tmp_path, 1)
    assert log_in(tmp_path).known() == names(tmp_path, 1)


def test_a_folder_that_is_away_for_a_while_is_not_forgotten(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    log.add([batch(tmp_path, 0, exists=False), batch(tmp_path, 1, exists=False)], end=False)
    finish(tmp_path, lists(tmp_path))
    log.gather(least=1)
    assert log_in(tmp_path).known() == names(tmp_path, 0, 1)


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
    write, calls = UnitLog._write, []

    def dying(self: UnitLog, *arguments: object) -> int:
        calls.append(arguments)
        if len(calls) > 2:
            raise KeyboardInterrupt
        return write(self, *arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(UnitLog, "_write", dying)
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


def test_a_damaged_record_is_refused(tmp_path: Path) -> None:
    (tmp_path / "read.json").write_text("{")
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
