"""Warnings while a query runs: what its bound assumes no longer seems to hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from headgate.runtime.growth import in_doubt, strayed
from headgate.safety.assumption import VIOLATIONS


class AssumptionWarnings:
    """Prints a warning when assumptions of a query come into doubt, once until they no longer are."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._said: set[tuple[str, str]] = set()

    def note(self, metrics: Mapping[str, Any]) -> None:
        """Looks at a query's newest metrics."""
        query, found = str(metrics["query"]), in_doubt(metrics)
        for name, assumptions in found.items():
            if (query, name) not in self._said:
                said = _of_strayed(metrics) if name == VIOLATIONS else warning(metrics, name, assumptions)
                self._console.print(said, soft_wrap=True)
        # That rows stray from what was observed may come and go for as long as a run lasts.
        before = {key for key in self._said if key[0] != query or key[1] == VIOLATIONS}
        self._said = before | {(query, name) for name in found}


def _of_strayed(metrics: Mapping[str, Any]) -> Text:
    """That rows have strayed from constraints WITHIN AUTO."""
    text = Text("warning  ", style="bold yellow")
    names = ", ".join(dict.fromkeys(str(each["constraint"]) for each in strayed(metrics)))
    text.append(
        f"{metrics['query']}: rows have strayed further than before from {names}; results with rows that were "
        "dropped too soon are missing. Nothing is dropped by it until a k has been found anew"
    )
    return text


def warning(metrics: Mapping[str, Any], name: str, assumptions: Sequence[Mapping[str, Any]]) -> Text:
    """What is seen, what was assumed, and what happens where that is not so."""
    text = Text("warning  ", style="bold yellow")
    text.append(
        f"{metrics['query']}: {name} has risen to {metrics.get(name, 0):,} after {metrics['rows_in']:,} rows, "
        "and goes on rising. It stays bounded only if"
    )
    for each in assumptions:
        text.append(f"\n         - {each['sentence']} (otherwise {each['otherwise']})")
    return text
