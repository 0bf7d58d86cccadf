"""The command line as a function: arguments in, exit code and output out."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from unittest import mock

from tests.timeout import time_limit

from headgate.cli import main


@dataclass(frozen=True)
class Outcome:
    """What a command left behind."""

    code: int
    out: str
    err: str


def headgate(*arguments: object) -> Outcome:
    """Runs `headgate` with the arguments in this process, up to the exit."""
    out, err = io.StringIO(), io.StringIO()
    code = 0
    argv = ["headgate", *map(str, arguments)]
    with mock.patch.object(sys, "argv", argv), redirect_stdout(out), redirect_stderr(err), time_limit():
        try:
            main.run()
        except SystemExit as exit:
            code = exit.code if isinstance(exit.code, int) else int(exit.code is not None)
    return Outcome(code, out.getvalue(), err.getvalue())
