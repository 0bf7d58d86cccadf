"""Compile one node of a bound expression; the families of functions register their nodes here."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from dataclasses import replace
from functools import singledispatch

import polars as pl
from sqlglot import exp

from headgate.kernels.expressions.typed import Scope, Typed, shown, with_lets
from headgate.model.errors import UnsupportedError


@singledispatch
def compile_node(node: exp.Expr, scope: Scope) -> Typed:
    """A sqlglot node whose columns are flat names becomes a Polars expression with its checks."""
    raise UnsupportedError(f"`{shown(node)}` is not supported here")


Named = Callable[[list[Typed], exp.Anonymous], Typed]
_named: dict[str, Named] = {}


def named(*names: str) -> Callable[[Named], Named]:
    """Registers functions that sqlglot has no class for, by their lower-case Spark names."""

    def register(function: Named) -> Named:
        for name in names:
            _named[name] = function
        return function

    return register


def constant(node: exp.Expr | None, what: str) -> object:
    """The Python value of an argument that must not depend on the row."""
    if node is None or next(node.find_all(exp.Column), None) is not None:
        text = "" if node is None else f", not `{shown(node)}`"
        raise UnsupportedError(f"{what} must be a constant{text}")
    value = compile_node(node, Scope({}))
    return with_lets(pl.DataFrame({"_height": [0]}), value.lets).select(value.expr).item()


def constant_text(node: exp.Expr | None, what: str) -> str:
    """A constant argument as text; NULL is refused, since the answer would be NULL on every row."""
    value = constant(node, what)
    if not isinstance(value, str):
        raise UnsupportedError(f"{what} must be text, not {value!r}")
    return value


def constant_integer(node: exp.Expr | None, what: str) -> int:
    """A constant argument as a whole number."""
    value = constant(node, what)
    if not isinstance(value, int):
        raise UnsupportedError(f"{what} must be a whole number, not {value!r}")
    return value


@compile_node.register
def _(node: exp.Column, scope: Scope) -> Typed:
    return Typed(pl.col(node.name), scope, simple=True)


@compile_node.register
def _(node: exp.Paren, scope: Scope) -> Typed:
    return compile_node(node.this, scope)


@compile_node.register
def _(node: exp.Boolean, scope: Scope) -> Typed:
    return Typed(pl.lit(node.this, dtype=pl.Boolean), scope, simple=True)


@compile_node.register
def _(node: exp.Null, scope: Scope) -> Typed:
    return Typed(pl.lit(None), scope, simple=True)


@compile_node.register
def _(node: exp.Literal, scope: Scope) -> Typed:
    if node.is_string:
        return Typed(pl.lit(node.this, dtype=pl.String), scope, simple=True)
    return Typed(number(node.this), scope, simple=True)


@compile_node.register
def _(node: exp.Anonymous, scope: Scope) -> Typed:
    function = _named.get(node.name.lower())
    if function is None:
        raise UnsupportedError(f"the function {node.name} is not supported")
    found = function([compile_node(argument, scope) for argument in node.expressions], node)
    # A function without arguments does not know where it stands.
    return replace(found, scope=scope)


def number(text: str) -> pl.Expr:
    """A numeric literal as Spark SQL types it: INT, BIGINT, DECIMAL, or DOUBLE when it has an exponent."""
    if "e" in text.lower():
        return pl.lit(float(text), dtype=pl.Float64)
    value = decimal.Decimal(text)
    _, digits, exponent = value.as_tuple()
    scale = -int(exponent)
    if "." not in text and abs(value) < 2**31:
        return pl.lit(int(value), dtype=pl.Int32)
    if "." not in text and abs(value) < 2**63:
        return pl.lit(int(value), dtype=pl.Int64)
    return pl.lit(value, dtype=pl.Decimal(max(len(digits), scale), max(scale, 0)))
