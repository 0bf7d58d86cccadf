"""Reads the stateful operators out of Spark's plan of a streaming DataFrame."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headgate.linting.jvm import Catalyst, items, kind, walk
from headgate.linting.operators import (
    Aggregation,
    Deduplication,
    Drop,
    JoinSide,
    Key,
    Limit,
    Operator,
    OwnState,
    Source,
    StreamJoin,
    Watermark,
)
from headgate.linting.values import Definitions, few_values

GROWING = {
    "CollectList": "collect_list",
    "CollectSet": "collect_set",
    "ListAgg": "listagg",
    "Percentile": "percentile",
    "PercentileCont": "percentile_cont",
    "PercentileDisc": "percentile_disc",
    "Median": "median",
    "Mode": "mode",
    "HistogramNumeric": "histogram_numeric",
    "BitmapConstructAgg": "bitmap_construct_agg",
}
"""Aggregate functions whose buffer holds its input, or one entry for each distinct value of it."""

OWN_STATE = {
    "FlatMapGroupsWithState": "flatMapGroupsWithState",
    "FlatMapGroupsInPandasWithState": "applyInPandasWithState",
    "TransformWithState": "transformWithState",
    "TransformWithStateInPandas": "transformWithStateInPandas",
    "TransformWithStateInPySpark": "transformWithState",
}

CLOCKS = {
    "NoTimeout": "none",
    "NoTime": "none",
    "ProcessingTimeTimeout": "processing",
    "ProcessingTime": "processing",
    "EventTimeTimeout": "event",
    "EventTime": "event",
}

UNNAMED = "_groupingexpression"
"""What Spark calls a grouping expression that it computes beforehand."""

HOW = {
    "LeftOuter": "left outer",
    "RightOuter": "right outer",
    "FullOuter": "full outer",
    "LeftSemi": "left semi",
    "LeftAnti": "left anti",
}


class Reader:
    """One plan, and the definitions of its columns."""

    def __init__(self, catalyst: Catalyst) -> None:
        self.catalyst = catalyst
        self.plan = catalyst.planned()
        self.definitions = Definitions(self.plan)
        self._distinct = any(kind(node) == "Distinct" for node in walk(catalyst.analyzed))
        self._written = _stream_joins(catalyst.analyzed)
        self._planned = _stream_joins(self.plan)

    def operators(self) -> Iterator[Operator]:
        """The stateful operators, from the top of the plan."""
        shortened = False
        for node in walk(self.plan):
            if not node.isStreaming():
                continue
            match kind(node):
                case "Sort" | "GlobalLimit" | "LocalLimit" | "Tail":
                    shortened = True
                    if kind(node) == "GlobalLimit":
                        yield Limit()
                case "Aggregate":
                    yield self._aggregation(node, shortened)
                case "Distinct":
                    keys = tuple(self._key(each) for each in items(node.output()))
                    yield Aggregation(self._source(node.child()), keys, (), True, shortened)
                case "Deduplicate" | "DeduplicateWithinWatermark" as name:
                    keys = tuple(self._key(each) for each in items(node.keys()))
                    yield Deduplication(self._source(node.child()), keys, name != "Deduplicate")
                case "Join" if _joins_streams(node):
                    yield self._join(node)
                case name if name in OWN_STATE:
                    yield self._own_state(node, name)

    def _aggregation(self, node: Any, shortened: bool) -> Aggregation:
        keys = tuple(self._key(each) for each in items(node.groupingExpressions()))
        functions = [
            kind(part.aggregateFunction())
            for each in items(node.aggregateExpressions())
            for part in walk(each)
            if kind(part) == "AggregateExpression"
        ]
        growing = tuple(dict.fromkeys(GROWING[each] for each in functions if each in GROWING))
        distinct = self._distinct and bool(keys) and not functions
        return Aggregation(self._source(node.child()), keys, growing, distinct, shortened)

    def _join(self, node: Any) -> StreamJoin:
        left, right = node.left(), node.right()
        how = HOW.get(kind(node.joinType()), "inner")
        keys = self.catalyst.equality(node)
        place = self._timed_key(keys)
        sides = []
        for own, other, own_keys in ((left, right, keys and keys[0]), (right, left, keys and keys[1])):
            if own_keys and place is not None:
                drop: Drop | None = Drop(self._name(own_keys[place]), 0, True)
            else:
                drop = self._drop(node, own, other)
            compared = None if drop else self._compared(node, own, other)
            sides.append(JoinSide(self._source(self._as_written(node, own)), drop, compared))
        return StreamJoin(how, sides[0], sides[1], keys is not None)

    def _as_written(self, node: Any, side: Any) -> Any:
        """The side of the join as the user wrote it, with the columns that the optimizer left out."""
        if len(self._written) != len(self._planned):
            return side
        place = next(place for place, each in enumerate(self._planned) if each.fastEquals(node))
        written = self._written[place]
        found = written.left() if side.fastEquals(node.left()) else written.right()
        return found if set(_columns(side)) <= set(_columns(found)) else side

    def _compared(self, node: Any, own: Any, other: Any) -> tuple[str, str] | None:
        """Two time columns such that watermarks on both are all that this side lacks."""
        for column in filter(_is_time, items(own.output())):
            for its in filter(_is_time, items(other.output())):
                if self.catalyst.behind_if_marked(node, column, its):
                    return str(column.name()), str(its.name())
        return None

    def _timed_key(self, keys: tuple[list[Any], list[Any]] | None) -> int | None:
        """The first equality key that is event time on one side: then Spark drops both sides by it."""
        for side in keys or ():
            for place, expression in enumerate(side):
                if self.catalyst.delay(expression) is not None:
                    return place
        return None

    def _drop(self, node: Any, own: Any, other: Any) -> Drop | None:
        timed = next((each for each in items(own.output()) if self.catalyst.delay(each) is not None), None)
        if timed is None:
            return None
        behind = self.catalyst.behind(node, own, other)
        return None if behind is None else Drop(str(timed.name()), behind, False)

    def _own_state(self, node: Any, name: str) -> OwnState:
        if name in ("TransformWithStateInPandas", "TransformWithStateInPySpark"):
            grouping = list(items(node.child().output()))[: node.groupingAttributesLen()]
        else:
            grouping = list(items(node.groupingAttributes()))
        transform = name.startswith("Transform")
        clock = kind(node.timeMode() if transform else node.timeout())
        return OwnState(
            OWN_STATE[name],
            tuple(self._name(each) for each in grouping),
            CLOCKS.get(clock, "none"),
            transform,
        )

    def _key(self, expression: Any) -> Key:
        delay = self.catalyst.delay(expression)
        if delay is not None:
            return Key(self._name(expression), delay)
        return Key(
            self._name(expression),
            finite=few_values(expression, self.definitions),
            derived_from=self._watermarked_ancestor(expression),
        )

    def _watermarked_ancestor(self, expression: Any) -> str | None:
        """The column with a watermark that an expression is computed from."""
        for column in self.definitions.ancestors(expression):
            if self.catalyst.delay(column) is not None:
                return str(column.name())
        return None

    def _source(self, plan: Any) -> Source:
        marks: dict[str, Watermark] = {}
        times: list[str] = []
        for node in walk(plan):
            if not node.isStreaming():
                continue
            if kind(node) == "EventTimeWatermark":
                column = node.eventTime()
                own = next(
                    each for each in items(node.output()) if each.exprId().id() == column.exprId().id()
                )
                delay = self.catalyst.delay(own)
                name = str(column.name())
                marks.setdefault(name, Watermark(name, delay or 0))
            times += [str(each.name()) for each in filter(_is_time, items(node.output()))]
        return Source(_columns(plan), tuple(marks.values()), tuple(dict.fromkeys(times)))

    def _name(self, expression: Any) -> str:
        """A column's name, or the text of another expression."""
        if kind(expression) not in ("AttributeReference", "Alias"):
            return str(expression.sql())
        behind = self.definitions.of(expression) if expression.name() == UNNAMED else None
        return str(expression.name()) if behind is None else self._name(behind)


def _is_time(column: Any) -> bool:
    return kind(column.dataType()) in ("TimestampType", "TimestampNTZType")


def _columns(plan: Any) -> tuple[str, ...]:
    return tuple(str(each.name()) for each in items(plan.output()))


def _joins_streams(node: Any) -> bool:
    return kind(node) == "Join" and node.left().isStreaming() and node.right().isStreaming()


def _stream_joins(plan: Any) -> list[Any]:
    return [node for node in walk(plan) if _joins_streams(node)]
