"""Causes: what bounds a state. The one list of them; whoever tells them apart matches all of them."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Cause(StrEnum):
    """What bounds a state."""

    WINDOW = "window"
    """Rows leave by themselves: after a time, or when newer ones have come."""
    TIME = "time"
    """Event time moves on: no partner, or no row of the group, can come any more."""
    VALUES = "values"
    """Finitely many values are possible."""
    PUNCTUATION = "punctuation"
    KEY = "key"
    CONSTRAINT = "constraint"
    FINITE = "finite"
    """A table is as large as it is."""
    NONE = "none"
    """Nothing does."""


def of_promises(causes: Iterable[Cause]) -> Cause:
    """The cause of what several promises bound together: theirs if it is one, else that they close values."""
    found = set(causes)
    return found.pop() if len(found) == 1 else Cause.PUNCTUATION
