"""Writing CQL trees back as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from sqlglot import exp
from sqlglot.generators.spark import SparkGenerator

from headgate.language import nodes
from headgate.model.time import format_duration


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


def _emit(self: CqlGenerator, node: exp.Expr) -> str:
    inner = ", ".join(self.sql(each) for each in node.expressions)
    distinct = "DISTINCT " if node.args.get("distinct") else ""
    restore = " RESTORE" if node.args.get("restore") else ""
    window = self.sql(node, "window")
    return f"{node.args['kind']}{restore}({distinct}{inner}){window}"


def _adherence(self: CqlGenerator, node: exp.Expr) -> str:
    rows = node.args.get("rows")
    return "WITHIN AUTO" if rows is None else f"WITHIN {rows} ROWS"


def _timestamp_by(self: CqlGenerator, node: exp.Expr) -> str:
    slack = node.args.get("slack")
    within = "" if slack is None else f" WITHIN INTERVAL {format_duration(slack) if slack else '0 SECONDS'}"
    return f"TIMESTAMP BY {self.sql(node, 'this')}{within}"


def _foreign_key(self: CqlGenerator, node: exp.Expr) -> str:
    columns = ", ".join(self.sql(each) for each in node.args["columns"])
    parent, within = self.sql(node, "parent"), self.sql(node, "within")
    return f"FOREIGN KEY {_names(self, node)} REFERENCES {parent} ({columns}) {within}"


def _punctuated_by(self: CqlGenerator, node: exp.Expr) -> str:
    when = self.sql(node, "when")
    return f"PUNCTUATED BY {_names(self, node)}" + (f" WHEN {when}" if when else "")


def _using(self: CqlGenerator, node: exp.Expr) -> str:
    options = node.args.get("options")
    listed = f" OPTIONS ({', '.join(self.sql(each) for each in options)})" if options else ""
    return f"USING {self.sql(node, 'this')}{listed}"


def _option(self: CqlGenerator, node: exp.Expr) -> str:
    key = self.sql(exp.Literal.string(node.args["this"]))
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


class CqlGenerator(SparkGenerator):
    """Writes CQL trees back as text that parses to the same tree."""

    TRANSFORMS: ClassVar[dict[type[exp.Expr], Callable[..., str]]] = {
        **SparkGenerator.TRANSFORMS,
        nodes.WindowSpec: _window,
        nodes.Windowed: lambda self, node: f"{self.sql(node, 'this')} {self.sql(node, 'window')}",
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
