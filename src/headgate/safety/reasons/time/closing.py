"""Closing by the clock: which groups of an aggregate, or values of DISTINCT, no later row can have.

```
GROUP BY date_trunc('hour', ts)     the group of 10:00 gets its last row before 11:00: then its answer is final
```

If a row of an edge appears at most `lag` after the instant in one of its columns, then once the clock is at c no row
comes with an instant before c − lag. NULL is no instant: only columns that cannot be NULL close anything.
"""

from __future__ import annotations

from dataclasses import dataclass

from headgate.model import types
from headgate.model.time import roughly
from headgate.plan.nodes import Aggregate, Distinct
from headgate.plan.patterns import Edges, Pattern
from headgate.safety.reasons.time.facts import BORN, EventTimes
from headgate.safety.reasons.time.linear import DATES, INSTANTS, Unit


@dataclass(frozen=True)
class ClockClosing:
    """Values v of `key` are final when the clock is at scale × v + `lag`."""

    key: str
    unit: Unit
    lag: int
    wait: int
    """How long a row can wait for its group to be final, in microseconds."""
    reason: str
    checks: frozenset[str] = frozenset()
    """Streams whose CHECKs are part of the reason."""


def close_by_clock(node: Aggregate | Distinct, edges: Edges) -> ClockClosing | None:
    """How time closes the groups of an aggregate, or the values of DISTINCT; None if it does not."""
    edge = edges[node.input]
    if max(edge.pattern, edge.expiry) != Pattern.MON or edge.internal:
        return None
    keys = node.keys if isinstance(node, Aggregate) else tuple(column.name for column in node.schema)
    thing = "group" if isinstance(node, Aggregate) else "value"
    for checks in (False, True):
        facts = EventTimes(edges, checks).of(node.input)
        found = []
        for key in keys:
            lag, dtype = facts.lag(key), node.input.type_of(key)
            if lag is None or key not in facts.filled:
                continue
            ahead = facts.differences.bound(key, BORN)
            wait = lag + (0 if ahead is None else ahead)
            if types.is_timestamp(dtype) or dtype == types.DATE:
                found.append((wait, lag, key, INSTANTS if types.is_timestamp(dtype) else DATES))
            elif types.is_integer(dtype):
                found.append((wait, lag, key, facts.units[key]))
        if found:
            wait, lag, key, unit = min(found, key=lambda each: each[0])
            reason = f"a {thing} is final when event time has passed its {key}"
            if wait > 0:
                reason += f", at most {roughly(wait)} after its first row"
            return ClockClosing(key, unit, lag, wait, reason, facts.checks)
    return None
