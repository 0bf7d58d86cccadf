"""Warnings when a run ends: constraints WITHIN AUTO of which no k was ever found, and what to write instead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.text import Text


def warn_of_unused(console: Console, metrics: Mapping[str, Mapping[str, Any]]) -> None:
    """Looks at the last metrics of all queries."""
    for sentence in dict.fromkeys(each for found in metrics.values() for each in _unused(found)):
        text = Text("warning  ", style="bold yellow")
        text.append(sentence)
        console.print(text, soft_wrap=True)


def _unused(metrics: Mapping[str, Any]) -> Iterator[str]:
    for each in metrics.get("constraints", {}).values():
        if each["changes"]:
            continue
        rows, window = f"{each['arrived']:,}", f"{each['window']:,}"
        name = str(each["constraint"])
        if each["arrived"] < each["window"]:
            yield (
                f"{name} was never used: its stream ended after {rows} rows, and a k is found from {window} on; "
                f"write the k if you know it, {name.removesuffix('AUTO')}k ROWS, or ask `headgate profile` for it"
            )
        else:
            yield (
                f"{name} was never used: among any {window} of {rows} rows some strayed by {each['detectable']:,} "
                "or more; leave the clause out, for watching over it saves nothing"
            )
