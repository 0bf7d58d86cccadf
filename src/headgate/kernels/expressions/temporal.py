"""Functions on dates and timestamps. The session's time zone is UTC."""

from __future__ import annotations

import re
from collections.abc import Callable

import polars as pl
from sqlglot import exp

from headgate.kernels.expressions import calendar, notation
from headgate.kernels.expressions.casts import convert
from headgate.kernels.expressions.compile import compile_node, constant_text, named
from headgate.kernels.expressions.dtypes import TIMESTAMP
from headgate.kernels.expressions.typed import Check, Scope, Typed, combine, shown
from headgate.model.errors import UnsupportedError
from headgate.model.time import MILLISECOND, SECOND, UNITS

_TRUNCATE = {
    "MICROSECOND": "1us",
    "MILLISECOND": "1ms",
    "SECOND": "1s",
    "MINUTE": "1m",
    "HOUR": "1h",
    "DAY": "1d",
    "DD": "1d",
    "WEEK": "1w",
    "MONTH": "1mo",
    "MON": "1mo",
    "MM": "1mo",
    "QUARTER": "1q",
    "YEAR": "1y",
    "YYYY": "1y",
    "YY": "1y",
}
# What stands for a part of a date in a pattern, the part, and its value when the pattern leaves it out.
_DEFAULTS = (
    (r"%Y|%y", "%Y", "1970"),
    (r"%m|%b|%B|%-m", "%m", "01"),
    (r"%d|%-d|%-?j", "%d", "01"),
    (r"%H|%-H|%-?I", "%H", "00"),
    (r"%M|%-M", "%M", "00"),
    (r"%S|%-S", "%S", "00"),
)
_PARTS: dict[str, Callable[[pl.Expr], pl.Expr]] = {
    "YEAR": lambda a: a.dt.year(),
    "QUARTER": lambda a: a.dt.quarter(),
    "MONTH": lambda a: a.dt.month(),
    "WEEK": lambda a: a.dt.week(),
    "DAY": lambda a: a.dt.day(),
    "DAYOFWEEK": lambda a: a.dt.weekday() % 7 + 1,
    "DAYOFYEAR": lambda a: a.dt.ordinal_day(),
    "HOUR": lambda a: a.dt.hour(),
    "MINUTE": lambda a: a.dt.minute(),
    "SECOND": lambda a: a.dt.second(),
}
_CLASSES: dict[type[exp.Expr], str] = {
    exp.Year: "YEAR",
    exp.Quarter: "QUARTER",
    exp.Month: "MONTH",
    exp.WeekOfYear: "WEEK",
    exp.Day: "DAY",
    exp.DayOfMonth: "DAY",
    exp.DayOfWeek: "DAYOFWEEK",
    exp.DayOfYear: "DAYOFYEAR",
    exp.Hour: "HOUR",
    exp.Minute: "MINUTE",
    exp.Second: "SECOND",
}


@compile_node.register(exp.Year)
@compile_node.register(exp.Quarter)
@compile_node.register(exp.Month)
@compile_node.register(exp.WeekOfYear)
@compile_node.register(exp.Day)
@compile_node.register(exp.DayOfMonth)
@compile_node.register(exp.DayOfWeek)
@compile_node.register(exp.DayOfYear)
@compile_node.register(exp.Hour)
@compile_node.register(exp.Minute)
@compile_node.register(exp.Second)
def _(node: exp.Expr, scope: Scope) -> Typed:
    return _part(_CLASSES[type(node)], compile_node(node.this, scope), node)


@compile_node.register
def _(node: exp.Extract, scope: Scope) -> Typed:
    if calendar.unit_name(node.this) != "SECOND":
        raise UnsupportedError(
            f"`{shown(node)}` is not a function of time here; the binder has one for each part"
        )
    when = _timestamp(compile_node(node.expression, scope), node)
    micros = when.map(lambda a: a.cast(pl.Int64) % (60 * SECOND))
    return micros.map(lambda m: (m.cast(pl.Decimal(14, 6)) / pl.lit(SECOND)).cast(pl.Decimal(8, 6)))


@named("weekday")
def _(arguments: list[Typed], node: exp.Anonymous) -> Typed:
    return _timestamp(arguments[0], node).map(lambda a: (a.dt.weekday() - 1).cast(pl.Int32))


def _part(unit: str, value: Typed, node: exp.Expr) -> Typed:
    return _timestamp(value, node).map(lambda a: _PARTS[unit](a).cast(pl.Int32))


def _timestamp(value: Typed, node: exp.Expr) -> Typed:
    """A date or text as a timestamp; a timestamp with or without zone as it is."""
    return value if isinstance(value.dtype, pl.Datetime) else convert(value, TIMESTAMP, node)


@compile_node.register
def _(node: exp.TsOrDsToDate, scope: Scope) -> Typed:
    value = compile_node(node.this, scope)
    if (form := node.args.get("format")) is None or value.dtype != pl.String:
        return convert(value, pl.Date(), node.this)
    return _parsed(value, form, node.this).map(lambda a: a.dt.date())


# sqlglot wraps arguments that may be text in this node; the timestamp is all that it stands for.
@compile_node.register
def _(node: exp.TimeStrToTime, scope: Scope) -> Typed:
    return _timestamp(compile_node(node.this, scope), node.this)


@compile_node.register
def _(node: exp.StrToTime, scope: Scope) -> Typed:
    return _parsed(compile_node(node.this, scope), node.args["format"], node.this)


@compile_node.register
def _(node: exp.StrToUnix, scope: Scope) -> Typed:
    value = compile_node(node.this, scope)
    is_text = value.dtype == pl.String
    when = _parsed(value, node.args["format"], node.this) if is_text else _timestamp(value, node.this)
    # Unlike unix_seconds, it cuts the fraction off: half a second before 1970 is 0.
    return when.map(lambda a: a.cast(pl.Int64).abs() // SECOND * a.cast(pl.Int64).sign())


def _parsed(value: Typed, form: exp.Expr | None, node: exp.Expr) -> Typed:
    pattern = strftime(form)
    value = value.once()
    parsed = value.map(lambda a: _full(a, pattern)).once()
    reason = f"has a value that does not have the form {pattern}"
    return parsed.failing([Check(value.expr.is_not_null() & parsed.expr.is_null(), reason, node)])


def _full(text: pl.Expr, pattern: str) -> pl.Expr:
    """Text read by a pattern; what the pattern leaves out starts at its beginning: January, midnight."""
    for directives, part, default in _DEFAULTS:
        if not re.search(directives, pattern):
            text, pattern = text + f"|{default}", f"{pattern}|{part}"
    read = text.str.to_datetime(pattern, time_unit="us", time_zone="UTC", strict=False)
    if "%y" not in pattern:
        return read
    # Two digits are a year from 2000 on; Polars takes 69 to 99 for years before.
    return pl.when(read.dt.year() < 2000).then(read.dt.offset_by("100y")).otherwise(read)


_PATTERN = re.compile(r"(%-?[YymdHIMSjpBbaAzZ]|%[369]f(?!%\df)|%%T|[^A-Za-z%'])*")
_TWICE = re.compile(r"%-?([a-zA-Z])%-?\1")


def strftime(form: exp.Expr | None) -> str:
    """The strftime pattern of a Java date pattern that sqlglot has half translated.

    What it has not translated, or put together from parts of a letter too many, is refused.
    """
    text = constant_text(form, "the pattern of a date").replace("strict", "").replace("%f", "SSSSSS")
    for digits in (9, 6, 3):
        text = text.replace("S" * digits, f"%{digits}f")
    text = text.replace("'T'", "%%T")
    if not _PATTERN.fullmatch(text) or _TWICE.search(text):
        raise UnsupportedError(
            f"the date pattern {text!r} is not supported",
            remedy="write years to seconds, names of days and months, and plain separators or 'T' between them",
        )
    return text.replace("%%T", "T")


@compile_node.register(exp.TimeToStr)
@compile_node.register(exp.UnixToStr)
def _(node: exp.TimeToStr | exp.UnixToStr, scope: Scope) -> Typed:
    value = compile_node(node.this, scope)
    if isinstance(node, exp.UnixToStr):
        value = value.map(lambda a: (a.cast(pl.Int64) * SECOND).cast(TIMESTAMP))
    # Polars does not write nine digits of microseconds.
    pattern = strftime(node.args["format"]).replace("%9f", "%6f000")
    return _timestamp(value, node.this).map(lambda a: a.dt.strftime(pattern))


@compile_node.register(exp.TimestampTrunc)
@compile_node.register(exp.DateTrunc)
def _(node: exp.TimestampTrunc | exp.DateTrunc, scope: Scope) -> Typed:
    unit = calendar.unit_name(node.args["unit"])
    if unit not in _TRUNCATE:
        raise UnsupportedError(f"`{shown(node)}` truncates to {unit}, which is not a unit of time")
    value = compile_node(node.this, scope)
    if isinstance(node, exp.DateTrunc):
        return convert(value, pl.Date(), node.this).map(lambda a: a.dt.truncate(_TRUNCATE[unit]))
    return _timestamp(value, node.this).map(lambda a: a.dt.truncate(_TRUNCATE[unit]))


@compile_node.register
def _(node: exp.DateDiff, scope: Scope) -> Typed:
    later, earlier = (convert(compile_node(n, scope), pl.Date(), n) for n in (node.this, node.expression))
    return combine(lambda a, b: a.cast(pl.Int32) - b.cast(pl.Int32), later, earlier)


@compile_node.register
def _(node: exp.TimestampDiff, scope: Scope) -> Typed:
    unit = calendar.unit_name(node.args["unit"])
    later, earlier = (_timestamp(compile_node(n, scope), n).once() for n in (node.this, node.expression))
    if (months := calendar.months_of(unit)) is not None:
        return combine(
            lambda a, b: calendar.toward_zero(calendar.months_between(b, a), months), later, earlier
        )
    size = UNITS.get(unit)
    if size is None:
        raise UnsupportedError(f"TIMESTAMPDIFF does not count {node.args['unit'].name}")

    def whole(a: pl.Expr, b: pl.Expr) -> pl.Expr:
        return calendar.toward_zero(a.cast(pl.Int64) - b.cast(pl.Int64), size)

    return combine(whole, later, earlier)


@compile_node.register
def _(node: exp.TimestampAdd, scope: Scope) -> Typed:
    when = _timestamp(compile_node(node.this, scope), node.this)
    count, unit = compile_node(node.expression, scope), calendar.unit_name(node.args["unit"])
    if (months := calendar.months_of(unit)) is not None:
        return calendar.by_months(when, count, node, months)
    if unit not in UNITS:
        raise UnsupportedError(f"`{shown(node)}` adds {unit}, which is not a unit of time")
    return calendar.by_units(when, count, UNITS[unit], node)


@compile_node.register
def _(node: exp.TsOrDsAdd, scope: Scope) -> Typed:
    date = convert(compile_node(node.this, scope), pl.Date(), node.this)
    return calendar.by_days(date, compile_node(node.expression, scope), node)


@compile_node.register
def _(node: exp.AddMonths, scope: Scope) -> Typed:
    date = convert(compile_node(node.this, scope), pl.Date(), node.this)
    return calendar.by_months(date, compile_node(node.expression, scope), node)


@compile_node.register
def _(node: exp.LastDay, scope: Scope) -> Typed:
    return convert(compile_node(node.this, scope), pl.Date(), node.this).map(lambda a: a.dt.month_end())


@named("make_date")
def _(arguments: list[Typed], node: exp.Anonymous) -> Typed:
    def assembled(year: pl.Expr, month: pl.Expr, day: pl.Expr) -> pl.Expr:
        padded = (part.cast(pl.String).str.zfill(width) for part, width in ((year, 4), (month, 2), (day, 2)))
        return notation.day_of_calendar(pl.concat_str(*padded, separator="-"))

    arguments = [argument.once() for argument in arguments]
    date = combine(assembled, *arguments).once()
    known = pl.all_horizontal(part.expr.is_not_null() for part in arguments)
    return date.failing([Check(known & date.expr.is_null(), "is not a day of the calendar", node)])


@compile_node.register(exp.UnixMicros)
@compile_node.register(exp.UnixMillis)
@compile_node.register(exp.UnixSeconds)
def _(node: exp.Expr, scope: Scope) -> Typed:
    sizes: dict[type[exp.Expr], int]
    sizes = {exp.UnixMicros: 1, exp.UnixMillis: MILLISECOND, exp.UnixSeconds: SECOND}
    return _timestamp(compile_node(node.this, scope), node.this).map(
        lambda a: a.cast(pl.Int64) // sizes[type(node)]
    )


@named("timestamp_seconds", "timestamp_millis", "timestamp_micros")
def _(arguments: list[Typed], node: exp.Anonymous) -> Typed:
    size = {"timestamp_seconds": SECOND, "timestamp_millis": MILLISECOND, "timestamp_micros": 1}[
        node.name.lower()
    ]
    return arguments[0].map(lambda a: (a.cast(pl.Int64) * size).cast(TIMESTAMP))


@compile_node.register
def _(node: exp.UnixDate, scope: Scope) -> Typed:
    return convert(compile_node(node.this, scope), pl.Date(), node.this).map(lambda a: a.cast(pl.Int32))


@compile_node.register
def _(node: exp.DateFromUnixDate, scope: Scope) -> Typed:
    return compile_node(node.this, scope).map(lambda a: a.cast(pl.Int32).cast(pl.Date))
