"""Opposites: the comparison that is true where another one is false, and NULL where that is NULL."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

_OPPOSITES: Mapping[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GTE,
    exp.LTE: exp.GT,
    exp.GT: exp.LTE,
    exp.GTE: exp.LT,
    exp.NEQ: exp.EQ,
}


def opposite(node: exp.Expr) -> exp.Expr | None:
    """`k >= 3` for `k < 3`; None for what is no comparison, and for =, whose opposite says little."""
    kind = _OPPOSITES.get(type(node))
    return None if kind is None else kind(this=node.this.copy(), expression=node.expression.copy())
