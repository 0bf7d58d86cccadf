"""Constraints: what a declaration says of the order, the clusters and the partners of rows, and that it agrees.

Two clauses of one kind over the same columns say one thing twice, or two things of which one is meant. KEY beside
CLUSTERED BY over the same columns says more than this one, which is then of no use and no mistake.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlglot import exp

from headgate.language import nodes
from headgate.language.parse import Statement
from headgate.model.adherence import AUTO, Adherence, Auto, WithinRows, WithinTime
from headgate.model.errors import DeclarationError

_KINDS = {
    nodes.OrderedBy: "ORDERED BY",
    nodes.ClusteredBy: "CLUSTERED BY",
    nodes.ForeignKey: "FOREIGN KEY",
}


def adherence(clause: exp.Expr) -> Adherence:
    """How closely a constraint is kept, as its clause says."""
    rows, length = (clause.args["within"].args.get(name) for name in ("rows", "length"))
    if length is not None:
        return WithinTime(int(length))
    return AUTO if rows is None else WithinRows(int(rows))


def refuse_contradictions(statement: Statement) -> None:
    """Raises where two constraints of one kind over the same columns say different things."""
    seen: dict[tuple[object, ...], Adherence] = {}
    for clause in statement.tree.args.get("clauses") or []:
        kind = _KINDS.get(type(clause))
        if kind is None:
            continue
        found = adherence(clause)
        other = seen.setdefault(_subject(clause), found)
        if other != found:
            columns = ", ".join(each.name for each in clause.expressions)
            raise DeclarationError(
                f"{kind} ({columns}) is declared {other} and {found}",
                remedy=f"write {_instead(kind, columns, other, found)}",
                place=statement.place(clause.expressions[0]),
            )


def _subject(clause: exp.Expr) -> tuple[object, ...]:
    """What a constraint is about: two with the same subject speak of the same rows."""
    names = [each.name.casefold() for each in clause.expressions]
    match clause:
        case nodes.ForeignKey():
            theirs = [each.name.casefold() for each in clause.args["columns"]]
            return (
                "FOREIGN KEY",
                clause.args["parent"].name.casefold(),
                *sorted(zip(names, theirs, strict=False)),
            )
        case nodes.ClusteredBy():
            return ("CLUSTERED BY", *sorted(names))
        case _:
            return ("ORDERED BY", *names)


def _instead(kind: str, columns: str, one: Adherence, other: Adherence) -> str:
    match one, other:
        case (Auto(), known) | (known, Auto()):
            return f"{known} alone: AUTO asks for what it says"
        case (WithinRows(first), WithinRows(second)) | (WithinTime(first), WithinTime(second)):
            least, most = (one, other) if first < second else (other, one)
            return (
                f"{least} alone if every row keeps it, for then it keeps {most} too; otherwise {most} alone"
            )
        case _:
            return f"{kind} ({columns}) once, with a k that every row keeps, in rows or in time"


def refuse_unkeyed(
    statement: Statement,
    clause: exp.Expr,
    parent: str,
    referred: Collection[str],
    useful: Collection[Collection[str]],
) -> None:
    """Raises unless a FOREIGN KEY refers to columns of a stream that some `useful` ones are among."""
    if any(set(each) <= set(referred) for each in useful):
        return
    columns = ", ".join(referred)
    raise DeclarationError(
        f"FOREIGN KEY refers to {parent} ({columns}), which is no KEY: rows may have many partners",
        remedy=f"write KEY ({columns}) in CREATE STREAM {parent} if no two of its rows agree in it; "
        "otherwise leave the FOREIGN KEY out",
        place=statement.place(clause.args["columns"][0]),
    )
