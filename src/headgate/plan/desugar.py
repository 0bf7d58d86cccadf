"""Rewrites of syntax before binding: forms that are short for longer ones."""

from __future__ import annotations

from sqlglot import exp

from headgate.language import nodes
from headgate.language.parse import Statement
from headgate.model.errors import UnsupportedError


def nested_wstream(select: exp.Select, statement: Statement) -> exp.Select:
    """A select whose WSTREAMs inside expressions have become windowed sub-queries.

    Before: `SELECT SUM(WSTREAM(SUM(a))[ROWS 10]) FROM s [RANGE 6 SECONDS SLIDE 6 SECONDS]`
    After:  `SELECT SUM(w.c1) FROM (SELECT SUM(a) AS c1 FROM s [… INTERNAL]) AS w [ROWS 10]`
    (Windows document, section 3.4.)
    """
    emits = [
        emit
        for item in select.expressions
        if not isinstance(item, nodes.Emit)
        for emit in item.find_all(nodes.Emit)
        if emit.find_ancestor(exp.Select) is select
    ]
    if not emits:
        return select
    if len(emits) > 1 or select.args.get("group") or select.args.get("having"):
        raise UnsupportedError(
            "WSTREAM inside an expression stands once in a select list, without GROUP BY or HAVING around it",
            remedy="write the inner query as a sub-query with INTERNAL windows and a window on it",
            place=statement.place(emits[1] if len(emits) > 1 else emits[0]),
        )
    emit = emits[0]
    if emit.args.get("window") is None or len(emit.expressions) != 1:
        raise UnsupportedError(
            "WSTREAM inside an expression takes one value and a window: WSTREAM(SUM(a))[ROWS 10]",
            place=statement.place(emit),
        )
    inner = exp.Select(
        expressions=[exp.Alias(this=emit.expressions[0].copy(), alias=exp.to_identifier("c1"))],
        **{
            key: value.copy() if isinstance(value, exp.Expr) else [each.copy() for each in value]
            for key, value in select.args.items()
            if key in ("from_", "joins", "where") and value
        },
    )
    for window in inner.find_all(nodes.WindowSpec):
        window.set("internal", True)
    for item in [inner.args["from_"], *(inner.args.get("joins") or [])]:
        if not isinstance(item.this, nodes.Windowed):
            unbounded = nodes.WindowSpec(kind="UNBOUNDED", internal=True)
            item.set("this", nodes.Windowed(this=item.this, window=unbounded))
    alias = exp.TableAlias(this=exp.to_identifier("w"))
    source = nodes.Windowed(this=exp.Subquery(this=inner, alias=alias), window=emit.args["window"].copy())
    marked = {id(emit)}

    def visit(node: exp.Expr) -> exp.Expr:
        if id(node) in marked:
            return exp.Column(this=exp.to_identifier("c1"), table=exp.to_identifier("w"))
        return node

    expressions = [item.transform(visit, copy=False) for item in select.expressions]
    return exp.Select(
        expressions=expressions, from_=exp.From(this=source), distinct=select.args.get("distinct")
    )
