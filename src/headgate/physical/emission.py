"""Emission: the kernels of windows and of result words, which turn streams into relations and back."""

from __future__ import annotations

import polars as pl

from headgate.kernels.emit import emit, rstream
from headgate.kernels.emit import wstream as windowed
from headgate.kernels.expressions import polars_type
from headgate.kernels.window import time_window as windowing
from headgate.plan.nodes import Emit, Filter, Node, Project, StreamScan, TableScan, WindowKind
from headgate.plan.panes import common_slide


def schema_of(node: Node) -> dict[str, pl.DataType]:
    """The payload columns of a node's batches."""
    return {column.name: polars_type(column.type) for column in node.schema}


def emit_kernel(node: Emit) -> emit.Emit:
    """The kernel that turns a relation into output rows."""
    schema, arrival = schema_of(node.input), _in_arrival_order(node.input)
    ticking = _ticking(node)
    match node.kind:
        case "ISTREAM":
            return emit.Istream(
                schema, arrival, restore_slide=node.slide if node.restore else None, ticking=ticking
            )
        case "DSTREAM":
            return emit.Dstream(schema, arrival, ticking=ticking)
        case "RSTREAM":
            return rstream.Rstream(schema, arrival, slide=node.slide, restoring=node.restore, ticking=ticking)
        case "WSTREAM":
            assert node.window is not None
            return windowed.Wstream(schema, arrival, window_spec(node.window), ticking=ticking)
    return emit.ChangeLog(schema, arrival, ticking=ticking)


def _ticking(node: Emit) -> int | None:
    """The SLIDE for the first tick of which what has no window, a table, has to wait.

    RESTORE follows the contents at every instant, and only says at ticks what it saw.
    """
    tables = any(isinstance(each, TableScan) for each in node.walk())
    return common_slide(node.input) if tables and not node.restore else None


def window_spec(window: WindowKind) -> windowing.WindowSpec:
    """A window as the kernels know it."""
    match window.kind:
        case "RANGE":
            assert window.length is not None
            return windowing.Range(window.length, window.slide)
        case "ROWS":
            assert window.rows is not None
            return windowing.Rows(window.rows, window.partition)
        case "NOW":
            return windowing.Now()
    return windowing.Unbounded()


def _in_arrival_order(node: Node) -> bool:
    """Whether rows come as they arrived on one stream: nothing but filters and projections is between."""
    while isinstance(node, (Filter, Project)):
        node = node.input
    return isinstance(node, StreamScan)
