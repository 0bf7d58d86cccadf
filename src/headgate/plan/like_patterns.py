"""LIKE patterns: `x LIKE 'a/%' ESCAPE '/'` becomes `x LIKE 'a\\%'`; after binding there is one form of pattern."""

from __future__ import annotations

from sqlglot import exp

from headgate.language.parse import Statement
from headgate.model.errors import UnsupportedError

_WILDCARDS = ("%", "_")


def without_escape(node: exp.Escape, statement: Statement) -> exp.Expr:
    """The condition with a backslash where its own character stands before a wildcard or itself."""
    like, escape = node.this, node.expression
    if not isinstance(like, (exp.Like, exp.ILike)) or not like.expression.is_string:
        raise UnsupportedError(
            "ESCAPE needs LIKE or ILIKE with a pattern in quotes",
            remedy="write x LIKE 'a/%b' ESCAPE '/'",
            place=statement.place(node),
        )
    if not escape.is_string or len(escape.name) != 1:
        raise UnsupportedError(
            "ESCAPE needs one character in quotes", remedy="as in ESCAPE '/'", place=statement.place(node)
        )
    return type(like)(
        this=like.this.copy(),
        expression=exp.Literal.string(_with_backslashes(like.expression.name, escape.name, node, statement)),
        negate=like.args.get("negate"),
    )


def _with_backslashes(pattern: str, escape: str, node: exp.Escape, statement: Statement) -> str:
    parts: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            escaped = next(characters, "")
            if escaped not in (*_WILDCARDS, escape):
                raise UnsupportedError(
                    f"the pattern {pattern!r} has {escape} before something other than %, _ and {escape}",
                    remedy=f"write {escape}{escape} for the character itself",
                    place=statement.place(node),
                )
            parts.append(f"\\{escaped}" if escaped in (*_WILDCARDS, "\\") else escaped)
        else:
            parts.append("\\\\" if character == "\\" else character)
    return "".join(parts)
