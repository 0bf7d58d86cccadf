"""Warnings while a query runs: what its bound assumes no longer seems to hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from headgate.runtime.growth import in_doubt


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
                self._console.print(warning(metrics, name, assumptions), soft_wrap=True)
        self._said = {key for key in self._said if key[0] != query} | {(query, name) for name in found}


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
