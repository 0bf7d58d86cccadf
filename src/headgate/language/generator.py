"""Writing CQL trees back as text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.generators.spark import SparkGenerator

from headgate.language import nodes
from headgate.model.time import format_duration

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")


def _names(self: CqlGenerator, node: exp.Expr) -> str:
    return "(" + ", ".join(self.sql(each) for each in node.expressions) + ")"


def _window(self: CqlGenerator, node: exp.Expr) -> str:
    args = node.args
    kind: str = args["kind"]
    text = kind
    if kind == "RANGE":
        text += " " + format_duration(args["length"])
        if args.get("slide"):
            text += " SLIDE " + format_duration(args["slide"])
    elif kind == "ROWS":
        text += f" {args['rows']}"
        if args.get("partition"):
            text = "PARTITION BY " + ", ".join(self.sql(c) for c in args["partition"]) + " " + text
    return "[" + text + (" INTERNAL" if args.get("internal") else "") + "]"


def _windowed(self: CqlGenerator, node: exp.Expr) -> str:
    """The window stands between a stream's name and its alias."""
    bare = node.this.copy()
    bare.set("alias", None)
    alias = self.sql(node.this, "alias")
    return f"{self.sql(bare)} {self.sql(node, 'window')}" + (f" AS {alias}" if alias else "")


def _emit(self: CqlGenerator, node: exp.Expr) -> str:
    inner = ", ".join(self.sql(each) for each in node.expressions)
    distinct = "DISTINCT " if node.args.get("distinct") else ""
    restore = " RESTORE" if node.args.get("restore") else ""
    window = self.sql(node, "window")
    return f"{node.args['kind']}{restore}({distinct}{inner}){window}"


def _adherence(self: CqlGenerator, node: exp.Expr) -> str:
    rows, length = node.args.get("rows"), node.args.get("length")
    if length is not None:
        return f"WITHIN {format_duration(length)}"
    return "WITHIN AUTO" if rows is None else f"WITHIN {rows} ROWS"


def _timestamp_by(self: CqlGenerator, node: exp.Expr) -> str:
    slack = node.args.get("slack")
    within = "" if slack is None else f" WITHIN INTERVAL {format_duration(slack)}"
    return f"TIMESTAMP BY {self.sql(node, 'this')}{within}"


def _foreign_key(self: CqlGenerator, node: exp.Expr) -> str:
    columns = ", ".join(self.sql(each) for each in node.args["columns"])
    parent, within = self.sql(node, "parent"), self.sql(node, "within")
    return f"FOREIGN KEY {_names(self, node)} REFERENCES {parent} ({columns}) {within}"


def _punctuated_by(self: CqlGenerator, node: exp.Expr) -> str:
    when = self.sql(node, "when")
    return f"PUNCTUATED BY {_names(self, node)}" + (f" WHEN {when}" if when else "")


def _is_plain(name: str) -> bool:
    """Whether a dotted name can stand without quotes."""
    words = name.upper().split(".")
    return bool(_PLAIN_NAME.fullmatch(name)) and not any(each in Spark.Tokenizer.KEYWORDS for each in words)


def _using(self: CqlGenerator, node: exp.Expr) -> str:
    options = node.args.get("options")
    listed = f" OPTIONS ({', '.join(self.sql(each) for each in options)})" if options else ""
    name: str = node.args["this"]
    shown = name if _is_plain(name) else self.sql(exp.Identifier(this=name, quoted=True))
    return f"USING {shown}{listed}"


def _option(self: CqlGenerator, node: exp.Expr) -> str:
    key: str = node.args["this"]
    if not _is_plain(key):
        key = self.sql(exp.Literal.string(key))
    return f"{key} {self.sql(node, 'value')}"


def _create(kind: str) -> Callable[[CqlGenerator, exp.Expr], str]:
    def render(self: CqlGenerator, node: exp.Expr) -> str:
        columns = ", ".join(self.sql(each) for each in node.args["columns"])
        lines = [f"CREATE {kind} {self.sql(node, 'this')} ({columns})"]
        if node.args.get("non_retroactive"):
            lines.append("NON RETROACTIVE")
        lines.extend(self.sql(each) for each in node.args.get("clauses") or [])
        return "\n  ".join(lines)

    return render


def _stands_alone(node: exp.Expr) -> bool:
    """Whether a clause belongs to a query that is not inside another."""
    return node.find_ancestor(exp.Subquery, exp.Exists, exp.In, exp.CTE) is None


class CqlGenerator(SparkGenerator):
    """Writes CQL trees back as text that parses to the same tree, each clause of a query on its own line."""

    # A WITH inside a sub-query stays there.
    EXPRESSIONS_WITHOUT_NESTED_CTES: ClassVar[set[type[exp.Expr]]] = set()

    TRANSFORMS: ClassVar[dict[type[exp.Expr], Callable[..., str]]] = {
        # Spark's rewrites of whole selects are for other dialects' trees.
        **{kind: write for kind, write in SparkGenerator.TRANSFORMS.items() if kind is not exp.Select},
        exp.Quantile: lambda self, node: self.func("QUANTILE", node.this, node.args.get("quantile")),
        nodes.WindowSpec: _window,
        nodes.Windowed: _windowed,
        nodes.Emit: _emit,
        nodes.Adherence: _adherence,
        nodes.TimestampBy: _timestamp_by,
        nodes.Key: lambda self, node: f"KEY {_names(self, node)}",
        nodes.OrderedBy: lambda self, node: f"ORDERED BY {_names(self, node)} {self.sql(node, 'within')}",
        nodes.ClusteredBy: lambda self, node: f"CLUSTERED BY {_names(self, node)} {self.sql(node, 'within')}",
        nodes.ForeignKey: _foreign_key,
        nodes.PunctuatedBy: _punctuated_by,
        nodes.Using: _using,
        nodes.Option: _option,
        nodes.CreateStream: _create("STREAM"),
        nodes.CreateTable: _create("TABLE"),
        nodes.CreateQuery: lambda self, node: (
            f"CREATE QUERY {self.sql(node, 'this')} AS\n{self.sql(node, 'query')}"
        ),
    }

    def from_sql(self, expression: exp.From) -> str:
        return self._clause(expression, super().from_sql(expression))

    def join_sql(self, expression: exp.Join, join_op: str | None = None) -> str:
        text = super().join_sql(expression, join_op)
        return text if text.startswith(",") else self._clause(expression, text)

    def where_sql(self, expression: exp.Where) -> str:
        return self._clause(expression, super().where_sql(expression))

    def group_sql(self, expression: exp.Group) -> str:
        return self._clause(expression, super().group_sql(expression))

    def having_sql(self, expression: exp.Having) -> str:
        return self._clause(expression, super().having_sql(expression))

    def _clause(self, node: exp.Expr, text: str) -> str:
        is_filter = isinstance(node.parent, exp.Filter)
        return "\n" + text.lstrip() if _stands_alone(node) and not is_filter else text

    def set_operations(self, expression: exp.SetOperation) -> str:
        if not _stands_alone(expression):
            return super().set_operations(expression)
        left, right = self.sql(expression, "this"), self.sql(expression, "expression")
        text = f"{left}\n{self.set_operation(expression)}\n{right}"
        return self.prepend_ctes(expression, self.query_modifiers(expression, text))

    def exists_sql(self, expression: exp.Exists) -> str:
        return super().exists_sql(expression).replace("EXISTS(", "EXISTS (", 1)

    def filter_sql(self, expression: exp.Filter) -> str:
        return f"{self.sql(expression, 'this')} FILTER ({self.sql(expression, 'expression').strip()})"

    def not_sql(self, expression: exp.Not) -> str:
        """`a NOT IN (1)` and `a IS NOT NULL` rather than `NOT a IN (1)` and `NOT a IS NULL`."""
        inner = expression.this
        match inner:
            case exp.In():
                text = self.in_sql(inner)
            case exp.Between():
                text = self.between_sql(inner)
            case exp.Is():
                return f"{self.sql(inner, 'this')} IS NOT {self.sql(inner, 'expression')}"
            case _:
                return super().not_sql(expression)
        value = self.sql(inner, "this")
        return f"{value} NOT{text.removeprefix(value)}"
