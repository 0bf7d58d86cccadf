"""Non-null columns: which columns of a stream cannot be NULL any more where its rows are kept.

```
DISTINCT a, c  ◄── Filter a > 3 AND c IS NOT NULL  ◄── s        a and c are filled: NULL > 3 is not true
```

It matters because nothing closes NULL: a promise is about equal values, and NULL equals none. A join leaves such rows
out by itself; DISTINCT and GROUP BY would keep NULL as a value for good.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from headgate.model.scalar import Scalar
from headgate.plan.nodes import Filter, Node, TableJoin
from headgate.plan.normalize import split_conjunction
from headgate.safety.lineage import lineage

_STRICT = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Like, exp.ILike, exp.RegexpLike)
"""Comparisons that are not true, and not false either, if an operand is NULL."""


def non_null_columns(node: Node) -> frozenset[str]:
    """The columns of the stream behind an edge that are not NULL in any row on the edge, by the stream's names."""
    found: set[str] = set()
    for each in node.walk():
        match each:
            case Filter():
                below, names = lineage(each.input), _tested(each.predicate)
            case TableJoin():
                below, names = lineage(each.left), {mine for mine, _ in each.keys}
            case _:
                continue
        if below is not None:
            found |= {below.columns[name] for name in names if name in below.columns}
    return frozenset(found)


def _tested(predicate: Scalar) -> set[str]:
    """Columns that are not NULL in rows for which the predicate is true."""
    return {name for part in split_conjunction(predicate) for name in _strict_in(part.expression)}


def _strict_in(node: exp.Expr) -> Iterator[str]:
    match node:
        case exp.Not(this=exp.Is(this=operand, expression=exp.Null())):
            yield from _column(operand)
        case exp.Not(this=exp.Paren(this=inner)):
            yield from _strict_in(exp.Not(this=inner.copy()))
        case exp.Not() if isinstance(node.this, (*_STRICT, exp.In, exp.Column)):
            yield from _strict_in(node.this)
        case exp.In():
            yield from _column(node.this)
        case exp.Column():
            yield node.name
        case _ if isinstance(node, _STRICT):
            yield from _column(node.this)
            yield from _column(node.expression)


def _column(node: exp.Expr) -> Iterator[str]:
    """The column that an operand is, converted or not."""
    while isinstance(node, (exp.Cast, exp.Paren)):
        node = node.this
    if isinstance(node, exp.Column):
        yield node.name
