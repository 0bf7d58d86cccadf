"""How many digits the results of decimal operations have, as in Spark SQL."""

from __future__ import annotations

from typing import NamedTuple

MOST_DIGITS = 38
_LEAST_SCALE = 6


class Digits(NamedTuple):
    """The digits of a DECIMAL: how many in all, and how many of them behind the point."""

    precision: int
    scale: int

    @property
    def whole(self) -> int:
        return self.precision - self.scale


def whole_digits(operator: str, a: Digits, b: Digits) -> int:
    """How many digits before the point `a operator b` can need."""
    match operator:
        case "*":
            return a.whole + b.whole + 1
        case "/":
            return a.whole + b.scale
        case "%":
            return min(a.whole, b.whole)
    return max(a.whole, b.whole) + 1


def operated(operator: str, a: Digits, b: Digits) -> Digits:
    """The digits of `a operator b`: all of them if they are not too many, else those before the point first."""
    whole = whole_digits(operator, a, b)
    match operator:
        case "*":
            scale = a.scale + b.scale
        case "/":
            scale = max(_LEAST_SCALE, a.scale + b.precision + 1)
        case _:
            scale = max(a.scale, b.scale)
    if whole + scale > MOST_DIGITS:
        scale = max(MOST_DIGITS - whole, min(scale, _LEAST_SCALE))
    return Digits(max(1, min(MOST_DIGITS, whole + scale)), scale)


def rounded(a: Digits, places: int) -> Digits:
    """The digits of ROUND(a, places): one more before the point, and as many as a rounded ten or hundred has."""
    scale = max(0, min(a.scale, places))
    return Digits(min(MOST_DIGITS, max(a.whole + 1, 1 - places) + scale), scale)


def met(a: Digits, b: Digits) -> Digits:
    """The digits of a column that holds both; those before the point are kept, those behind it give way."""
    whole = max(a.whole, b.whole)
    scale = min(max(a.scale, b.scale), MOST_DIGITS - whole)
    return Digits(whole + scale, scale)
