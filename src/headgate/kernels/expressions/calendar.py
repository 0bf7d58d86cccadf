"""Intervals, and dates and timestamps moved by them.

A day-time interval is a duration. Months and years have no fixed length, so an interval of them exists only
beside a date, as in `date + INTERVAL 1 MONTH`, where the end of a short month stops it, as in Spark SQL.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import polars as pl
from sqlglot import exp

from headgate.kernels.expressions.compile import compile_node, constant_integer
from headgate.kernels.expressions.division import divided
from headgate.kernels.expressions.dtypes import INTERVAL, TIMESTAMP
from headgate.kernels.expressions.typed import Check, Scope, Typed, combine, shown
from headgate.model.errors import UnsupportedError
from headgate.model.time import DAY, FIRST_DAY, LAST_DAY, LONGEST_INTERVAL, MONTHS, UNITS


def unit_name(node: exp.Expr) -> str:
    """A unit of time in capitals and in the singular."""
    return node.name.upper().removesuffix("S")


@compile_node.register
def _(node: exp.Interval, scope: Scope) -> Typed:
    count, length = Fraction(node.name), _unit_length(node.args["unit"], node)
    return Typed(pl.lit(round(count * length), dtype=pl.Int64).cast(INTERVAL), scope)


def _unit_length(unit: exp.Expr, node: exp.Expr) -> int:
    length = UNITS.get(unit_name(unit))
    if length is None:
        raise UnsupportedError(
            f"`{shown(node)}` has no fixed length",
            remedy="use days or smaller units, or add it to a date or timestamp",
        )
    return length


def written_step(node: exp.Expr) -> tuple[exp.Expr, exp.Interval] | None:
    """What is moved and by which interval, if an interval is written out as an operand of + or -."""
    left, right = node.this, node.expression
    if isinstance(right.unnest(), exp.Interval):
        return left, right.unnest()
    if isinstance(left.unnest(), exp.Interval) and isinstance(node, exp.Add):
        return right, left.unnest()
    return None


def moved(when: Typed, step: exp.Interval, sign: int, node: exp.Expr) -> Typed:
    """A date, timestamp or interval moved by an interval that is written out.

    A date moved by days is a date; by smaller units it is a timestamp.
    """
    unit = step.args.get("unit")
    if isinstance(unit, exp.Var) and unit_name(unit) in MONTHS:
        count = constant_integer(exp.cast(step.this, "int"), f"the number of months in `{shown(step)}`")
        return by_months(when, Typed(pl.lit(sign * count), when.scope), node, MONTHS[unit_name(unit)])
    length = compile_node(step, when.scope)
    days = isinstance(unit, exp.Var) and _unit_length(unit, step) % DAY == 0
    if when.dtype == pl.Date and not days:
        return combine(lambda a, b: a.cast(TIMESTAMP) + sign * b, when, length)
    return combine(lambda a, b: a + sign * b, when, length)


def by_days(date: Typed, days: Typed, node: exp.Expr, sign: int = 1) -> Typed:
    """A date moved by whole days; an error where it leaves the calendar."""

    def moved_by(a: pl.Expr, count: pl.Expr) -> pl.Expr:
        day = a.cast(pl.Int32).cast(pl.Int64) + sign * count.cast(pl.Int64).clip(
            -LONGEST_INTERVAL // DAY, LONGEST_INTERVAL // DAY
        )
        return pl.when(day.is_between(FIRST_DAY, LAST_DAY)).then(day.cast(pl.Int32)).cast(pl.Date)

    return _in_calendar(moved_by, date, days, node)


def by_months(when: Typed, months: Typed, node: exp.Expr, size: int = 1) -> Typed:
    """A date or timestamp moved by so many times `size` months, stopping at the end of a short one."""

    def moved_by(a: pl.Expr, count: pl.Expr) -> pl.Expr:
        far = LONGEST_INTERVAL // (28 * DAY)
        total = (count.cast(pl.Int64).clip(-far, far) * size).clip(-far, far)
        found = a.dt.offset_by(pl.format("{}mo", total))
        return pl.when(found.dt.year().is_between(1, 9999)).then(found)

    return _in_calendar(moved_by, when, months, node)


def by_units(when: Typed, count: Typed, size: int, node: exp.Expr) -> Typed:
    """A timestamp moved by so many units of a fixed length."""

    def moved_by(a: pl.Expr, n: pl.Expr) -> pl.Expr:
        step = n.cast(pl.Int64).clip(-LONGEST_INTERVAL // size, LONGEST_INTERVAL // size) * size
        found = a + step.cast(pl.Duration("us"))
        return pl.when(found.dt.year().is_between(1, 9999)).then(found)

    return _in_calendar(moved_by, when, count, node)


def _in_calendar(
    function: Callable[[pl.Expr, pl.Expr], pl.Expr], when: Typed, count: Typed, node: exp.Expr
) -> Typed:
    """The result of a function that gives NULL outside of the calendar, where it is an error."""
    when, count = when.once(), count.once()
    found = combine(function, when, count).once()
    lost = when.expr.is_not_null() & count.expr.is_not_null() & found.expr.is_null()
    return found.failing([Check(lost, "is outside of the years 1 to 9999", node)])


def months_between(earlier: pl.Expr, later: pl.Expr) -> pl.Expr:
    """How many whole months lie between two instants, negative if the second is the earlier one.

    As in Java, a day that is not over does not count: from 31 March, 10:00, to 1 May, 9:00, it is until 30 April
    only, which is no month.
    """

    def counted(day: pl.Expr) -> pl.Expr:
        """Days as if each month had 32: nothing shorter than a month is as long as that."""
        date = day.cast(pl.Int32).cast(pl.Date)
        months = date.dt.year().cast(pl.Int64) * 12 + date.dt.month().cast(pl.Int64)
        return months * 32 + date.dt.day().cast(pl.Int64)

    start, end = earlier.cast(pl.Int64), later.cast(pl.Int64)
    first, last, rest = start // DAY, end // DAY, end % DAY - start % DAY
    begun = (
        pl.when((last > first) & (rest < 0)).then(1).when((last < first) & (rest > 0)).then(-1).otherwise(0)
    )
    return toward_zero(counted(last - begun) - counted(first), 32)


def toward_zero(number: pl.Expr, by: int) -> pl.Expr:
    """Whole numbers divided, rounded toward zero."""
    return number.sign() * (number.abs() // by)


def months_of(unit: str) -> int | None:
    """How many months a unit has; None for units of a fixed length."""
    return MONTHS.get(unit)


def scale(operator: str, left: Typed, right: Typed, node: exp.Expr) -> tuple[Typed, list[Check]]:
    """An interval times or divided by a number, rounded half away from zero to microseconds."""
    if right.dtype == INTERVAL and operator == "*":
        left, right = right, left
    if left.dtype != INTERVAL or right.dtype == INTERVAL:
        raise UnsupportedError(
            f"`{shown(node)}` is not supported: multiply or divide an interval by a number"
        )

    def scaled(length: pl.Expr, factor: pl.Expr) -> pl.Expr:
        micros, number = length.cast(pl.Int64), factor.cast(pl.Float64)
        product = micros * number if operator == "*" else divided(micros, number)
        whole = product.round(0, mode="half_away_from_zero")
        return pl.when(whole.abs() <= LONGEST_INTERVAL).then(whole).cast(pl.Int64).cast(INTERVAL)

    value = combine(scaled, left, right).once()
    known = left.expr.is_not_null() & right.expr.is_not_null()
    zero = right.expr == 0 if operator == "/" else pl.lit(False)
    failures = [Check(known & ~zero & value.expr.is_null(), "is too long for an interval", node)]
    return value, failures + ([Check(known & zero, "divides by zero", node)] if operator == "/" else [])
