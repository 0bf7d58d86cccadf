"""What is wrong with a line of JSON: said for one bad row, in words of the declaration."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from headgate.model import types
from headgate.model.schema import Column
from headgate.runtime.io.rejects import shown
from headgate.runtime.io.text.textfile import BYTE_ORDER_MARK, Flaw

_WRITTEN_AS_TEXT = (
    pa.types.is_string,
    pa.types.is_binary,
    pa.types.is_timestamp,
    pa.types.is_date,
    pa.types.is_decimal,
)


def diagnosis(line: bytes, columns: Mapping[str, Column]) -> Flaw | None:
    """The flaw of a line whose fields mean the given columns; None if it is not for Python to see."""
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
        misfit = _misfit(value, column.type)
        if misfit is not None:
            return Flaw(f"{misfit} is not of type {types.spark_name(column.type)}", column.name)
    return None


class _Pairs(tuple[tuple[str, Any], ...]):
    """An object with its fields in order, also if a name comes twice."""


def _pairs(pairs: list[tuple[str, Any]]) -> _Pairs:
    return _Pairs(pairs)


def _misfit(value: Any, declared: pa.DataType) -> str | None:
    """The part of a value that is not of the kind that a type asks for, in words; None if all fits."""
    match value:
        case None:
            return None
        case _Pairs() if pa.types.is_struct(declared):
            fields = {part.name: part.type for part in declared}
            return _first(_misfit(each, fields[name]) for name, each in value if name in fields)
        case _Pairs() if pa.types.is_map(declared):
            return _first(_misfit(each, declared.item_type) for _, each in value)
        case list() if pa.types.is_list(declared):
            return _first(_misfit(each, declared.value_type) for each in value)
        case bool():
            fits = declared == types.BOOLEAN
        case int():
            fits = pa.types.is_floating(declared) or pa.types.is_decimal(declared) or _holds(declared, value)
        case float():
            fits = pa.types.is_floating(declared) or pa.types.is_decimal(declared)
        case str():
            fits = any(kind(declared) for kind in _WRITTEN_AS_TEXT)
        case _:
            fits = False
    return None if fits else f"{_kind(value)} {shown(_written(value))}"


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
