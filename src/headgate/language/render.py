"""Statements to text: canonical CQL that parses to the same trees."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from headgate.language.dialect import Cql
from headgate.language.parse import Statement


def render(tree: exp.Expr) -> str:
    """One tree as CQL."""
    return Cql().generate(tree)


def render_all(statements: Iterable[Statement]) -> str:
    """Statements as a file: one after another, each closed by a semicolon."""
    return "".join(f"{render(statement.tree)};\n" for statement in statements)
