"""Panes: rows that live from one instant at which rows can be born to the next, under a tumbling window or NOW."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from headgate.plan.nodes import Aggregate, AggregateCall, Distinct, Filter, Node, Project, StreamScan, Window


def grouped_in_panes(node: Aggregate | Distinct, lifetime: int | None) -> bool:
    """Whether all rows of a group arrive at once and are gone before the next; the group's row lives as long.

    `lifetime` is that of all rows below, if they have one in common. Values that have to be compared one by one
    are not grouped so, and what is said also over nothing has no pane.
    """
    if isinstance(node, Aggregate) and not (node.keys and all(_adds_up(node, call) for call in node.calls)):
        return False
    return lifetime is not None and lifetime == (common_slide(node.input) or 1)


def _adds_up(node: Aggregate, call: AggregateCall) -> bool:
    nested = call.argument is not None and pa.types.is_nested(node.input.type_of(call.argument))
    mergeable = call.function.traits.mergeable and not call.distinct
    return mergeable and not (nested and call.function.is_extreme)


def common_slide(node: Node) -> int | None:
    """The SLIDE that every stream below is read with, directly or through other queries; None if they differ.

    A global aggregate then has its first value at the first tick, when it first sees anything.
    """
    slides = set(_slides(node, None))
    return slides.pop() if len(slides) == 1 else None


def _slides(node: Node, slide: int | None) -> Iterator[int | None]:
    match node:
        case StreamScan():
            yield slide
        case Window():
            yield from _slides(node.input, node.window.slide)
        case Filter() | Project():
            yield from _slides(node.input, slide)
        case _:
            for each in node.inputs:
                yield from _slides(each, None)
