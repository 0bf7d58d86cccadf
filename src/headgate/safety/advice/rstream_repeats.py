"""RSTREAM repeats: it writes a row at every tick at which it is there; with a short SLIDE that is a flood.

A row of `[RANGE 1 HOUR SLIDE 1 SECOND]` is there at 3,600 ticks. Its state is bounded; what is written is not what
anybody reads.
"""

from __future__ import annotations

from collections.abc import Iterator

from headgate.model.time import format_duration
from headgate.plan.nodes import Emit, Node, Window

MOST_SAID = 1_000
"""At more ticks than this one row is repeated too often, and `check` says so."""


def rstream_repeats(plan: Node) -> tuple[str, ...]:
    """A sentence for each window whose rows an RSTREAM above it repeats too often."""
    found: dict[str, None] = {}
    for emit in plan.walk():
        if not isinstance(emit, Emit) or emit.kind != "RSTREAM" or emit.slide is None:
            continue
        for length in _lengths(emit.input):
            if length // emit.slide > MOST_SAID:
                found[_sentence(length, emit.slide)] = None
    return tuple(found)


def _lengths(node: Node) -> Iterator[int]:
    """The lengths of the windows in which rows are, up to where a result word below makes a stream of them again."""
    if isinstance(node, Window) and node.window.length is not None:
        yield node.window.length
    for each in () if isinstance(node, Emit) else node.inputs:
        yield from _lengths(each)


def _sentence(length: int, slide: int) -> str:
    return (
        f"RSTREAM repeats a row at every tick: in RANGE {format_duration(length)} SLIDE {format_duration(slide)} "
        f"each is written {length // slide:,} times; ISTREAM says it once, a longer SLIDE less often"
    )
