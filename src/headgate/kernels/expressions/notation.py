"""Values written as text and read from it: what CAST(x AS STRING) and CAST(text AS ...) do."""

from __future__ import annotations

import polars as pl

from headgate.kernels.expressions.decimals import pointed, rescaled
from headgate.kernels.expressions.dtypes import FLOATS, INTEGERS
from headgate.model.decimals import MOST_DIGITS
from headgate.model.time import HOUR, MINUTE, SECOND

_YEAR_MONTH_DAY = r"^\s*([+-]?\d{4,6})(?:-(\d{1,2})(?:-(\d{1,2})"
_DATE = _YEAR_MONTH_DAY + r"(?:[ T].*)?)?)?\s*$"
_INSTANT = (
    _YEAR_MONTH_DAY
    + r"(?:[ T](?:(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?)?)?"
    + r"\s*(Z|UTC|GMT|[+-]\d{1,2}(?::?\d{2})?)?)?)?)?\s*$"
)
_NUMBER = r"^([+-]?)(?:(\d+)\.?(\d*)|\.(\d+))(?:[eE]([+-]?\d+))?$"
_FARTHEST_ZONE = 18 * HOUR
_NEXT = "[89ab][0-9a-f]"
_UTF8 = (
    "^(?:[0-7][0-9a-f]"
    f"|(?:c[2-9a-f]|d[0-9a-f]){_NEXT}"
    f"|(?:e0[ab][0-9a-f]|ed[89][0-9a-f]|e[1-9abcef]{_NEXT}){_NEXT}"
    f"|(?:f0[9ab][0-9a-f]|f48[0-9a-f]|f[123]{_NEXT}){_NEXT}{_NEXT})*$"
)
"""The hexadecimal digits of bytes that are text in UTF-8."""
_TRUE = ("t", "true", "y", "yes", "1")
_FALSE = ("f", "false", "n", "no", "0")


def read(text: pl.Expr, target: pl.DataType) -> pl.Expr | None:
    """Text as values of a type, NULL where it does not say one; None for types that text cannot say."""
    trimmed = text.str.strip_chars()
    if target in INTEGERS or target in FLOATS:
        return trimmed.cast(target, strict=False)
    match target:
        case pl.Boolean():
            word = trimmed.str.to_lowercase()
            return pl.when(word.is_in(_TRUE)).then(True).when(word.is_in(_FALSE)).then(False)
        case pl.Decimal():
            return decimal_of(trimmed, target)
        case pl.Date():
            return _date(text.str.extract_groups(_DATE))
        case pl.Datetime():
            return _instant(text).cast(target)
        case pl.Binary():
            return text.cast(pl.Binary)
    return None


def write(value: pl.Expr, source: pl.DataType) -> pl.Expr | None:
    """Values of a type as text, as Spark SQL writes them; None for types that it would write differently.

    Bytes that are no text are NULL, where Spark would go on with them as they are.
    """
    if source in FLOATS:
        return _float_text(value)
    match source:
        case pl.Datetime():
            return value.dt.strftime("%Y-%m-%d %H:%M:%S%.6f").str.replace(r"\.?0+$", "")
        case pl.Duration() | pl.List() | pl.Struct():
            return None
        case pl.Binary():
            return value.map_batches(_text_of_bytes, return_dtype=pl.String, is_elementwise=True)
    return value.cast(pl.String)


def _text_of_bytes(values: pl.Series) -> pl.Series:
    """Bytes as text; NULL where they are not UTF-8, which Polars would fail on."""
    try:
        return values.cast(pl.String)
    except pl.exceptions.ComputeError:
        is_text = values.bin.encode("hex").str.contains(_UTF8)
        # Polars looks at the bytes below a NULL too.
        text = pl.when(is_text).then(values).otherwise(b"").cast(pl.String)
        return pl.select(pl.when(is_text).then(text)).to_series()


def decimal_of(text: pl.Expr, target: pl.Decimal) -> pl.Expr:
    """Text as decimals, halves rounded away from zero; NULL where it is no number or has too many digits."""
    whole = target.precision - target.scale
    wide = pl.Decimal(MOST_DIGITS, max(target.scale, min(MOST_DIGITS - whole, target.scale + 12)))
    # Nearly all text is short, and is read as it stands: a quarter of the cost where all of it is.
    short = text.str.contains(rf"^-?\d+(?:\.\d{{1,{wide.scale}}})?$") if wide.scale else pl.lit(False)
    quick = rescaled(pl.when(short).then(text).cast(wide, strict=False), wide, target)
    return pl.coalesce(quick, _decimal_of_any(pl.when(~short).then(text), target))


def _decimal_of_any(text: pl.Expr, target: pl.Decimal) -> pl.Expr:
    """The same by the digits of each text.

    However long it is, the first digit that is left out says alone whether the last one goes up.
    """
    groups = text.str.extract_groups(_NUMBER)
    before, after, alone, power = (groups.struct.field(i) for i in ("2", "3", "4", "5"))
    written = before.fill_null("") + pl.coalesce(after, alone)
    digits = written.str.strip_chars_start("0")
    zeros = written.str.len_chars().cast(pl.Int64) - digits.str.len_chars()
    point = before.fill_null("").str.len_chars().cast(pl.Int64) - zeros
    count = point + power.fill_null("0").cast(pl.Int32, strict=False) + target.scale
    # No digits, or more than there may be, are not written out.
    count = pl.when(digits == "").then(0 * count).when(count <= MOST_DIGITS).then(count.clip(lower_bound=-1))
    kept = digits.str.slice(0, count.clip(lower_bound=0)).str.pad_end(count.clip(lower_bound=0), "0")
    up = (count >= 0) & (digits.str.slice(count.clip(lower_bound=0), 1) >= "5")
    size = (pl.lit("0") + kept).cast(pl.Int128, strict=False) + up.cast(pl.Int128)
    units = size * pl.when(groups.struct.field("1") == "-").then(-1).otherwise(1)
    return pointed(units, target.scale).cast(target, strict=False)


def _date(groups: pl.Expr) -> pl.Expr:
    year, month, day = (groups.struct.field(str(i)) for i in (1, 2, 3))
    padded = [part.fill_null("1").str.zfill(2) for part in (month, day)]
    return day_of_calendar(pl.concat_str([year, *padded], separator="-"))


def day_of_calendar(text: pl.Expr) -> pl.Expr:
    """A date that is written as `2024-01-31`; NULL where there is no such day in the years 1 to 9999."""
    date = text.str.to_date("%Y-%m-%d", strict=False)
    return pl.when(date.dt.year().is_between(1, 9999)).then(date)


def _instant(text: pl.Expr) -> pl.Expr:
    groups = text.str.extract_groups(_INSTANT)
    hour, minute, second = (groups.struct.field(str(i)).fill_null("0").cast(pl.Int64) for i in (4, 5, 6))
    fraction = groups.struct.field("7").fill_null("0").str.pad_end(6, "0").str.slice(0, 6).cast(pl.Int64)
    offset = _offset(groups.struct.field("8"))
    micros = hour * HOUR + minute * MINUTE + second * SECOND + fraction - offset
    valid = (hour < 24) & (minute < 60) & (second < 60) & (offset.abs() <= _FARTHEST_ZONE)
    midnight = _date(groups).cast(pl.Datetime("us")).cast(pl.Int64)
    return pl.when(valid).then(midnight + micros)


def _offset(zone: pl.Expr) -> pl.Expr:
    parts = zone.str.extract_groups(r"^([+-])(\d{1,2}):?(\d{2})?$")
    sign = pl.when(parts.struct.field("1") == "-").then(-1).otherwise(1)
    hours, minutes = (parts.struct.field(i).fill_null("0").cast(pl.Int64) for i in ("2", "3"))
    return pl.when(minutes < 60).then(sign * (hours * HOUR + minutes * MINUTE))


def _float_text(value: pl.Expr) -> pl.Expr:
    """Shortest digits, plain between a thousandth and ten million, else as 1.5E10."""
    text = value.abs().cast(pl.String)
    groups = text.str.extract_groups(r"^(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$")
    whole, fraction = (
        groups.struct.field("1").str.strip_chars_start("0"),
        groups.struct.field("2").fill_null(""),
    )
    leading = fraction.str.len_chars().cast(pl.Int64) - fraction.str.strip_chars_start("0").str.len_chars()
    written = groups.struct.field("3").fill_null("0").cast(pl.Int64)
    exponent = written + pl.when(whole != "").then(whole.str.len_chars().cast(pl.Int64) - 1).otherwise(
        -1 - leading
    )
    digits = (whole + fraction).str.strip_chars_start("0")
    rest = digits.str.slice(1).str.strip_chars_end("0")
    rest = pl.when(rest == "").then(pl.lit("0")).otherwise(rest)
    scientific = pl.format("{}.{}E{}", digits.str.slice(0, 1), rest, exponent)
    size = value.abs()
    plain = (size == 0) | ((size >= 1e-3) & (size < 1e7))
    magnitude = (
        pl.when(value.is_infinite()).then(pl.lit("Infinity")).when(plain).then(text).otherwise(scientific)
    )
    # The text alone tells -0.0 from 0.0.
    negative = value.cast(pl.String).str.starts_with("-")
    signed = pl.when(negative).then(pl.lit("-") + magnitude).otherwise(magnitude)
    return pl.when(value.is_nan()).then(pl.lit("NaN")).otherwise(signed)
