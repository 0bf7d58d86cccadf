"""The syntax tree's own nodes: what CQL adds to SQL. Everything else in a tree is sqlglot's."""

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp

from headgate.model.source import Span

EMIT_KINDS = ("ISTREAM", "DSTREAM", "RSTREAM", "WSTREAM")


class WindowSpec(exp.Expression):
    """`[RANGE d SLIDE s]`, `[ROWS n]`, `[PARTITION BY c ROWS n]`, `[NOW]`, `[UNBOUNDED]`, with or without INTERNAL.

    `kind` is RANGE, ROWS, NOW or UNBOUNDED; `length` and `slide` are microseconds, `rows` is a count.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "kind": True,
        "length": False,
        "slide": False,
        "rows": False,
        "partition": False,
        "internal": False,
    }


class Windowed(exp.Expression):
    """A FROM item with a window on it: `this` is a table or a sub-query, alias included."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "window": True}


class Emit(exp.Expression):
    """A relation-to-stream operator over a select list: `ISTREAM(a, b)`, `WSTREAM(*)[ROWS 10]`."""

    arg_types: ClassVar[dict[str, bool]] = {
        "kind": True,
        "expressions": True,
        "restore": False,
        "distinct": False,
        "window": False,
    }


class Adherence(exp.Expression):
    """How closely a constraint is kept: `WITHIN 50 ROWS`, `WITHIN 5 MINUTES`, or `WITHIN AUTO` for monitoring.

    `rows` is a count, `length` are microseconds.
    """

    arg_types: ClassVar[dict[str, bool]] = {"rows": False, "length": False}


class TimestampBy(exp.Expression):
    """`TIMESTAMP BY ts WITHIN INTERVAL 5 SECONDS`; `slack` in microseconds."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "slack": False}


class Key(exp.Expression):
    """`KEY (bidid)`: no two rows agree on these columns."""

    arg_types: ClassVar[dict[str, bool]] = {"expressions": True}


class OrderedBy(exp.Expression):
    """`ORDERED BY (bidid) WITHIN 100 ROWS`, or `WITHIN 5 MINUTES`: OA(k)."""

    arg_types: ClassVar[dict[str, bool]] = {"expressions": True, "within": True}


class ClusteredBy(exp.Expression):
    """`CLUSTERED BY (itemid) WITHIN 1000 ROWS`, or `WITHIN 5 MINUTES`: CA(k)."""

    arg_types: ClassVar[dict[str, bool]] = {"expressions": True, "within": True}


class ForeignKey(exp.Expression):
    """`FOREIGN KEY (a) REFERENCES items (a) WITHIN 50 ROWS`, or `WITHIN 5 MINUTES`: RIDS(k)."""

    arg_types: ClassVar[dict[str, bool]] = {
        "expressions": True,
        "parent": True,
        "columns": True,
        "within": True,
    }


class PunctuatedBy(exp.Expression):
    """`PUNCTUATED BY (itemid) WHEN closing`: one punctuation scheme, and which rows are punctuations."""

    arg_types: ClassVar[dict[str, bool]] = {"expressions": True, "when": False}


class Using(exp.Expression):
    """`USING parquet OPTIONS (path 'data/bids')`; `this` is the format's name, `options` are Option nodes."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "options": False}


class Option(exp.Expression):
    """One `key value` of OPTIONS."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "value": True}


class CreateStream(exp.Expression):
    """CREATE STREAM with its columns, checks and clauses in the order written."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "columns": True, "clauses": False}


class CreateTable(exp.Expression):
    """CREATE TABLE; `non_retroactive` makes it an NRR (Windows document, 3.3.1)."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "columns": True,
        "non_retroactive": False,
        "clauses": False,
    }


class CreateQuery(exp.Expression):
    """CREATE QUERY name AS select."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "query": True}


WRITTEN = "written"
"""Under this key a node knows the name by which its function was called in the text."""


def written_name(node: exp.Expr) -> str:
    """The name by which a function was called; if a call stands for several functions, that of the call."""
    found: exp.Expr | None = node
    while found is not None and not found.meta.get(WRITTEN):
        found = found.parent
    if found is not None and (found is node or isinstance(found, exp.Func)):
        return str(found.meta[WRITTEN])
    if isinstance(node, exp.Anonymous):
        return str(node.this)
    return node.sql_name() if isinstance(node, exp.Func) else node.key


def span_of(node: exp.Expr) -> Span | None:
    """The span of source text that a node and its descendants cover, if any of them remembers."""
    start: int | None = None
    end: int | None = None
    for each in node.walk():
        meta = each.meta
        if "start" in meta:
            start = meta["start"] if start is None else min(start, meta["start"])
            end = meta["end"] if end is None else max(end, meta["end"])
    if start is None or end is None:
        return None
    return Span(start, end + 1)
