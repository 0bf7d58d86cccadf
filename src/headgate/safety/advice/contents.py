"""Edits of what a query asks for: bounds on the values of columns, and DISTINCT."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from sqlglot import exp

from headgate.language import nodes
from headgate.language.render import render
from headgate.plan.catalog import Catalog, QueryDef, StreamDef
from headgate.safety.advice.edit import Burden, Edit
from headgate.safety.advice.few_values import few_values
from headgate.safety.advice.sites import sites_of

MOST = 6
"""More bounds than these are no help to anybody."""


def value_edits(query: QueryDef, catalog: Catalog) -> Iterator[Edit]:
    """Bounds for each column that the query's outermost SELECT shows, groups, joins or partitions by."""
    if not isinstance(query.tree, exp.Select):
        return
    types = {
        (site.name.casefold(), column.name.casefold()): column.type
        for site in sites_of(query, catalog)
        if isinstance(site.reads, StreamDef)
        for column in site.reads.columns
    }
    typed = {}
    for column in _columns(query.tree):
        owners = [owner for owner, name in types if name == column.name.casefold()]
        owner = column.table.casefold() or (owners[0] if len(owners) == 1 else "")
        typed[column] = types.get((owner, column.name.casefold()), pa.null())
    countable = [column for column, dtype in typed.items() if few_values(column, dtype) is not None]
    chosen = _one_of_equals(query.tree, countable)
    for column in chosen if len(chosen) <= MOST else ():
        found = few_values(column.copy(), typed[column])
        if found is not None:
            yield _bounded(query, column, *found)


def _one_of_equals(select: exp.Select, columns: list[exp.Column]) -> list[exp.Column]:
    """Of columns that the query sets equal the first: a bound on one is a bound on all."""
    first = {render(each): render(each) for each in columns}
    for equality in _equalities(select):
        sides = [render(side) for side in (equality.this, equality.expression)]
        if all(side in first for side in sides) and not equality.find_ancestor(exp.Or, exp.Not):
            one, other = (first[side] for side in sides)
            first = {name: one if known == other else known for name, known in first.items()}
    return [each for each in columns if first[render(each)] == render(each)]


def _equalities(select: exp.Select) -> Iterator[exp.EQ]:
    for source in (select.args.get("where"), *(select.args.get("joins") or [])):
        for equality in source.find_all(exp.EQ) if source is not None else ():
            if equality.find_ancestor(exp.Select) is select:
                yield equality


def _bounded(query: QueryDef, column: exp.Column, bound: exp.Expr, said: str) -> Edit:
    def change(tree: exp.Expr) -> None:
        select = _select(tree)
        assert isinstance(select, exp.Select)
        where = select.args.get("where")
        condition = (
            bound.copy() if where is None else exp.And(this=_grouped(where.this), expression=bound.copy())
        )
        select.set("where", exp.Where(this=condition))

    before = "WHERE … AND" if query.tree.args.get("where") else "WHERE"
    return Edit(
        "values",
        query.name.casefold(),
        change,
        f"{before} {render(bound)}",
        f"only rows with {{}} {said} count",
        render(column),
        Burden.VALUES,
    )


def _grouped(condition: exp.Expr) -> exp.Expr:
    return exp.Paren(this=condition) if isinstance(condition, exp.Or) else condition


def distinct_edits(query: QueryDef) -> Iterator[Edit]:
    """DISTINCT of the outermost SELECT dropped if it is there, added if it is not."""
    select = query.tree
    if not isinstance(select, exp.Select):
        return
    has = _is_distinct(select)
    effect = "a value may be answered several times" if has else "each value is answered once"
    edited = select.copy()
    _toggle(edited)
    yield Edit(
        "distinct",
        query.name.casefold(),
        lambda tree: _toggle(_select(tree)),
        render(edited).splitlines()[0],
        effect,
        query.name,
        Burden.DISTINCT,
    )


def _is_distinct(select: exp.Select) -> bool:
    emit = _emit(select)
    return bool(select.args.get("distinct") or (emit is not None and emit.args.get("distinct")))


def _toggle(select: exp.Expr) -> None:
    assert isinstance(select, exp.Select)
    emit = _emit(select)
    if emit is not None:
        emit.set("distinct", not emit.args.get("distinct"))
    else:
        select.set("distinct", None if select.args.get("distinct") else exp.Distinct())


def _emit(select: exp.Select) -> nodes.Emit | None:
    first = select.expressions[0] if select.expressions else None
    return first if isinstance(first, nodes.Emit) else None


def _select(tree: exp.Expr) -> exp.Expr:
    return tree.args["query"] if isinstance(tree, nodes.CreateQuery) else tree


def _columns(select: exp.Select) -> list[exp.Column]:
    """Columns of the select list, GROUP BY, PARTITION BY and equalities, each once; not those inside aggregates."""
    emit = _emit(select)
    shown = list(emit.expressions) if emit is not None else list(select.expressions)
    group = select.args.get("group")
    parts = [each.unalias() for each in shown] + (list(group.expressions) if group else [])
    for equality in _equalities(select):
        parts += [equality.this, equality.expression]
    for windowed in select.find_all(nodes.Windowed):
        owner = windowed.this.alias_or_name if select.args.get("joins") else None
        if windowed.find_ancestor(exp.Select) is select:
            parts += [
                exp.column(each.name, owner) for each in windowed.args["window"].args.get("partition") or []
            ]
    found = {render(each): each for each in parts if isinstance(each, exp.Column)}
    return [each for each in found.values() if not isinstance(each.this, exp.Star)]
