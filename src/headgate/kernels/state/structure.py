"""Structure: which store holds an input, as its update pattern allows."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from headgate.kernels.state.calendar import Calendar
from headgate.kernels.state.endings import Endings
from headgate.kernels.state.lifetime_runs import LifetimeRuns
from headgate.kernels.state.scan import Scan
from headgate.kernels.state.store import Layout, Store


class Structure(Enum):
    """The structures of a store. Without endings all of them are right; STR input needs ENDINGS."""

    RUNS = "runs"
    """For rows that never die (MON), or die in the order of their birth (WKS)."""
    CALENDAR = "calendar"
    """For deaths that are known at birth but out of order (WK)."""
    ENDINGS = "endings"
    """For rows that may be taken back (STR)."""
    SCAN = "scan"
    """A plain list, for experiments."""


def empty_store(structure: Structure, layout: Layout, identity: Sequence[str], days: int) -> Store:
    """A store without rows.

    `identity` names the columns by which an ending finds the row it takes back; `days` is for a calendar.
    """
    match structure:
        case Structure.RUNS:
            return LifetimeRuns(layout)
        case Structure.CALENDAR:
            return Calendar.empty(layout, days)
        case Structure.ENDINGS:
            return Endings.empty(layout, identity)
        case Structure.SCAN:
            return Scan(layout)
