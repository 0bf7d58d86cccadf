"""The console that commands print to: what comes from data and names is printed as it is."""

from __future__ import annotations

from rich.console import Console


def open_console(*, stderr: bool = False, soft_wrap: bool = False) -> Console:
    """A console that colours nothing by itself and takes no `:word:` for a picture."""
    return Console(stderr=stderr, soft_wrap=soft_wrap, highlight=False, emoji=False)
