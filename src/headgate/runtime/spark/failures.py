"""Failures of Spark: in our words while it runs, and ignored while a run is cleared away whose Java is gone."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from subprocess import TimeoutExpired
from types import NoneType
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from headgate.model.errors import InputError, SetupError
from headgate.runtime.spark.cluster import first_line, translated

_UNREACHED = (Py4JNetworkError, ConnectionRefusedError, ConnectionResetError)
# What queries fail with while Java, which was told to end, shuts Spark down.
_SHUT_DOWN = ("SparkContext was shut down", "stopped SparkContext", "SparkContext has been shutdown")


# What Spark notices when two processes go on from one checkpoint.
_SHARED = ("CONCURRENT_STREAM_LOG_UPDATE", "CONCURRENT_QUERY", "Multiple streaming jobs detected")
_SLOW_WORKER = "Python worker to connect back", "Python worker failed to connect back"
_LONGEST = 600


class SparkEndedError(SetupError):
    """Spark's process is there no more: it was killed, or told to end."""

    def __init__(self) -> None:
        super().__init__(
            "Spark's process has ended: it was killed or told to end, or had no memory left",
            remedy="run the query again: with --checkpoint it goes on where it was",
        )


class SlowWorkerError(SetupError):
    """A Python process did not start within the ten seconds that Spark waits for it; nothing sets another time."""

    def __init__(self) -> None:
        super().__init__(
            "Spark waited ten seconds for a Python process to start, in vain: the machine has too much to do",
            remedy="run the query again when less else is running; with --checkpoint it goes on where it was",
        )


@contextmanager
def translate_spark_errors(failed: str, remedy: str | None = None) -> Iterator[None]:
    """What Spark or Java raise within is raised as an error of ours; `failed` is what did not work."""
    try:
        yield
    except (PySparkException, Py4JError, *_UNREACHED) as error:
        text = _text(error)
        ours = None if text is None else translated(error)
        if ours is not None:
            raise ours from None
        if text is not None and any(each in text for each in _SHARED):
            raise InputError(
                "another run is using the checkpoint of this query",
                remedy="stop that run or wait for its end, or choose another checkpoint",
            ) from error
        if text is None or any(each in text for each in _SHUT_DOWN):
            raise SparkEndedError from error
        if any(each in f"{text}\n{getattr(error, '_stackTrace', None)}" for each in _SLOW_WORKER):
            raise SlowWorkerError from error
        if isinstance(error, PySparkException | Py4JJavaError):
            raise SetupError(f"{failed}: {cause_of(error)}", remedy=remedy) from error
        if isinstance(error, _UNREACHED) or _java_has_ended():
            raise SparkEndedError from error
        raise


def _text(error: BaseException) -> str | None:
    """What an error says; None if only a Java that is gone could tell."""
    with suppress(Py4JError, *_UNREACHED):
        return str(error)
    return None


def cause_of(error: BaseException) -> str:
    """What a failure comes from, in one line: how a trace of Python ends, or Java's innermost cause, or what it says.

    What Spark says first names jobs, stages and tasks, and ends before the reason.
    """
    text = f"{error}\n{getattr(error, '_stackTrace', None) or ''}"
    _, found, trace = text.rpartition("Traceback (most recent call last):")
    lines = [line.rstrip() for line in trace.splitlines() if line.strip()]
    if found:
        said = next((line for line in lines if not line[0].isspace()), "")
    else:
        causes = [line.partition("Caused by: ")[2] for line in lines if "Caused by: " in line]
        # What py4j says comes before that of a failure in Java.
        first = lines[min(1, len(lines) - 1)] if isinstance(error, Py4JJavaError) and lines else ""
        said = causes[-1] if causes else first.removeprefix(": ")
    said = said.strip() or first_line(error)
    return said if len(said) <= _LONGEST else said[: _LONGEST - 1] + "…"


def _java_has_ended() -> bool:
    """Whether the Java that this process has started is there no more; a killed one may take a moment."""
    process = getattr(SparkContext._gateway, "proc", None)
    try:
        return process is not None and process.wait(timeout=5) is not None
    except TimeoutExpired:
        return False


@contextmanager
def ignore_dead_jvm() -> Iterator[None]:
    """Within it, what cannot be cleared away because Java is gone is left alone."""
    if not isinstance(sys.exc_info()[1], Exception | NoneType):
        _forget_call()
    with suppress(Py4JError, *_UNREACHED):
        yield


def _forget_call() -> None:
    """Gives this thread a new connection to Java.

    A signal may break a call off; its answer is then still to come, and would be taken for that of the next call.
    """
    client: Any = getattr(SparkContext._gateway, "_gateway_client", None)
    connection = client.get_thread_connection() if hasattr(client, "get_thread_connection") else None
    if connection is not None:
        connection.close()


def close(spark: Any) -> None:
    """Ends a session, if it has not ended by itself."""
    with ignore_dead_jvm(), warnings.catch_warnings():
        # PySpark warns where Java has ended first, as it does when all processes are told to end.
        warnings.filterwarnings("ignore", "Unable to cleanly shutdown", RuntimeWarning)
        spark.stop()
