"""Claims: what a document says was measured, beside what is measured here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from headgate.model.errors import DisagreementError

REPORT = "one of them is wrong: please report it with the command and the version"


def require_same(results: Iterable[object], what: str) -> None:
    """Refuses to compare times of runs that did not find the same."""
    found = set(results)
    if len(found) > 1:
        raise DisagreementError(
            f"{what}: different numbers of results, {', '.join(sorted(map(str, found)))}", remedy=REPORT
        )


@dataclass(frozen=True)
class Claim:
    """One claim of a document, the figure found here, and whether it holds."""

    name: str
    document: str
    measured: str
    holds: bool

    def as_dict(self) -> dict[str, Any]:
        return {
            "claim": self.name,
            "document": self.document,
            "measured": self.measured,
            "holds": self.holds,
        }


@dataclass(frozen=True)
class Series:
    """One line of a plot: times per 1,000 rows and state sizes against a parameter."""

    query: str
    strategy: str
    x: tuple[float, ...]
    seconds: tuple[float, ...]
    state_rows: tuple[int, ...]
    results: tuple[int, ...]

    def as_dict(self) -> dict[str, Any]:
        return {
            "query": self.query,
            "strategy": self.strategy,
            "x": list(self.x),
            "seconds_per_1000_rows": list(self.seconds),
            "peak_state_rows": list(self.state_rows),
            "results": list(self.results),
        }
