"""Literals: columns of text as columns of the declared type.

Every type has a fast way that takes a whole column or fails, and a careful one that says which rows do not convert.
The fast way accepts less than the careful one and never differs from it, so that what a row becomes does not
depend on its neighbours.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from headgate.kernels.expressions.decimals import rescaled
from headgate.kernels.expressions.dtypes import polars_type
from headgate.model import types
from headgate.model.time import HOUR, MINUTE, SECOND
from headgate.runtime.io.ranges import outside_calendar, without

Mask = npt.NDArray[np.bool_]
Converted = tuple[pa.Array, Mask | None]
"""A column in its declared type and the rows on which that failed, None if there are none."""

# Not \d, which also stands for the digits of other scripts.
_INSTANT = (
    r"^\s*([0-9]{4}-[0-9]{1,2}-[0-9]{1,2})"
    r"(?:[ T]([0-9]{1,2}):([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]*))?)?"
    r"\s*(?:(Z|UTC|GMT)|([+-])([0-9]{1,2})(?::?([0-9]{2}))?)?)?\s*$"
)
_DAY = r"^\s*([0-9]{4}-[0-9]{1,2}-[0-9]{1,2})\s*$"
_FARTHEST_ZONE = 24 * HOUR
EPOCH = pa.decimal128(38, 18)
"""Numbers since 1970 as they are read, whatever they count."""
_FARTHEST_INSTANT = 10**18
_WHOLE = re.compile(r"[0-9]{9,17}(\.[0-9]*)?")
_DIGITS_OF_SECONDS, _DIGITS_OF_MILLIS = 10, 13
_PROBED = 64
_SHORTEST_INSTANT = len("2025-01-31 23:59:59")


@dataclass(frozen=True)
class TextForms:
    """How text says what it cannot say in one way only.

    `timestamp` and `date` are strftime patterns, tried in order, or None for ISO 8601; with `epoch`, instants are
    numbers instead, which count so many microseconds each since 1970; binary values are base64 in JSON and the text
    itself in CSV.
    """

    timestamp: tuple[str, ...] | None = None
    epoch: int | None = None
    date: tuple[str, ...] | None = None
    base64: bool = False


JSON_FORMS = TextForms(base64=True)
"""How JSON is written where nothing else is said."""


def read_literals(texts: pa.Array, declared: pa.DataType, forms: TextForms) -> Converted:
    """A string array in a declared scalar type, with a mask of the rows whose text is not of that type."""
    if types.is_integer(declared):
        # Arrow reads 0x1F as a number, which nobody else does.
        return _number(texts, declared, unlike=b"xX")
    if pa.types.is_floating(declared):
        return _number(texts, declared, unlike=b"(")
    if pa.types.is_decimal(declared):
        return _converted(texts, decimals(_series(texts).str.strip_chars(), declared))
    if declared == types.BOOLEAN:
        return _boolean(texts)
    if types.is_timestamp(declared):
        return _in_calendar(_instants(texts, declared, forms))
    if declared == types.DATE:
        return _in_calendar(_days(texts, forms))
    if declared == pa.binary():
        return _binary(texts, forms)
    if declared == types.STRING:
        return texts, None
    # A column of type NULL has no other value.
    return pa.nulls(len(texts), declared), _mask(pc.is_valid(texts))


def decimals(text_or_wide: pl.Series, declared: pa.DataType) -> pl.Series:
    """Text or wide decimals in a declared shape, halves rounded away from zero; NULL where they do not fit."""
    target = pl.Decimal(declared.precision, declared.scale)
    wide = wide_decimal(declared)
    name = text_or_wide.name
    column = pl.col(name).cast(pl.Decimal(wide.precision, wide.scale), strict=False)
    fitting = rescaled(column, pl.Decimal(wide.precision, wide.scale), target)
    return text_or_wide.to_frame().select(fitting).to_series()


def wide_decimal(declared: pa.DataType) -> pa.DataType:
    """A decimal type with room for digits to round away, and for one more digit in front."""
    whole = declared.precision - declared.scale
    return pa.decimal128(38, max(declared.scale, 37 - whole))


def _series(array: pa.Array) -> pl.Series:
    series = pl.from_arrow(array)
    assert isinstance(series, pl.Series)
    return series.alias("text")


def _mask(array: Any) -> Mask | None:
    found: Mask = array.to_numpy(zero_copy_only=False)
    return found if found.any() else None


def _converted(texts: pa.Array, series: pl.Series) -> Converted:
    """A converted column; where there was text and now is NULL, the conversion failed."""
    if series.null_count() == texts.null_count:
        return series.to_arrow(), None
    lost = series.is_null().to_numpy() & pc.is_valid(texts).to_numpy(zero_copy_only=False)
    return series.to_arrow(), lost


def _number(texts: pa.Array, declared: pa.DataType, unlike: bytes) -> Converted:
    fast = None if _holds_any(texts, unlike) else _cast(texts, declared)
    if fast is not None:
        return fast, None
    return _converted(texts, _series(texts).str.strip_chars().cast(polars_type(declared), strict=False))


def _cast(texts: pa.Array, declared: pa.DataType) -> pa.Array | None:
    """The whole column by Arrow's own reading, or nothing."""
    try:
        # Arrow words an error for every value that fails; where all do, a few tell.
        texts.slice(0, _PROBED).cast(declared)
        return texts.cast(declared)
    except pa.ArrowInvalid:
        return None


def _holds_any(texts: pa.Array, letters: bytes) -> bool:
    """Whether one of the letters may be among the texts."""
    data = texts.buffers()[2]
    if data is None:
        return False
    held = data.to_pybytes()
    return any(letter in held for letter in letters)


def _boolean(texts: pa.Array) -> Converted:
    series = _series(texts)

    def said(word: pl.Expr) -> pl.Series:
        return (
            series.to_frame()
            .select(pl.when(word == "true").then(True).when(word == "false").then(False))
            .to_series()
        )

    found = said(pl.col("text"))
    if found.null_count() != texts.null_count:
        found = said(pl.col("text").str.strip_chars().str.to_lowercase())
    return _converted(texts, found)


def _binary(texts: pa.Array, forms: TextForms) -> Converted:
    if not forms.base64:
        return texts.cast(pa.binary()), None
    return _converted(texts, _series(texts).str.decode("base64", strict=False))


def _in_calendar(converted: Converted) -> Converted:
    """The same, with the rows outside the calendar among the failed ones."""
    array, failed = converted
    beyond = outside_calendar(array)
    if beyond is None:
        return converted
    return without(array, beyond), beyond if failed is None else failed | beyond


def _days(texts: pa.Array, forms: TextForms) -> Converted:
    if forms.date is not None:
        day = pl.coalesce(pl.col("text").str.to_date(each, strict=False) for each in forms.date)
    elif (fast := _cast(texts, types.DATE)) is not None:
        return fast, None
    else:
        day = pl.col("text").str.extract(_DAY).str.to_date("%Y-%m-%d", strict=False)
    return _converted(texts, _series(texts).to_frame().select(day).to_series())


def _instants(texts: pa.Array, declared: pa.DataType, forms: TextForms) -> Converted:
    if forms.epoch is not None:
        instants = _since_epoch(_series(texts).str.strip_chars(), forms.epoch)
    elif forms.timestamp is not None:
        by_pattern = pl.coalesce(_by_pattern(each) for each in forms.timestamp)
        instants = _series(texts).to_frame().select(by_pattern).to_series()
    else:
        for zone in dict.fromkeys([declared.tz, None]) if _in_full(texts) else ():
            fast = _cast(texts, pa.timestamp("us", tz=zone))
            if fast is not None:
                return fast.cast(declared), None
        instants = _by_parts(_series(texts), zoned=declared.tz is not None)
    return _converted(texts, instants.cast(polars_type(declared)))


def epoch_instants(numbers: pa.Array, declared: pa.DataType, unit: int) -> Converted:
    """Decimals that count so many microseconds each since 1970, as instants."""
    instants = _since_epoch(_series(numbers), unit).cast(polars_type(declared))
    return _in_calendar(_converted(numbers, instants))


def _since_epoch(numbers: pl.Series, unit: int) -> pl.Series:
    """Microseconds since 1970, from text or decimals; NULL for what is no number or too large.

    Further digits are cut off, as they are in text.
    """
    number = pl.col("text").cast(pl.Decimal(EPOCH.precision, EPOCH.scale), strict=False)
    counted = pl.when(number.abs() <= _FARTHEST_INSTANT // unit).then(number)
    return numbers.to_frame().select((counted * unit).floor().cast(pl.Int64)).to_series()


def epoch_advice(text: str) -> str | None:
    """What to declare where an instant turns out to be a number: counts of this century tell their unit."""
    if not _WHOLE.fullmatch(text.strip()):
        return None
    digits = len(text.strip().partition(".")[0])
    unit = (
        "seconds" if digits <= _DIGITS_OF_SECONDS else "millis" if digits <= _DIGITS_OF_MILLIS else "micros"
    )
    return f"if it counts from 1970, add timestampFormat 'epoch_{unit}' to its OPTIONS"


def _in_full(texts: pa.Array) -> bool:
    """Whether all texts have hours, minutes and seconds with colons between: Arrow reads less, Spark does not."""
    texts = texts.drop_null()
    if len(texts) == 0:
        return True
    offsets = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
    if int(np.diff(offsets).min()) < _SHORTEST_INSTANT:
        return False
    data = np.frombuffer(texts.buffers()[2], np.uint8)
    return all(bool((data[offsets[:-1] + place] == ord(":")).all()) for place in (13, 16))


def _by_pattern(pattern: str) -> pl.Expr:
    return pl.col("text").str.to_datetime(pattern, time_unit="us", strict=False).dt.epoch("us")


def _by_parts(texts: pl.Series, *, zoned: bool) -> pl.Series:
    """Microseconds since 1970 of ISO 8601 text in all the forms that Spark reads; UTC where there is no zone."""
    # The parts are columns: an expression that is used many times would be computed as often.
    parts = texts.to_frame().select(pl.col("text").str.extract_groups(_INSTANT).struct.unnest())
    day = pl.col("1").str.to_date("%Y-%m-%d", strict=False).cast(pl.Datetime("us")).cast(pl.Int64)
    hour, minute, second = (_digits(group) for group in "234")
    # Time inside Headgate is whole microseconds; further digits are cut off, as Spark does.
    fraction = pl.col("5").fill_null("").str.pad_end(6, "0").str.slice(0, 6).cast(pl.Int64)
    ahead = _digits("8") * HOUR + _digits("9") * MINUTE
    offset = pl.when(pl.col("7") == "-").then(-ahead).otherwise(ahead)
    valid = (hour < 24) & (minute < 60) & (second < 60) & (ahead < _FARTHEST_ZONE) & (_digits("9") < 60)
    if not zoned:
        valid &= pl.col("6").is_null() & pl.col("7").is_null()
    instant = day + hour * HOUR + minute * MINUTE + second * SECOND + fraction - offset
    return parts.select(pl.when(valid).then(instant)).to_series()


def _digits(group: str) -> pl.Expr:
    return pl.col(group).fill_null("0").cast(pl.Int64)
