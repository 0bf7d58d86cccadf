"""Fields of structs and elements of arrays."""

from __future__ import annotations

import polars as pl
from sqlglot import exp

from headgate.kernels.expressions.compile import compile_node, named
from headgate.kernels.expressions.typed import Check, Scope, Typed, combine, shown
from headgate.model.errors import UnsupportedError


@compile_node.register
def _(node: exp.Dot, scope: Scope) -> Typed:
    value = compile_node(node.this, scope)
    if isinstance(value.dtype, pl.List):
        return value.map(lambda a: a.list.eval(pl.element().struct.field(node.expression.name)))
    return value.map(lambda a: a.struct.field(node.expression.name))


@compile_node.register
def _(node: exp.Bracket, scope: Scope) -> Typed:
    value, index = compile_node(node.this, scope), node.expressions[0]
    if isinstance(value.dtype, pl.Struct):
        return value.map(lambda a: a.struct.field(index.name))
    if not isinstance(value.dtype, pl.List) or _is_map(value.dtype):
        raise UnsupportedError(f"`{shown(node)}` is not an element of an array or a field of a struct")
    from_one = bool(node.args.get("offset"))
    return _element(value, compile_node(index, scope), node, from_one=from_one)


@named("get")
def _(arguments: list[Typed], node: exp.Anonymous) -> Typed:
    array, index = arguments
    inside = index.expr >= 0
    return combine(lambda a, i: pl.when(inside).then(_at(a, i)), array, index)


def _element(array: Typed, index: Typed, node: exp.Expr, *, from_one: bool) -> Typed:
    array, index = array.once(), index.once()
    length = array.expr.list.len().cast(pl.Int64)
    position = index.expr.cast(pl.Int64)
    if from_one:
        offset = pl.when(position > 0).then(position - 1).otherwise(position)
        outside = (position == 0) | (position.abs() > length)
    else:
        offset, outside = position, (position < 0) | (position >= length)
    value = combine(lambda a, _i: pl.when(~outside).then(_at(a, offset)), array, index)
    return value.failing([Check(outside, "asks for an element that the array does not have", node)])


def _at(array: pl.Expr, index: pl.Expr) -> pl.Expr:
    return array.list.get(index, null_on_oob=True)


@compile_node.register
def _(node: exp.ArraySize, scope: Scope) -> Typed:
    return compile_node(node.this, scope).map(lambda a: a.list.len().cast(pl.Int32))


@named("cardinality")
def _(arguments: list[Typed], node: exp.Anonymous) -> Typed:
    return arguments[0].map(lambda a: a.list.len().cast(pl.Int32))


@compile_node.register
def _(node: exp.ArrayContains, scope: Scope) -> Typed:
    array, member = compile_node(node.this, scope), compile_node(node.expression, scope)

    def contains(a: pl.Expr, m: pl.Expr) -> pl.Expr:
        hit = a.list.contains(m)
        unknown = a.list.eval(pl.element().is_null()).list.any()
        return pl.when(hit).then(True).when(unknown | m.is_null()).then(None).otherwise(hit)

    return combine(contains, array, member)


def _is_map(dtype: pl.List) -> bool:
    inner = dtype.inner
    return isinstance(inner, pl.Struct) and [field.name for field in inner.fields] == ["key", "value"]
