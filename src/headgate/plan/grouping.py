"""GROUP BY, HAVING and aggregates: from a select's syntax to an Aggregate node and what reads it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from headgate.language.parse import Statement
from headgate.model import types
from headgate.model.errors import NameResolutionError, TypeMismatchError, UnsupportedError
from headgate.model.scalar import Scalar
from headgate.model.schema import Column
from headgate.plan.expressions import ExpressionBinder
from headgate.plan.nodes import Aggregate, AggregateCall, Filter, Node, Output, Project

_BY_CLASS: dict[type[exp.Expr], str] = {
    exp.Count: "COUNT",
    exp.Sum: "SUM",
    exp.Avg: "AVG",
    exp.Min: "MIN",
    exp.Max: "MAX",
    exp.Median: "MEDIAN",
    exp.Quantile: "QUANTILE",
}
_MOST_TOP = 10_000


def aggregate_name(node: exp.Expr) -> str | None:
    """The aggregate function that a node calls, if it calls one."""
    if isinstance(node, exp.Anonymous) and str(node.this).upper() == "TOP":
        return "TOP"
    return _BY_CLASS.get(type(node))


def aggregates_in(node: exp.Expr) -> Iterator[exp.Expr]:
    """The outermost aggregate calls in an expression, sub-queries left alone."""
    if (isinstance(node, exp.Filter) and aggregate_name(node.this)) or aggregate_name(node):
        yield node
    elif not isinstance(node, (exp.Select, exp.Subquery, exp.SetOperation)):
        for child in node.iter_expressions():
            yield from aggregates_in(child)


@dataclass(frozen=True)
class Grouped:
    """An aggregated input and a binder that reads its groups and aggregates."""

    node: Node
    binder: ExpressionBinder


def bind_grouping(
    select: exp.Select,
    items: Sequence[exp.Expr],
    input: Node,
    binder: ExpressionBinder,
) -> Grouped | None:
    """The Aggregate (and HAVING filter) of a select; None if it has no grouping and no aggregate."""
    group, having = select.args.get("group"), select.args.get("having")
    calls = [call for item in items for call in aggregates_in(item)]
    if having:
        calls += list(aggregates_in(having.this))
    if not group and not calls:
        if having:
            raise UnsupportedError(
                "HAVING needs GROUP BY or an aggregate",
                remedy="write WHERE",
                place=binder.statement.place(having),
            )
        return None
    aliases = {item.alias.casefold(): item.this for item in items if isinstance(item, exp.Alias)}
    keys = [_key(node, items, aliases, binder) for node in (group.expressions if group else [])]
    if group and any(group.args.get(each) for each in ("grouping_sets", "cube", "rollup", "all", "totals")):
        raise UnsupportedError("GROUP BY takes plain expressions", place=binder.statement.place(group))
    shape = _Shape(binder)
    key_columns = {scalar.expression: shape.column(scalar, "key") for scalar in keys}
    bound_calls = {id(call): shape.call(call) for call in calls}
    unique = {call.show(): call for call in bound_calls.values()}
    projected = Project(input, tuple(shape.outputs.values())) if shape.outputs else input
    node: Node = Aggregate(projected, tuple(key_columns.values()), tuple(unique.values()))
    reader = _reader(node, key_columns, bound_calls, binder)
    if having:
        condition = _without_aliases(having.this, aliases, binder)
        extra = {id(call): shape.call(call) for call in aggregates_in(condition)}
        reader = _reader(node, key_columns, {**bound_calls, **extra}, binder)
        node = Filter(node, reader.bind(condition, expect=types.BOOLEAN))
    return Grouped(node, reader)


def _reader(
    node: Node,
    key_columns: dict[exp.Expr, str],
    calls: dict[int, AggregateCall],
    binder: ExpressionBinder,
) -> ExpressionBinder:
    """A binder for what stands above the grouping: aggregates and group keys, nothing else."""

    def replaced(each: exp.Expr) -> Scalar | None:
        call = calls.get(id(each))
        if call is not None:
            return Scalar.column(call.output.name, call.output.type)
        if isinstance(each, (exp.Literal, exp.Boolean, exp.Null, exp.Interval)):
            return None
        if any(True for _ in aggregates_in(each)):
            return None
        bound = binder.bind(each)
        name = key_columns.get(bound.expression)
        if name is not None:
            return Scalar.column(name, bound.type)
        if isinstance(each, exp.Column):
            raise NameResolutionError(
                f"{each.sql()} is neither in GROUP BY nor inside an aggregate",
                remedy=f"add it to GROUP BY, or write for example MAX({each.sql()})",
                place=binder.statement.place(each),
            )
        return None

    return replace(binder, replaced=replaced)


def _key(
    node: exp.Expr,
    items: Sequence[exp.Expr],
    aliases: dict[str, exp.Expr],
    binder: ExpressionBinder,
) -> Scalar:
    """A group key: an expression, an output's number, or an output's alias."""
    if isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit():
        number = int(node.this)
        if not 1 <= number <= len(items):
            raise NameResolutionError(
                f"GROUP BY {number}: the select list has {len(items)} items",
                place=binder.statement.place(node),
            )
        node = items[number - 1].unalias()
    elif isinstance(node, exp.Column) and not node.table and not binder.scope.resolve(None, node.name):
        node = aliases.get(node.name.casefold(), node)
    if any(True for _ in aggregates_in(node)):
        raise UnsupportedError("an aggregate cannot be grouped by", place=binder.statement.place(node))
    key = binder.bind(node)
    if pa.types.is_map(key.type):
        raise TypeMismatchError("a MAP cannot be grouped by", place=binder.statement.place(node))
    return key


def _without_aliases(node: exp.Expr, aliases: dict[str, exp.Expr], binder: ExpressionBinder) -> exp.Expr:
    """HAVING with the select list's aliases written out."""

    def visit(each: exp.Expr) -> exp.Expr:
        if isinstance(each, exp.Column) and not each.table and not binder.scope.resolve(None, each.name):
            found = aliases.get(each.name.casefold())
            if found is not None:
                return found.copy()
        return each

    return node.copy().transform(visit)


class _Shape:
    """Collects the columns an Aggregate reads: plain ones as they are, computed ones under a new name."""

    def __init__(self, binder: ExpressionBinder) -> None:
        self.binder = binder
        self.outputs: dict[str, Output] = {}
        self.names: dict[exp.Expr, str] = {}

    def column(self, scalar: Scalar, what: str) -> str:
        known = self.names.get(scalar.expression)
        if known is not None:
            return known
        name = scalar.expression.name if scalar.is_column else scalar.show()
        if not scalar.is_column and name in self.outputs:
            name = f"{what} {len(self.outputs)}"
        self.outputs[name] = Output(name, scalar)
        self.names[scalar.expression] = name
        return name

    def call(self, node: exp.Expr) -> AggregateCall:
        condition: exp.Expr | None = None
        if isinstance(node, exp.Filter):
            node, condition = node.this, node.expression.this
        function = aggregate_name(node)
        assert function is not None
        statement = self.binder.statement
        argument, distinct, parameter = _arguments(node, function, statement)
        if argument is None and condition is not None:
            argument = exp.Literal.number(1)
        if condition is not None:
            argument = exp.Case(ifs=[exp.If(this=condition.copy(), true=argument)])
        if argument is None:
            return AggregateCall(function, None, Column(f"{function}(*)", types.BIGINT))
        if any(True for _ in aggregates_in(argument)):
            raise UnsupportedError("aggregates do not nest", place=statement.place(node))
        scalar = self.binder.bind(argument)
        result = aggregate_type(function, scalar.type)
        if result is None:
            need = "an order" if function in ("MIN", "MAX", "TOP") else "a number"
            raise TypeMismatchError(
                f"{function} needs {need}, not {types.spark_name(scalar.type)}", place=statement.place(node)
            )
        distinct = distinct and function not in ("MIN", "MAX")
        call = AggregateCall(
            function, self.column(scalar, "argument"), Column("", result), distinct, parameter
        )
        return replace(call, output=Column(call.show(), result))


def _arguments(
    node: exp.Expr, function: str, statement: Statement
) -> tuple[exp.Expr | None, bool, float | int | None]:
    """An aggregate's argument (None for COUNT(*)), whether DISTINCT, and its parameter."""
    if isinstance(node, exp.Anonymous):
        if len(node.expressions) != 2:
            raise UnsupportedError(
                "TOP takes a value and how many: TOP(source, 10)", place=statement.place(node)
            )
        k = node.expressions[1]
        if not (isinstance(k, exp.Literal) and not k.is_string and k.this.isdigit()) or not (
            len(k.this) <= 5 and 1 <= int(k.this) <= _MOST_TOP
        ):
            raise UnsupportedError(f"TOP keeps between 1 and {_MOST_TOP} values", place=statement.place(node))
        return node.expressions[0], False, int(k.this)
    argument = node.this
    distinct = isinstance(argument, exp.Distinct)
    if distinct:
        if len(argument.expressions) != 1:
            raise UnsupportedError(
                f"{function}(DISTINCT …) takes one value",
                remedy="put the columns into one with CONCAT, or count a DISTINCT sub-query",
                place=statement.place(node),
            )
        argument = argument.expressions[0]
    if function == "COUNT" and not distinct and isinstance(argument, (exp.Star, exp.Literal)):
        return None, False, None
    parameter: float | None = None
    if function == "QUANTILE":
        quantile = node.args.get("quantile")
        text = quantile.this if isinstance(quantile, exp.Literal) and not quantile.is_string else ""
        try:
            parameter = float(text)
        except ValueError:
            parameter = -1.0
        if not 0 <= parameter <= 1:
            raise UnsupportedError(
                "QUANTILE takes a value and a constant between 0 and 1: QUANTILE(length, 0.9)",
                place=statement.place(node),
            )
    if distinct and function in ("MEDIAN", "QUANTILE"):
        raise UnsupportedError(f"{function} does not take DISTINCT", place=statement.place(node))
    if argument is None:
        raise UnsupportedError(f"{function} needs an argument", place=statement.place(node))
    return argument, distinct, parameter


def aggregate_type(function: str, argument: pa.DataType) -> pa.DataType | None:
    """The type of an aggregate over an argument, as in Spark SQL; None if it does not take it."""
    match function:
        case "COUNT":
            return types.BIGINT
        case "SUM" if pa.types.is_decimal(argument):
            return pa.decimal128(min(38, argument.precision + 10), argument.scale)
        case "SUM" if types.is_integer(argument):
            return types.BIGINT
        case "AVG" if pa.types.is_decimal(argument):
            scale = min(38, argument.scale + 4)
            return pa.decimal128(min(38, argument.precision + 4), scale)
        case "SUM" | "AVG" | "MEDIAN" | "QUANTILE" if types.is_numeric(argument):
            return types.DOUBLE
        case "MIN" | "MAX" if types.is_orderable(argument):
            return argument
        case "TOP" if types.is_orderable(argument):
            return pa.list_(pa.struct([("item", argument), ("count", types.BIGINT)]))
    return None
