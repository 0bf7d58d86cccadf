"""Conform: columns as a file, a DataFrame or Python has them, in the types that were declared, without loss.

Whether a type can become another is asked once for each file. Whether each value can is asked of the values:
an INT column may be stored in 64 bits as long as no number needs them.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from headgate.kernels.expressions.dtypes import polars_type
from headgate.model import types
from headgate.model.schema import Column
from headgate.runtime.io.literals import (
    Converted,
    Mask,
    TextForms,
    decimals,
    epoch_instants,
    read_literals,
)
from headgate.runtime.io.numbers import is_number, nearest, same_number, widens
from headgate.runtime.io.ranges import FIRST_INSTANT, LAST_INSTANT, outside, outside_calendar, without
from headgate.runtime.io.text.utf8 import is_utf8, not_utf8

_MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1}
_ENTRY_SIZE = 2
_DECIMAL_BITS = 128

Rule = Callable[[pa.Array, pa.DataType], Converted]


class Reading(Enum):
    """What may become what.

    STORED, in files: whole numbers and decimals if each value fits, anything else by its type. WIDENED, where no
    value can be looked at before: only what its type lets fit. EXACT, in frames that are here: also numbers of every
    other type, if each comes back as it was. WRITTEN, in Python's values: likewise, but a number is the nearest
    FLOAT, and a field that no struct has is NULL.
    """

    STORED = 1
    WIDENED = 2
    EXACT = 3
    WRITTEN = 4


def mismatch(
    found: pa.DataType, declared: pa.DataType, path: str, reading: Reading = Reading.STORED
) -> str | None:
    """Where and why a type that is not text for everything cannot become another; None if it can."""
    found = _plain(found)
    if pa.types.is_null(found):
        return None
    inner = _inner(found, declared)
    if inner is None:
        if not types.is_nested(declared) and _rule(found, declared, None, reading) is not None:
            return None
        return f"column {path} is declared {types.spark_name(declared)} but is {types.spark_name(found)}"
    for name, found_part, declared_part in inner:
        where = f"{path}.{name}"
        if found_part is None:
            if reading is Reading.WRITTEN:
                continue
            return f"column {path} has no field {name}"
        reason = mismatch(found_part, declared_part, where, reading)
        if reason is not None:
            return reason
    return None


def conformed(
    array: pa.Array, column: Column, forms: TextForms | None, reading: Reading = Reading.STORED
) -> tuple[pl.Series, Mask | None]:
    """A column as rows have it from here on, and a mask of the rows that hold a value which does not convert.

    Whatever a column comes from, this is where it gets its type, once; see `conform`.
    """
    converted, failed = conform(array, column.type, forms, reading)
    return series_of(converted, column), failed


def series_of(array: pa.Array, column: Column) -> pl.Series:
    """A column that is in its declared type already, as rows have it."""
    series, target = pl.from_arrow(array), polars_type(column.type)
    assert isinstance(series, pl.Series)
    return (series if series.dtype == target else series.cast(target)).alias(column.name)


def conform(
    array: pa.Array, declared: pa.DataType, forms: TextForms | None, reading: Reading = Reading.STORED
) -> Converted:
    """A column in its declared type and a mask of the rows that hold a value which does not convert.

    `forms` says how text is to be understood in formats that are made of it, and is None for others, whose types
    have been compared by `mismatch` before. What does not convert becomes NULL, a MAP the list of its entries.
    """
    array = _decoded(array)
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), _stored(declared)), None
    if pa.types.is_struct(declared):
        # Unlike `field`, `flatten` hides the fields of structs that are themselves NULL.
        parts = {field.name.casefold(): part for field, part in zip(array.type, array.flatten(), strict=True)}
        absent = pa.nulls(len(array))
        fields = [(each.name, each.type, parts.get(each.name.casefold(), absent)) for each in declared]
        return _struct(array, fields, forms, reading)
    if pa.types.is_map(declared):
        return _list(
            _entries(array), lambda each: _struct(each, _entry_parts(each, declared), forms, reading)
        )
    if pa.types.is_list(declared):
        return _list(array, lambda items: conform(items, declared.value_type, forms, reading))
    rule = _rule(array.type, declared, forms, reading)
    assert rule is not None
    return rule(array, declared)


def _plain(found: pa.DataType) -> pa.DataType:
    """A type without what only says how it is stored."""
    if isinstance(found, pa.BaseExtensionType):
        return _plain(found.storage_type)
    if pa.types.is_dictionary(found):
        return _plain(found.value_type)
    return found


def _decoded(array: pa.Array) -> pa.Array:
    if isinstance(array.type, pa.BaseExtensionType):
        return _decoded(array.storage)
    if pa.types.is_dictionary(array.type):
        return _decoded(array.dictionary_decode())
    return array


def _stored(declared: pa.DataType) -> pa.DataType:
    """The Arrow type that a conformed column has: the declared one, with maps as lists of entries."""
    if pa.types.is_map(declared):
        return pa.list_(
            pa.struct([("key", _stored(declared.key_type)), ("value", _stored(declared.item_type))])
        )
    if pa.types.is_list(declared):
        return pa.list_(_stored(declared.value_type))
    if pa.types.is_struct(declared):
        return pa.struct([(field.name, _stored(field.type)) for field in declared])
    return declared


def _is_list(found: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(found) or pa.types.is_large_list(found) or pa.types.is_fixed_size_list(found)
    )


def _inner(
    found: pa.DataType, declared: pa.DataType
) -> list[tuple[str, pa.DataType | None, pa.DataType]] | None:
    """The parts of two nested types, side by side; None unless both are nested in the same way."""
    if pa.types.is_struct(declared) and pa.types.is_struct(found):
        by_name = {field.name.casefold(): field.type for field in found}
        return [(field.name, by_name.get(field.name.casefold()), field.type) for field in declared]
    if pa.types.is_map(declared):
        if pa.types.is_map(found):
            parts = (found.key_type, found.item_type)
        elif (
            _is_list(found)
            and pa.types.is_struct(found.value_type)
            and found.value_type.num_fields == _ENTRY_SIZE
        ):
            parts = tuple(field.type for field in found.value_type)
        else:
            return None
        return [("key", parts[0], declared.key_type), ("value", parts[1], declared.item_type)]
    if pa.types.is_list(declared) and _is_list(found):
        return [("element", found.value_type, declared.value_type)]
    return None


def _struct(
    array: pa.Array,
    fields: list[tuple[str, pa.DataType, pa.Array]],
    forms: TextForms | None,
    reading: Reading,
) -> Converted:
    """A struct of the given fields; a row fails if one of its fields does."""
    failed: Mask | None = None
    columns = []
    for _, declared, part in fields:
        column, bad = conform(part, declared, forms, reading)
        columns.append(column)
        failed = _either(failed, bad)
    stored = [pa.field(name, column.type) for (name, _, _), column in zip(fields, columns, strict=True)]
    return pa.StructArray.from_arrays(columns, fields=stored, mask=array.is_null()), failed


def _list(array: pa.Array, convert: Callable[[pa.Array], Converted]) -> Converted:
    """A list whose items are converted all at once; a row fails if one of its items does."""
    items, bad = convert(array.flatten())
    lengths = pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(offsets), items, mask=array.is_null())
    if bad is None:
        return lists, None
    failed = np.zeros(len(array), np.bool_)
    failed[pc.list_parent_indices(array).to_numpy(zero_copy_only=False)[bad]] = True
    return lists, failed


def _entries(array: pa.Array) -> pa.Array:
    """A map as the list of its entries; several of Arrow's list functions do not know maps."""
    if not pa.types.is_map(array.type):
        return array
    return array.cast(pa.list_(pa.struct([("key", array.type.key_type), ("value", array.type.item_type)])))


def _entry_parts(entries: pa.Array, declared: pa.DataType) -> list[tuple[str, pa.DataType, pa.Array]]:
    keys, values = entries.flatten()
    return [("key", declared.key_type, keys), ("value", declared.item_type, values)]


def _either(left: Mask | None, right: Mask | None) -> Mask | None:
    if left is None or right is None:
        return right if left is None else left
    return left | right


# -- scalar types -----------------------------------------------------------------------------------


def _rule(
    found: pa.DataType, declared: pa.DataType, forms: TextForms | None, reading: Reading
) -> Rule | None:
    """How values of one scalar type become values of another; None if they do not."""
    kinds = pa.types
    if reading is not Reading.STORED and is_number(found):
        return _number_rule(found, declared, reading)
    if reading is Reading.WIDENED and declared == types.STRING:
        return _text if _is_text(found) else None
    if _is_text(found) and forms is not None:
        return lambda array, declared: read_literals(array, declared, forms)
    if _is_text(found) or kinds.is_binary(found) or kinds.is_large_binary(found) or found == pa.binary_view():
        return {types.STRING: _text, pa.binary(): _same}.get(declared)
    if kinds.is_fixed_size_binary(found):
        return _same if declared == pa.binary() else None
    if kinds.is_boolean(found):
        return _same if declared == types.BOOLEAN else None
    if kinds.is_integer(found):
        return same_number if types.is_numeric(declared) else None
    if kinds.is_floating(found):
        return _same if kinds.is_floating(declared) and declared.bit_width >= found.bit_width else None
    if kinds.is_decimal(found) and types.is_timestamp(declared) and forms is not None and forms.epoch:
        unit = forms.epoch
        return lambda array, declared: epoch_instants(array, declared, unit)
    if kinds.is_decimal(found) and kinds.is_decimal(declared) and found.bit_width <= _DECIMAL_BITS:
        return same_number if forms is None else _rounded
    if kinds.is_date(found):
        return _days if declared == types.DATE else _midnights if types.is_timestamp(declared) else None
    if kinds.is_timestamp(found):
        exactly = _instants if reading is Reading.STORED else _exact_instants
        return exactly if types.is_timestamp(declared) else None
    if kinds.is_duration(found):
        return _spans if declared == types.INTERVAL else None
    return None


def _number_rule(found: pa.DataType, declared: pa.DataType, reading: Reading) -> Rule | None:
    if not types.is_numeric(declared) or (pa.types.is_decimal(found) and found.bit_width > _DECIMAL_BITS):
        return None
    if reading is Reading.WIDENED and not widens(found, declared):
        return None
    if reading is Reading.WRITTEN and pa.types.is_floating(found) and pa.types.is_floating(declared):
        return nearest
    return same_number


def _is_text(found: pa.DataType) -> bool:
    return bool(pa.types.is_string(found) or pa.types.is_large_string(found) or found == pa.string_view())


def _same(array: pa.Array, declared: pa.DataType) -> Converted:
    return array.cast(declared), None


def _rounded(array: pa.Array, declared: pa.DataType) -> Converted:
    series = _series(array)
    return _unless_lost(series, decimals(series, declared))


def _unless_lost(before: pl.Series, after: pl.Series) -> Converted:
    if after.null_count() == before.null_count():
        return after.to_arrow(), None
    return after.to_arrow(), (after.is_null() & before.is_not_null()).to_numpy()


def _series(array: pa.Array) -> pl.Series:
    series = pl.from_arrow(array)
    assert isinstance(series, pl.Series)
    return series.alias("value")


def _text(array: pa.Array, declared: pa.DataType) -> Converted:
    """Text that is UTF-8, which a file may claim without its being so."""
    text = array if _is_text(array.type) else array.cast(pa.large_binary()).view(pa.large_string())
    if is_utf8(text):
        return text, None
    failed = not_utf8(text)
    return without(text, failed), failed


def _days(array: pa.Array, declared: pa.DataType) -> Converted:
    days = array.cast(types.DATE, safe=False)
    beyond = outside_calendar(days)
    return without(days, beyond), beyond


def _midnights(array: pa.Array, declared: pa.DataType) -> Converted:
    days, beyond = _days(array, types.DATE)
    return days.cast(pa.timestamp("us")).cast(declared), beyond


def _instants(array: pa.Array, declared: pa.DataType) -> Converted:
    """Instants in whole microseconds; nanoseconds are cut off, as they are in text."""
    unit, ticks = array.type.unit, array.view(pa.int64())
    if unit == "ns":
        # Nanoseconds in 64 bits do not reach the ends of the calendar. Arrow's division rounds towards 1970.
        return (_series(ticks) // 1_000).to_arrow().view(pa.timestamp("us")).cast(declared), None
    step = _MICROSECONDS[unit]
    beyond = outside(ticks, -(-FIRST_INSTANT // step), LAST_INSTANT // step)
    return pc.multiply(without(ticks, beyond), step).view(pa.timestamp("us")).cast(declared), beyond


def _exact_instants(array: pa.Array, declared: pa.DataType) -> Converted:
    """Instants that are whole microseconds."""
    instants, beyond = _instants(array, declared)
    if array.type.unit != "ns":
        return instants, beyond
    broken = (_series(array.view(pa.int64())) % 1_000 != 0).fill_null(value=False).to_numpy()
    return instants, broken if broken.any() else None


def _spans(array: pa.Array, declared: pa.DataType) -> Converted:
    """Durations that are whole microseconds."""
    series = _series(array)
    spans = series.dt.cast_time_unit("us")
    broken = (spans.dt.cast_time_unit(array.type.unit) != series).fill_null(value=False).to_numpy()
    return spans.to_arrow(), broken if broken.any() else None
