"""Ending a process that a measurement has started."""

from __future__ import annotations

import subprocess

_PATIENCE_S = 120


def end(running: subprocess.Popen[bytes]) -> None:
    """Asks a process to end, which leaves it time to take its own along; one that does not is killed."""
    if running.poll() is None:
        running.terminate()
    try:
        running.wait(timeout=_PATIENCE_S)
    except subprocess.TimeoutExpired:
        running.kill()
        running.wait()
