"""Warnings of streams many of whose rows come late: while a query runs, and at its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from headgate.runtime.lateness import ENOUGH, MANY, remedy, sentence, share_late


class LateWarnings:
    """Prints a warning of each such stream, once while the run goes on and once at its end."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._said: set[str] = set()

    def note(self, metrics: Mapping[str, Any]) -> None:
        """Looks at a query's newest metrics."""
        for stream, arrivals in metrics.get("streams", {}).items():
            enough = arrivals["rows"] >= ENOUGH and share_late(arrivals) > MANY
            if enough and stream not in self._said:
                self._said.add(stream)
                self._console.print(_warning(f"so far {sentence(stream, arrivals)}"), soft_wrap=True)

    def end(self, metrics: Mapping[str, Mapping[str, Any]]) -> None:
        """Looks at the last metrics of all queries."""
        streams = {
            name: each for found in metrics.values() for name, each in found.get("streams", {}).items()
        }
        for stream, arrivals in streams.items():
            if share_late(arrivals) > MANY:
                said = f"{sentence(stream, arrivals)}: {remedy(stream, arrivals)}"
                self._console.print(_warning(said), soft_wrap=True)


def _warning(said: str) -> Text:
    text = Text("warning  ", style="bold yellow")
    text.append(said)
    return text
