"""Parsing what CQL adds to Spark SQL: windows, relation-to-stream operators, declarations.

Methods named `_cql_…` are new; the others override the one of that name in sqlglot.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, ClassVar, TypeVar

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from headgate.language import nodes
from headgate.model.time import UNITS

_UNIT_NAMES = {
    **{alias: unit for unit in UNITS for alias in (unit, unit + "S")},
    "SEC": "SECOND",
    "SECS": "SECOND",
    "MIN": "MINUTE",
    "MINS": "MINUTE",
    "HR": "HOUR",
    "HRS": "HOUR",
    "MS": "MILLISECOND",
    "US": "MICROSECOND",
}
T = TypeVar("T")
_LONGEST = 2**62
_MOST_ROWS = 2**31 - 1


class CqlSyntaxError(ParseError):
    """A syntax error that remembers which characters it is about."""

    def __init__(self, message: str, start: int, end: int) -> None:
        super().__init__(message)
        self.message, self.start, self.end = message, start, end


class CqlParser(SparkParser):
    """Parses one CQL statement after another out of a token list."""

    STRICT_CAST = True

    FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
        **SparkParser.FUNCTION_PARSERS,
        "WSTREAM": lambda self: self._cql_emit_arguments("WSTREAM"),
    }

    def raise_error(self, message: str, token: Token | None = None) -> None:
        token = token or self._curr or self._prev
        if not token:
            raise CqlSyntaxError(message, 0, 0)
        raise CqlSyntaxError(message, token.start, token.end + 1)

    def _parse_csv(self, parse_method: Callable[[], T | None], sep: TokenType = TokenType.COMMA) -> list[T]:
        def item_after_separator() -> T | None:
            item = parse_method()
            if item is None and self._prev and self._prev.token_type == sep:
                self.raise_error("expected something after the comma")
            return item

        return super()._parse_csv(item_after_separator, sep)

    # -- statements -------------------------------------------------------------------------------

    def _parse_statement(self) -> exp.Expr | None:
        if not self._curr:
            return None
        if self._match(TokenType.CREATE):
            return self._cql_create()
        if self._curr.token_type in (TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN):
            query = self._parse_select()
            return self._parse_query_modifiers(self._parse_set_operations(query))
        self.raise_error("expected CREATE STREAM, CREATE TABLE, CREATE QUERY or SELECT")
        return None

    def _cql_create(self) -> exp.Expr:
        if self._match_text_seq("STREAM"):
            return self._cql_create_relation(nodes.CreateStream, _STREAM_CLAUSES)
        if self._match_text_seq("TABLE"):
            return self._cql_create_relation(nodes.CreateTable, _TABLE_CLAUSES)
        if self._match_text_seq("QUERY"):
            name = self._cql_name("a query name")
            if not self._match(TokenType.ALIAS):
                self.raise_error("expected AS and a SELECT")
            if self._curr and self._curr.token_type not in (
                TokenType.SELECT,
                TokenType.WITH,
                TokenType.L_PAREN,
            ):
                self.raise_error("expected a SELECT")
            query = self._parse_query_modifiers(self._parse_set_operations(self._parse_select()))
            if query is None:
                self.raise_error("expected a SELECT")
            return nodes.CreateQuery(this=name, query=query)
        self.raise_error("expected STREAM, TABLE or QUERY after CREATE")
        raise AssertionError("raise_error always raises")

    def _cql_create_relation(
        self, node: type[exp.Expr], clauses: dict[str, Callable[[CqlParser], exp.Expr | None]]
    ) -> exp.Expr:
        name = self._cql_name("a name")
        self._cql_expect(TokenType.L_PAREN, "expected ( and the columns")
        columns = self._parse_csv(self._cql_column_or_check)
        self._cql_expect(TokenType.R_PAREN, "expected , or ) in the list of columns")
        found: list[exp.Expr] = []
        non_retroactive = False
        while self._curr:
            for words, parse in clauses.items():
                if self._cql_words(words):
                    clause = parse(self)
                    if clause is None:
                        non_retroactive = True
                    else:
                        found.append(clause)
                    break
            else:
                self.raise_error("expected one of " + ", ".join(clauses) + ", or ;")
        args: dict[str, Any] = {"this": name, "columns": columns, "clauses": found or None}
        if node is nodes.CreateTable:
            args["non_retroactive"] = non_retroactive or None
        return node(**args)

    def _cql_column_or_check(self) -> exp.Expr:
        if self._match_text_seq("CHECK"):
            condition = self._parse_wrapped(self._parse_disjunction)
            return exp.CheckColumnConstraint(this=condition)
        name = self._cql_name("a column name")
        if not self._curr or self._curr.token_type in (TokenType.COMMA, TokenType.R_PAREN):
            self.raise_error(f"column {name.name} needs a type")
        column = self._parse_column_def(name)
        if not isinstance(column, exp.ColumnDef) or not isinstance(column.args.get("kind"), exp.DataType):
            self.raise_error(f"column {name.name} needs a type", self._prev)
        assert isinstance(column, exp.ColumnDef)
        return column

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

    def _cql_timestamp_by(self) -> exp.Expr:
        column = self._cql_name("the timestamp column")
        slack = None
        if self._match_text_seq("WITHIN"):
            slack = self._cql_duration("a slack", positive=False)
        return nodes.TimestampBy(this=column, slack=slack)

    def _cql_adherence(self) -> exp.Expr:
        if not self._match_text_seq("WITHIN"):
            self.raise_error("expected WITHIN n ROWS or WITHIN AUTO")
        if self._match_text_seq("AUTO"):
            return nodes.Adherence()
        rows = self._cql_count("an adherence", least=0)
        if not self._match_texts(("ROWS", "ROW")):
            self.raise_error("expected ROWS")
        return nodes.Adherence(rows=rows)

    def _cql_names(self) -> list[exp.Expr]:
        self._cql_expect(TokenType.L_PAREN, "expected ( and column names")
        names: list[exp.Expr] = list(self._parse_csv(lambda: self._cql_name("a column name")))
        self._cql_expect(TokenType.R_PAREN, "expected , or )")
        return names

    def _cql_foreign_key(self) -> exp.Expr:
        columns = self._cql_names()
        if not self._match_text_seq("REFERENCES"):
            self.raise_error("expected REFERENCES")
        parent = self._cql_name("a stream or table name")
        return nodes.ForeignKey(
            expressions=columns, parent=parent, columns=self._cql_names(), within=self._cql_adherence()
        )

    def _cql_punctuated_by(self) -> exp.Expr:
        columns = self._cql_names()
        when = None
        if self._match(TokenType.WHEN):
            when = self._parse_disjunction()
            if when is None:
                self.raise_error("expected a condition after WHEN")
        return nodes.PunctuatedBy(expressions=columns, when=when)

    def _cql_using(self) -> exp.Expr:
        source = self._cql_name("a format")
        options = []
        if self._match_text_seq("OPTIONS"):
            self._cql_expect(TokenType.L_PAREN, "expected ( and options")
            options = self._parse_csv(self._cql_option)
            self._cql_expect(TokenType.R_PAREN, "expected , or ) in OPTIONS")
        return nodes.Using(this=exp.Identifier(this=source.name), options=options or None)

    def _cql_option(self) -> exp.Expr:
        if self._curr and self._curr.token_type == TokenType.STRING:
            key = self._curr.text
            self._advance()
        else:
            key = self._cql_name("an option's name").name
            while self._match(TokenType.DOT):
                key += "." + self._cql_name("an option's name").name
        self._match(TokenType.EQ)
        value = self._parse_string() or self._parse_number()
        if value is None and self._match_texts(("TRUE", "FALSE")):
            value = exp.Boolean(this=self._prev.text.upper() == "TRUE")
        if value is None:
            self.raise_error(f"option {key} needs a string, a number, TRUE or FALSE")
        return nodes.Option(this=key, value=value)

    # -- windows ----------------------------------------------------------------------------------

    def _parse_bracket(self, this: exp.Expr | None = None) -> exp.Expr | None:
        if isinstance(this, exp.Table):
            return this
        if isinstance(this, nodes.Emit):
            if self._match(TokenType.L_BRACKET):
                this.set("window", self._cql_window_spec())
            return this
        return super()._parse_bracket(this)

    def _parse_table(
        self,
        schema: bool = False,
        joins: bool = False,
        alias_tokens: Collection[TokenType] | None = None,
        parse_bracket: bool = False,
        is_db_reference: bool = False,
        parse_partition: bool = False,
        consume_pipe: bool = False,
    ) -> exp.Expr | None:
        item = super()._parse_table(
            schema=schema,
            alias_tokens=alias_tokens,
            is_db_reference=is_db_reference,
            consume_pipe=consume_pipe,
        )
        window: exp.Expr | None = None
        if isinstance(item, exp.Subquery) and isinstance(item.this, nodes.Windowed):
            # (CarStr [ROWS 1]) AS LastRep: the parentheses only hold the window.
            window = item.this.args["window"]
            inner = item.this.this
            if item.args.get("alias"):
                inner.set("alias", item.args["alias"])
            item = inner
        if isinstance(item, (exp.Table, exp.Subquery)):
            while self._match(TokenType.L_BRACKET):
                if window is not None:
                    self.raise_error("there is already a window on this input", self._prev)
                window = self._cql_window_spec()
                if not item.args.get("alias"):
                    item.set("alias", self._parse_table_alias(alias_tokens=self.TABLE_ALIAS_TOKENS))
            if window is not None:
                item = nodes.Windowed(this=item, window=window)
        return item

    def _cql_window_spec(self) -> exp.Expr:
        """Everything of a window after its opening bracket."""
        start = self._prev
        args: dict[str, Any] = {}
        if self._match_texts(("RANGE", "WINDOW")):
            args = self._cql_range()
        elif self._match_text_seq("ROWS"):
            args = {"kind": "ROWS", "rows": self._cql_count("a window", least=1)}
        elif self._match(TokenType.PARTITION_BY):
            partition = self._parse_csv(self._parse_column)
            if not self._match_text_seq("ROWS"):
                self.raise_error("expected ROWS n after PARTITION BY")
            args = {"kind": "ROWS", "partition": partition, "rows": self._cql_count("a window", least=1)}
        elif self._match_text_seq("NOW"):
            args = {"kind": "NOW"}
        elif self._match_text_seq("UNBOUNDED"):
            args = {"kind": "UNBOUNDED"}
        else:
            self.raise_error("expected RANGE, ROWS, PARTITION BY, NOW or UNBOUNDED")
        if self._match_text_seq("INTERNAL"):
            args["internal"] = True
        self._cql_expect(TokenType.R_BRACKET, "expected ] at the end of the window")
        spec = nodes.WindowSpec(**args)
        spec.meta.update(start=start.start, end=self._prev.end)
        return spec

    def _cql_range(self) -> dict[str, Any]:
        if self._match_text_seq("UNBOUNDED"):
            return {"kind": "UNBOUNDED"}
        if self._match_text_seq("NOW"):
            return {"kind": "NOW"}
        args: dict[str, Any] = {"kind": "RANGE", "length": self._cql_duration("a window")}
        if self._match_text_seq("SLIDE"):
            args["slide"] = self._cql_duration("a slide")
        return args

    def _cql_duration(self, what: str, *, positive: bool = True) -> int:
        """`10 MINUTES`, `1 HOUR 30 MINUTES`, `INTERVAL '5' SECONDS`, as microseconds."""
        self._match(TokenType.INTERVAL)
        start, total, parts = self._curr, 0, 0
        while self._curr and (parts == 0 or self._curr.token_type == TokenType.NUMBER):
            total += self._cql_duration_part(what)
            parts += 1
        if total <= 0 and (positive or total < 0):
            self.raise_error(f"{what} must be longer than nothing", start)
        if total > _LONGEST:
            self.raise_error(f"{what} this long does not fit in 64 bits of microseconds", start)
        return total

    def _cql_duration_part(self, what: str) -> int:
        token = self._curr
        if self._match(TokenType.DASH):
            self.raise_error(f"{what} cannot be negative", token)
        text = token.text if token else ""
        digits, unit = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"), ""
        if token and token.token_type in (TokenType.NUMBER, TokenType.STRING):
            self._advance()
            if token.token_type == TokenType.STRING and " " in text.strip():
                digits, unit = text.split(None, 1)
        elif token and token.token_type == TokenType.VAR and digits and digits[0].isdigit():
            self._advance()
            unit = text[len(digits) :]
        else:
            self.raise_error(f"expected a duration such as 10 MINUTES for {what}")
        number = _decimal(digits.strip())
        if number is None:
            self.raise_error(f"expected a number before the unit of {what}", token)
        if not unit and self._curr:
            unit = self._curr.text
            self._advance()
        name = _UNIT_NAMES.get(unit.upper())
        if name is None:
            known = ", ".join(unit.lower() + "s" for unit in reversed(UNITS))
            self.raise_error(f"expected a unit ({known}), not {unit or 'the end'!r}", self._prev)
        assert number is not None and name is not None
        numerator, denominator = number
        whole, rest = divmod(numerator * UNITS[name], denominator)
        if rest:
            self.raise_error(f"{what} must be a whole number of microseconds", token)
        return whole

    def _cql_count(self, what: str, *, least: int) -> int:
        token = self._curr
        if self._match(TokenType.DASH):
            self.raise_error(f"{what} cannot be negative", token)
        if not token or token.token_type != TokenType.NUMBER or not token.text.isdigit():
            self.raise_error(f"expected a whole number of rows for {what}")
        assert token is not None
        text = token.text
        self._advance()
        # 50,000: the documents write thousands with commas.
        while (
            self._curr
            and self._curr.token_type == TokenType.COMMA
            and self._next
            and self._next.token_type == TokenType.NUMBER
            and len(self._next.text) == 3
            and self._next.text.isdigit()
            and self._next.start == self._curr.end + 1 == self._prev.end + 2
        ):
            text += self._next.text
            self._advance(2)
        if len(text) > 10 or not least <= int(text) <= _MOST_ROWS:
            self.raise_error(f"{what} holds between {least} and {_MOST_ROWS} rows", token)
        return int(text)

    # -- relation to stream -----------------------------------------------------------------------

    def _parse_projections(self) -> tuple[list[exp.Expr], list[exp.Expr] | None]:
        if not self._curr or self._curr.token_type == TokenType.FROM:
            self.raise_error("expected what to SELECT")
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
            self.raise_error(f"expected what {kind} shall list")
        return nodes.Emit(kind=kind, expressions=expressions, distinct=distinct or None)

    # -- small words ------------------------------------------------------------------------------

    def _cql_expect(self, token_type: TokenType, message: str) -> None:
        if not self._match(token_type):
            self.raise_error(message)

    def _cql_name(self, what: str) -> exp.Identifier:
        name = self._parse_id_var(any_token=False)
        if not isinstance(name, exp.Identifier):
            self.raise_error(f"expected {what}")
        assert isinstance(name, exp.Identifier)
        return name


_STREAM_CLAUSES: dict[str, Callable[[CqlParser], exp.Expr | None]] = {
    "TIMESTAMP BY": CqlParser._cql_timestamp_by,
    "KEY": lambda self: nodes.Key(expressions=self._cql_names()),
    "ORDERED BY": lambda self: nodes.OrderedBy(expressions=self._cql_names(), within=self._cql_adherence()),
    "CLUSTERED BY": lambda self: nodes.ClusteredBy(
        expressions=self._cql_names(), within=self._cql_adherence()
    ),
    "FOREIGN KEY": CqlParser._cql_foreign_key,
    "PUNCTUATED BY": CqlParser._cql_punctuated_by,
    "USING": CqlParser._cql_using,
}

_TABLE_CLAUSES: dict[str, Callable[[CqlParser], exp.Expr | None]] = {
    "NON RETROACTIVE": lambda self: None,
    "KEY": _STREAM_CLAUSES["KEY"],
    "USING": CqlParser._cql_using,
}


def _decimal(text: str) -> tuple[int, int] | None:
    """A plain decimal number as a fraction; None for anything else."""
    whole, _, fraction = text.partition(".")
    if len(text) > 40 or not (whole + fraction).isdigit() or not (whole + fraction).isascii():
        return None
    return int(whole + fraction), 10 ** len(fraction)
