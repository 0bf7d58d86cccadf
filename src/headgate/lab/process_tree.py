"""What a process and all that it has started use, where the system tells: /proc of Linux."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_PARENT, _RESIDENT = 1, 21
_TIMES = slice(11, 15)
"""Fields of `stat` behind the name: those of the process and of its children that have ended, in both modes."""


@dataclass(frozen=True)
class TreeUse:
    """Resident bytes of a process and its descendants, and how long they and those that have ended ran.

    Pages that forked workers share count once each.
    """

    jvm: int
    other: int
    processes: int
    processor_seconds: float

    @property
    def total(self) -> int:
        return self.jvm + self.other


def tree_use(root: int, proc: Path = _PROC) -> TreeUse | None:
    """What a process and its descendants use now; None where there is no /proc to read."""
    if not (proc / "self").exists():
        return None
    parents: dict[int, int] = {}
    sizes: dict[int, tuple[str, int]] = {}
    ticks: dict[int, int] = {}
    for path in proc.glob("[0-9]*"):
        try:
            name, _, rest = (path / "stat").read_text().partition("(")[2].rpartition(")")
        except OSError:
            continue
        fields, pid = rest.split(), int(path.name)
        parents[pid] = int(fields[_PARENT])
        sizes[pid] = (name, int(fields[_RESIDENT]) * os.sysconf("SC_PAGE_SIZE"))
        ticks[pid] = sum(map(int, fields[_TIMES]))
    family, grown = {root}, True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in family} - family
        grown = bool(more)
        family |= more
    there = family & sizes.keys()
    jvm = sum(size for name, size in map(sizes.__getitem__, there) if name == "java")
    seconds = sum(map(ticks.__getitem__, there)) / os.sysconf("SC_CLK_TCK")
    return TreeUse(jvm, sum(sizes[pid][1] for pid in there) - jvm, len(there), seconds)
