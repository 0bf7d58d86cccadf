"""Spark's plans from Python: the few things of Catalyst that lint asks for, by name, over py4j."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

DELAY = "spark.watermarkDelayMs"
"""The key under which Spark keeps a watermark's delay in a column's metadata."""

NAMED = "org.apache.spark.sql.catalyst.expressions.NamedExpression"

# Milliseconds; any instant will do, but py4j makes a Long only of what does not fit an Int.
PROBE_MS = 1 << 40


class Catalyst:
    """A Spark session's own analysis, asked about one plan."""

    def __init__(self, frame: Any) -> None:
        from py4j.java_gateway import is_instance_of

        self._is_instance = is_instance_of
        self._session = frame.sparkSession
        self._gateway = self._session._sc._gateway
        self._sql = self._session._jvm.org.apache.spark.sql
        self._some = self._session._jvm.scala.Some
        self.analyzed = frame._jdf.queryExecution().analyzed()

    def planned(self) -> Any:
        """The plan that Spark gives to its operators.

        That is the optimized one: it alone shows a condition in a later filter where it takes effect, in the
        join. Only with the current time in the query it is the analyzed one, because the optimizer would
        take the current time of now for a constant.
        """
        current = self._sql.catalyst.trees.TreePattern.CURRENT_LIKE()
        if self.analyzed.containsPattern(current):
            return self.analyzed
        return self._session._jsparkSession.sessionState().optimizer().execute(self.analyzed)

    def refusal(self, output_mode: str) -> str | None:
        """What Spark says if it would not start the query in this mode."""
        from pyspark.errors import AnalysisException

        mode = getattr(self._sql.streaming.OutputMode, output_mode.capitalize())()
        try:
            self._sql.catalyst.analysis.UnsupportedOperationChecker.checkForStreaming(self.analyzed, mode)
        except AnalysisException as error:
            return _plain(str(error))
        return None

    def equality(self, join: Any) -> tuple[list[Any], list[Any]] | None:
        """The expressions that a join sets equal, left and right; None if there are none."""
        found = self._sql.catalyst.planning.ExtractEquiJoinKeys.unapply(join)
        if found.isEmpty():
            return None
        parts = found.get()
        return list(items(parts._2())), list(items(parts._3()))

    def behind(self, join: Any, own: Any, other: Any) -> int | None:
        """How far behind the watermark a row of `own` is when Spark drops it for its time; None if never."""
        found = self._sql.catalyst.analysis.StreamingJoinHelper.getStateValueWatermark(
            own.outputSet(), other.outputSet(), join.condition(), self._some(PROBE_MS)
        )
        return None if found.isEmpty() else PROBE_MS - int(found.get())

    def behind_if_marked(self, join: Any, own: Any, other: Any) -> bool:
        """Whether the condition would let Spark drop rows of `own` if both columns had watermarks."""
        if join.condition().isEmpty():
            return False
        metadata = self._sql.types.MetadataBuilder().putLong(DELAY, PROBE_MS).build()
        attributes = self._sql.catalyst.expressions.AttributeSet
        found = self._sql.catalyst.analysis.StreamingJoinHelper.getStateValueWatermark(
            attributes.apply(own),
            attributes.apply(other.withMetadata(metadata)),
            self._some(self._marked(join.condition().get(), other, metadata)),
            self._some(PROBE_MS),
        )
        return not found.isEmpty()

    def _marked(self, expression: Any, column: Any, metadata: Any) -> Any:
        """An expression in which a column has other metadata."""
        if kind(expression) == "AttributeReference":
            same = expression.exprId().id() == column.exprId().id()
            return expression.withMetadata(metadata) if same else expression
        parts = [self._marked(part, column, metadata) for part in items(expression.children())]
        return expression.withNewChildren(self._sequence(parts)) if parts else expression

    def _sequence(self, parts: list[Any]) -> Any:
        found = self._session._jvm.java.util.ArrayList()
        for part in parts:
            found.add(part)
        return self._session._jvm.PythonUtils.toSeq(found)

    def named(self, expression: Any) -> bool:
        return bool(self._is_instance(self._gateway, expression, NAMED))

    def delay(self, expression: Any) -> int | None:
        """The delay of a watermark that Spark knows an expression to carry."""
        if not self.named(expression):
            return None
        metadata = expression.metadata()
        return int(metadata.getLong(DELAY)) if metadata.contains(DELAY) else None


def _plain(message: str) -> str:
    """Spark's message without its error class, its SQL state, and the plan that follows it."""
    first = message.splitlines()[0].partition(";")[0]
    return re.sub(r"^\[[A-Z0-9_.]+\] | SQLSTATE: \w+$", "", first.strip()).strip().rstrip(".")


def items(sequence: Any) -> Iterator[Any]:
    """The elements of a Scala sequence."""
    for place in range(sequence.size()):
        yield sequence.apply(place)


def kind(node: Any) -> str:
    """The class of a plan node or an expression, without its package."""
    return str(node.getClass().getSimpleName()).rstrip("$")


def walk(node: Any) -> Iterator[Any]:
    """A node and all below it, from the top."""
    yield node
    for child in items(node.children()):
        yield from walk(child)
