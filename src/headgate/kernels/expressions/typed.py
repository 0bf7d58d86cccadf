"""Typed: a Polars expression under construction, its type, and the rows on which it must fail.

Spark SQL stops at an overflow or a division by zero, but only where the value is asked for:
`IF(b = 0, 0, a / b)` is fine. Polars computes every branch on every row. So an expression here never fails by
itself; it carries checks, masks of the rows on which it would have failed, and each branch narrows the masks
of what it guards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import polars as pl
from sqlglot import exp

from headgate.model import types
from headgate.model.scalar import Scalar


class NeedsSchemaError(Exception):
    """The translation depends on the type of a column, and no schema was given."""


@dataclass(frozen=True)
class Check:
    """A mask that is true on the rows where the value does not exist, and why."""

    mask: pl.Expr
    cause: str

    def where(self, guard: pl.Expr) -> Check:
        """The same check, on the rows only that pass a guard (TRUE, not NULL)."""
        return replace(self, mask=self.mask & guard.fill_null(False))


Checks = tuple[Check, ...]


@dataclass(frozen=True)
class Scope:
    """The columns that an expression may read; None when their types are not known."""

    schema: Mapping[str, pl.DataType] | None

    def dtype(self, expr: pl.Expr) -> pl.DataType:
        """The type of an expression over these columns, as Polars derives it."""
        names = expr.meta.root_names()
        if self.schema is None and names:
            raise NeedsSchemaError
        frame = pl.LazyFrame(schema={name: (self.schema or {})[name] for name in names})
        return frame.select(expr.alias("value")).collect_schema()["value"]


@dataclass(frozen=True)
class Typed:
    """An expression in its scope, with everything that can go wrong in it."""

    expr: pl.Expr
    scope: Scope
    checks: Checks = ()

    @cached_property
    def dtype(self) -> pl.DataType:
        return self.scope.dtype(self.expr)

    def map(self, function: Callable[[pl.Expr], pl.Expr]) -> Typed:
        """The result of a function that cannot fail."""
        return Typed(function(self.expr), self.scope, self.checks)

    def failing(self, failures: Iterable[Check]) -> Typed:
        """The same value with more reasons to fail."""
        return replace(self, checks=(*self.checks, *failures))

    def guarded(self, guard: pl.Expr) -> Typed:
        """The same value, asked for only where the guard is TRUE."""
        return replace(self, checks=tuple(check.where(guard) for check in self.checks))

    def or_null(self, failures: Iterable[Check]) -> Typed:
        """The value where it exists and NULL on the rows that would have failed."""
        expr = self.expr
        for failure in failures:
            expr = pl.when(failure.mask.fill_null(False)).then(None).otherwise(expr)
        return replace(self, expr=expr)


def combine(function: Callable[..., pl.Expr], *operands: Typed) -> Typed:
    """The result of a function that cannot fail, over several operands."""
    checks = tuple(check for operand in operands for check in operand.checks)
    return Typed(function(*(operand.expr for operand in operands)), operands[0].scope, checks)


def shown(node: exp.Expr) -> str:
    """An expression as people read it."""
    return Scalar(node, types.NULL).show()
