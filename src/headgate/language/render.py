"""Statements to text: canonical CQL that parses to the same trees."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from headgate.language.dialect import Cql
from headgate.language.parse import Statement


def render(tree: exp.Expr) -> str:
    """One tree as CQL, without the comments that it had."""
    return Cql().generate(tree, comments=False)


def render_all(statements: Iterable[Statement]) -> str:
    """Statements as a file: each closed by a semicolon, an empty line between them."""
    return "\n".join(f"{render(statement.tree)};\n" for statement in statements)
