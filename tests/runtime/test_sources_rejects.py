"""Rejects: where bad rows go, and what is said when they stop."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.runtime.reading import csv, declare, rejected, source

from headgate.model.errors import DataError, InputError
from headgate.runtime.io import FileSource, RejectPolicy
from headgate.runtime.io.rejects import LONGEST_KEPT, BadRow, RejectState, shown

AB = "a BIGINT, b STRING"


def test_a_place_is_as_exact_as_it_can_be() -> None:
    file = Path("bids.csv")
    assert BadRow(file, "why").cause == "bids.csv: why"
    assert BadRow(file, "why", 17).cause == "bids.csv, row 17: why"
    assert BadRow(file, "why", 17, 18, "price").cause == "bids.csv, row 17 (line 18), column price: why"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x", "'x'"),
        ("é\n\x1b[31m\u202e", "'é\\n\\x1b[31m\\u202e'"),
        (b"a\xff", "'a\\xff'"),
        ("x" * 100, f"'{'x' * 80}…'"),
        (b"x" * 10_000_000, f"'{'x' * 80}…'"),
    ],
)
def test_a_message_shows_text_short_and_safe(text: str | bytes, said: str) -> None:
    assert shown(text) == said


def test_the_first_bad_row_stops() -> None:
    state = RejectState(RejectPolicy.stop(), "s")
    state.refuse([])
    with pytest.raises(DataError, match="f, row 1: why") as caught:
        state.refuse([BadRow(Path("f"), "why", 1), BadRow(Path("f"), "why", 2)])
    assert caught.value.remedy == "correct the data, or set bad rows aside with headgate run --rejects FOLDER"


def test_bad_rows_are_kept_as_json_lines(tmp_path: Path) -> None:
    state = RejectState(RejectPolicy.rejects(tmp_path / "new" / "folder"), "s")
    state.refuse([BadRow(Path("f"), "why", 1, 2, "c", "é" * 2 * LONGEST_KEPT)])
    state.refuse([BadRow(Path("f"), "why", 3, text="\udcff")])
    first, second = (tmp_path / "new/folder/s/rejects.json").read_text().splitlines()
    assert len(json.loads(first)["text"]) == LONGEST_KEPT
    assert json.loads(second)["row"] == 3
    assert state.rows == 2


def test_nothing_is_written_where_nothing_is_bad(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1,x\n")
    assert rejected(tmp_path, AB, csv()) == ([(1, "x")], [])
    assert not (tmp_path / "rejects").exists()


def test_rejects_of_an_earlier_run_are_not_mixed_with_new_ones(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,x\n")
    rejected(tmp_path, AB, csv())
    with pytest.raises(InputError, match="has rejects of an earlier run"):
        rejected(tmp_path, AB, csv())


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,x\n")
    (tmp_path / "rejects").write_text("a file")
    with pytest.raises(InputError, match="cannot write rejects to"):
        list(source(tmp_path, AB, csv(), rejects=tmp_path / "rejects").chunks())


@pytest.mark.parametrize("name", ["../../evil", "..", ".", "a/b", "_s", "é", "a b", "x" * 100])
def test_a_stream_of_any_name_stays_in_its_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.csv").write_text("x,x\n")
    stream = replace(declare(AB, csv()), name=name)
    policy = RejectPolicy.rejects(tmp_path / "rejects")
    list(FileSource(stream, tmp_path, rows_per_chunk=10, on_bad_row=policy).chunks())
    (folder,) = (tmp_path / "rejects").iterdir()
    assert [file.name for file in folder.iterdir()] == ["rejects.json"]
    assert not folder.name.startswith((".", "_"))
