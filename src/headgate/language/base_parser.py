"""What all parts of the CQL parser share: errors that know their place, and small words.

In this and the other parser modules, methods named `_cql_…` are new; the others override the one of that name in
sqlglot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import TypeVar

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

T = TypeVar("T")


class CqlSyntaxError(ParseError):
    """A syntax error that remembers which characters it is about, and what may have been meant.

    `at_end` says that the characters are the last of the statement, and that more was expected after them.
    """

    def __init__(
        self, message: str, start: int, end: int, *, at_end: bool = False, remedy: str | None = None
    ) -> None:
        super().__init__(message)
        self.message, self.start, self.end = message, start, end
        self.at_end, self.remedy = at_end, remedy


class BaseParser(SparkParser):
    """Spark SQL's parser with CQL's way of reporting errors."""

    STRICT_CAST = True

    def raise_error(self, message: str, token: Token | None = None) -> None:
        # sqlglot's own messages begin in upper case, and some of them quote its tokens.
        message = message.split(" but got <Token", maxsplit=1)[0]
        raise self._cql_error(message[:1].lower() + message[1:], token)

    def _cql_error(
        self, message: str, token: Token | None = None, remedy: str | None = None
    ) -> CqlSyntaxError:
        """An error about a token: the given one, else the next, else the last."""
        at_end = not (token or self._curr)
        token = token or self._curr or self._prev
        if not token:
            return CqlSyntaxError(message, 0, 0, remedy=remedy)
        return CqlSyntaxError(message, token.start, token.end + 1, at_end=at_end, remedy=remedy)

    def _cql_unknown_word(
        self, message: str, choices: Iterable[str], token: Token | None = None
    ) -> CqlSyntaxError:
        """An error about a word that is none of the choices; names the one that is near."""
        word = (token or self._curr).text.upper() if token or self._curr else ""
        near = get_close_matches(word, list(choices), n=1, cutoff=0.7)
        return self._cql_error(message, token, f"did you mean {near[0]}?" if near else None)

    def _parse_csv(self, parse_method: Callable[[], T | None], sep: TokenType = TokenType.COMMA) -> list[T]:
        def item_after_separator() -> T | None:
            item = parse_method()
            if item is None and self._prev and self._prev.token_type == sep:
                raise self._cql_error("expected something after the comma")
            return item

        return super()._parse_csv(item_after_separator, sep)

    def _cql_words(self, words: str) -> bool:
        """Consumes a clause's opening words, however the tokenizer has glued them together."""
        index, wanted = self._index, words.split()
        while wanted:
            parts = self._curr.text.upper().split() if self._curr else []
            if not parts or parts != wanted[: len(parts)]:
                self._retreat(index)
                return False
            self._advance()
            wanted = wanted[len(parts) :]
        return True

    def _cql_expect(self, token_type: TokenType, message: str) -> None:
        if not self._match(token_type):
            raise self._cql_error(message)

    def _cql_name(self, what: str) -> exp.Identifier:
        name = self._parse_id_var(any_token=False)
        if not isinstance(name, exp.Identifier):
            raise self._cql_error(f"expected {what}")
        return name
