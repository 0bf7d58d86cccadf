"""Date patterns: the Java patterns of Spark's timestampFormat and dateFormat as strftime patterns."""

from __future__ import annotations

import re

import polars as pl

from headgate.model.errors import UnsupportedError

_LETTERS = {
    "yyyy": "%Y",
    "uuuu": "%Y",
    "y": "%Y",
    "u": "%Y",
    "MMMM": "%B",
    "MMM": "%b",
    "MM": "%m",
    "M": "%m",
    "dd": "%d",
    "d": "%d",
    "DDD": "%j",
    "EEEE": "%A",
    "EEE": "%a",
    "E": "%a",
    "a": "%p",
    "HH": "%H",
    "H": "%H",
    "hh": "%I",
    "h": "%I",
    "mm": "%M",
    "m": "%M",
    "ss": "%S",
    "s": "%S",
    "XXX": "%#z",
    "XX": "%#z",
    "X": "%#z",
    "xxx": "%#z",
    "xx": "%#z",
    "x": "%#z",
    "ZZZZZ": "%#z",
    "Z": "%#z",
}
_TOKEN = re.compile(r"'((?:[^']|'')*)'|(\.?)(S+)|([A-Za-z])\4*|\[|\]|.", re.DOTALL)
_MOST_OPTIONAL = 4


def strftime_patterns(pattern: str, *, of_date: bool) -> tuple[str, ...]:
    """The strftime patterns that together read what a Java pattern reads: one with and one without each `[part]`."""
    found = tuple(_strftime(each, pattern) for each in _variants(pattern))
    for each in found:
        try:
            probe = pl.Series([""], dtype=pl.String).str
            _ = probe.to_date(each, strict=False) if of_date else probe.to_datetime(each, strict=False)
        except pl.exceptions.ComputeError as error:
            raise _unsupported(pattern) from error
    return found


def _variants(pattern: str) -> list[str]:
    """The pattern with every choice of its optional parts, the longest first."""
    variants = [pattern]
    for _ in range(_MOST_OPTIONAL + 1):
        if not any("[" in each for each in variants):
            return variants
        parted = [re.fullmatch(r"(.*)\[([^\[\]]*)\](.*)", each, re.DOTALL) for each in variants]
        if not all(parted):
            break
        variants = [
            each for part in parted if part for each in (part[1] + part[2] + part[3], part[1] + part[3])
        ]
    raise _unsupported(pattern)


def _strftime(variant: str, pattern: str) -> str:
    parts: list[str] = []
    for token in _TOKEN.finditer(variant):
        text = token[0]
        if text[0] == "'":
            parts.append((token[1].replace("''", "'") or "'").replace("%", "%%"))
        elif token[3]:
            parts.append(_fraction(token[2], len(token[3]), pattern))
        elif text[0].isalpha() and text[0].isascii():
            if text not in _LETTERS:
                raise _unsupported(pattern)
            parts.append(_LETTERS[text])
        elif text in "[]":
            raise _unsupported(pattern)
        else:
            parts.append(text.replace("%", "%%"))
    return "".join(parts)


def _fraction(point: str, digits: int, pattern: str) -> str:
    """Digits of a second. After a point any number of them is read, as many files leave zeros out."""
    if point:
        return "%.f"
    if digits not in (3, 6, 9):
        raise _unsupported(pattern)
    return f"%{digits}f"


def _unsupported(pattern: str) -> UnsupportedError:
    return UnsupportedError(
        f"the date pattern '{pattern}' is not supported",
        remedy="write years to seconds and zones in digits, as in yyyy-MM-dd HH:mm:ss[.SSSSSS][XXX]",
    )
