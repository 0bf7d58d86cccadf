"""Clauses: what of SQL's syntax a query may use. Everything else is refused by name, never overlooked.

sqlglot reads the syntax of many databases and keeps what it reads in a node's arguments. A binder that looks only
at the arguments it knows would drop the others, and answer another question than the one that was asked.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from headgate.language.parse import Statement
from headgate.model.errors import UnsupportedError

_SET_OPERATION = ("with_", "this", "expression", "distinct")

_KNOWN: Mapping[type[exp.Expr], tuple[str, ...]] = {
    exp.Select: ("with_", "expressions", "distinct", "from_", "joins", "where", "group", "having"),
    exp.Union: _SET_OPERATION,
    exp.Except: _SET_OPERATION,
    exp.Intersect: _SET_OPERATION,
    exp.Subquery: ("this", "alias"),
    exp.With: ("expressions", "recursive"),
    exp.CTE: ("this", "alias"),
    exp.Table: ("this", "alias", "db", "catalog"),
    exp.TableAlias: ("this",),
    exp.Join: ("this", "on", "using", "kind", "side", "method"),
    exp.Group: ("expressions",),
    exp.Distinct: ("expressions",),
    exp.Star: (),
    exp.Between: ("this", "low", "high"),
    exp.In: ("this", "expressions", "query"),
    exp.Exists: ("this",),
    exp.Cast: ("this", "to"),
    exp.TryCast: ("this", "to", "safe"),
}

_WORDS: Mapping[tuple[type[exp.Expr], str], str] = {
    (exp.Select, "laterals"): "LATERAL VIEW",
    (exp.Select, "windows"): "a WINDOW clause",
    (exp.Select, "locks"): "FOR UPDATE",
    (exp.Select, "hint"): "a hint",
    (exp.Select, "connect"): "CONNECT BY",
    (exp.Select, "kind"): "SELECT AS STRUCT",
    (exp.TableAlias, "columns"): "a list of columns in an alias",
    (exp.Table, "sample"): "TABLESAMPLE",
    (exp.Table, "version"): "VERSION AS OF",
    (exp.Distinct, "on"): "DISTINCT ON",
    (exp.Star, "except_"): "* EXCEPT",
    (exp.In, "field"): "IN without parentheses",
    (exp.In, "unnest"): "IN UNNEST",
}
_REMEDIES: Mapping[tuple[type[exp.Expr], str], str] = {
    (exp.TableAlias, "columns"): "name the columns with AS in the select list",
    (exp.Star, "except_"): "list the columns",
    (exp.Union, "by_name"): "list the columns of both sides in the same order",
}
_ORDERING = {"order": "ORDER BY", "limit": "LIMIT", "offset": "OFFSET", "sort": "SORT BY", "fetch": "FETCH"}


def refuse_unknown_clauses(tree: exp.Expr, statement: Statement) -> None:
    """Raises UnsupportedError for the first part of a query's syntax that binding would not look at."""
    for node in tree.walk():
        known = _KNOWN.get(type(node))
        if known is None:
            continue
        for key, value in node.args.items():
            if key not in known and value is not None and value is not False and value != []:
                raise _unsupported(node, key, statement)


def _unsupported(node: exp.Expr, key: str, statement: Statement) -> UnsupportedError:
    value = node.args[key]
    first = value[0] if isinstance(value, list) else value
    place = statement.place(first if isinstance(first, exp.Expr) else node)
    if key in _ORDERING:
        return UnsupportedError(
            f"{_ORDERING[key]} has no meaning for an answer that changes over time",
            remedy="use TOP(value, k) for the most frequent, or MAX/MIN",
            place=place,
        )
    words = _WORDS.get((type(node), key), key.strip("_").replace("_", " ").upper())
    return UnsupportedError(f"{words} is not supported", remedy=_REMEDIES.get((type(node), key)), place=place)
