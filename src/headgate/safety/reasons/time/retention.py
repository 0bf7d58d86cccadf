"""Retention: how long rows of an unwindowed input of a join are kept, because time says when their partners come.

```
b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 HOUR

a        *───────── kept ─────────┤        1 hour after it no row of b joins it any more
b              *                           a later row of a is later than it: kept for its own instant
```

A row can go when no result with it is born later. A later result has a row that comes later, of some other input; if
each of the others is at most d after this row in every result, none comes once the clock is d past it. Results stay:
that a row is gone from the state is not its death (as with internal windows: Windows document, 3.3.2).

EXISTS and NOT EXISTS are the same: a row that can be in no later pair neither gains a match any more nor gives one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headgate.model.time import roughly
from headgate.plan.nodes import Join, Negation, Node, SemiJoin
from headgate.plan.patterns import Edges, Pattern
from headgate.safety.lineage import shown_name
from headgate.safety.reasons.time.facts import EventTimes, birth


@dataclass(frozen=True)
class Retention:
    """A row is kept for `length` microseconds, at least its own instant."""

    length: int
    reason: str
    checks: frozenset[str] = frozenset()
    """Streams whose CHECKs are part of the reason."""


def retentions(node: Join | SemiJoin | Negation, edges: Edges) -> Mapping[int, Retention]:
    """The inputs whose rows never die but that need not be kept for ever, by their number."""
    open_ = [n for n, member in enumerate(node.inputs) if _never_dies(edges, member)]
    found: dict[int, Retention] = {}
    for checks in (False, True):
        limits, relied = _limits(node, edges, checks=checks) if len(found) < len(open_) else ({}, frozenset())
        for number in open_:
            if number in limits and number not in found:
                length = max(0, limits[number]) + 1
                found[number] = Retention(length, _reason(node, number, length), relied)
    return found


def meet_in_time(node: Join, edges: Edges) -> frozenset[int]:
    """The inputs whose rows meet only rows that come within a limited time, by their number."""
    return frozenset(_limits(node, edges, checks=False)[0])


def _limits(
    node: Join | SemiJoin | Negation, edges: Edges, *, checks: bool
) -> tuple[Mapping[int, int], frozenset[str]]:
    """By input, how long after a row of it the rows that it meets can come; and the streams whose CHECKs say so."""
    differences, relied = EventTimes(edges, checks).joined(node)
    found = {}
    for number in range(len(node.inputs)):
        others = [other for other in range(len(node.inputs)) if other != number]
        most = [differences.bound(birth(other), birth(number)) for other in others]
        known = [each for each in most if each is not None]
        if len(known) == len(most):
            found[number] = max(known)
    return found, relied


def _never_dies(edges: Edges, node: Node) -> bool:
    edge = edges[node]
    return max(edge.pattern, edge.expiry) == Pattern.MON


def _reason(node: Node, number: int, length: int) -> str:
    name = shown_name(node.inputs[number], number)
    others = " and ".join(
        shown_name(each, place) for place, each in enumerate(node.inputs) if place != number
    )
    when = "later" if length == 1 else f"more than {roughly(length - 1)} later"
    return f"a row of {name} {'joins' if isinstance(node, Join) else 'meets'} no row of {others} that comes {when}"
