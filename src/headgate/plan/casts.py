"""Casts: which types CAST turns into which others."""

from __future__ import annotations

import pyarrow as pa

from headgate.model import types

_SHAPES = (pa.types.is_list, pa.types.is_map, pa.types.is_struct)
_KINDS = ({"number", "boolean"}, {"number", "timestamp"}, {"date", "timestamp"})


def is_castable(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether CAST turns one type into the other, as in Spark SQL."""
    if types.NULL in (source, target) or source == target:
        return True
    if types.is_nested(source) or types.is_nested(target):
        return _same_shape(source, target) and all(map(is_castable, _parts(source), _parts(target)))
    if types.STRING in (source, target):
        return types.INTERVAL not in (source, target)
    kinds = {_kind(source), _kind(target)}
    return len(kinds) == 1 or kinds in _KINDS


def _same_shape(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether both are arrays, both maps, or both structs with as many fields."""
    return source.num_fields == target.num_fields and any(
        is_shape(source) and is_shape(target) for is_shape in _SHAPES
    )


def _parts(dtype: pa.DataType) -> list[pa.DataType]:
    return [dtype.field(number).type for number in range(dtype.num_fields)]


def _kind(dtype: pa.DataType) -> str:
    if types.is_numeric(dtype):
        return "number"
    return "timestamp" if types.is_timestamp(dtype) else types.spark_name(dtype).lower()
