"""Scalar: a typed, bound expression over the columns of a plan node.

The expression is a sqlglot tree in which every column is a bare, quoted identifier that holds the full
name of a column of the node's input (`b.itemid`). Every implicit conversion has been made an explicit CAST,
so an engine evaluates what it sees and decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from sqlglot import exp

from headgate.model import types
from headgate.model.balance import balanced


def column(name: str) -> exp.Column:
    """The expression that reads the column `name`."""
    return exp.Column(this=exp.Identifier(this=name, quoted=True))


@dataclass(frozen=True)
class Scalar:
    """An expression and the type of its value."""

    expression: exp.Expr
    type: pa.DataType

    @staticmethod
    def column(name: str, type: pa.DataType) -> Scalar:
        return Scalar(column(name), type)

    @cached_property
    def columns(self) -> frozenset[str]:
        """Full names of the columns that it reads."""
        if self.is_column:
            return frozenset((self.expression.name,))
        return frozenset(c.name for c in self.expression.find_all(exp.Column))

    @property
    def is_column(self) -> bool:
        return isinstance(self.expression, exp.Column)

    @property
    def is_constant(self) -> bool:
        return not self.columns

    @property
    def is_false(self) -> bool:
        """Whether it is the constant FALSE."""
        return isinstance(self.expression, exp.Boolean) and not self.expression.this

    def replace(self, substitute: Callable[[str], exp.Expr | None]) -> Scalar:
        """The same scalar with columns replaced where `substitute` gives something for their name."""

        def visit(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Column):
                new = substitute(node.name)
                if new is not None:
                    fresh = new.copy()
                    fresh.type = node.type
                    return fresh
            return node

        changed = visit(self.expression.copy()) if self.is_column else self.expression.transform(visit)
        return Scalar(changed, self.type)

    def rename(self, names: dict[str, str]) -> Scalar:
        return self.replace(lambda name: column(names[name]) if name in names else None)

    def show(self) -> str:
        """The expression as people read it: Spark SQL, column names bare, numbers without their casts."""

        def bare(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Column):
                return exp.Column(this=exp.Identifier(this=node.name, quoted=False))
            if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal) and not node.this.is_string:
                return node.this
            return node

        return parenthesized(self.expression).transform(bare).sql(dialect="spark")


_COMPARISONS = (
    *(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ),
    *(exp.Is, exp.In, exp.Like, exp.ILike, exp.RegexpLike),
)
_LEVELS: tuple[tuple[type[exp.Expr], ...], ...] = (
    (exp.Or,),
    (exp.And,),
    (exp.Not,),
    _COMPARISONS,
    (exp.DPipe,),
    (exp.Add, exp.Sub),
    (exp.Mul, exp.Div, exp.IntDiv, exp.Mod),
    (exp.Neg,),
    (exp.Bracket, exp.Dot),
)
"""Operators from the loosest to the tightest; everything else holds its operands in parentheses of its own."""


def parenthesized(expression: exp.Expr) -> exp.Expr:
    """A copy that keeps its meaning as text: bound trees have no parentheses, text needs some."""
    copy = expression.copy()
    for node in list(copy.walk()):
        level = _level(node)
        if level == len(_LEVELS):
            continue
        compares = isinstance(node, _COMPARISONS)
        joins = isinstance(node, (exp.And, exp.Or, exp.DPipe))
        for key in ("this", "expression"):
            operand = node.args.get(key)
            if not isinstance(operand, exp.Expr):
                continue
            ties = _level(operand) == level and not joins and (key == "expression" or compares)
            if _level(operand) < level or ties:
                node.set(key, exp.Paren(this=operand))
    return copy


def _level(node: exp.Expr) -> int:
    return next((index for index, kinds in enumerate(_LEVELS) if isinstance(node, kinds)), len(_LEVELS))


def conjunction(parts: Iterable[Scalar]) -> Scalar:
    """All parts joined by AND; TRUE when there are none."""
    expressions = [part.expression.copy() for part in parts]
    joined = balanced(exp.and_(*expressions, copy=False)) if expressions else exp.true()
    return Scalar(joined, types.BOOLEAN)
