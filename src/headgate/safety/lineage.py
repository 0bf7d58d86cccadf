"""Lineage: which stream stands behind an edge, row for row, and under which names its columns arrive there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headgate.plan.nodes import Distinct, Filter, Node, Project, StreamScan, TableJoin, Window, WindowKind
from headgate.plan.patterns import asks_once


@dataclass(frozen=True)
class Lineage:
    """An edge that carries rows of one stream, each when it comes and never later.

    `columns` leads from the edge's columns to the stream's; computed columns are not in it.
    """

    scan: StreamScan
    columns: Mapping[str, str]
    window: WindowKind | None = None

    @property
    def name(self) -> str:
        """The name of the stream in the query."""
        return self.scan.name


def lineage(node: Node) -> Lineage | None:
    """The stream behind an edge; None if rows of several, of none, or at other times than their own arrive there.

    What a stream promises about its later rows then holds on the edge: filters and projections only leave things
    out, a window delays a row to a tick at most, and a table is asked once for each row, unless its changes change
    answers. DISTINCT of rows that never die leaves out those that are there already; of others it says some again
    when the first die.
    """
    match node:
        case StreamScan():
            prefix = len(node.name) + 1
            return Lineage(node, {column.name: column.name[prefix:] for column in node.schema})
        case Window():
            below = lineage(node.input)
            if below is None or below.window is not None:
                return None
            return Lineage(below.scan, below.columns, node.window)
        case Filter():
            return lineage(node.input)
        case Project():
            below = lineage(node.input)
            if below is None:
                return None
            kept = {
                output.name: below.columns[output.scalar.expression.name]
                for output in node.outputs
                if output.scalar.is_column and output.scalar.expression.name in below.columns
            }
            return Lineage(below.scan, kept, below.window)
        case TableJoin() if asks_once(node):
            return lineage(node.left)
        case Distinct():
            below = lineage(node.input)
            dies = below is not None and below.window is not None and below.window.kind != "UNBOUNDED"
            return None if dies else below
    return None


def shown_name(node: Node, number: int) -> str:
    """What to call an edge in a sentence."""
    found = lineage(node)
    if found is not None:
        return found.name
    names = dict.fromkeys(each.name for each in node.walk() if isinstance(each, StreamScan))
    return f"sub-query {number + 1} ({', '.join(names)})" if names else f"input {number + 1}"
