"""Binding of scalar expressions: names to columns, types checked, every conversion made explicit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from headgate.language import nodes as syntax
from headgate.language.parse import Statement
from headgate.model import types
from headgate.model.aggregates import aggregate_names
from headgate.model.errors import TypeMismatchError, UnsupportedError
from headgate.model.scalar import Scalar
from headgate.model.schema import Column
from headgate.model.suggest import did_you_mean
from headgate.plan import intervals
from headgate.plan.arithmetic import arithmetic_type
from headgate.plan.casts import is_castable
from headgate.plan.functions import (
    BY_CLASS,
    BY_NAME,
    LIKE_OPERATORS,
    PARTS_OF_TIME,
    decimal_type,
    known_names,
    rounded_type,
)
from headgate.plan.like_patterns import without_escape
from headgate.plan.scope import Scope, Visible
from headgate.plan.sqltypes import arrow_type, sql_type

_ORDERINGS = (exp.GT, exp.GTE, exp.LT, exp.LTE)
_EQUALITIES = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod)
_SMALLEST = {str(2**31): types.INT, str(2**63): types.BIGINT}
_BITWISE = (exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor)


def bind_over_columns(
    node: exp.Expr,
    columns: Sequence[Column],
    statement: Statement,
    *,
    expect: pa.DataType | None = None,
) -> Scalar:
    """Binds an expression over plain columns, as in CHECK and WHEN."""
    scope = Scope([Visible("", column.name, column) for column in columns])
    return ExpressionBinder(scope, statement).bind(node, expect=expect)


@dataclass(frozen=True)
class ExpressionBinder:
    """Turns syntax into Scalars within one scope.

    `replaced` lets the caller answer for whole sub-expressions first: aggregates and group keys.
    """

    scope: Scope
    statement: Statement
    replaced: Callable[[exp.Expr], Scalar | None] = lambda node: None

    def bind(self, node: exp.Expr, *, expect: pa.DataType | None = None) -> Scalar:
        """The typed form of an expression; `expect` demands a type that it must have or convert to."""
        bound = self._bind(node)
        if expect is None:
            return bound
        return self._coerce(bound, expect, node)

    def _bind(self, node: exp.Expr) -> Scalar:
        ready = self.replaced(node)
        if ready is not None:
            return ready
        match node:
            case exp.Paren():
                return self._bind(node.this)
            case exp.Column():
                return self._column(node)
            case exp.Literal():
                return _literal(node)
            case exp.Boolean():
                return Scalar(node.copy(), types.BOOLEAN)
            case exp.Null():
                return Scalar(exp.Null(), types.NULL)
            case exp.Interval():
                return self._interval(node)
            case exp.Cast():
                return self._cast(node)
            case exp.And() | exp.Or():
                left, right = (self.bind(side, expect=types.BOOLEAN) for side in (node.left, node.right))
                return Scalar(type(node)(this=left.expression, expression=right.expression), types.BOOLEAN)
            case exp.Not():
                inner = self.bind(node.this, expect=types.BOOLEAN)
                return Scalar(exp.Not(this=inner.expression), types.BOOLEAN)
            case exp.Is():
                return self._is(node)
            case exp.Between():
                low = exp.GTE(this=node.this, expression=node.args["low"])
                high = exp.LTE(this=node.this.copy(), expression=node.args["high"])
                return self._bind(exp.And(this=low, expression=high))
            case exp.In():
                return self._in(node)
            case exp.Escape():
                return self._bind(without_escape(node, self.statement))
            case exp.Like() | exp.ILike() | exp.RegexpLike():
                left, right = (self.bind(side, expect=types.STRING) for side in (node.this, node.expression))
                matches = type(node)(this=left.expression, expression=right.expression)
                # NOT LIKE comes as a mark on LIKE, not as a NOT around it.
                return Scalar(exp.Not(this=matches) if node.args.get("negate") else matches, types.BOOLEAN)
            case exp.Neg():
                return self._negative(node)
            case exp.BitwiseNot():
                inner = self._bind(node.this)
                self._demand(
                    types.is_integer(inner.type), f"{_quote(node)} needs a whole number", inner, node
                )
                return Scalar(exp.BitwiseNot(this=inner.expression), inner.type)
            case exp.If():
                if node.args.get("false") is None:
                    raise UnsupportedError("if needs three arguments", place=self.statement.place(node))
                return self._case(node, [(node.this, node.args["true"])], node.args.get("false"))
            case exp.Case():
                return self._simple_case(node)
            case exp.Nullif():
                return self._nullif(node)
            case exp.Floor() | exp.Ceil() if node.args.get("decimals") is not None:
                return self._cut(node)
            case exp.Extract():
                return self._extract(node)
            case exp.Bracket():
                return self._element(node)
            case exp.Dot():
                return self._field(self._bind(node.this), node.expression.name, node)
        if isinstance(node, (*_ORDERINGS, *_EQUALITIES)):
            return self._compare(node)
        if isinstance(node, (*_ARITHMETIC, *_BITWISE)):
            return self._arithmetic(node)
        key = node.name.lower() if isinstance(node, exp.Anonymous) else type(node)
        if isinstance(node, exp.Func) and key in LIKE_OPERATORS:
            return self._like_operator(node, *LIKE_OPERATORS[key])
        return self._function(node)

    # -- leaves -----------------------------------------------------------------------------------

    def _column(self, node: exp.Column) -> Scalar:
        """`a`, `s.a`, and for structs `st.x`, `s.st.x`, `s.st.x.y`: the input's name goes before the column's."""
        source, *rest = node.parts
        if rest and self.scope.resolve(source.name, rest[0].name):
            column, *fields = rest
            name = exp.Column(this=column.copy(), table=source.copy())
        elif len(rest) == 1 and not self._is_struct(source.name):
            name, fields = node, []
        else:
            name, fields = exp.Column(this=source.copy()), rest
        found = self.scope.column(name, self.statement)
        value = Scalar.column(found.name, found.type)
        for each in fields:
            value = self._field(value, each.name, node)
        return value

    def _is_struct(self, name: str) -> bool:
        found = self.scope.resolve(None, name)
        return len(found) == 1 and bool(pa.types.is_struct(found[0].column.type))

    def _field(self, holder: Scalar, name: str, node: exp.Expr) -> Scalar:
        if not pa.types.is_struct(holder.type):
            raise self._mismatch(f".{name} needs a STRUCT, not {types.spark_name(holder.type)}", node)
        fields = {field.name.casefold(): field for field in holder.type}
        field = fields.get(name.casefold())
        if field is None:
            raise TypeMismatchError(
                f"the struct has no field {name}",
                remedy=did_you_mean(name, [f.name for f in holder.type]),
                place=self.statement.place(node),
            )
        dot = exp.Dot(this=holder.expression, expression=exp.Identifier(this=field.name, quoted=True))
        return Scalar(dot, field.type)

    def _element(self, node: exp.Bracket) -> Scalar:
        holder = self._bind(node.this)
        if len(node.expressions) != 1 or not pa.types.is_list(holder.type):
            raise self._mismatch(f"[…] needs an ARRAY, not {types.spark_name(holder.type)}", node)
        index = self._integer(node.expressions[0])
        # element_at counts from 1, and sqlglot remembers it in these.
        told = {key: node.args[key] for key in ("offset", "safe") if node.args.get(key) is not None}
        bracket = exp.Bracket(this=holder.expression, expressions=[index.expression], **told)
        return Scalar(bracket, holder.type.value_type)

    def _interval(self, node: exp.Interval) -> Scalar:
        clean = intervals.fixed_interval(node)
        if clean is None:
            raise UnsupportedError(
                f"{_quote(node)} is not an interval of a fixed length: numbers and units from microseconds to weeks",
                remedy="months and years have no fixed length: add them to a date or timestamp, or write days; "
                "none is longer than 10,000 years",
                place=self.statement.place(node),
            )
        return Scalar(clean, types.INTERVAL)

    # -- types ------------------------------------------------------------------------------------

    def _cast(self, node: exp.Cast) -> Scalar:
        if not isinstance(node.args["to"], exp.DataType):
            raise self._unknown(node)
        inner = self._bind(node.this)
        target = arrow_type(self.statement, node.args["to"], place=node.this)
        if not is_castable(inner.type, target):
            raise self._mismatch(
                f"{types.spark_name(inner.type)} cannot be cast to {types.spark_name(target)}", node
            )
        if isinstance(node, exp.TryCast):
            return Scalar(exp.TryCast(this=inner.expression, to=sql_type(target), safe=True), target)
        return Scalar(exp.Cast(this=inner.expression, to=sql_type(target)), target)

    def _coerce(self, value: Scalar, target: pa.DataType, node: exp.Expr) -> Scalar:
        """The value as `target`, by an explicit cast where that loses nothing; else a type error."""
        if value.type == target:
            return value
        literal = value.expression
        text_constant = isinstance(literal, exp.Literal) and literal.is_string
        temporal = types.is_timestamp(target) or target == types.DATE
        if types.common_type(value.type, target) == target or (text_constant and temporal):
            return convert(value, target)
        raise self._mismatch(
            f"{_quote(node)} is {types.spark_name(value.type)} where {types.spark_name(target)} is needed",
            node,
        )

    def _mismatch(self, cause: str, node: exp.Expr, remedy: str | None = None) -> TypeMismatchError:
        return TypeMismatchError(cause, remedy=remedy, place=self.statement.place(node))

    def _demand(self, holds: bool, cause: str, value: Scalar, node: exp.Expr) -> None:
        if not holds:
            raise self._mismatch(f"{cause}, not {types.spark_name(value.type)}", node)

    def meet(self, values: Sequence[Scalar], node: exp.Expr) -> list[Scalar]:
        """The values converted to the one type that they have in common."""
        target = types.NULL
        for value in values:
            common = types.common_type(target, value.type)
            if common is None:
                common = _text_as_time(values)
            if common is None:
                raise self._mismatch(
                    f"{types.spark_name(target)} and {types.spark_name(value.type)} do not go together in "
                    f"{_quote(node)}",
                    node,
                    remedy="convert one side with CAST(… AS …)",
                )
            target = common
        return [convert(value, target) for value in values]

    # -- operators --------------------------------------------------------------------------------

    def _compare(self, node: exp.Expr) -> Scalar:
        left, right = self.meet([self._bind(node.this), self._bind(node.expression)], node)
        if isinstance(node, _ORDERINGS) and not (types.is_orderable(left.type) or left.type == types.NULL):
            raise self._mismatch(f"{types.spark_name(left.type)} has no order", node)
        if pa.types.is_map(left.type):
            raise self._mismatch("maps cannot be compared", node)
        return comparison(type(node), left, right)

    def _is(self, node: exp.Is) -> Scalar:
        inner = self._bind(node.this)
        match node.expression:
            case exp.Null():
                return Scalar(exp.Is(this=inner.expression, expression=exp.Null()), types.BOOLEAN)
            case exp.Boolean():
                inner = self.bind(node.this, expect=types.BOOLEAN)
                return Scalar(
                    exp.NullSafeEQ(this=inner.expression, expression=node.expression.copy()), types.BOOLEAN
                )
        raise UnsupportedError(
            "IS takes NULL, TRUE, FALSE or [NOT] DISTINCT FROM", place=self.statement.place(node)
        )

    def _in(self, node: exp.In) -> Scalar:
        if node.args.get("query"):
            raise UnsupportedError(
                "IN (SELECT …) is only understood as a condition of WHERE on its own, not inside OR or NOT",
                remedy="write EXISTS or NOT EXISTS",
                place=self.statement.place(node),
            )
        values = self.meet([self._bind(node.this), *(self._bind(each) for each in node.expressions)], node)
        first, *rest = (value.expression for value in values)
        return Scalar(exp.In(this=first, expressions=rest), types.BOOLEAN)

    def _negative(self, node: exp.Neg) -> Scalar:
        inner = self._bind(node.this)
        signed = types.is_numeric(inner.type) or inner.type == types.INTERVAL
        self._demand(signed, f"-{node.this.sql()} needs a number", inner, node)
        literal = inner.expression.this if isinstance(inner.expression, exp.Cast) else None
        # The positive counterpart of the smallest number of a type is too large for it.
        target = (
            _SMALLEST.get(node.this.name, inner.type) if isinstance(node.this, exp.Literal) else inner.type
        )
        if isinstance(literal, exp.Literal) and types.is_integer(target):
            return Scalar(exp.Cast(this=exp.Neg(this=literal.copy()), to=sql_type(target)), target)
        return Scalar(exp.Neg(this=inner.expression), inner.type)

    def _arithmetic(self, node: exp.Expr) -> Scalar:
        if isinstance(node, (exp.Add, exp.Sub)) and (moved := self._moved_by_months(node)):
            return moved
        left, right = self._bind(node.this), self._bind(node.expression)
        typed = arithmetic_type(type(node), left, right)
        if typed is None:
            raise self._mismatch(
                f"{types.spark_name(left.type)} and {types.spark_name(right.type)} cannot be combined in "
                f"{_quote(node)}",
                node,
                remedy="convert one side with CAST(… AS …)",
            )
        result = type(node)(
            this=convert(left, typed.left).expression, expression=convert(right, typed.right).expression
        )
        if pa.types.is_decimal(typed.result):
            return Scalar(exp.Cast(this=result, to=sql_type(typed.result)), typed.result)
        return Scalar(result, typed.result)

    def _moved_by_months(self, node: exp.Add | exp.Sub) -> Scalar | None:
        """A date or timestamp plus or minus months or years, if that is what is written."""
        when, step = node.this, intervals.months_of(node.expression)
        if step is None and isinstance(node, exp.Add):
            when, step = node.expression, intervals.months_of(node.this)
        if step is None:
            return None
        moved = self._bind(when)
        timely = types.is_timestamp(moved.type) or moved.type == types.DATE
        self._demand(timely, f"{_quote(node)} moves a date or timestamp", moved, node)
        return Scalar(
            type(node)(this=moved.expression, expression=intervals.month_interval(step)), moved.type
        )

    def _like_operator(self, node: exp.Func, name: str, operator: type[exp.Binary]) -> Scalar:
        """A function of two numbers that has the types of an operator, such as TRY_ADD."""
        given = node.expressions or [node.this, node.expression]
        if len(given) != 2:
            raise UnsupportedError(
                f"{name} needs two arguments, not {len(given)}", place=self.statement.place(node)
            )
        left, right = (self._argument(each, "number", syntax.written_name(node)) for each in given)
        typed = arithmetic_type(operator, left, right)
        assert typed is not None
        operands = [convert(left, typed.left).expression, convert(right, typed.right).expression]
        if isinstance(node, exp.Anonymous):
            result: exp.Expr = exp.Anonymous(this=node.this, expressions=operands)
        else:
            result = type(node)(this=operands[0], expression=operands[1])
        if pa.types.is_decimal(typed.result):
            result = exp.Cast(this=result, to=sql_type(typed.result))
        return Scalar(result, typed.result)

    def _nullif(self, node: exp.Nullif) -> Scalar:
        """NULL or the first argument, which keeps its type."""
        first = self._bind(node.this)
        left, right = self.meet([first, self._bind(node.expression)], node)
        chosen = Scalar(exp.Nullif(this=left.expression, expression=right.expression), left.type)
        return chosen if first.type in (left.type, types.NULL) else convert(chosen, first.type)

    def _case(
        self,
        node: exp.Expr,
        branches: Sequence[tuple[exp.Expr, exp.Expr]],
        default: exp.Expr | None,
    ) -> Scalar:
        conditions = [self.bind(condition, expect=types.BOOLEAN) for condition, _ in branches]
        values = [self._bind(value) for _, value in branches]
        values.append(self._bind(default) if default is not None else Scalar(exp.Null(), types.NULL))
        values = self.meet(values, node)
        ifs = [
            exp.If(this=condition.expression, true=value.expression)
            for condition, value in zip(conditions, values, strict=False)
        ]
        return Scalar(exp.Case(ifs=ifs, default=values[-1].expression), values[-1].type)

    def _simple_case(self, node: exp.Case) -> Scalar:
        branches = []
        for each in node.args["ifs"]:
            condition = each.this
            if node.this:
                condition = exp.EQ(this=node.this.copy(), expression=condition)
            branches.append((condition, each.args["true"]))
        return self._case(node, branches, node.args.get("default"))

    def _extract(self, node: exp.Extract) -> Scalar:
        name = node.this.name.upper()
        if name == "SECOND":
            # Unlike second(ts), with its fraction.
            when = self._argument(node.expression, "timestamp", "EXTRACT")
            return Scalar(exp.Extract(this=exp.var(name), expression=when.expression), pa.decimal128(8, 6))
        if name not in PARTS_OF_TIME:
            raise UnsupportedError(
                f"EXTRACT does not know {name}",
                remedy=did_you_mean(name, ["SECOND", *PARTS_OF_TIME]),
                place=self.statement.place(node),
            )
        return self._bind(PARTS_OF_TIME[name](this=node.expression))

    # -- functions --------------------------------------------------------------------------------

    def _function(self, node: exp.Expr | None) -> Scalar:
        if node is None:
            # sqlglot does not miss the arguments of every function.
            raise UnsupportedError("an argument of a function is missing", place=self.statement.place())
        if isinstance(node, exp.Anonymous):
            signature = BY_NAME.get(str(node.this).lower())
        else:
            signature = BY_CLASS.get(type(node))
        if signature is None:
            raise self._unknown(node)
        name = syntax.written_name(node)
        for key in signature.arguments:
            if node.arg_types.get(key) and node.args.get(key) is None:
                raise UnsupportedError(f"{name} needs an argument", place=self.statement.place(node))
        bound: dict[str, list[Scalar]] = {}
        for key, kind in signature.arguments.items():
            given = node.args.get(key)
            items = given if isinstance(given, list) else [given]
            kinds = kind.split(",")
            bound[key] = [
                self._argument(each, kinds[min(place, len(kinds) - 1)], name)
                for place, each in enumerate(items)
                if isinstance(each, exp.Expr)
            ]
        meeting = [key for key, kind in signature.arguments.items() if kind == "same"]
        if meeting:
            met = iter(self.meet([value for key in meeting for value in bound[key]], node))
            bound |= {key: [next(met) for _ in bound[key]] for key in meeting}
        values = [value for found in bound.values() for value in found]
        args: dict[str, object] = {}
        for key, given in node.args.items():
            expressions = [value.expression for value in bound.get(key, ())]
            if isinstance(given, list) and key in bound:
                args[key] = expressions
            elif expressions:
                args[key] = expressions[0]
            elif isinstance(given, exp.Expr) and given.find(exp.Column):
                raise UnsupportedError(
                    f"{name} takes a constant for {_quote(given)}",
                    place=self.statement.place(given),
                )
            else:
                args[key] = given.copy() if isinstance(given, exp.Expr) else given
        dtypes = [value.type for value in values]
        result = signature.result(dtypes) if callable(signature.result) else signature.result
        if signature.name in ("round", "bround") and pa.types.is_decimal(result):
            result = rounded_type(result, self._places(node))
        return Scalar(type(node)(**args), result)

    def _cut(self, node: exp.Floor | exp.Ceil) -> Scalar:
        """FLOOR and CEIL to digits behind the point, which give a DECIMAL."""
        value = self._argument(node.this, "number", syntax.written_name(node))
        value = convert(value, decimal_type(value.type))
        cut = type(node)(this=value.expression, decimals=node.args["decimals"].copy())
        return Scalar(cut, rounded_type(value.type, self._places(node)))

    def _places(self, node: exp.Expr) -> int:
        """How many digits behind the point ROUND and BROUND leave: the type of a DECIMAL depends on it."""
        digits = node.args.get("decimals") or next(iter(node.expressions[1:]), exp.Literal.number(0))
        sign = 1
        while isinstance(digits, (exp.Paren, exp.Neg, exp.Cast)):
            sign = -sign if isinstance(digits, exp.Neg) else sign
            digits = digits.this
        if not isinstance(digits, exp.Literal) or not digits.is_int:
            raise UnsupportedError(
                f"{syntax.written_name(node)} of a DECIMAL takes a whole number for its digits",
                place=self.statement.place(node),
            )
        return sign * int(digits.this)

    def _argument(self, node: exp.Expr, kind: str, function: str) -> Scalar:
        match kind:
            case "string":
                return self.bind(node, expect=types.STRING)
            case "text":
                value = self._bind(node)
                writable = not types.is_nested(value.type) and value.type not in (pa.binary(), types.INTERVAL)
                return convert(value, types.STRING) if writable else self._coerce(value, types.STRING, node)
            case "double":
                value = self._bind(node)
                self._demand(types.is_numeric(value.type), f"{function} needs a number", value, node)
                return convert(value, types.DOUBLE)
            case "number":
                value = self._bind(node)
                self._demand(types.is_numeric(value.type), f"{function} needs a number", value, node)
                return value
            case "array":
                value = self._bind(node)
                self._demand(pa.types.is_list(value.type), f"{function} needs an ARRAY", value, node)
                return value
            case "integer":
                return self._integer(node)
            case "timestamp":
                value = self._bind(node)
                if types.is_timestamp(value.type):
                    return value
                return self._coerce(value, types.TIMESTAMP, node)
            case "moment":
                value = self._bind(node)
                fits = types.is_timestamp(value.type) or value.type in (types.DATE, types.STRING)
                self._demand(fits, "a date, a timestamp or text is needed", value, node)
                return value
            case "date":
                value = self._bind(node)
                if types.is_timestamp(value.type):
                    return convert(value, types.DATE)
                return self._coerce(value, types.DATE, node)
        return self._bind(node)

    def _integer(self, node: exp.Expr) -> Scalar:
        value = self._bind(node)
        self._demand(types.is_integer(value.type), f"{_quote(node)} must be an integer", value, node)
        return value

    def _unknown(self, node: exp.Expr) -> UnsupportedError:
        if isinstance(node, (exp.Subquery, exp.Select, exp.Exists)):
            return UnsupportedError(
                "a sub-query may stand in FROM, or as a condition of WHERE on its own: EXISTS, NOT EXISTS, IN",
                place=self.statement.place(node),
            )
        if isinstance(node, exp.Window):
            return UnsupportedError(
                "OVER is not supported",
                remedy="put the window on the stream: FROM s [RANGE …]",
                place=self.statement.place(node),
            )
        name = syntax.written_name(node)
        if isinstance(node, exp.AggFunc):
            return UnsupportedError(
                f"the aggregate {name.upper()} cannot stand here or is not supported",
                remedy=f"aggregates are {', '.join(aggregate_names())}, in SELECT and HAVING",
                place=self.statement.place(node),
            )
        if not isinstance(node, exp.Func):
            return UnsupportedError(f"{_quote(node)} is not supported", place=self.statement.place(node))
        return UnsupportedError(
            f"there is no function {name}",
            remedy=did_you_mean(name, known_names()),
            place=self.statement.place(node),
        )


def comparison(operator: type[exp.Expr], left: Scalar, right: Scalar) -> Scalar:
    """Two values of one type compared; both sides remember that type for when they become columns."""
    left.expression.type = right.expression.type = sql_type(left.type)
    return Scalar(operator(this=left.expression, expression=right.expression), types.BOOLEAN)


def convert(value: Scalar, target: pa.DataType) -> Scalar:
    """The value as another type, by an explicit cast; a constant's own cast is not piled upon."""
    if value.type == target:
        return value
    inner = value.expression
    if isinstance(inner, exp.Cast) and isinstance(inner.this, exp.Literal) and not inner.this.is_string:
        inner = inner.this
    return Scalar(exp.Cast(this=inner, to=sql_type(target)), target)


def _literal(node: exp.Literal) -> Scalar:
    if node.is_string:
        return Scalar(exp.Literal.string(node.this), types.STRING)
    text = node.this
    bare = exp.Literal.number(text)
    if text.isdigit():
        if len(text) <= 19 and int(text) < 2**63:
            return (
                Scalar(bare, types.INT)
                if int(text) < 2**31
                else convert(Scalar(bare, types.INT), types.BIGINT)
            )
        if len(text) <= 38:
            return convert(Scalar(bare, types.INT), pa.decimal128(len(text), 0))
    elif "e" not in text.lower():
        whole, _, fraction = text.partition(".")
        digits = len(whole.lstrip("0")) + len(fraction)
        if digits <= 38:
            dtype = pa.decimal128(max(digits, len(fraction), 1), len(fraction))
            return convert(Scalar(bare, types.INT), dtype)
    return convert(Scalar(bare, types.INT), types.DOUBLE)


def _text_as_time(values: Sequence[Scalar]) -> pa.DataType | None:
    """DATE or TIMESTAMP when all that is not one is a constant text: ts > '2026-01-01'."""
    target: pa.DataType | None = None
    for value in values:
        if types.is_timestamp(value.type) or value.type == types.DATE:
            target = value.type if target is None else types.common_type(target, value.type)
        elif not (isinstance(value.expression, exp.Literal) and value.expression.is_string):
            return None
    return target


def _quote(node: exp.Expr) -> str:
    """An expression as it was written, more or less."""

    def named(each: exp.Expr) -> exp.Expr:
        written = each.meta.get(syntax.WRITTEN)
        if not written or not isinstance(each, exp.Func) or written.upper() in each.sql_names():
            return each
        return exp.Anonymous(this=written, expressions=list(each.iter_expressions()))

    text = node.copy().transform(named).sql(dialect="spark", normalize_functions=False)
    return text if len(text) <= 40 else text[:39] + "…"
