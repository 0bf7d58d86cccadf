"""Runs a PySpark script in which no streaming query starts, and lints what would have been started.

This is the program of the process that `script` makes. It replaces the methods that start a query, runs the
user's script as `python SCRIPT` would, and appends a report as one line of JSON for each query to a file.
"""

from __future__ import annotations

import importlib
import json
import runpy
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from headgate.linting.lint import lint
from headgate.linting.report import Report, pack
from headgate.model.errors import InputError


class UnstartedQuery:
    """What `start` gives back here: a query that is over before it began."""

    # The names are Spark's.
    id = "00000000-0000-0000-0000-000000000000"
    runId = id  # noqa: N815
    isActive = False  # noqa: N815
    lastProgress = None  # noqa: N815

    def __init__(self, name: str | None) -> None:
        self.name = name
        self.recentProgress: list[Any] = []
        self.status = {"message": "not started", "isDataAvailable": False, "isTriggerActive": False}

    def awaitTermination(self, timeout: int | None = None) -> bool:  # noqa: N802
        return True

    def processAllAvailable(self) -> None:  # noqa: N802
        return

    def stop(self) -> None:
        return

    def exception(self) -> None:
        return

    def explain(self, extended: bool = False) -> None:
        return


class Capture:
    """Takes the place of Spark's way to start queries and writes a report for each."""

    def __init__(self, script: Path, output: Path) -> None:
        self.script = script
        self.output = output
        self.count = 0

    def install(self) -> None:
        """Replaces what starts or awaits a query, for this process."""
        from pyspark.sql.streaming.query import StreamingQueryManager
        from pyspark.sql.streaming.readwriter import DataStreamWriter

        capture = self

        def start(writer: Any, path: str | None = None, *arguments: Any, **options: Any) -> UnstartedQuery:
            return capture.started(writer, _options(arguments, options))

        def to_table(writer: Any, tableName: str, *arguments: Any, **options: Any) -> UnstartedQuery:  # noqa: N803
            return capture.started(writer, _options(arguments, options))

        DataStreamWriter.start = start
        DataStreamWriter.toTable = to_table
        for method, attribute in (("outputMode", "_lint_mode"), ("queryName", "_lint_name")):
            setattr(DataStreamWriter, method, _remembering(getattr(DataStreamWriter, method), attribute))
        StreamingQueryManager.awaitAnyTermination = lambda self, timeout=None: True
        _forbid_connect()

    def started(self, writer: Any, options: dict[str, Any]) -> UnstartedQuery:
        """Lints the query that a writer would have started."""
        mode = str(options.get("outputMode") or getattr(writer, "_lint_mode", "append"))
        name = options.get("queryName") or getattr(writer, "_lint_name", None)
        self.count += 1
        report = lint(writer._df, mode, name=name or f"query {self.count}")
        self.write(report, self._place(sys._getframe(2)))
        return UnstartedQuery(name)

    def frames(self, names: dict[str, Any]) -> None:
        """Lints the streaming DataFrames of a script that starts none; not those that another is built on."""
        from pyspark import SparkContext
        from pyspark.sql import DataFrame

        if SparkContext._active_spark_context is None:
            return
        found = {
            name: each for name, each in names.items() if isinstance(each, DataFrame) and each.isStreaming
        }
        for name, frame in found.items():
            own = frame._jdf.queryExecution().analyzed()
            others = [each._jdf.queryExecution().analyzed() for each in found.values() if each is not frame]
            if not any(_contains(other, own) for other in others):
                self.write(lint(frame, name=name), None)

    def write(self, report: Report, place: str | None) -> None:
        with self.output.open("a", encoding="utf-8") as file:
            file.write(json.dumps(pack(report) | {"place": place}) + "\n")

    def _place(self, frame: FrameType | None) -> str | None:
        """The line of the script that started a query, itself or through what it called."""
        while frame is not None:
            name = frame.f_code.co_filename
            if Path(name) == self.script:
                return f"{self.script.name}:{frame.f_lineno}"
            frame = frame.f_back
        return None


def _options(arguments: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
    names = ("format", "outputMode", "partitionBy", "queryName")
    return dict(zip(names, arguments, strict=False)) | options


def _remembering(method: Any, attribute: str) -> Any:
    """A writer's method that also keeps its argument where `started` finds it."""

    def remember(writer: Any, value: str) -> Any:
        setattr(writer, attribute, value)
        return method(writer, value)

    return remember


def _forbid_connect() -> None:
    """Spark Connect starts queries in another way: there it is an error to start one."""
    try:
        connect = importlib.import_module("pyspark.sql.connect.streaming.readwriter")
    except ImportError:
        return

    def refuse(*arguments: Any, **options: Any) -> None:
        raise InputError(
            "the script uses Spark Connect, whose plans stay on the server",
            remedy="lint it in a classic session: without SPARK_REMOTE and builder.remote",
        )

    connect.DataStreamWriter.start = refuse
    connect.DataStreamWriter.toTable = refuse


def _contains(plan: Any, part: Any) -> bool:
    from headgate.linting.jvm import walk

    return any(node.fastEquals(part) for node in walk(plan)) and not plan.fastEquals(part)


def main(output: str, script: str, *arguments: str) -> None:
    """Runs the script; reports go to the file `output`, one a line."""
    path = Path(script).resolve()
    capture = Capture(path, Path(output))
    capture.install()
    sys.argv = [script, *arguments]
    sys.path[0] = str(path.parent)
    names = runpy.run_path(str(path), run_name="__main__")
    if not capture.count:
        capture.frames(names)


if __name__ == "__main__":
    main(*sys.argv[1:])
