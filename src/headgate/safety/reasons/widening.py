"""Widening: conversions of whole numbers to types that hold all of them, which change no comparison.

Any other conversion does: `TRY_CAST(k AS TINYINT)` is NULL where k is 300, and then not the greatest of some rows.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from sqlglot import exp

from headgate.model import types
from headgate.plan.sqltypes import from_sql


def beneath_widening(node: exp.Expr, type_of: Callable[[exp.Expr], pa.DataType | None]) -> exp.Expr:
    """The expression beneath such conversions and parentheses; `type_of` gives types as far as they are known."""
    while isinstance(node, (exp.Cast, exp.Paren)):
        if isinstance(node, exp.Cast) and not holds_all(from_sql(node.to), type_of(node.this)):
            break
        node = node.this
    return node


def holds_all(to: pa.DataType | None, of: pa.DataType | None) -> bool:
    """Whether every whole number of a type fits another type."""
    if to is None or of is None or not types.is_integer(of):
        return False
    if types.is_integer(to):
        return bool(to.bit_width >= of.bit_width)
    return bool(pa.types.is_decimal(to) and to.precision - to.scale >= len(str(2 ** (of.bit_width - 1))))
