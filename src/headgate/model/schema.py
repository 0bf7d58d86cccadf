"""Columns: the smallest noun of a schema."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class Column:
    """A named, typed column; in a plan, `name` is unique within its node."""

    name: str
    type: pa.DataType
