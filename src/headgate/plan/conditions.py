"""Conditions of WHERE and ON as syntax: taking them apart before they are bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sqlglot import exp

from headgate.language import nodes as syntax
from headgate.language.parse import Statement
from headgate.model.errors import MeaninglessError, UnsupportedError
from headgate.plan.scope import Scope
from headgate.plan.using import JoinedColumns


@dataclass(frozen=True)
class Existence:
    """EXISTS, NOT EXISTS or `value IN (SELECT …)` as a condition of its own."""

    query: exp.Expr
    negated: bool
    value: exp.Expr | None = None


def split(condition: exp.Expr) -> list[exp.Expr]:
    """The conjuncts of a condition, left to right."""
    found: list[exp.Expr] = []
    pending = [condition]
    while pending:
        node = pending.pop()
        while isinstance(node, exp.Paren):
            node = node.this
        if isinstance(node, exp.And):
            pending += [node.expression, node.this]
        else:
            found.append(node)
    return found


def subquery_of(part: exp.Expr) -> Existence | None:
    """The sub-query that a conjunct asks about; None for a plain condition."""
    negated = False
    while isinstance(part, (exp.Not, exp.Paren)):
        negated ^= isinstance(part, exp.Not)
        part = part.this
    if isinstance(part, exp.Exists):
        return Existence(part.this, negated)
    if isinstance(part, exp.In) and part.args.get("query") is not None:
        # NOT IN is refused where it is bound: with NULLs it does not mean NOT EXISTS.
        return None if negated else Existence(part.args["query"], False, part.this)
    return None


def without_rstream(query: exp.Expr, statement: Statement) -> exp.Expr:
    """The query behind EXISTS or IN as a relation: RSTREAM adds nothing there, ISTREAM and its like do not fit."""
    emit = next((item for item in query.expressions if isinstance(item, syntax.Emit)), None)
    if not isinstance(query, exp.Select) or emit is None:
        return query
    if emit.args["kind"] != "RSTREAM" or emit.args.get("restore"):
        raise MeaninglessError(
            f"EXISTS and IN ask about a relation; {emit.args['kind']} makes a stream of it",
            remedy="list the columns alone",
            place=statement.place(emit),
        )
    plain = query.copy()
    plain.set("expressions", [each.copy() for each in emit.expressions])
    return plain


def of_joins(tree: exp.Select, scope: Scope, statement: Statement) -> Iterator[exp.Expr]:
    """The conditions of JOIN … ON and JOIN … USING; other kinds of join are refused.

    When all have been taken, the scope knows which columns `*` stands for.
    """
    columns = JoinedColumns(scope, statement)
    for join in tree.args.get("joins") or []:
        side, kind, method = (str(join.args.get(key) or "").upper() for key in ("side", "kind", "method"))
        if side or method or kind not in ("", "INNER", "CROSS"):
            words = " ".join(word for word in (method, side, kind) if word)
            remedy = "write EXISTS or NOT EXISTS" if kind in ("SEMI", "ANTI") else "write an inner join"
            remedy = "name the columns: JOIN … USING (…)" if method == "NATURAL" and not side else remedy
            raise UnsupportedError(
                f"{words} JOIN is not supported", remedy=remedy, place=statement.place(join.this)
            )
        if join.args.get("on") is not None:
            yield from split(join.args["on"])
        yield from columns.join(join)
    scope.star = columns.listed()


def equal_columns(parts: list[exp.Expr], scope: Scope) -> Callable[[str, str], bool]:
    """Tells whether the conjuncts make two columns equal: such columns are not ambiguous by name."""
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent.setdefault(name, name) != name:
            name = parent[name]
        return name

    for part in parts:
        if isinstance(part, exp.EQ) and isinstance(part.this, exp.Column):
            sides = [part.this, part.expression]
            if all(isinstance(side, exp.Column) for side in sides):
                found = [scope.find(side.table or None, side.name) for side in sides]
                if all(len(each) == 1 for each in found):
                    a, b = (root(each[0].column.name) for each in found)
                    parent[a] = b

    return lambda left, right: root(left) == root(right)
