"""Suggestions: what a user may have meant by a name that does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """A remedy that names what is near, or lists what there is; None if there is nothing."""
    names = sorted(set(known), key=str.casefold)
    near = difflib.get_close_matches(name.casefold(), [n.casefold() for n in names], n=1, cutoff=0.5)
    if near:
        return f"did you mean {next(n for n in names if n.casefold() == near[0])}?"
    if names:
        shown = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
        return f"there is {shown}"
    return None
