"""Folders through Spark's file systems; `tests/cluster` asks the same of a store."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from tests.spark.folder_contract import require_contract

from headgate.runtime.spark.filesystem import Folder


@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_a_folder_of_this_machine(spark: Any, tmp_path: Path, scheme: str) -> None:
    folder = Folder(spark, f"{scheme}{tmp_path}/new")
    require_contract(folder)
    assert folder.local == tmp_path / "new"


def test_there_are_no_files_beside_those_that_were_written(spark: Any, tmp_path: Path) -> None:
    Folder(spark, str(tmp_path)).write("a", b"1")
    assert [each.name for each in tmp_path.iterdir()] == ["a"]


def test_a_file_that_others_have_written_is_read(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\x00\xff")
    assert Folder(spark, str(tmp_path)).read("a") == b"\x00\xff"


def test_nobody_reads_a_part(spark: Any, tmp_path: Path) -> None:
    """Whoever looks while a file is replaced again and again finds one content or the other."""
    folder, over, seen = Folder(spark, str(tmp_path)), threading.Event(), set()
    contents = [letter * 300_000 for letter in (b"a", b"b")]
    folder.write("f", contents[0])

    def look() -> None:
        while not over.is_set():
            seen.add((tmp_path / "f").read_bytes())

    looking = threading.Thread(target=look)
    looking.start()
    for number in range(20):
        folder.write("f", contents[number % 2])
    over.set()
    looking.join()
    assert seen <= set(contents)


def test_what_goes_wrong_is_an_error_of_the_system(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        Folder(spark, str(tmp_path / "file")).write("a", b"1")
    with pytest.raises(OSError, match=r"No FileSystem for scheme \"nowhere\""):
        Folder(spark, "nowhere://x/y").read("a")
