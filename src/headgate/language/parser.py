"""Parsing statements: declarations, queries, and the relation-to-stream operators in select lists."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from headgate.language import nodes
from headgate.language.declaration_parser import STREAM_CLAUSES, TABLE_CLAUSES, DeclarationParser

_QUERY_STARTS = (TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN)


def _distance(arguments: list[exp.Expr]) -> exp.Expr:
    """DATEDIFF of two dates; with a unit before them it is TIMESTAMPDIFF, as in Spark."""
    name = "TIMESTAMPDIFF" if len(arguments) == 3 else "DATEDIFF"
    built: exp.Expr = DeclarationParser.FUNCTIONS[name](arguments)
    return built


class CqlParser(DeclarationParser):
    """Parses one CQL statement after another out of a token list."""

    FUNCTIONS: ClassVar[dict[str, Callable[..., Any]]] = {
        **DeclarationParser.FUNCTIONS,
        "DATEDIFF": _distance,
        "DATE_DIFF": _distance,
        # sqlglot reads the pattern of the one only.
        "TO_UNIX_TIMESTAMP": DeclarationParser.FUNCTIONS["UNIX_TIMESTAMP"],
    }

    FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
        **DeclarationParser.FUNCTION_PARSERS,
        "WSTREAM": lambda self: self._cql_emit_arguments("WSTREAM"),
    }

    STRING_PARSERS: ClassVar[dict[TokenType, Callable[..., Any]]] = {
        **DeclarationParser.STRING_PARSERS,
        # r'\d' is the same constant as '\\d': only how it is written differs.
        TokenType.RAW_STRING: DeclarationParser.STRING_PARSERS[TokenType.STRING],
    }
    PRIMARY_PARSERS: ClassVar[dict[TokenType, Callable[..., Any]]] = {
        **DeclarationParser.PRIMARY_PARSERS,
        **STRING_PARSERS,
    }

    # -- statements -------------------------------------------------------------------------------

    def _parse_statement(self) -> exp.Expr | None:
        if not self._curr:
            return None
        if self._match(TokenType.CREATE):
            return self._cql_create()
        if self._curr.token_type in _QUERY_STARTS:
            return self._cql_query()
        raise self._cql_unknown_word(
            "expected CREATE STREAM, CREATE TABLE, CREATE QUERY or SELECT", ("CREATE", "SELECT", "WITH")
        )

    def _cql_create(self) -> exp.Expr:
        if self._match_text_seq("STREAM"):
            return self._cql_create_relation(nodes.CreateStream, STREAM_CLAUSES)
        if self._match_text_seq("TABLE"):
            return self._cql_create_relation(nodes.CreateTable, TABLE_CLAUSES)
        if self._match_text_seq("QUERY"):
            name = self._cql_name("a query name")
            if not self._match(TokenType.ALIAS):
                raise self._cql_error("expected AS and a SELECT")
            if not self._curr or self._curr.token_type not in _QUERY_STARTS:
                raise self._cql_error("expected a SELECT")
            return nodes.CreateQuery(this=name, query=self._cql_query())
        raise self._cql_unknown_word(
            "expected STREAM, TABLE or QUERY after CREATE", ("STREAM", "TABLE", "QUERY")
        )

    def _cql_query(self) -> exp.Expr | None:
        """A SELECT or a set operation, either of them in parentheses or not."""
        query = self._parse_select(nested=True, parse_subquery_alias=False)
        return self._parse_query_modifiers(self._parse_set_operations(query))

    def _parse_join(
        self,
        skip_join_token: bool = False,
        parse_bracket: bool = False,
        alias_tokens: Collection[TokenType] | None = None,
    ) -> exp.Join | None:
        if not self._match(TokenType.COMMA):
            return super()._parse_join(skip_join_token, parse_bracket, alias_tokens)
        # sqlglot would swallow errors in what follows the comma, and turn the comma into CROSS JOIN.
        item = self._parse_table(alias_tokens=alias_tokens)
        if item is None:
            raise self._cql_error("expected a stream, a table or a sub-query after the comma")
        return exp.Join(this=item)

    def _parse_group(self, skip_group_by_token: bool = False) -> exp.Group | None:
        group = super()._parse_group(skip_group_by_token)
        if group is not None and not any(group.args.values()):
            raise self._cql_error("expected what to GROUP BY")
        return group

    def _parse_primary(self) -> exp.Expr | None:
        primary = super()._parse_primary()
        if isinstance(primary, exp.Concat):
            # 'a' 'b': constants that stand side by side are one constant.
            return exp.Literal.string("".join(part.name for part in primary.expressions))
        return primary

    def _parse_function_call(
        self,
        functions: dict[str, Callable[..., Any]] | None = None,
        anonymous: bool = False,
        optional_parens: bool = True,
        any_token: bool = False,
    ) -> exp.Expr | None:
        name = self._curr.text if self._curr else ""
        call = super()._parse_function_call(functions, anonymous, optional_parens, any_token)
        found = call
        while isinstance(found, (exp.Window, exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)):
            found = found.this
        if isinstance(found, exp.Expr):
            # Of several names of one function sqlglot remembers none.
            found.meta.setdefault(nodes.WRITTEN, name)
        return call

    # -- relation to stream -----------------------------------------------------------------------

    def _parse_projections(self) -> tuple[list[exp.Expr], list[exp.Expr] | None]:
        if not self._curr or self._curr.token_type == TokenType.FROM:
            raise self._cql_error("expected what to SELECT")
        if self._curr.text.upper() not in nodes.EMIT_KINDS:
            return super()._parse_projections()
        if self._curr.token_type in (TokenType.IDENTIFIER, TokenType.STRING):
            return super()._parse_projections()
        kind, start = self._curr.text.upper(), self._curr
        self._advance()
        if self._curr and self._curr.token_type == TokenType.DASH and self._next.text.upper() == "RESTORE":
            self._advance()
        restore = self._match_text_seq("RESTORE")
        if self._cql_emit_in_parentheses():
            self._advance()
            emit = self._cql_emit_arguments(kind)
            self._cql_expect(TokenType.R_PAREN, f"expected ) after the list of {kind}")
            if self._match(TokenType.L_BRACKET):
                emit.set("window", self._cql_window_spec())
        else:
            emit = self._cql_emit_arguments(kind)
        if restore:
            emit.set("restore", True)
        emit.meta.update(start=start.start, end=start.end)
        return [emit], None

    def _cql_emit_in_parentheses(self) -> bool:
        """Whether the next ( opens the whole list, ISTREAM(a, b), not just its first item."""
        if not self._curr or self._curr.token_type != TokenType.L_PAREN:
            return False
        depth = 0
        for index in range(self._index, len(self._tokens)):
            kind = self._tokens[index].token_type
            depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
            if depth == 0:
                after = self._tokens[index + 1] if index + 1 < len(self._tokens) else None
                closers = (TokenType.FROM, TokenType.L_BRACKET, TokenType.R_PAREN)
                return after is None or after.token_type in closers
        return True

    def _cql_emit_arguments(self, kind: str) -> exp.Expr:
        distinct = self._match(TokenType.DISTINCT)
        expressions = self._parse_expressions()
        if not expressions:
            raise self._cql_error(f"expected what {kind} shall list")
        return nodes.Emit(kind=kind, expressions=expressions, distinct=distinct or None)
