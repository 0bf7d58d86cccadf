"""GROUP BY, HAVING and aggregates: from a select's syntax to an Aggregate node and what reads it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

import pyarrow as pa
from sqlglot import exp

from headgate.language.nodes import written_name
from headgate.language.parse import Statement
from headgate.model import types
from headgate.model.aggregates import (
    MOST_FREQUENT,
    Accumulator,
    Distinct,
    Function,
    Parameter,
    Second,
    function_named,
    result_type,
)
from headgate.model.errors import NameResolutionError, Place, TypeMismatchError, UnsupportedError
from headgate.model.scalar import Scalar
from headgate.model.schema import Column
from headgate.plan.expressions import ExpressionBinder
from headgate.plan.nodes import Aggregate, AggregateCall, Filter, Node, Output, Project


def aggregate_of(node: exp.Expr) -> Function | None:
    """The aggregate function that a node calls, if it calls one."""
    if isinstance(node, exp.Anonymous):
        return function_named(str(node.this))
    if isinstance(node, exp.Any):
        # ANY with a sub-query or an array is a comparison.
        return function_named("ANY") if isinstance(node.this, exp.Paren) else None
    if not isinstance(node, exp.AggFunc):
        return None
    named = (function_named(name) for name in (written_name(node), *node.sql_names()))
    return next((function for function in named if function is not None), None)


def _is_call(node: exp.Expr) -> bool:
    inner = node.this if isinstance(node, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)) else node
    return (inner is not node and isinstance(inner, exp.Expr) and _is_call(inner)) or bool(aggregate_of(node))


def aggregates_in(node: exp.Expr) -> Iterator[exp.Expr]:
    """The outermost aggregate calls in an expression, sub-queries left alone."""
    if _is_call(node):
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
        place = self.binder.statement.place(node)
        condition: exp.Expr | None = None
        if isinstance(node, exp.Filter):
            node, condition = node.this, node.expression.this
        skips_nulls = isinstance(node, exp.IgnoreNulls)
        if isinstance(node, (exp.IgnoreNulls, exp.RespectNulls)):
            node = node.this
        function = aggregate_of(node)
        assert function is not None
        called = Called.of(node, function, self.binder.statement)
        if called.argument is None and condition is None:
            return AggregateCall(function, None, Column(f"{function}(*)", types.BIGINT))
        arguments = [exp.Literal.number(1) if called.argument is None else called.argument]
        if skips_nulls:
            given = exp.Not(this=exp.Is(this=arguments[0].copy(), expression=exp.Null()))
            condition = given if condition is None else exp.and_(condition.copy(), given)
        if called.second is not None:
            arguments.append(called.second)
        elif function.traits.second is Second.TIME:
            arguments.append(self._time(function, node))
        if condition is not None:
            arguments = [
                exp.Case(ifs=[exp.If(this=condition.copy(), true=each.copy())]) for each in arguments
            ]
        if any(True for each in arguments for _ in aggregates_in(each)):
            raise UnsupportedError("aggregates do not nest", place=place)
        scalars = [self.binder.bind(each) for each in arguments]
        result = result_type(function, scalars[0].type, scalars[1].type if len(scalars) > 1 else None)
        if result is None:
            shown = ", ".join(types.spark_name(each.type) for each in scalars)
            raise TypeMismatchError(f"{function} needs {function.traits.takes}, not {shown}", place=place)
        columns = [self.column(scalar, "argument") for scalar in scalars]
        once_each = called.distinct and function.traits.distinct is Distinct.ONCE_EACH
        call = AggregateCall(
            function, columns[0], Column("", result), once_each, called.parameter, *columns[1:]
        )
        return replace(call, output=Column(call.show(), result))

    def _time(self, function: Function, node: exp.Expr) -> exp.Expr:
        """The event time of a row: the latest of those of the streams it comes from."""
        times = self.binder.scope.times
        untimed = [source for source, time in times.items() if time is None]
        if untimed or not times:
            what = untimed[0] if untimed else "a table"
            raise UnsupportedError(
                f"{function} goes by event time, and the rows of {what} have none",
                remedy="take the stream itself in this SELECT, or MIN_BY and MAX_BY with a column of time",
                place=self.binder.statement.place(node),
            )
        first, *others = (
            exp.column(time, table=source, quoted=True) for source, time in times.items() if time
        )
        return exp.Greatest(this=first, expressions=others) if others else first


@dataclass(frozen=True)
class Called:
    """What stands between the parentheses of an aggregate; no argument stands for COUNT(*)."""

    argument: exp.Expr | None
    second: exp.Expr | None
    distinct: bool
    parameter: float | int | None

    @staticmethod
    def of(node: exp.Expr, function: Function, statement: Statement) -> Called:
        """The arguments of a call, as many as the function takes."""
        place, traits = statement.place(node), function.traits
        given = list(_positional(node))
        if given and isinstance(given[0], exp.Distinct):
            distinct, given = True, [*given[0].expressions, *given[1:]]
            if traits.distinct is Distinct.REFUSED:
                raise UnsupportedError(f"{function} does not take DISTINCT", place=place)
            if len(given) != 1 and traits.second is Second.NOTHING:
                raise UnsupportedError(
                    f"{function}(DISTINCT …) takes one value",
                    remedy="put the columns into one with CONCAT, or count a DISTINCT sub-query",
                    place=place,
                )
        else:
            distinct = False
        counts = traits.accumulator is Accumulator.COUNT and not distinct
        if counts and len(given) == 1 and isinstance(given[0], (exp.Star, exp.Literal)):
            return Called(None, None, False, None)
        second = traits.second in (Second.NUMBER, Second.ORDER)
        parameter = traits.parameter is not Parameter.NONE
        if len(given) != 1 + second + parameter:
            raise UnsupportedError(_shape(function), place=place)
        return Called(
            given[0],
            given[1] if second else None,
            distinct,
            _parameter(function, given[-1], place) if parameter else None,
        )


def _positional(node: exp.Expr) -> Iterator[exp.Expr]:
    """What a call was given, in order; marks that the parser sets are left out."""
    if isinstance(node, exp.Any):
        yield node.this.this
        return
    for key in node.arg_types:
        value = node.args.get(key)
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, exp.Expr):
                yield each


def _shape(function: Function) -> str:
    """How a function is called, in words."""
    match function.traits.parameter, function.traits.second:
        case Parameter.SHARE, _:
            return f"{function} takes a value and a constant between 0 and 1: {function}(length, 0.9)"
        case Parameter.SIZE, _:
            return f"{function} takes a value and how many: {function}(source, 10)"
        case _, Second.NUMBER | Second.ORDER:
            return f"{function} takes two arguments"
    return f"{function} takes one argument"


def _parameter(function: Function, node: exp.Expr, place: Place) -> float | int:
    """The constant after the arguments."""
    text = str(node.this) if isinstance(node, exp.Literal) and not node.is_string else ""
    match function.traits.parameter:
        case Parameter.SIZE:
            if not text.isdigit() or len(text) > 5 or not 1 <= int(text) <= MOST_FREQUENT:
                raise UnsupportedError(f"{function} keeps between 1 and {MOST_FREQUENT} values", place=place)
            return int(text)
        case Parameter.SHARE:
            try:
                share = float(text)
            except ValueError:
                share = -1.0
            if not 0 <= share <= 1:
                raise UnsupportedError(_shape(function), place=place)
            return share
        case Parameter.NONE:
            raise ValueError(f"{function} has no parameter")
        case never:
            assert_never(never)
