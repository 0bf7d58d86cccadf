"""Parsing declarations: what follows CREATE STREAM and CREATE TABLE."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from headgate.language import nodes
from headgate.language.base_parser import CqlSyntaxError
from headgate.language.window_parser import UNIT_NAMES, WindowParser
from headgate.model.time import UNITS

_TYPE_WORDS = (
    *("BOOLEAN", "TINYINT", "SMALLINT", "INT", "INTEGER", "BIGINT", "LONG", "FLOAT", "DOUBLE", "DECIMAL"),
    *("STRING", "VARCHAR", "BINARY", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "ARRAY", "MAP", "STRUCT"),
)
_ROWS = ("ROWS", "ROW")
_BEFORE_TIME = (TokenType.INTERVAL, TokenType.STRING)
"""What a duration may begin with other than a number."""


class DeclarationParser(WindowParser):
    """Adds the declarations of streams and tables."""

    def _cql_create_relation(
        self, node: type[exp.Expr], clauses: dict[str, Callable[[DeclarationParser], exp.Expr | None]]
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
                raise self._cql_unknown_word(
                    f"expected {', '.join(clauses)} or the statement's end", _first_words(clauses)
                )
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
            raise self._cql_error(f"column {name.name} needs a type")
        token = self._curr
        column = self._parse_column_def(name)
        if not isinstance(column, exp.ColumnDef) or not isinstance(column.args.get("kind"), exp.DataType):
            raise self._cql_unknown_word(f"there is no type {token.text}", _TYPE_WORDS, token)
        return column

    def _cql_timestamp_by(self) -> exp.Expr:
        column = self._cql_name("the timestamp column")
        slack = None
        if self._match_text_seq("WITHIN"):
            slack = self._cql_duration("a slack", positive=False)
        return nodes.TimestampBy(this=column, slack=slack)

    def _cql_adherence(self) -> exp.Expr:
        """`WITHIN 100 ROWS`, `WITHIN 5 MINUTES`, `WITHIN AUTO`."""
        try:
            if not self._match_text_seq("WITHIN"):
                raise self._cql_error("expected WITHIN and a number of rows, an interval or AUTO")
            if self._match_text_seq("AUTO"):
                return nodes.Adherence()
            return self._cql_rows() or nodes.Adherence(length=self._cql_duration("a k", positive=False))
        except CqlSyntaxError as error:
            error.remedy = error.remedy or "write WITHIN 100 ROWS, WITHIN 5 MINUTES or WITHIN AUTO"
            raise

    def _cql_rows(self) -> exp.Expr | None:
        """An adherence in rows; None if what follows is one in time."""
        self._cql_refuse_negative("a k")
        token, following = self._curr, self._next
        if not token or not (token.text[:1].isdigit() or token.token_type in _BEFORE_TIME):
            raise self._cql_error("expected a number of rows, an interval or AUTO")
        if token.token_type != TokenType.NUMBER:
            return None
        index = self._index
        if token.text.isdigit() or (following and following.text.upper() in _ROWS):
            rows = self._cql_count("a k", least=0)
            if self._match_texts(_ROWS):
                return nodes.Adherence(rows=rows)
            if not self._curr or self._curr.text.upper() not in UNIT_NAMES:
                raise self._cql_unknown_word(
                    f"expected ROWS or a unit of time after {token.text}", ("ROWS", *UNITS)
                )
            self._retreat(index)
        return None

    def _cql_names(self) -> list[exp.Expr]:
        self._cql_expect(TokenType.L_PAREN, "expected ( and column names")
        names: list[exp.Expr] = list(self._parse_csv(lambda: self._cql_name("a column name")))
        self._cql_expect(TokenType.R_PAREN, "expected , or )")
        return names

    def _cql_foreign_key(self) -> exp.Expr:
        columns = self._cql_names()
        if not self._match_text_seq("REFERENCES"):
            raise self._cql_error("expected REFERENCES")
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
                raise self._cql_error("expected a condition after WHEN")
        return nodes.PunctuatedBy(expressions=columns, when=when)

    def _cql_using(self) -> exp.Expr:
        source = self._cql_dotted("a format")
        options = []
        if self._match_text_seq("OPTIONS"):
            self._cql_expect(TokenType.L_PAREN, "expected ( and options")
            options = self._parse_csv(self._cql_option)
            self._cql_expect(TokenType.R_PAREN, "expected , or ) in OPTIONS")
        return nodes.Using(this=source, options=options or None)

    def _cql_dotted(self, what: str) -> str:
        """A name of several parts, such as an option's: kafka.bootstrap.servers."""
        name: str = self._cql_name(what).name
        while self._match(TokenType.DOT):
            name += "." + self._cql_name(what).name
        return name

    def _cql_option(self) -> exp.Expr:
        if self._curr and self._curr.token_type == TokenType.STRING:
            key = self._curr.text
            self._advance()
        else:
            key = self._cql_dotted("an option's name")
        self._match(TokenType.EQ)
        value = self._parse_string() or self._parse_number()
        if value is None and self._match_texts(("TRUE", "FALSE")):
            value = exp.Boolean(this=self._prev.text.upper() == "TRUE")
        if value is None:
            raise self._cql_error(f"option {key} needs a string, a number, TRUE or FALSE")
        return nodes.Option(this=key, value=value)


STREAM_CLAUSES: dict[str, Callable[[DeclarationParser], exp.Expr | None]] = {
    "TIMESTAMP BY": DeclarationParser._cql_timestamp_by,
    "KEY": lambda self: nodes.Key(expressions=self._cql_names()),
    "ORDERED BY": lambda self: nodes.OrderedBy(expressions=self._cql_names(), within=self._cql_adherence()),
    "CLUSTERED BY": lambda self: nodes.ClusteredBy(
        expressions=self._cql_names(), within=self._cql_adherence()
    ),
    "FOREIGN KEY": DeclarationParser._cql_foreign_key,
    "PUNCTUATED BY": DeclarationParser._cql_punctuated_by,
    "USING": DeclarationParser._cql_using,
}

TABLE_CLAUSES: dict[str, Callable[[DeclarationParser], exp.Expr | None]] = {
    "NON RETROACTIVE": lambda self: None,
    "KEY": STREAM_CLAUSES["KEY"],
    "USING": DeclarationParser._cql_using,
}


def _first_words(clauses: Iterable[str]) -> list[str]:
    return [clause.split()[0] for clause in clauses]
