"""Select lists: stars written out, items bound and named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from headgate.language.parse import Statement
from headgate.model import types
from headgate.model.errors import DeclarationError, NameResolutionError, TypeMismatchError
from headgate.model.suggest import did_you_mean
from headgate.plan.expressions import ExpressionBinder
from headgate.plan.grouping import aggregate_of
from headgate.plan.nodes import Node, Output, Project
from headgate.plan.relation import Relation, unused
from headgate.plan.scope import Scope

_RESERVED = ("_time", "_op", "_born", "_dies", "_sign")


def expand_stars(items: Sequence[exp.Expr], scope: Scope, statement: Statement) -> Iterator[exp.Expr]:
    """The items of a select list with `*` and `s.*` replaced by the columns they stand for."""
    for item in items:
        if isinstance(item, exp.Star):
            chosen = scope.visible if scope.star is None else scope.star
        elif isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
            chosen = [v for v in scope.visible if v.source.casefold() == item.table.casefold()]
            if not chosen:
                raise NameResolutionError(
                    f"there is no input named {item.table} in this query",
                    remedy=did_you_mean(item.table, scope.sources),
                    place=statement.place(item.args["table"]),
                )
        else:
            yield item
            continue
        for each in chosen:
            table = exp.to_identifier(each.source, quoted=True)
            yield exp.Column(this=exp.to_identifier(each.bare, quoted=True), table=table)


def project(
    node: Node, items: Sequence[exp.Expr], binder: ExpressionBinder, statement: Statement
) -> Relation:
    """The select list over a node, every item bound and named."""
    labels: list[str] = []
    outputs: list[Output] = []
    for item in items:
        scalar = binder.bind(item.unalias())
        if scalar.type == types.NULL:
            raise TypeMismatchError(
                "NULL alone has no type", remedy="write CAST(NULL AS …)", place=statement.place(item)
            )
        label = _label(item)
        if label.casefold() in _RESERVED:
            raise DeclarationError(
                f"{label} is a name that Headgate keeps for its own columns",
                remedy="choose another alias",
                place=statement.place(item),
            )
        if isinstance(item, exp.Alias) and label.casefold() in {each.casefold() for each in labels}:
            raise DeclarationError(f"two outputs are named {label}", place=statement.place(item))
        label = unused(label, labels)
        labels.append(label)
        outputs.append(Output(label, scalar))
    return Relation(Project(node, tuple(outputs)), tuple(labels), tuple(_also(item) for item in items))


def _label(item: exp.Expr) -> str:
    if isinstance(item, exp.Alias):
        return str(item.alias)
    if isinstance(item, (exp.Column, exp.Dot)):
        return item.name
    bare = item.copy().transform(
        lambda node: exp.Column(this=node.this) if isinstance(node, exp.Column) and node.table else node
    )
    return bare.sql(dialect="spark", normalize_functions="lower").replace("`", "")


def _also(item: exp.Expr) -> str | None:
    """The column behind an aggregate without an alias."""
    if aggregate_of(item) and isinstance(item.this, exp.Column):
        return str(item.this.name)
    return None
