"""Typed: a Polars expression under construction, its type, and the rows on which it must fail.

Spark SQL stops at an overflow or a division by zero, but only where the value is asked for:
`IF(b = 0, 0, a / b)` is fine. Polars computes every branch on every row. So an expression here never fails by
itself; it carries checks, masks of the rows on which it would have failed, and each branch narrows the masks
of what it guards.

An operand that a value and its checks use several times is computed once, under a name: without that, the
size of a nested expression would grow with the power of its depth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count, groupby

import polars as pl
from sqlglot import exp

from headgate.model import types
from headgate.model.scalar import Scalar

_numbers = count()

# Messages quote no more of an expression than this many characters.
_LONGEST = 100


class NeedsSchemaError(Exception):
    """The translation depends on the type of a column, and no schema was given."""


@dataclass(frozen=True)
class Check:
    """A mask of the rows on which a part of the expression has no value, why, which part, and what to do."""

    mask: pl.Expr
    reason: str
    part: exp.Expr
    remedy: str = (
        "exclude such rows before, or use TRY_CAST, TRY_DIVIDE, NULLIF or CASE to say what they should give"
    )

    @property
    def cause(self) -> str:
        return f"`{shown(self.part)}` {self.reason}"

    def where(self, guard: pl.Expr) -> Check:
        """The same check, on the rows only that pass a guard (TRUE, not NULL)."""
        return replace(self, mask=self.mask & guard)

    @property
    def columns(self) -> list[str]:
        """The columns that the part reads."""
        return list(dict.fromkeys(column.name for column in self.part.find_all(exp.Column)))


Checks = tuple[Check, ...]


@dataclass(frozen=True, eq=False)
class Let:
    """A value computed once under a name, after all values of lower levels."""

    name: str
    expr: pl.Expr
    dtype: pl.DataType
    level: int


Lets = tuple[Let, ...]


@dataclass(frozen=True)
class Scope:
    """The columns that an expression may read; None when their types are not known."""

    schema: Mapping[str, pl.DataType] | None

    def dtype(self, expr: pl.Expr, lets: Lets) -> pl.DataType:
        """The type of an expression over these columns and named values, as Polars derives it."""
        names = expr.meta.root_names()
        if self.schema is None and names:
            raise NeedsSchemaError
        known = {let.name: let.dtype for let in lets}
        schema = {name: known[name] if name in known else (self.schema or {})[name] for name in names}
        return pl.LazyFrame(schema=schema).select(expr.alias("value")).collect_schema()["value"]


@dataclass(frozen=True)
class Typed:
    """An expression in its scope, the named values that it uses, and everything that can go wrong in it."""

    expr: pl.Expr
    scope: Scope
    checks: Checks = ()
    lets: Lets = ()
    simple: bool = False
    """Whether it is a column, a constant or a name already."""

    @cached_property
    def dtype(self) -> pl.DataType:
        return self.scope.dtype(self.expr, self.lets)

    def once(self) -> Typed:
        """The same value, under a name if it would be computed again wherever it is used."""
        if self.simple or self.scope.schema is None:
            return self
        level = 1 + max((let.level for let in self.lets), default=0)
        let = Let(f"_let.{next(_numbers)}", self.expr, self.dtype, level)
        return replace(self, expr=pl.col(let.name), lets=(*self.lets, let), simple=True)

    def map(self, function: Callable[[pl.Expr], pl.Expr]) -> Typed:
        """The result of a function that cannot fail."""
        return replace(self, expr=function(self.expr), simple=False)

    def failing(self, failures: Iterable[Check]) -> Typed:
        """The same value with more reasons to fail."""
        return replace(self, checks=(*self.checks, *failures))

    def guarded(self, guard: pl.Expr) -> Typed:
        """The same value, asked for only where the guard is TRUE."""
        return replace(self, checks=tuple(check.where(guard) for check in self.checks))

    def or_null(self, failures: Iterable[Check]) -> Typed:
        """The value where it exists and NULL on the rows that would have failed."""
        failed = pl.any_horizontal(pl.lit(False), *(failure.mask for failure in failures))
        return self.map(lambda a: pl.when(failed.fill_null(False)).then(None).otherwise(a))


def combine(function: Callable[..., pl.Expr], *operands: Typed) -> Typed:
    """The result of a function that cannot fail, over several operands."""
    checks = tuple(check for operand in operands for check in operand.checks)
    return Typed(
        function(*(operand.expr for operand in operands)), operands[0].scope, checks, together(operands)
    )


def together(operands: Iterable[Typed]) -> Lets:
    """The named values of all operands, each once."""
    return tuple(dict.fromkeys(let for operand in operands for let in operand.lets))


def with_lets(frame: pl.DataFrame, lets: Iterable[Let]) -> pl.DataFrame:
    """The frame with a column for each named value."""
    ordered = sorted(dict.fromkeys(lets), key=lambda let: let.level)
    for _, same_level in groupby(ordered, key=lambda let: let.level):
        frame = frame.with_columns(let.expr.alias(let.name) for let in same_level)
    return frame


def one_height(columns: Sequence[pl.Series]) -> list[pl.Series]:
    """The columns that a function over a batch has got, constants as tall as the others."""
    height = max(map(len, columns))
    return [each if len(each) == height else each.new_from_index(0, height) for each in columns]


def shown(node: exp.Expr) -> str:
    """An expression as people read it."""
    text = Scalar(node, types.NULL).show()
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
