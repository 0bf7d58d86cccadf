"""Panes: rows that live from one instant at which rows can be born to the next, under a tumbling window or NOW."""

from __future__ import annotations

from collections.abc import Iterator

from headgate.plan.nodes import Filter, Node, Project, StreamScan, Window
from headgate.plan.patterns import Edges, Pattern


def in_panes(node: Node, edges: Edges) -> bool:
    """Whether the lifetimes of a node's rows are panes, so that at no instant rows of different births are there."""
    edge = edges[node]
    return edge.pattern == Pattern.WKS and edge.lifetime == (common_slide(node) or 1)


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
