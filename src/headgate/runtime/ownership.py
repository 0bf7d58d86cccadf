"""Whose a folder is: what a run adds to bears the run's id, so that no other run adds to it or is misled by it."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

MARK = ".run"
"""The file in a folder that has the id."""


def owner_of(folder: Path) -> str | None:
    """The id of the run that a folder belongs to; None if it bears none."""
    try:
        return (folder / MARK).read_text().strip() or None
    except (FileNotFoundError, NotADirectoryError, UnicodeDecodeError):
        return None


def is_bare(folder: Path) -> bool:
    """Whether there is nothing in a folder but what a killed run left of a mark."""
    return all(each.name.startswith((f"{MARK}.", f".{MARK}.")) for each in folder.iterdir())


def mark(folder: Path, run: str) -> None:
    """Makes a folder a run's, if it has no owner yet."""
    if owner_of(folder) is None:
        folder.mkdir(parents=True, exist_ok=True)
        beside = folder / f"{MARK}.{uuid4().hex}"
        beside.write_text(run + "\n")
        beside.replace(folder / MARK)
