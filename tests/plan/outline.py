"""Plans as text for tests: one line per operator, what it reads below it and further to the right."""

from __future__ import annotations

from headgate.explain.describe import show_window
from headgate.model.scalar import Scalar
from headgate.plan.nodes import (
    Aggregate,
    Difference,
    Distinct,
    Emit,
    Filter,
    Join,
    Negation,
    Node,
    Output,
    Project,
    SemiJoin,
    StreamScan,
    TableJoin,
    TableScan,
    Union,
    Window,
)
from headgate.plan.patterns import label
from headgate.session import Query, Session

DECLARATIONS = """
CREATE STREAM s (
  ts TIMESTAMP, a BIGINT, b BIGINT, i INT, c STRING, d DOUBLE, f BOOLEAN, dec DECIMAL(10, 2), day DATE,
  ntz TIMESTAMP_NTZ, st STRUCT<x: INT, y: STRUCT<z: STRING>>, arr ARRAY<INT>, m MAP<STRING, INT>, tiny TINYINT,
  small SMALLINT, fl FLOAT
) TIMESTAMP BY ts;
CREATE STREAM u (ts TIMESTAMP, a BIGINT, b BIGINT, c STRING) TIMESTAMP BY ts;
CREATE STREAM v (ts TIMESTAMP, a BIGINT, b BIGINT, c STRING) TIMESTAMP BY ts;
CREATE TABLE t (x BIGINT, y BIGINT, name STRING)
  USING json OPTIONS (path 't', changeTime 'at', changeOp 'op');
CREATE TABLE n (x BIGINT, y BIGINT, name STRING) NON RETROACTIVE
  USING json OPTIONS (path 'n', changeTime 'at', changeOp 'op');
CREATE TABLE fixed (x BIGINT, y BIGINT, name STRING);
"""


def query(text: str) -> Query:
    """The last query of a text, over the streams and tables above."""
    session = Session()
    session.sql(DECLARATIONS)
    found = session.sql(text)
    assert found is not None
    return found


def outline(plan: Node, *, patterns: bool = False) -> str:
    """A plan as text; with the update pattern of every edge if asked."""
    edges = label(plan) if patterns else {}

    def lines(node: Node, level: int) -> list[str]:
        pattern = f"  {edges[node].pattern}" if patterns else ""
        return [
            "  " * level + show(node) + pattern,
            *(line for each in node.inputs for line in lines(each, level + 1)),
        ]

    return "\n".join(lines(plan, 0))


def normalized(text: str) -> str:
    """A query's normal form."""
    return outline(query(text).plan.input)


def labelled(text: str) -> str:
    """A query's normal form with the pattern of every edge."""
    return outline(query(text).plan, patterns=True)


def show(node: Node) -> str:
    match node:
        case StreamScan():
            return f"stream {node.stream.name}" + (
                "" if node.name == node.stream.name else f" as {node.name}"
            )
        case TableScan():
            return f"table {node.table.name}" + ("" if node.name == node.table.name else f" as {node.name}")
        case Window():
            return show_window(node.window)
        case Filter():
            return f"filter {node.predicate.show()}"
        case Project():
            return "project " + ", ".join(_output(each) for each in node.outputs)
        case Join():
            return "join " + _conditions([" = ".join(group) for group in node.equalities], node.residual)
        case TableJoin():
            return "table join " + _keys(node.keys, node.residual)
        case SemiJoin():
            return "semi join " + _keys(node.keys, node.residual)
        case Negation():
            return "negation " + _keys(node.keys, node.residual)
        case Difference():
            return "difference"
        case Distinct():
            return "distinct"
        case Aggregate():
            calls = ", ".join(call.show() for call in node.calls)
            return f"aggregate {calls}" + (f" by {', '.join(node.keys)}" if node.keys else "")
        case Union():
            return "union"
        case Emit():
            return node.kind.lower() + (" restore" if node.restore else "")
    raise TypeError(type(node).__name__)


def _output(output: Output) -> str:
    shown = output.scalar.show()
    return output.name if shown == output.name else f"{shown} as {output.name}"


def _conditions(equal: list[str], residual: tuple[Scalar, ...]) -> str:
    return " & ".join([*equal, *(part.show() for part in residual)]) or "everything"


def _keys(keys: tuple[tuple[str, str], ...], residual: tuple[Scalar, ...]) -> str:
    return _conditions([f"{a} = {b}" for a, b in keys], residual)
