"""Time limit: what is run under it must end, well or badly, before a minute is over."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SECONDS = 60


@contextmanager
def time_limit() -> Iterator[None]:
    """Raises AssertionError inside the block once it is clear that it hangs; a slow machine is no reason."""

    def give_up(signum: int, frame: FrameType | None) -> None:
        raise AssertionError(f"no end after {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
