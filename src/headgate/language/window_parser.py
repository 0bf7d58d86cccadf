"""Parsing windows: `[RANGE d SLIDE s]`, `[ROWS n]`, `[PARTITION BY c ROWS n]`, `[NOW]`, `[UNBOUNDED]`."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from headgate.language import nodes
from headgate.language.base_parser import BaseParser, CqlSyntaxError
from headgate.model.time import UNITS

UNIT_NAMES = {
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
"""What a unit of time may be called, and the name by which it is known."""
_LONGEST = 2**62
_MOST_ROWS = 2**31 - 1


class WindowParser(BaseParser):
    """Adds windows to FROM items and to WSTREAM."""

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
                    raise self._cql_error("there is already a window on this input", self._prev)
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
                raise self._cql_error("expected ROWS n after PARTITION BY")
            args = {"kind": "ROWS", "partition": partition, "rows": self._cql_count("a window", least=1)}
        elif self._match_text_seq("NOW"):
            args = {"kind": "NOW"}
        elif self._match_text_seq("UNBOUNDED"):
            args = {"kind": "UNBOUNDED"}
        else:
            raise self._cql_error("expected RANGE, ROWS, PARTITION BY, NOW or UNBOUNDED")
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
        while parts == 0 or (self._curr and self._curr.token_type == TokenType.NUMBER):
            total += self._cql_duration_part(what)
            parts += 1
        if total <= 0 and (positive or total < 0):
            raise self._cql_error(f"{what} must be longer than nothing", start)
        if total > _LONGEST:
            raise self._cql_error(f"{what} this long does not fit in 64 bits of microseconds", start)
        return total

    def _cql_refuse_negative(self, what: str) -> None:
        if self._curr and self._curr.token_type == TokenType.DASH:
            end = self._next.end if self._next else self._curr.end
            raise CqlSyntaxError(f"{what} cannot be negative", self._curr.start, end + 1)

    def _cql_duration_part(self, what: str) -> int:
        token = self._curr
        self._cql_refuse_negative(what)
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
            raise self._cql_error(f"expected a duration such as 10 MINUTES for {what}")
        number = _decimal(digits.strip())
        if number is None:
            raise self._cql_error(f"expected a number before the unit of {what}", token)
        if not unit and self._curr:
            unit = self._curr.text
            self._advance()
        name = UNIT_NAMES.get(unit.upper())
        if name is None:
            known = ", ".join(each.lower() + "s" for each in reversed(UNITS))
            if unit.isalpha():
                raise self._cql_unknown_word(
                    f"{unit} is no unit of time; there are {known}", UNITS, self._prev
                )
            raise self._cql_error(f"expected a unit of time ({known})", self._prev)
        numerator, denominator = number
        whole, rest = divmod(numerator * UNITS[name], denominator)
        if rest:
            raise self._cql_error(f"{what} must be a whole number of microseconds", token)
        return whole

    def _cql_count(self, what: str, *, least: int) -> int:
        token = self._curr
        self._cql_refuse_negative(what)
        if not token or token.token_type != TokenType.NUMBER or not token.text.isdigit():
            raise self._cql_error(f"expected a whole number of rows for {what}")
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
            raise self._cql_error(f"{what} holds between {least} and {_MOST_ROWS} rows", token)
        return int(text)


def _decimal(text: str) -> tuple[int, int] | None:
    """A plain decimal number as a fraction; None for anything else."""
    whole, _, fraction = text.partition(".")
    if len(text) > 40 or not (whole + fraction).isdigit() or not (whole + fraction).isascii():
        return None
    return int(whole + fraction), 10 ** len(fraction)
