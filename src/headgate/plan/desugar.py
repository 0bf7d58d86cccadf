"""Rewrites of syntax before binding: forms that are short for longer ones."""

from __future__ import annotations

from sqlglot import exp

from headgate.language import nodes
from headgate.language.parse import Statement
from headgate.model.errors import UnsupportedError

INTERNAL = "internal"
"""The mark of a select whose windows are all internal."""


def nested_wstream(select: exp.Select, statement: Statement) -> exp.Select:
    """A select whose WSTREAMs inside expressions have become windowed sub-queries.

    Before: `SELECT SUM(WSTREAM(SUM(a))[ROWS 10]) FROM s [RANGE 6 SECONDS SLIDE 6 SECONDS]`
    After:  `SELECT SUM(w.c1) FROM (SELECT SUM(a) AS c1 FROM s [… INTERNAL]) AS w [ROWS 10]`
    (Windows document, section 3.4.)
    """
    emits = _nested(select)
    if not emits:
        return select
    if len(emits) > 1 or select.args.get("group") or select.args.get("having"):
        raise UnsupportedError(
            "WSTREAM inside an expression stands once in a select list, without GROUP BY or HAVING around it",
            remedy="write the inner query as a sub-query with INTERNAL windows and a window on it",
            place=statement.place(emits[1] if len(emits) > 1 else emits[0]),
        )
    if emits[0].args.get("window") is None or len(emits[0].expressions) != 1:
        raise UnsupportedError(
            "WSTREAM inside an expression takes one value and a window: WSTREAM(SUM(a))[ROWS 10]",
            place=statement.place(emits[0]),
        )
    outer = select.copy()
    (emit,) = _nested(outer)
    emit.replace(exp.Column(this=exp.to_identifier("c1"), table=exp.to_identifier("w")))
    inner = exp.Select(
        expressions=[exp.Alias(this=emit.expressions[0], alias=exp.to_identifier("c1"))],
        **{key: outer.args[key] for key in ("from_", "joins", "where") if outer.args.get(key)},
    )
    inner.meta[INTERNAL] = True
    alias = exp.TableAlias(this=exp.to_identifier("w"))
    source = nodes.Windowed(this=exp.Subquery(this=inner, alias=alias), window=emit.args["window"])
    return exp.Select(
        expressions=outer.expressions, from_=exp.From(this=source), distinct=outer.args.get("distinct")
    )


def _nested(select: exp.Select) -> list[exp.Expr]:
    """The WSTREAMs of a select list that stand inside an item, not for the whole list."""
    return [
        emit
        for item in select.expressions
        for emit in item.find_all(nodes.Emit)
        if emit is not item and emit.find_ancestor(exp.Select) is select
    ]
