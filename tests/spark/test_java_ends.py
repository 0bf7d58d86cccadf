"""Java ends under a run, alone or with all processes of it: one message or none, never a stack trace."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.errors import PySparkException
from tests.spark.faults import command, descendants, words, write_input

from headgate.model.errors import DataError, InputError, SetupError
from headgate.runtime.spark.cluster import why_not_spark
from headgate.runtime.spark.failures import (
    SlowWorkerError,
    SparkEndedError,
    ignore_dead_jvm,
    translate_spark_errors,
)

pytestmark = [
    pytest.mark.skipif(why_not_spark() is not None, reason=str(why_not_spark())),
    pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc"),
]


@contextmanager
def running(folder: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A run in a process group of its own that has answered for a micro-batch and has more to do."""
    query = write_input(folder)
    line = command(query, folder / "out", "--master", "local[2]", "--checkpoint", str(folder / "state"))
    run = subprocess.Popen([*line, *options], stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        ends = monotonic() + 240
        while not list((folder / "out" / "q" / ".batches").glob("*.json")):
            assert run.poll() is None, run.communicate()[1]
            assert monotonic() < ends
            sleep(0.05)
        yield run
    finally:
        for each in [*descendants(run.pid), run.pid]:
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        run.wait()


def java(run: subprocess.Popen[str]) -> int:
    return next(each for each in descendants(run.pid) if "SparkSubmit" in words(each))


def said(run: subprocess.Popen[str]) -> tuple[int, str]:
    """Exit code and what went to standard error."""
    _, errors = run.communicate(timeout=120)
    return run.returncode, errors


@pytest.mark.parametrize("options", [("--quiet",), ("--quiet", "--follow")], ids=["run", "follow"])
def test_java_is_killed(tmp_path: Path, options: tuple[str, ...]) -> None:
    with running(tmp_path, *options) as run:
        os.kill(java(run), signal.SIGKILL)
        code, errors = said(run)
    lines = errors.splitlines()
    assert (code, len(lines)) == (3, 2), errors
    assert lines[0].startswith("error[HG601]: Spark's process has ended")
    assert "--checkpoint" in lines[1]


@pytest.mark.parametrize(
    ("options", "codes"),
    # A run that follows its files may stop its query in order before Java has ended.
    [(("--quiet",), (143,)), (("--quiet", "--follow"), (0, 143))],
    ids=["run", "follow"],
)
def test_all_processes_are_terminated(
    tmp_path: Path, options: tuple[str, ...], codes: tuple[int, ...]
) -> None:
    with running(tmp_path, *options) as run:
        os.killpg(run.pid, signal.SIGTERM)
        code, errors = said(run)
    assert errors == ""
    assert code in codes


class AnyError(PySparkException):  # type: ignore[misc]
    """An error of Spark's that says what it is told to."""

    def __str__(self) -> str:
        return str(self.args[0])


@pytest.mark.parametrize(
    ("error", "kind", "cause"),
    [
        (Py4JNetworkError("Answer from Java side is empty"), SparkEndedError, "has ended"),
        (ConnectionRefusedError(111, "Connection refused"), SparkEndedError, "has ended"),
        (AnyError("Job 7 cancelled because SparkContext was shut down\nat x"), SparkEndedError, "has ended"),
        (AnyError("something\nat x"), SetupError, "it does not work: something$"),
        (
            AnyError(
                f"[STREAM_FAILED] Query [id = {'7' * 300}] terminated with exception: Task 0 in stage 1.0 failed: "
                'PythonException: Traceback (most recent call last):\n  File "x.py", line 1, in f\n    g()\n'
                "ModuleNotFoundError: No module named 'headgate'\n\n\tat org.apache.spark.x(y.scala:1)\n"
            ),
            SetupError,
            "it does not work: ModuleNotFoundError: No module named 'headgate'$",
        ),
        (
            AnyError(
                f"[STREAM_FAILED] Query [id = {'7' * 300}]\n\tat x\nCaused by: java.io.IOException: outer\n\tat x\n"
                "Caused by: java.io.EOFException: 7.delta is cut off\n\tat x"
            ),
            SetupError,
            "it does not work: java.io.EOFException: 7.delta is cut off$",
        ),
        (
            AnyError(
                "[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update to the log. Multiple streaming jobs …"
            ),
            InputError,
            "another run is using the checkpoint",
        ),
        (
            AnyError(
                "[STREAM_FAILED] Query\nCaused by: java.net.SocketTimeoutException: Timed out while waiting for the "
                "Python worker to connect back after 10000 ms\n\tat x"
            ),
            SlowWorkerError,
            "the machine has too much to do$",
        ),
        (AnyError("x error[HG501]: bad row\n  help: mend it\nat x"), DataError, "bad row$"),
        (AnyError("java.io.IOException: No space left on device\nat x"), SetupError, "no space left for"),
        (DataError("ours"), DataError, "ours$"),
        (BrokenPipeError(32, "Broken pipe"), BrokenPipeError, "Broken pipe"),
        (KeyboardInterrupt(), KeyboardInterrupt, ""),
    ],
)
def test_failures_are_told_in_our_words(error: BaseException, kind: type[BaseException], cause: str) -> None:
    with pytest.raises(kind) as raised, translate_spark_errors("it does not work"):
        raise error
    assert type(raised.value) is kind
    assert re.search(cause, getattr(raised.value, "cause", str(raised.value)))


def test_clearing_away_needs_no_java() -> None:
    with ignore_dead_jvm():
        raise Py4JNetworkError("Answer from Java side is empty")
    with pytest.raises(DataError), ignore_dead_jvm():
        raise DataError("ours")
