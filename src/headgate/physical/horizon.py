"""Horizon: the last instant at which anything is due."""

from __future__ import annotations

from collections.abc import Mapping

from headgate.plan.nodes import Emit, Node, StreamScan, Window, WindowKind


def horizon(plan: Node, last: Mapping[str, int]) -> int | None:
    """The last instant at which an announced death or a tick is due, given each stream's last instant."""
    if isinstance(plan, StreamScan):
        return last.get(plan.stream.name)
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


def _after_window(latest: int, window: WindowKind) -> int:
    latest += window.length or (1 if window.kind == "NOW" else 0)
    return latest if window.slide is None else _tick(latest, window.slide)


def _tick(instant: int, slide: int) -> int:
    return -(-instant // slide) * slide
