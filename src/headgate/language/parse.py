"""Text to statements."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import ErrorLevel, ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from headgate.language import nodes
from headgate.language.dialect import Cql
from headgate.language.parser import CqlSyntaxError
from headgate.model.errors import InputError, LanguageError, Place
from headgate.model.source import SourceText, Span

LONGEST_TEXT = 1_000_000
"""Characters; longer is surely not something a person wrote, and parsing it would only burn memory."""

MOST_NODES = 200_000


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
            f"{source.name} has {len(text):,} characters; the longest text read is {LONGEST_TEXT:,}",
            remedy="split it into several files",
        )
    if "\x00" in text:
        at = text.index("\x00")
        raise InputError(
            f"{source.name} is not text: it has a NUL character at offset {at}",
            remedy="give a UTF-8 file of CQL statements",
        )
    statements = []
    for tokens in _split(_tokenize(source)):
        span = Span(tokens[0].start, tokens[-1].end + 1)
        statements.append(Statement(_parse_one(source, tokens), source, span))
    if not statements:
        raise LanguageError(
            f"{source.name} has no statements",
            remedy="write CREATE STREAM … ; CREATE QUERY … AS SELECT … ;",
            place=Place(source, Span(0, 0)),
        )
    return tuple(statements)


def _tokenize(source: SourceText) -> list[Token]:
    try:
        return Cql().tokenize(source.text)
    except TokenError as error:
        at = min(getattr(error, "end", 0) or 0, max(0, len(source.text) - 1))
        raise LanguageError(
            "the text ends inside a string, a quoted name or a comment, or has a character that means nothing",
            remedy="close the quote or the comment",
            place=Place(source, Span(at, at + 1 if source.text else at)),
        ) from error


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
        raise _syntax_error(source, error, whole) from error
    except RecursionError as error:
        raise LanguageError(
            "this statement is nested too deeply",
            remedy="split it into several queries",
            place=Place(source, Span(whole.start, whole.start + 1)),
        ) from error
    except (ParseError, TypeError, ValueError, AttributeError, IndexError, KeyError) as error:
        # sqlglot reports some malformed input by tripping over it: that is still the user's text.
        raise LanguageError("this statement cannot be read", place=Place(source, whole)) from error
    if len(trees) != 1 or not isinstance(trees[0], exp.Expr):
        raise LanguageError("expected one statement", place=Place(source, whole))
    return trees[0]


def _syntax_error(source: SourceText, error: CqlSyntaxError, whole: Span) -> LanguageError:
    start, end = error.start, min(max(error.end, error.start), len(source.text))
    found = source.text[start:end]
    message = error.message[:1].lower() + error.message[1:] if error.message[:2] != "AS" else error.message
    if message.startswith(("expected", "expecting")):
        at_end = end >= whole.end and not source.text[end : whole.end].strip()
        if at_end and found and source.text[whole.end :].strip()[:1] in ("", ";"):
            message += f"; the statement goes no further than {found!r}"
        elif found and "not " not in message:
            message += f", found {found!r}"
    elif message.startswith(("invalid expression", "required keyword")):
        message = f"this does not fit here: {found!r}" if found else "something is missing here"
    return LanguageError(message, place=Place(source, Span(start, max(end, start))))
