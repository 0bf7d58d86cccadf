"""Intervals that are written out: a number and a unit, several of these in one text, or a span of units."""

from __future__ import annotations

import re
from fractions import Fraction

from sqlglot import exp

from headgate.model.time import LONGEST_INTERVAL, MONTHS, UNITS

_MOST_MONTHS = 120_000
# Not \d, which also stands for the digits of other scripts; and no more of them than any interval needs.
_WHOLE = "[0-9]{1,18}"
_NUMBER = rf"[+-]?(?:{_WHOLE}(?:\.[0-9]{{0,18}})?|\.[0-9]{{1,18}})"
_DAYS, _HOURS, _MINUTES = (f"(?P<{unit}>{_WHOLE})" for unit in ("DAY", "HOUR", "MINUTE"))
_SECONDS = rf"(?P<SECOND>{_WHOLE}(?:\.[0-9]{{1,18}})?)"
_SPANS = {
    ("DAY", "HOUR"): f"{_DAYS} {_HOURS}",
    ("DAY", "MINUTE"): f"{_DAYS} {_HOURS}:{_MINUTES}",
    ("DAY", "SECOND"): f"{_DAYS} {_HOURS}:{_MINUTES}:{_SECONDS}",
    ("HOUR", "MINUTE"): f"{_HOURS}:{_MINUTES}",
    ("HOUR", "SECOND"): f"{_HOURS}:{_MINUTES}:{_SECONDS}",
    ("MINUTE", "SECOND"): f"{_MINUTES}:{_SECONDS}",
}


def fixed_interval(node: exp.Interval) -> exp.Interval | None:
    """An interval of a fixed length as a number and one unit; None if it has none."""
    unit = node.args.get("unit")
    text = _text(node)
    if isinstance(unit, exp.IntervalSpan):
        return _whole(_span(text, unit))
    if unit is None:
        return _whole(_sum(text))
    name = _singular(unit.name)
    if name not in UNITS or not re.fullmatch(_NUMBER, text):
        return None
    return _written(text, name) if abs(Fraction(text) * UNITS[name]) <= LONGEST_INTERVAL else None


def months_of(node: exp.Expr) -> int | None:
    """How many months an interval of months, quarters or years has; None for others."""
    node = node.unnest()
    if not isinstance(node, exp.Interval) or not isinstance(unit := node.args.get("unit"), exp.Var):
        return None
    size = MONTHS.get(_singular(unit.name))
    text = _text(node)
    if size is None or not re.fullmatch(rf"[+-]?{_WHOLE}", text) or abs(int(text) * size) > _MOST_MONTHS:
        return None
    return int(text) * size


def month_interval(count: int) -> exp.Interval:
    return _written(str(count), "MONTH")


def is_of_days(node: exp.Expr) -> bool:
    """Whether an interval, as bound, is written in days or weeks."""
    return (
        isinstance(node, exp.Interval) and node.args["unit"].name in ("DAY", "WEEK") and "." not in node.name
    )


def _text(node: exp.Interval) -> str:
    given = node.this
    sign = "-" if isinstance(given, exp.Neg) else ""
    given = given.this if sign else given
    return sign + given.name.strip() if isinstance(given, exp.Literal) else ""


def _singular(unit: str) -> str:
    return unit.upper().removesuffix("S")


def _span(text: str, unit: exp.IntervalSpan) -> Fraction | None:
    pattern = _SPANS.get((_singular(unit.this.name), _singular(unit.expression.name)))
    found = pattern and re.fullmatch(rf"(?P<sign>[+-]?){pattern}", text)
    if not found:
        return None
    fields = found.groupdict()
    sign = -1 if fields.pop("sign") == "-" else 1
    return sign * sum((Fraction(count) * UNITS[name] for name, count in fields.items()), Fraction())


def _sum(text: str) -> Fraction | None:
    pairs = re.findall(rf"({_NUMBER})\s*([A-Za-z]+)", text)
    if not pairs or re.sub(rf"{_NUMBER}\s*[A-Za-z]+\s*", "", text):
        return None
    sizes = [UNITS.get(_singular(unit)) for _, unit in pairs]
    if None in sizes:
        return None
    return sum(
        (Fraction(count) * (size or 0) for (count, _), size in zip(pairs, sizes, strict=True)), Fraction()
    )


def _whole(microseconds: Fraction | None) -> exp.Interval | None:
    if microseconds is None or microseconds.denominator != 1 or abs(microseconds) > LONGEST_INTERVAL:
        return None
    # Hours and not days: a DATE moved by a span of days and hours is an instant, whatever the hours are.
    names = [name for name in UNITS if name not in ("DAY", "WEEK") and microseconds % UNITS[name] == 0]
    return _written(str(microseconds // UNITS[names[-1]]), names[-1])


def _written(count: str, unit: str) -> exp.Interval:
    return exp.Interval(this=exp.Literal.string(count), unit=exp.Var(this=unit))
