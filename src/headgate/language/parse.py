"""Text to statements."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import ErrorLevel, ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from headgate.language import nodes
from headgate.language.base_parser import CqlSyntaxError
from headgate.language.dialect import Cql
from headgate.model.balance import balanced
from headgate.model.errors import InputError, LanguageError, Place
from headgate.model.source import SourceText, Span

LONGEST_TEXT = 1_000_000
"""Characters; longer is surely not something a person wrote, and parsing it would only burn memory."""

MOST_NODES = 200_000

MOST_LEVELS = 120
"""Levels of a syntax tree: what is deeper would exhaust the stack of one of the passes that follow."""


@dataclass(frozen=True)
class Statement:
    """One parsed statement: its tree and where it stands in which text."""

    tree: exp.Expr
    source: SourceText
    span: Span

    def place(self, node: exp.Expr | None = None) -> Place:
        """Where a node of this statement stands; the whole statement if the node has forgotten."""
        span = nodes.span_of(node) if node is not None else None
        return Place(self.source, span or Span(self.span.start, self.span.start + 1))


def parse(source: SourceText) -> tuple[Statement, ...]:
    """All statements of a text, in order; LanguageError with a place if any of it is not CQL."""
    text = source.text
    if len(text) > LONGEST_TEXT:
        raise InputError(
            f"this text has {len(text):,} characters; the longest that is read has {LONGEST_TEXT:,}",
            remedy="split it into several files",
            place=Place(source, Span(LONGEST_TEXT, LONGEST_TEXT)),
        )
    if "\x00" in text:
        at = text.index("\x00")
        raise InputError(
            "this is not text: it has a NUL character",
            remedy="give a UTF-8 file of CQL statements",
            place=Place(source, Span(at, at)),
        )
    statements = []
    for tokens in _split(_tokenize(source)):
        span = Span(tokens[0].start, tokens[-1].end + 1)
        statements.append(Statement(_parse_one(source, tokens), source, span))
    if not statements:
        raise LanguageError(
            "there is no statement here",
            remedy="write CREATE STREAM … ; CREATE QUERY … AS SELECT … ;",
            place=Place(source, Span(0, 0)),
        )
    return tuple(statements)


def _tokenize(source: SourceText) -> list[Token]:
    try:
        return _joined(Cql().tokenize(source.text), source.text)
    except TokenError as error:
        raise _token_error(source, error) from error


def _token_error(source: SourceText, error: TokenError) -> LanguageError:
    cause = error.__cause__ or error
    missing = re.fullmatch(r"Missing (.+) from \d+:(\d+)", str(cause), flags=re.DOTALL)
    if missing is None:
        at = min(error.end or 0, max(0, len(source.text) - 1))
        return LanguageError("this cannot be read", place=Place(source, Span(at, at)))
    closing, start = missing.group(1), min(int(missing.group(2)), len(source.text))
    what = {"*/": "a comment", "`": "a quoted name"}.get(closing, "a string")
    return LanguageError(
        f"{what} begins here and does not end",
        remedy=f"close it with {closing}",
        place=Place(source, Span(start, start)),
    )


def _joined(tokens: list[Token], text: str) -> list[Token]:
    """The tokens with strings that touch made one: 'it''s' is a string with a quote in it."""
    found: list[Token] = []
    for token in tokens:
        last = found[-1] if found else None
        if (
            last is not None
            and last.token_type == token.token_type == TokenType.STRING
            and last.end + 1 == token.start
            and text[last.end] == text[token.start]
        ):
            whole = last.text + text[token.start] + token.text
            found[-1] = Token(TokenType.STRING, whole, last.line, token.col, last.start, token.end)
        else:
            found.append(token)
    return found


def _split(tokens: list[Token]) -> list[list[Token]]:
    chunks: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            chunks.append([])
        else:
            chunks[-1].append(token)
    return [chunk for chunk in chunks if chunk]


def _parse_one(source: SourceText, tokens: list[Token]) -> exp.Expr:
    parser = Cql().parser(error_level=ErrorLevel.IMMEDIATE, max_nodes=MOST_NODES)
    whole = Span(tokens[0].start, tokens[-1].end + 1)
    try:
        trees = parser.parse(tokens, source.text)
    except CqlSyntaxError as error:
        raise _syntax_error(source, error) from error
    except RecursionError as error:
        raise _too_deep(source, whole) from error
    except (ParseError, TypeError, ValueError, AttributeError, IndexError, KeyError) as error:
        # sqlglot reports some malformed input by tripping over it: that is still the user's text.
        raise LanguageError("this statement cannot be read", place=Place(source, whole)) from error
    if len(trees) != 1 or not isinstance(trees[0], exp.Expr):
        raise LanguageError("expected one statement", place=Place(source, whole))
    tree = balanced(trees[0])
    if _levels(tree) > MOST_LEVELS:
        raise _too_deep(source, whole)
    return tree


def _levels(tree: exp.Expr) -> int:
    """How deep the tree is; a chain of n operators that are not balanced has n levels."""
    deepest, pending = 0, [(tree, 1)]
    while pending:
        node, level = pending.pop()
        deepest = max(deepest, level)
        pending.extend((child, level + 1) for child in node.iter_expressions())
    return deepest


def _too_deep(source: SourceText, whole: Span) -> LanguageError:
    return LanguageError(
        "this statement is nested too deeply, or chains too many operators",
        remedy="write a long OR of equalities as IN (…); split the rest into several queries",
        place=Place(source, Span(whole.start, whole.start)),
    )


def _syntax_error(source: SourceText, error: CqlSyntaxError) -> LanguageError:
    start, end = error.start, min(max(error.end, error.start), len(source.text))
    found = source.text[start:end]
    message = error.message
    if message.startswith(("invalid expression", "required ", "no expression")):
        message = (
            f"something is missing after {found!r}" if error.at_end else f"this does not fit here: {found!r}"
        )
    elif message.startswith(("expected", "expecting")):
        message += f"; the statement ends after {found!r}" if error.at_end else f", found {found!r}"
    return LanguageError(message, remedy=error.remedy, place=Place(source, Span(start, end)))
