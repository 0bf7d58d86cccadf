"""Small words for tests of plans: declare, ask, and look at the nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headgate.explain.describe import Description, describe_query
from headgate.session import Query, Session

STREAMS = """
CREATE STREAM S1 (ts TIMESTAMP, a BIGINT, b INT, c STRING) TIMESTAMP BY ts;
CREATE STREAM S2 (ts TIMESTAMP, a BIGINT, b INT, c STRING) TIMESTAMP BY ts;
CREATE STREAM S3 (ts TIMESTAMP, a BIGINT, b INT, c STRING) TIMESTAMP BY ts;
CREATE TABLE companies (sym BIGINT, name STRING) NON RETROACTIVE
  USING json OPTIONS (path 'c', changeTime 'at', changeOp 'op');
CREATE TABLE accounts (id BIGINT, owner STRING)
  USING json OPTIONS (path 'c', changeTime 'at', changeOp 'op');
"""


def ask(text: str) -> Query:
    """The query that a SELECT over the streams above becomes."""
    session = Session()
    session.sql(STREAMS)
    query = session.sql(text)
    assert query is not None
    return query


def shape(query: Query, *, alternative: int = 0) -> str:
    """A plan on one line: operators with their patterns, inputs in brackets; projections left out."""
    compared = query.optimized.compared[alternative]
    return _shape(describe_query(query.name, compared, assumed=True).plan)


def shapes(query: Query) -> list[str]:
    """The shapes of all plans that were compared."""
    return [shape(query, alternative=index) for index in range(len(query.optimized.compared))]


def _shape(node: Description) -> str:
    inputs = ", ".join(_shape(each) for each in node.inputs)
    if node.op == "project":
        return inputs
    if node.op in ("stream", "table"):
        return str(node.detail["name"])
    return f"{node.op} {node.pattern}({inputs})"


def pattern(text: str) -> str:
    """The update pattern of a SELECT's answer."""
    query = ask(text)
    return describe_query(query.name, query.optimized.best, assumed=True).pattern


def nodes_of(plan: dict[str, Any], op: str) -> Iterator[dict[str, Any]]:
    """The nodes of a JSON plan with this operator."""
    if plan["op"] == op:
        yield plan
    for each in plan["inputs"]:
        yield from nodes_of(each, op)
