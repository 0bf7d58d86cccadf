"""Digits: numbers and their sums, exact, as arrays of digits of base 2**32.

```
value of a row     Σ digit[k] · 2**(32·k)       a row's digits lie in [-2**31, 2**31)
sum of rows        the same, digit by digit      no carry: adding and taking back commute and leave nothing
```

Integers use the positions from 0 up, doubles those that their exponents reach (-36 to 32), so a column of
similar magnitudes needs three or four. A position at which all rows are 0 is absent. Since a sum of digits is
determined by the rows that are in it, and not by the order in which they came and went, so is every result:
it is the exact sum, rounded once. Up to 2**31 rows may be in a sum.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Digits = dict[int, Ints]

_BITS = 32
_DIGIT = (1 << _BITS) - 1
_HALF = 1 << (_BITS - 1)
_MANTISSA = 53
_HALF_MANTISSA = 27


def of_integers(values: Ints) -> Digits:
    """The digits of integers."""
    low = ((values + _HALF) & _DIGIT) - _HALF
    return _present({0: low, 1: (values >> _BITS) + (low < 0)})


def of_decimals(values: pl.Series) -> Digits:
    """The digits of the unscaled integers behind decimals, none of them NULL."""
    array = values.to_arrow()
    words = np.frombuffer(array.buffers()[1], dtype=np.int64)
    low, high = words[2 * array.offset : 2 * (array.offset + len(array))].reshape(-1, 2).T
    return _balanced([low & _DIGIT, (low >> _BITS) & _DIGIT, high & _DIGIT, high >> _BITS])


def of_floats(values: Floats) -> Digits:
    """The digits of finite doubles."""
    return _shifted(*_parts(values))


def of_products(left: Floats, right: Floats) -> Digits:
    """The digits of products of finite doubles, exact; four of them may be as large as one digit of a number."""
    (a, a_exponent), (b, b_exponent) = _parts(left), _parts(right)
    exponent = a_exponent + b_exponent
    (a_high, a_low), (b_high, b_low) = (np.divmod(part, np.int64(1 << _HALF_MANTISSA)) for part in (a, b))
    pieces = (
        _shifted(a_high * b_high, exponent + 2 * _HALF_MANTISSA),
        _shifted(a_high * b_low + a_low * b_high, exponent + _HALF_MANTISSA),
        _shifted(a_low * b_low, exponent),
    )
    digits: Digits = {}
    for piece in pieces:
        for position, part in piece.items():
            digits[position] = digits[position] + part if position in digits else part
    return digits


def times(digits: Mapping[int, Ints], factor: Ints) -> Digits:
    """Sums times factors from 0 to just below 2**31."""
    if not digits:
        return {}
    first = min(digits)
    negative, magnitude = _magnitude(digits, first, max(digits), factor.size)
    sign = np.where(negative, -1, 1)
    whole = [*(part * factor for part in magnitude), np.zeros_like(factor)]
    parts = _carried(dict(enumerate(whole, start=first)), first, first + len(whole) - 1, factor.size)
    return {first + place: part * sign for place, part in enumerate(parts)}


def product(left: Mapping[int, Ints], right: Mapping[int, Ints], size: int) -> Digits:
    """Sums times sums."""
    if not left or not right:
        return {}
    starts = min(left), min(right)
    (one, a), (two, b) = (
        _magnitude(each, start, max(each), size) for each, start in zip((left, right), starts, strict=True)
    )
    sign = np.where(one == two, 1, -1)
    digits: Digits = {}
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            whole = x.astype(np.uint64) * y.astype(np.uint64)
            halves = (whole & np.uint64(_DIGIT), whole >> np.uint64(_BITS))
            for position, half in enumerate(halves, start=sum(starts) + i + j):
                part = half.astype(np.int64) * sign
                digits[position] = digits[position] + part if position in digits else part
    return digits


def _parts(values: Floats) -> tuple[Ints, Ints]:
    """Whole mantissas, and the powers of two to multiply them with."""
    fraction, exponent = np.frexp(values)
    return (fraction * (1 << _MANTISSA)).astype(np.int64), exponent.astype(np.int64) - _MANTISSA


def _shifted(mantissa: Ints, exponent: Ints) -> Digits:
    """The digits of whole numbers below 2**55 times powers of two."""
    place, shift = np.divmod(exponent, _BITS)
    low = ((mantissa + _HALF) & _DIGIT) - _HALF
    high = (mantissa - low) >> _BITS
    # A zero has the exponent 0, which would only widen the range of positions.
    here = np.flatnonzero(mantissa)
    if not here.size:
        return {}
    parts = _balanced([low[here] << shift[here], high[here] << shift[here]], keep_zeros=True)
    place = place[here]
    first = int(place.min())
    positions = np.zeros((int(place.max()) - first + len(parts), mantissa.size), dtype=np.int64)
    for offset, part in parts.items():
        positions[place - first + offset, here] = part
    return _present(dict(enumerate(positions, start=first)))


def to_integers(digits: Mapping[int, Ints], size: int) -> tuple[Ints, Mask]:
    """64-bit integers, and which of them do not hold their sum."""
    low, high, beyond = _carried(digits, 0, 1, size)
    value = low | (high << _BITS)
    return value, beyond != value >> 63


def to_decimals(digits: Mapping[int, Ints], size: int, precision: int, scale: int) -> tuple[pl.Series, Mask]:
    """Decimals from unscaled digits, and which of them have more than `precision` digits."""
    negative, magnitude = _magnitude(digits, 0, 3, size)
    return _decimals(negative, magnitude, precision, scale)


def to_average_decimals(
    digits: Mapping[int, Ints], count: Ints, shift: int, precision: int, scale: int
) -> tuple[pl.Series, Mask]:
    """Unscaled digits times 10**shift, divided by counts of at least 1; a half is rounded away from zero."""
    negative, magnitude = _magnitude(digits, 0, 3, count.size)
    magnitude.append(np.zeros(count.size, dtype=np.int64))
    _multiply(magnitude, 10**shift)
    rest = np.zeros(count.size, dtype=np.int64)
    for position in reversed(range(len(magnitude))):
        # rest < count < 2**31, so the two digits together fit.
        magnitude[position], rest = np.divmod((rest << _BITS) | magnitude[position], count)
    _increment(magnitude, 2 * rest >= count)
    return _decimals(negative, magnitude, precision, scale)


def to_floats(digits: Mapping[int, Ints], size: int) -> Floats:
    """The nearest doubles, ties to even; infinite where the sum is beyond them."""
    if not digits:
        return np.zeros(size, dtype=np.float64)
    first = min(digits)
    negative, magnitude = _magnitude(digits, first, max(digits), size)
    # Three rows of zeros below, so that every leading digit has two after it and something below those.
    rows = np.vstack([np.zeros((3, size), dtype=np.int64), *magnitude]).astype(np.uint64)
    lead = np.full(size, 3)
    for position in range(4, len(rows)):
        lead[rows[position] != 0] = position
    column = np.arange(size)
    top, middle, low = rows[lead, column], rows[lead - 1, column], rows[lead - 2, column]
    lower = np.zeros(size, dtype=np.bool_)
    for position in range(3, len(rows) - 3):
        lower |= (rows[position] != 0) & (lead >= position + 3)
    used = np.frexp(top.astype(np.float64))[1].astype(np.uint64)
    spare = np.uint64(_BITS) - used
    word = (((top << np.uint64(_BITS)) | middle) << spare) | (low >> used)
    # 64 leading bits and one that says whether anything follows them: enough to round once and rightly.
    rest = ((low & ((np.uint64(1) << used) - np.uint64(1))) != 0) | lower
    scale = (lead - 3 + first - 1) * _BITS - spare.astype(np.int64)
    with np.errstate(over="ignore"):
        value = np.ldexp((word | rest.astype(np.uint64)).astype(np.float64), scale.astype(np.int32))
    return np.asarray(np.where(negative, -value, value))


def decimals_of_integers(values: Ints, precision: int, scale: int) -> pl.Series:
    """Decimals from their unscaled 64-bit integers."""
    return _decimal_series(values, values >> 63, precision, scale)


def _present(digits: Digits) -> Digits:
    return {position: digit for position, digit in digits.items() if digit.any()}


def _balanced(parts: list[Ints], *, keep_zeros: bool = False) -> Digits:
    """The same number with digits in [-2**31, 2**31), and one position more if a carry is left."""
    digits: Digits = {}
    carry: Ints = np.zeros_like(parts[0])
    for position, part in enumerate(parts):
        whole = part + carry
        carry = (whole + _HALF) >> _BITS
        digits[position] = whole - (carry << _BITS)
    digits[len(parts)] = carry
    return digits if keep_zeros else _present(digits)


def _carried(digits: Mapping[int, Ints], first: int, last: int, size: int) -> list[Ints]:
    """Digits in [0, 2**32) from `first` to `last`, then the signed rest above them."""
    parts = []
    carry: Ints = np.zeros(size, dtype=np.int64)
    for position in range(first, last + 1):
        whole = carry + digits[position] if position in digits else carry
        carry = whole >> _BITS
        parts.append(whole & _DIGIT)
    return [*parts, carry]


def _magnitude(digits: Mapping[int, Ints], first: int, last: int, size: int) -> tuple[Mask, list[Ints]]:
    """Which sums are negative, and the digits of their absolute values from `first` up."""
    negative = _carried(digits, first, last, size)[-1] < 0
    sign = np.where(negative, -1, 1)
    return negative, _carried({k: digit * sign for k, digit in digits.items()}, first, last, size)


def _multiply(magnitude: list[Ints], factor: int) -> None:
    carry: Ints = np.zeros_like(magnitude[0])
    for position, digit in enumerate(magnitude):
        whole = digit * factor + carry
        carry = whole >> _BITS
        magnitude[position] = whole & _DIGIT


def _increment(magnitude: list[Ints], where: Mask) -> None:
    carry: Ints = where.astype(np.int64)
    for position, digit in enumerate(magnitude):
        whole = digit + carry
        carry = whole >> _BITS
        magnitude[position] = whole & _DIGIT


def _decimals(negative: Mask, magnitude: list[Ints], precision: int, scale: int) -> tuple[pl.Series, Mask]:
    """Decimals from magnitudes, and which of them have more than `precision` digits."""
    words = [
        (magnitude[k].astype(np.uint64)) | (magnitude[k + 1].astype(np.uint64) << np.uint64(_BITS))
        for k in (0, 2)
    ]
    limit = 10**precision
    limit_low, limit_high = np.uint64(limit & (2**64 - 1)), np.uint64(limit >> 64)
    too_large = (words[1] > limit_high) | ((words[1] == limit_high) & (words[0] >= limit_low))
    for digit in magnitude[4:]:
        too_large |= digit != 0
    # Two's complement over both words.
    low = np.where(negative, ~words[0] + np.uint64(1), words[0])
    high = np.where(negative, ~words[1] + (words[0] == 0).astype(np.uint64), words[1])
    return _decimal_series(low.view(np.int64), high.view(np.int64), precision, scale), too_large


def _decimal_series(low: Ints, high: Ints, precision: int, scale: int) -> pl.Series:
    words = np.ascontiguousarray(np.stack([low, high], axis=1))
    array = pa.Array.from_buffers(pa.decimal128(precision, scale), low.size, [None, pa.py_buffer(words)])
    series = pl.from_arrow(array)
    assert isinstance(series, pl.Series)
    return series
