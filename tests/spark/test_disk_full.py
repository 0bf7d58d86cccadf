"""A disk that is full: a clear refusal, no wrong answer, and the run goes on once there is room."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.spark.shards import stage_of

from headgate.runtime.sources.source import Slice
from headgate.runtime.spark.reading_lists import UnitLog
from headgate.runtime.spark.units import Unit

QUERY = """
CREATE STREAM s (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts USING parquet OPTIONS (path 's');
CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE 4 SECONDS] GROUP BY k;
"""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few megabytes."""
    folder = tmp_path / "small"
    folder.mkdir()
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("mounting a small file system needs root")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no small file system: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(disk: Path, left: int) -> None:
    """Leaves so many bytes free."""
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    (disk / "ballast").write_bytes(bytes(max(0, free - left)))


def test_lists_that_found_no_room_are_written_later(tmp_path: Path, small_disk: Path) -> None:
    streams = stage_of(QUERY.replace(" USING parquet OPTIONS (path 's')", ""), "q", {}, shards=2).streams
    units = [[Unit("s", Slice(tmp_path / f"s{number}"), 1)] for number in range(4)]
    fill(small_disk, 16_384)
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        UnitLog(small_disk / "units", streams, 2).add(units, end=True)
    (small_disk / "ballast").unlink()
    log = UnitLog(small_disk / "units", streams, 2)
    known = log.known()
    # All or none: a list of lists that is whole is carried out, one that is not is as if it had never been.
    assert known in (frozenset(), frozenset(str(tmp_path / f"s{number}") for number in range(4)))
    if not known:
        log.add(units, end=True)
    files = sorted((small_disk / "units").glob("*.json"))
    assert len(files) == 4 * log.files_per_batch
    assert sum('"end"' in file.read_text() for file in files) == 1
