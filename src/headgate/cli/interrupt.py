"""Ctrl-C in a run: what was kept, and how to go on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

INTERRUPTED = 130
"""The exit code of a command that Ctrl-C has ended."""


class RunInterrupt(BaseException):
    """An interrupt of a run, with what is to be said of it; Typer would swallow Python's own without a word."""


_TO_GO_ON = "with --checkpoint DIR, on Spark, a run can go on where it was"


@contextmanager
def report_kept_on_interrupt(output: Path | str, checkpoint: Path | str | None) -> Iterator[None]:
    """Within it, an interrupt becomes one that bears words about what was kept, which the command line prints."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        raise RunInterrupt(kept(output, checkpoint)) from interrupt


def kept(output: Path | str, checkpoint: Path | str | None) -> str:
    """What a run that was broken off has kept: finished micro-batches, or nothing without a checkpoint."""
    if checkpoint is None:
        return f"nothing was written to {output}, and the same command starts anew; {_TO_GO_ON}"
    return f"what was answered so far is kept, the state in {checkpoint}; the same command goes on from there"


def stopped(output: Path | str, checkpoint: Path | str | None) -> str:
    """What a run that follows its input and was told to end has kept: all that it has read is answered."""
    if checkpoint is None:
        return f"stopped: the results are in {output}; {_TO_GO_ON}"
    return f"stopped: the state is in {checkpoint}; the same command goes on from there"
