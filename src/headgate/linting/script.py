"""Lints a script: it is run in a process of its own, in which no streaming query starts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headgate.linting.lint import require_spark
from headgate.linting.report import Report, read_report
from headgate.model.errors import InputError

SHOWN_LINES = 12


@dataclass(frozen=True)
class Outcome:
    """The queries that a script would have started, and how it ended if it did not end well."""

    reports: tuple[Report, ...]
    failure: InputError | None


def lint_script(script: Path, arguments: Sequence[str] = (), *, timeout: float = 120) -> Outcome:
    """Runs a PySpark script with nothing started, for at most `timeout` seconds; a report for each query."""
    require_spark()
    if not script.is_file():
        raise InputError(f"cannot read {script}: there is no such file", remedy="check the path")
    with tempfile.TemporaryDirectory(prefix="headgate-lint-") as folder:
        output, said = Path(folder) / "reports", Path(folder) / "said"
        output.touch()
        command = [sys.executable, "-m", "headgate.linting.capture", str(output), str(script), *arguments]
        code = _run(command, said, timeout)
        reports = tuple(
            read_report(json.loads(line)) for line in output.read_text(encoding="utf-8").splitlines()
        )
        failure = _failure(script, code, said.read_text(encoding="utf-8", errors="replace"), timeout)
    if failure is None and not reports:
        failure = InputError(
            f"{script} starts no streaming query and has no streaming DataFrame at its top level",
            remedy="lint the script that calls writeStream.start(), or hg.lint(df) in Python",
        )
    return Outcome(reports, failure)


def _run(command: list[str], said: Path, timeout: float) -> int | None:
    """Runs a command with its output going to a file; None if it did not end in time and was stopped."""
    with said.open("wb") as sink:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            # A group of its own, so that whatever the script has started can be stopped with it.
            start_new_session=True,
        )
        try:
            return process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _failure(script: Path, code: int | None, said: str, timeout: float) -> InputError | None:
    if code is None:
        return InputError(
            f"{script} did not end within {timeout:g} seconds and was stopped",
            remedy="give it longer with --timeout; a loop around a query never ends here, as no query runs",
        )
    if code == 0:
        return None
    _, found, trace = said.rpartition("Traceback (most recent call last):")
    lines = [line for line in (trace if found else said).splitlines() if line.strip()]
    shown = "\n".join(f"    {line}" for line in lines[-SHOWN_LINES:])
    return InputError(
        f"{script} failed while lint ran it (exit code {code})\n{shown}",
        remedy="it has to run by itself, as with python; give its arguments after the script's name",
    )
