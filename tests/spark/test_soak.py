"""A soak that is told to end takes the run that it watches with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep

import pytest

from headgate.runtime.spark.cluster import why_not_spark

pytestmark = [
    pytest.mark.skipif(why_not_spark() is not None, reason=str(why_not_spark())),
    pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc"),
]


def inside(folder: Path) -> list[int]:
    """Processes that work in a folder or below it."""
    found = []
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                place = (each / "cwd").readlink()
            except OSError:
                continue
            if folder in place.parents:
                found.append(int(each.name))
    return found


def until(true: Callable[[], object], seconds: float) -> None:
    ends = monotonic() + seconds
    while not true():
        assert monotonic() < ends, "it takes too long"
        sleep(0.2)


@pytest.mark.parametrize("seconds", [1, 5, 20], ids=["at once", "while Spark starts", "later"])
def test_nothing_is_left_of_a_soak_that_was_ended(tmp_path: Path, seconds: float) -> None:
    soak = subprocess.Popen(
        [sys.executable, "-m", "headgate.cli.main", "soak", "--minutes", "5"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(lambda: inside(tmp_path), 120)
        sleep(seconds)
        soak.send_signal(signal.SIGTERM)
        assert soak.wait(timeout=150) == 143
        until(lambda: not inside(tmp_path), 60)
        assert not list(tmp_path.glob("headgate-soak-*"))
    finally:
        soak.kill()
