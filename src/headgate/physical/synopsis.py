"""Synopses: the attributes, cells and buckets of a FiniteMemoryPlan as expressions over the rows of an input."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import cached_property, reduce
from operator import and_

import polars as pl

from headgate.kernels.distinct.representatives import Bucket, Representatives, Side
from headgate.kernels.expressions import compile_scalar
from headgate.kernels.join.bucket_join import BucketInput
from headgate.safety.reasons.finite_memory import FiniteMemoryPlan
from headgate.safety.theory.memory.buckets import StreamSynopsis
from headgate.safety.theory.memory.cut import Cut, IntegerCut
from headgate.safety.theory.memory.query import Attribute, Comparison, Constant, Element

# Twice the digits of any DECIMAL: the constants of one are divided without rounding.
_EXACT = Context(prec=76)


@dataclass(frozen=True)
class InputSynopsis:
    """The synopsis of one input of a join."""

    method: FiniteMemoryPlan
    member: int

    def representatives(self, schema: dict[str, pl.DataType]) -> Representatives:
        """The kernel that keeps the rows that stand for their buckets."""
        codes = {_name(a): self._code(a) for a in self._known}
        return Representatives(schema, self._condition, codes, self._cells, self.sides)

    def counted(self, schema: dict[str, pl.DataType], summed: dict[str, pl.Expr]) -> BucketInput:
        """The input of a join that counts the rows of each bucket."""
        inline = {_name(a): self._code(a) for a in self._known}
        cells = tuple(self._cell(cut, inline[_name(cut.attribute)]) for cut in self._synopsis.cuts)
        return BucketInput(schema, self._condition, cells, summed)

    def sides(self, bucket: Bucket) -> tuple[Side, ...]:
        """Who stands for a bucket."""
        found = self._known_sides.get(bucket)
        if found is None:
            found = self._known_sides[bucket] = self._sides_of(bucket)
        return found

    @cached_property
    def _known_sides(self) -> dict[Bucket, tuple[Side, ...]]:
        """What has been found out, because it takes thought and is asked in every step."""
        return {}

    def _sides_of(self, bucket: Bucket) -> tuple[Side, ...]:
        keep = self._synopsis.keep(bucket)
        found = []
        if keep.greatest:
            found.append(Side("greatest", tuple(map(_name, keep.greatest))))
        if keep.least:
            found.append(Side("least", tuple(map(_name, keep.least))))
        if not found:
            found += [
                Side("greatest" if each.greatest else "least", (_name(each.attribute),))
                for each in self.method.extremes
                if each.attribute.stream == self._synopsis.occurrence
            ]
        return tuple(dict.fromkeys(found)) or (Side("any"),)

    @cached_property
    def _synopsis(self) -> StreamSynopsis:
        return self.method.synopses[self.member]

    @property
    def _known(self) -> list[Attribute]:
        """The attributes of the input that its columns give."""
        return [a for a in self.method.expressions if a.stream == self._synopsis.occurrence]

    def _code(self, attribute: Attribute) -> pl.Expr:
        value = compile_scalar(self.method.expressions[attribute])
        match self.method.translated.kinds[attribute]:
            case "whole" | "boolean":
                return value.cast(pl.Int64)
            case "date":
                return value.cast(pl.Int32).cast(pl.Int64)
            case "instant":
                return value.dt.epoch("us")
            case "text" if self._is_listed(attribute):
                codes = {text: code for code, text in enumerate(self.method.translated.values[attribute])}
                return value.replace_strict(codes, default=None, return_dtype=pl.Int64)
        return value

    def _is_listed(self, attribute: Attribute) -> bool:
        return self.method.translated.query.domain(attribute).is_finite

    def _literal(self, attribute: Attribute, code: int | Fraction) -> pl.Expr:
        """A constant in the terms of an attribute's code."""
        match self.method.translated.kinds[attribute]:
            case "text" if not self._is_listed(attribute):
                return pl.lit(self.method.translated.values[attribute][int(code)])
            case "dense":
                exact = Fraction(code)
                decimal = str(self.method.translated.scalars[attribute].type).startswith("decimal")
                return pl.lit(
                    _EXACT.divide(Decimal(exact.numerator), Decimal(exact.denominator))
                    if decimal
                    else float(exact)
                )
        return pl.lit(int(code), dtype=pl.Int64)

    @property
    def _cells(self) -> tuple[pl.Expr, ...]:
        """The bucket in terms of code columns."""
        columns = {a: pl.col(_name(a)) for a in self._synopsis.attributes}
        cells = [self._cell(cut, columns[cut.attribute]) for cut in self._synopsis.cuts]
        if self._synopsis.ordered:
            cells += _ranks(list(columns.values()))
        return tuple(cells)

    def _cell(self, cut: Cut, code: pl.Expr) -> pl.Expr:
        if isinstance(cut, IntegerCut):
            return code.clip(cut.low - 1, cut.high + 1) - (cut.low - 1)
        points = [self._literal(cut.attribute, point) for point in cut.points]
        beside = [(code > p).cast(pl.Int64) + (code >= p).cast(pl.Int64) for p in points]
        return pl.sum_horizontal(beside) if beside else pl.lit(0, dtype=pl.Int64)

    @property
    def _condition(self) -> pl.Expr | None:
        """What a row must satisfy to meet anything; NULL meets nothing where it is compared."""
        known = self._known
        parts = [self._code(a).is_not_null() for a in known if a in self.method.translated.compared]
        parts += [
            self._holds(each).fill_null(True)
            for each in self._synopsis.filters
            if all(attribute in known for attribute in each.attributes)
        ]
        return reduce(and_, parts) if parts else None

    def _holds(self, comparison: Comparison) -> pl.Expr:
        attribute = comparison.attributes[0]

        def side(element: Element) -> pl.Expr:
            if isinstance(element, Constant):
                return self._literal(attribute, element.value)
            return self._code(element)

        left, right = side(comparison.left), side(comparison.right)
        match comparison.op:
            case "<":
                return left < right
            case "<=":
                return left <= right
            case "=":
                return left == right
            case ">=":
                return left >= right
            case ">":
                return left > right


def _name(attribute: Attribute) -> str:
    return f"_code.{attribute}"


def _ranks(codes: list[pl.Expr]) -> list[pl.Expr]:
    """For each code, how many different smaller ones there are among all."""
    first = [
        reduce(and_, [other != code for other in codes[:place]], pl.lit(True))
        for place, code in enumerate(codes)
    ]
    return [
        pl.sum_horizontal(
            [((other < code) & new).cast(pl.Int64) for other, new in zip(codes, first, strict=True)]
        )
        for code in codes
    ]
