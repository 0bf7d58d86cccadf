"""Comparisons, three-valued logic and choices (CASE, IF, COALESCE), which evaluate only what they need."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce

import polars as pl
from sqlglot import exp

from headgate.kernels.expressions.compile import compile_node, constant, named
from headgate.kernels.expressions.dtypes import FLOATS
from headgate.kernels.expressions.typed import Check, Scope, Typed, combine, together

_COMPARE: dict[type[exp.Expr], Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    exp.EQ: lambda a, b: a == b,
    exp.NEQ: lambda a, b: a != b,
    exp.LT: lambda a, b: a < b,
    exp.LTE: lambda a, b: a <= b,
    exp.GT: lambda a, b: a > b,
    exp.GTE: lambda a, b: a >= b,
    exp.NullSafeEQ: lambda a, b: a.eq_missing(b),
    exp.NullSafeNEQ: lambda a, b: a.ne_missing(b),
    exp.EqualNull: lambda a, b: a.eq_missing(b),
}
_MANY = 8


# Polars already orders NaN above every number and equal to itself, as Spark SQL does.
@compile_node.register(exp.EQ)
@compile_node.register(exp.NEQ)
@compile_node.register(exp.LT)
@compile_node.register(exp.LTE)
@compile_node.register(exp.GT)
@compile_node.register(exp.GTE)
@compile_node.register(exp.NullSafeEQ)
@compile_node.register(exp.NullSafeNEQ)
@compile_node.register(exp.EqualNull)
def _(node: exp.Expr, scope: Scope) -> Typed:
    left, right = compile_node(node.this, scope), compile_node(node.expression, scope)
    return combine(_COMPARE[type(node)], left, right)


@compile_node.register
def _(node: exp.Between, scope: Scope) -> Typed:
    operands = (compile_node(part, scope).once() for part in (node.this, node.args["low"], node.args["high"]))
    return combine(lambda a, low, high: (a >= low) & (a <= high), *operands)


@compile_node.register
def _(node: exp.In, scope: Scope) -> Typed:
    operand = compile_node(node.this, scope).once()
    members = node.expressions
    if len(members) > _MANY and all(next(m.find_all(exp.Column), None) is None for m in members):
        return _in_constants(operand, [constant(member, "a member of IN") for member in members])
    compiled = [compile_node(member, scope) for member in members]
    return combine(
        lambda a, *others: reduce(lambda x, y: x | y, (a == b for b in others)), operand, *compiled
    )


def _in_constants(operand: Typed, values: list[object]) -> Typed:
    known = pl.Series([value for value in values if value is not None], dtype=operand.dtype)
    found = operand.map(lambda a: a.is_in(known.implode()))
    if len(known) == len(values):
        return found
    return found.map(lambda hit: pl.when(hit).then(True))


@compile_node.register
def _(node: exp.Is, scope: Scope) -> Typed:
    operand = compile_node(node.this, scope)
    if isinstance(node.expression, exp.Null):
        return operand.map(lambda a: a.is_null())
    return operand.map(lambda a: a.eq_missing(pl.lit(bool(node.expression.this))))


@compile_node.register
def _(node: exp.And, scope: Scope) -> Typed:
    left, right = compile_node(node.this, scope).once(), compile_node(node.expression, scope)
    return combine(lambda a, b: a & b, left, right.guarded(left.expr.fill_null(True)))


@compile_node.register
def _(node: exp.Or, scope: Scope) -> Typed:
    left, right = compile_node(node.this, scope).once(), compile_node(node.expression, scope)
    return combine(lambda a, b: a | b, left, right.guarded(~left.expr.fill_null(False)))


@compile_node.register
def _(node: exp.Not, scope: Scope) -> Typed:
    operand = compile_node(node.this, scope)
    return operand.map(lambda a: ~a.cast(pl.Boolean))


@compile_node.register
def _(node: exp.Case, scope: Scope) -> Typed:
    subject = None if node.this is None else compile_node(node.this, scope).once()
    choices = []
    for branch in node.args["ifs"]:
        condition = compile_node(branch.this, scope)
        if subject is not None:
            condition = combine(lambda a, b: a == b, subject, condition)
        choices.append((condition.once(), compile_node(branch.args["true"], scope)))
    default = node.args.get("default")
    return _choose(choices, None if default is None else compile_node(default, scope))


@compile_node.register
def _(node: exp.If, scope: Scope) -> Typed:
    otherwise = node.args.get("false")
    choice = (compile_node(node.this, scope).once(), compile_node(node.args["true"], scope))
    return _choose([choice], None if otherwise is None else compile_node(otherwise, scope))


def _choose(choices: list[tuple[Typed, Typed]], default: Typed | None) -> Typed:
    """The value of the first condition that is TRUE; each part is asked only where no earlier one was."""
    scope = choices[0][0].scope
    value = pl.lit(None) if default is None else default.expr
    checks: list[Check] = []
    undecided = pl.lit(True)
    for condition, result in choices:
        chosen = condition.expr.cast(pl.Boolean).fill_null(False)
        checks.extend(condition.guarded(undecided).checks)
        checks.extend(result.guarded(undecided & chosen).checks)
        undecided = undecided & ~chosen
    if default is not None:
        checks.extend(default.guarded(undecided).checks)
    for condition, result in reversed(choices):
        value = pl.when(condition.expr.cast(pl.Boolean)).then(result.expr).otherwise(value)
    parts = [part for choice in choices for part in choice]
    return Typed(value, scope, tuple(checks), together([*parts, *([] if default is None else [default])]))


@compile_node.register
def _(node: exp.Coalesce, scope: Scope) -> Typed:
    return _first_known([compile_node(part, scope).once() for part in (node.this, *node.expressions)])


def _first_known(parts: list[Typed]) -> Typed:
    guarded = [parts[0]]
    missing = parts[0].expr.is_null()
    for part in parts[1:]:
        guarded.append(part.guarded(missing))
        missing = missing & part.expr.is_null()
    return combine(pl.coalesce, *guarded)


@compile_node.register
def _(node: exp.Nullif, scope: Scope) -> Typed:
    left, right = compile_node(node.this, scope).once(), compile_node(node.expression, scope)
    return combine(lambda a, b: pl.when(a == b).then(None).otherwise(a), left, right)


@compile_node.register
def _(node: exp.Nvl2, scope: Scope) -> Typed:
    known = compile_node(node.this, scope).map(lambda a: a.is_not_null())
    return _choose([(known, compile_node(node.args["true"], scope))], compile_node(node.args["false"], scope))


@compile_node.register
def _(node: exp.IsNan, scope: Scope) -> Typed:
    return compile_node(node.this, scope).map(lambda a: a.is_nan().fill_null(False))


@compile_node.register
def _(node: exp.Nanvl, scope: Scope) -> Typed:
    left, right = compile_node(node.this, scope).once(), compile_node(node.expression, scope)
    return combine(lambda a, b: pl.when(a.is_nan()).then(b).otherwise(a), left, right)


@named("isnull")
def _(arguments: list[Typed], node: exp.Anonymous) -> Typed:
    return arguments[0].map(lambda a: a.is_null())


@named("isnotnull")
def _(arguments: list[Typed], node: exp.Anonymous) -> Typed:
    return arguments[0].map(lambda a: a.is_not_null())


@compile_node.register(exp.Greatest)
@compile_node.register(exp.Least)
def _(node: exp.Expr, scope: Scope) -> Typed:
    parts = [compile_node(part, scope).once() for part in (node.this, *node.expressions)]
    if isinstance(node, exp.Least):
        return combine(pl.min_horizontal, *parts)
    largest = combine(pl.max_horizontal, *parts)
    if largest.dtype not in FLOATS:
        return largest
    # Polars passes over NaN, which is right for the least of numbers and wrong for the greatest.
    unordered = combine(lambda *values: pl.any_horizontal(value.is_nan() for value in values), *parts)
    return combine(
        lambda nan, most: pl.when(nan).then(math.nan).otherwise(most).cast(largest.dtype), unordered, largest
    )
