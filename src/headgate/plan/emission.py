"""Relation to stream: ISTREAM, DSTREAM, RSTREAM and WSTREAM checked and bound (Windows document, 3.4)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlglot import exp

from headgate.language import nodes as syntax
from headgate.language.parse import Statement
from headgate.model.errors import MeaninglessError
from headgate.plan.nodes import Emit, Node, Window, WindowKind


def emit_of(select: exp.Select, statement: Statement) -> exp.Expr | None:
    """The relation-to-stream operator over a select list, checked; None if there is none."""
    emit = next((item for item in select.expressions if isinstance(item, syntax.Emit)), None)
    if emit is None:
        return None
    kind, window = emit.args["kind"], emit.args.get("window")
    if len(select.expressions) > 1:
        raise MeaninglessError(
            f"{kind} takes the whole select list, not one item of it",
            remedy=f"write {kind}(a, b, …)",
            place=statement.place(emit),
        )
    if kind == "WSTREAM" and emit.args.get("restore"):
        raise MeaninglessError(
            "WSTREAM cannot RESTORE: when one tick brings more results than the output window holds, "
            "nothing says which of them stay (Windows document, 3.4)",
            remedy="use ISTREAM RESTORE",
            place=statement.place(emit),
        )
    if kind == "DSTREAM" and emit.args.get("restore"):
        raise MeaninglessError(
            "DSTREAM does not RESTORE: only ISTREAM and RSTREAM do", place=statement.place(emit)
        )
    if kind == "WSTREAM" and (window is None or window.args["kind"] not in ("ROWS", "RANGE")):
        raise MeaninglessError(
            "WSTREAM needs an output window: WSTREAM(…)[ROWS n] or [RANGE d]", place=statement.place(emit)
        )
    if window is not None:
        if kind != "WSTREAM":
            raise MeaninglessError(
                f"only WSTREAM takes an output window, not {kind}", place=statement.place(window)
            )
        if any(window.args.get(each) for each in ("slide", "partition", "internal")):
            raise MeaninglessError(
                "an output window is plain [ROWS n] or [RANGE d]", place=statement.place(window)
            )
    return emit


def bind_emit(node: Node, emit: exp.Expr, window: WindowKind | None, statement: Statement) -> Emit:
    """The Emit node over a select's relation."""
    kind, restore = emit.args["kind"], bool(emit.args.get("restore"))
    slide = slide_of(node, statement)
    if restore:
        if slide is None:
            raise MeaninglessError(
                f"{kind} RESTORE needs windows with SLIDE: without ticks no result is ever missed",
                remedy=f"write {kind} alone, or add SLIDE to the windows",
                place=statement.place(emit),
            )
        node = _without_slide(node)
    return Emit(node, kind, restore, window, slide)


def slide_of(node: Node, statement: Statement) -> int | None:
    """The SLIDE that all windows of a query share."""
    slides = sorted({each.window.slide for each in _windows_below(node) if each.window.slide is not None})
    if len(slides) > 1:
        raise MeaninglessError(
            "the windows of one query slide together: all SLIDEs must be the same",
            remedy="give them the same SLIDE, or split the query",
            place=statement.place(_second_slide(statement)),
        )
    return slides[0] if slides else None


def _second_slide(statement: Statement) -> exp.Expr | None:
    """The first window whose SLIDE differs from that of a window before it."""
    windows = [w for w in statement.tree.find_all(syntax.WindowSpec, bfs=False) if w.args.get("slide")]
    return next((w for w in windows if w.args["slide"] != windows[0].args["slide"]), None)


def _windows_below(node: Node) -> Iterator[Window]:
    """The windows whose ticks an answer follows: those not behind an inner Emit."""
    if isinstance(node, Emit):
        return
    if isinstance(node, Window):
        yield node
    for each in node.inputs:
        yield from _windows_below(each)


def _without_slide(node: Node) -> Node:
    """The same plan evaluated continuously: RESTORE brings back what falls between ticks."""
    if isinstance(node, Emit):
        return node
    new = node.with_inputs([_without_slide(each) for each in node.inputs])
    if isinstance(new, Window) and new.window.slide is not None:
        return replace(new, window=replace(new.window, slide=None))
    return new
