"""Horizon: the last instant at which anything is due.

```
bids [RANGE 10]   ──x──x──x┤                  last row at 30
prices            ─+────────────-┤            last change at 36
due               ══════════════════╡         at 40 the last row leaves its window; had a change come at 50, at 50
```
"""

from __future__ import annotations

from collections.abc import Mapping

from headgate.plan.nodes import Emit, Node, StreamScan, TableScan, Window, WindowKind

EPOCH = 0
"""When a query answers that reads nothing but tables that do not change."""


def horizon(plan: Node, last: Mapping[str, int]) -> int | None:
    """The last instant at which an announced death, a tick or a table's change is due.

    `last` has the last instant of each stream, and of each table that changes. A change of a NON RETROACTIVE table
    takes effect with a stream's row only.
    """
    match plan:
        case StreamScan():
            return last.get(plan.stream.name)
        case TableScan():
            return last.get(plan.table.name) if plan.table.rewrites else None
    below = [at for each in plan.inputs if (at := horizon(each, last)) is not None]
    if not below:
        return None
    latest = max(below)
    match plan:
        case Window():
            return _after_window(latest, plan.window)
        case Emit():
            if plan.window is not None:
                latest = _after_window(latest, plan.window)
            return latest if plan.slide is None else _tick(latest, plan.slide)
    return latest


def is_timeless(plan: Node) -> bool:
    """Whether a query reads nothing but tables that do not change, so that no row ever begins its answer."""
    scans = [node for node in plan.walk() if isinstance(node, (StreamScan, TableScan))]
    return all(isinstance(scan, TableScan) and not scan.table.changes for scan in scans)


def _after_window(latest: int, window: WindowKind) -> int:
    latest += window.length or (1 if window.kind == "NOW" else 0)
    return latest if window.slide is None else _tick(latest, window.slide)


def _tick(instant: int, slide: int) -> int:
    return -(-instant // slide) * slide
