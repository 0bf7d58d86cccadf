"""Getting a Spark session, and saying in our words what went wrong in it."""

from __future__ import annotations

import errno
import importlib.util
import logging
import os
import re
import shutil
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.model.errors import (
    DataError,
    DeclarationError,
    HeadgateError,
    InputError,
    MeaninglessError,
    NameResolutionError,
    SetupError,
    TypeMismatchError,
    UnsupportedError,
)
from headgate.runtime.disk import disk_full
from headgate.runtime.spark.loopback import loopback

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PACKAGES = ("pyspark", "google.protobuf", "pandas")
_OLDEST = (4, 2)
_OURS = re.compile(
    r"error\[(HG\d+)\]: (?P<cause>[^\n]*(?:\n  [-+] [^\n]*)*)(?:\n  help: (?P<remedy>[^\n]*))?"
)
_FULL = os.strerror(errno.ENOSPC)
_CLASSES: dict[str, type[HeadgateError]] = {
    each.code: each
    for each in (
        InputError,
        UnsupportedError,
        NameResolutionError,
        TypeMismatchError,
        DeclarationError,
        MeaninglessError,
        DataError,
        SetupError,
    )
}


def why_not_spark() -> str | None:
    """What is missing for Spark on this machine, or None."""
    for package in _PACKAGES:
        try:
            found = importlib.util.find_spec(package)
        except ModuleNotFoundError:
            found = None
        if found is None:
            return f"the Python package {package.replace('google.', '')} is not installed"
    from pyspark import __version__  # noqa: PLC0415 - only after it is known to be there

    if tuple(map(int, __version__.split(".")[:2])) < _OLDEST:
        return f"PySpark {__version__} is too old: before 4.2, sources written in Python know no read limits"
    home = os.environ.get("JAVA_HOME")
    if home is not None and (Path(home) / "bin" / "java").exists():
        return None
    return None if shutil.which("java") else "there is no Java (JAVA_HOME is not set and java is not in PATH)"


def require_spark() -> None:
    """Raises SetupError unless Spark can run here."""
    reason = why_not_spark()
    if reason is not None:
        raise SetupError(
            f"Spark cannot run here: {reason}",
            remedy="install Java 17 or newer and `pip install 'headgate[spark]'`, or use --engine local",
        )


def open_spark(
    master: str | None, settings: Mapping[str, str] | None = None, log: Path | None = None
) -> SparkSession:
    """A Spark session for queries: `local[*]` unless another master is named, in this Python.

    What Spark's processes print goes to `log`, nowhere if there is none.
    """
    require_spark()
    from pyspark.errors import PySparkException  # noqa: PLC0415 - only after it is known to be there
    from pyspark.sql import SparkSession  # noqa: PLC0415

    from headgate.runtime.spark.workers import prepare_workers  # noqa: PLC0415

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    # Before Java starts: with an arena for nearly every thread of its, the C library gives hardly any memory back.
    os.environ.setdefault(_ARENAS, _FEW_ARENAS)
    where, given = master or "local[*]", settings or {}
    builder = SparkSession.builder.appName("headgate").master(where)
    shared = {"spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}
    try:
        with _undisturbed(), _elsewhere(log), loopback(where, given) as here:
            for key, value in {**_SETTINGS, **shared, **here, **given}.items():
                builder = builder.config(key, value)
            _hush()
            spark = builder.getOrCreate()
            spark.sparkContext.setLogLevel("OFF")
            _hush_counters(spark.sparkContext)
    except (PySparkException, RuntimeError) as error:
        raise SetupError(f"Spark does not start: {first_line(error)}", remedy="check --master") from error
    except Exception as error:
        if type(error).__module__.startswith(("py4j", "pyspark")):
            raise SetupError(f"Spark does not start: {first_line(error)}", remedy="check --master") from error
        raise
    prepare_workers(spark)
    return spark


def _hush() -> None:
    """Keeps stack traces that py4j logs from standard error: what goes wrong is raised as well."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    root = logging.getLogger()
    if _not_of_py4j not in root.filters:
        root.addFilter(_not_of_py4j)


def _hush_counters(context: Any) -> None:
    """Keeps the server that Spark's tasks report their counters to from telling that Java has gone."""
    server = context._accumulatorServer
    told = server.handle_error

    def handle_error(request: Any, address: Any) -> None:
        if not isinstance(sys.exc_info()[1], EOFError | ConnectionError):
            told(request, address)

    server.handle_error = handle_error


def _not_of_py4j(record: logging.LogRecord) -> bool:
    """Some of its modules log without a logger of their own."""
    return Path(record.pathname).parent.name != "py4j"


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Signals that come within take effect behind it.

    Java ends with the process that has started it, but not if that is gone before Java is ready to notice.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []
    before = {each: signal.signal(each, lambda number, _: heard.append(number)) for each in _ENDING}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
        if heard:
            signal.raise_signal(heard[0])


@contextmanager
def _elsewhere(log: Path | None) -> Iterator[None]:
    """Processes that are started within write to a file instead of the terminal."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(1), os.dup(2)]
    target = os.open(log or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.dup2(target, 1)
        os.dup2(target, 2)
        yield
    finally:
        os.dup2(kept[0], 1)
        os.dup2(kept[1], 2)
        for each in (*kept, target):
            os.close(each)


_ENDING = (signal.SIGINT, signal.SIGTERM)
_ARENAS, _FEW_ARENAS = "MALLOC_ARENA_MAX", "4"

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
STATE_STORE = {
    PROVIDER: "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Of what it has written, a store keeps 64 MB in memory unless it is told to write files sooner.
    "spark.sql.streaming.stateStore.rocksdb.writeBufferSizeMB": "16",
}
"""How states are kept, in sessions of the command and of others who have not said it otherwise."""
_JAVA_OPTIONS, _COLLECTOR = "spark.driver.extraJavaOptions", "-XX:+UseParallelGC"
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "200000",
    **STATE_STORE,
    f"spark.executorEnv.{_ARENAS}": _FEW_ARENAS,
    "spark.python.worker.reuse": "true",
    # Python workers that differ in this are not shared, so that readers and shards would each start their own.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
    # Nobody looks at the history of executions, which a query that runs for days would fill memory with.
    "spark.sql.ui.retainedExecutions": "10",
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "100",
    # Packed rows are arrays of megabytes; Java's usual collector starts a cycle for every few of them.
    _JAVA_OPTIONS: _COLLECTOR,
}
SHORT_RUN = {_JAVA_OPTIONS: f"{_COLLECTOR} -XX:TieredStopAtLevel=1"}
"""For runs over files that end. Rows of files do not pass through Java, so what it does is the same few things for
each micro-batch; its second compiler would take a third of the processor's time for half a minute."""


def translated(error: BaseException) -> HeadgateError | None:
    """A failure that Spark reports, as the error of ours that caused it; None if there is none."""
    # The message is that of the outermost failure; what caused it stands in the trace.
    text = f"{error}\n{getattr(error, '_stackTrace', None) or ''}"
    found = _OURS.search(text)
    if found is None:
        return disk_full() if _FULL in text else None
    kind = _CLASSES.get(found[1], SetupError)
    return kind(found["cause"], remedy=found["remedy"])


def first_line(error: BaseException) -> str:
    """The first line of a long message."""
    lines: list[str] = [line for line in str(error).splitlines() if line.strip()]
    return lines[0][:300] if lines else type(error).__name__


def cores(spark: Any) -> int:
    """How many tasks run at once."""
    return int(spark.sparkContext.defaultParallelism)
