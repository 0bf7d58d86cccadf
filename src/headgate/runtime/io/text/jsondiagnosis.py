"""What is wrong with a line of JSON: said for one bad row, in words of the declaration."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from headgate.model import types
from headgate.model.schema import Column
from headgate.runtime.io.literals import epoch_advice
from headgate.runtime.io.rejects import shown
from headgate.runtime.io.text.textfile import BYTE_ORDER_MARK, Flaw

_WRITTEN_AS_TEXT = (
    pa.types.is_string,
    pa.types.is_binary,
    pa.types.is_timestamp,
    pa.types.is_date,
    pa.types.is_decimal,
)
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?")


def diagnosis(line: bytes, columns: Mapping[str, Column], *, counts_time: bool = False) -> Flaw | None:
    """The flaw of a line whose fields mean the given columns; None if it is not for Python to see.

    `counts_time`: instants are numbers.
    """
    if line.startswith(BYTE_ORDER_MARK):
        # Python would read on behind it.
        return Flaw("the row begins with a byte order mark")
    try:
        found = json.loads(line, object_pairs_hook=_pairs)
    except (ValueError, RecursionError) as error:
        return Flaw(f"the row is not valid JSON: {error}")
    if not isinstance(found, _Pairs):
        return Flaw(f"the row is {_kind(found)} and not an object")
    seen: set[str] = set()
    for name, value in found:
        column = columns.get(name)
        if column is None:
            continue
        if name in seen:
            return Flaw("the field is there twice", column.name)
        seen.add(name)
        misfit = _misfit(value, column.type, counts_time)
        if misfit is not None:
            counted = types.is_timestamp(column.type) and not counts_time
            remedy = epoch_advice(_written(value)) if counted else None
            return Flaw(f"{misfit} is not of type {types.spark_name(column.type)}", column.name, remedy)
    return None


class _Pairs(tuple[tuple[str, Any], ...]):
    """An object with its fields in order, also if a name comes twice."""


def _pairs(pairs: list[tuple[str, Any]]) -> _Pairs:
    return _Pairs(pairs)


def _misfit(value: Any, declared: pa.DataType, counts_time: bool) -> str | None:
    """The part of a value that is not of the kind that a type asks for, in words; None if all fits."""
    match value:
        case None:
            return None
        case _Pairs() if pa.types.is_struct(declared):
            fields = {part.name: part.type for part in declared}
            return _first(_misfit(each, fields[name], counts_time) for name, each in value if name in fields)
        case _Pairs() if pa.types.is_map(declared):
            return _first(_misfit(each, declared.item_type, counts_time) for _, each in value)
        case list() if pa.types.is_list(declared):
            return _first(_misfit(each, declared.value_type, counts_time) for each in value)
        case bool():
            fits = declared == types.BOOLEAN
        case int():
            fits = _is_fractional(declared, counts_time) or _holds(declared, value)
        case float():
            fits = _is_fractional(declared, counts_time)
        case str() if counts_time and types.is_timestamp(declared):
            fits = _NUMBER.fullmatch(value) is not None
        case str():
            fits = any(kind(declared) for kind in _WRITTEN_AS_TEXT)
        case _:
            fits = False
    return None if fits else f"{_kind(value)} {shown(_written(value))}"


def _is_fractional(declared: pa.DataType, counts_time: bool) -> bool:
    """Whether a type takes any number."""
    return bool(
        pa.types.is_floating(declared)
        or pa.types.is_decimal(declared)
        or (counts_time and types.is_timestamp(declared))
    )


def _holds(declared: pa.DataType, value: int) -> bool:
    if not types.is_integer(declared):
        return False
    limit = 1 << (declared.bit_width - 1)
    return bool(-limit <= value < limit)


def _first(misfits: Iterator[str | None]) -> str | None:
    return next((each for each in misfits if each is not None), None)


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "the boolean"
        case int() | float():
            return "the number"
        case str():
            return "the text"
        case list():
            return "an array"
        case _:
            return "the object"


def _written(value: Any) -> str:
    if isinstance(value, _Pairs):
        return "{" + ", ".join(f"{json.dumps(name)}: {_written(each)}" for name, each in value) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_written(each) for each in value) + "]"
    return value if isinstance(value, str) else json.dumps(value)
