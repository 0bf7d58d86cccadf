"""`hg.lint(df)`: what a plain Spark query keeps, from Spark's own plan."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path
from typing import Any

from headgate.linting.jvm import Catalyst
from headgate.linting.operators import Operator, StreamJoin
from headgate.linting.reader import Reader
from headgate.linting.report import Report
from headgate.linting.rules import judge
from headgate.model.errors import InputError, SetupError

MODES = ("append", "update", "complete")


def lint(frame: Any, output_mode: str = "append", *, name: str | None = None) -> Report:
    """The states of a streaming DataFrame's query: which Spark drops and when, which it never drops.

    Nothing is run: Spark analyzes the query, as it does for `explain`. The output mode is the one that the query
    will be started with; it matters for aggregates.
    """
    require_spark()
    if output_mode.lower() not in MODES:
        raise InputError(f"there is no output mode {output_mode}", remedy=f"one of {', '.join(MODES)}")
    _check_frame(frame)
    mode = output_mode.lower()
    catalyst = Catalyst(frame)
    operators = tuple(Reader(catalyst).operators())
    states = tuple(state for operator in operators for state in judge(operator, mode))
    return Report(name or "query", mode, states, _refusal(catalyst, mode, operators))


def _refusal(catalyst: Catalyst, mode: str, operators: tuple[Operator, ...]) -> str | None:
    """Why Spark would not start the query, if it would not."""
    said = catalyst.refusal(mode)
    if said is not None:
        starts = mode == "append" and catalyst.refusal("update") is None
        return f'{said}; it starts with outputMode("update")' if starts else said
    if any(isinstance(each, StreamJoin) and not each.has_equality for each in operators):
        return "a join of two streams needs an equality of columns in its condition"
    return None


def require_spark() -> None:
    """Raises SetupError unless PySpark and Java are here."""
    if importlib.util.find_spec("pyspark") is None:
        raise SetupError("lint needs PySpark, which is not installed", remedy="install headgate[spark]")
    home = os.environ.get("JAVA_HOME")
    if not (home and (Path(home) / "bin" / "java").exists()) and shutil.which("java") is None:
        raise SetupError(
            "lint needs Java, which Spark runs on, and there is none",
            remedy="install Java 17 or newer, or point JAVA_HOME at one",
        )


def _check_frame(frame: Any) -> None:
    from pyspark.sql import DataFrame

    if not isinstance(frame, DataFrame):
        raise InputError(
            f"lint takes a streaming DataFrame of PySpark, not {type(frame).__name__}",
            remedy="give what spark.readStream made, before writeStream",
        )
    if not hasattr(frame, "_jdf"):
        raise InputError(
            "this DataFrame belongs to Spark Connect, whose plans stay on the server",
            remedy="build it in a classic session: SparkSession.builder.master(...), without SPARK_REMOTE",
        )
    if not frame.isStreaming:
        raise InputError(
            "this DataFrame is not a streaming one: it keeps no state between batches",
            remedy="give what spark.readStream made",
        )
