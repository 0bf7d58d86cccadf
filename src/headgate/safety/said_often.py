"""Said often: RSTREAM repeats a row at every tick at which it is there; with a short SLIDE that is a flood.

A row of `[RANGE 1 HOUR SLIDE 1 SECOND]` is there at 3,600 ticks. Its state is bounded; what is written is not what
anybody reads.
"""

from __future__ import annotations

from headgate.model.time import format_duration
from headgate.plan.nodes import Emit, Node, Window

MOST_SAID = 1_000
"""At more ticks than this one row is repeated too often, and `check` says so."""


def said_often(plan: Node) -> tuple[str, ...]:
    """A sentence for each window whose rows an RSTREAM above it repeats too often."""
    found: dict[str, None] = {}
    for emit in plan.walk():
        if not isinstance(emit, Emit) or emit.kind != "RSTREAM" or emit.slide is None:
            continue
        for window in (each for each in emit.walk() if isinstance(each, Window)):
            length = window.window.length
            if length is not None and length // emit.slide > MOST_SAID:
                found[_sentence(length, emit.slide)] = None
    return tuple(found)


def _sentence(length: int, slide: int) -> str:
    return (
        f"RSTREAM repeats a row at every tick: in RANGE {format_duration(length)} SLIDE {format_duration(slide)} "
        f"each is written {length // slide:,} times; ISTREAM says it once, a longer SLIDE less often"
    )
