"""Whatever follows the grammar is parsed, and rendering it loses nothing."""

from __future__ import annotations

from hypothesis import given
from tests.language.grammar import texts

from headgate.language.parse import parse
from headgate.language.render import render
from headgate.model.source import SourceText


def assert_survives(text: str) -> None:
    (statement,) = parse(SourceText("<random>", text))
    rendered = render(statement.tree)
    (again,) = parse(SourceText("<rendered>", rendered))
    assert again.tree == statement.tree, rendered
    assert render(again.tree) == rendered


@given(texts("statement"))
def test_a_random_statement_survives(text: str) -> None:
    assert_survives(text)


@given(texts("expression"))
def test_a_random_expression_survives(text: str) -> None:
    assert_survives(f"SELECT a FROM s WHERE {text}")
