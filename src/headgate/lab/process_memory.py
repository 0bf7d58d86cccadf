"""Memory of a process and of all that it has started, by kind, where the system tells: /proc of Linux."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")


@dataclass(frozen=True)
class TreeMemory:
    """Resident bytes of a process and its descendants; pages that forked workers share count once each."""

    jvm: int
    other: int
    processes: int

    @property
    def total(self) -> int:
        return self.jvm + self.other


def tree_memory(root: int, proc: Path = _PROC) -> TreeMemory | None:
    """What a process and its descendants hold now; None where there is no /proc to read."""
    if not (proc / "self").exists():
        return None
    parents: dict[int, int] = {}
    sizes: dict[int, tuple[str, int]] = {}
    for path in proc.glob("[0-9]*"):
        try:
            name, _, rest = (path / "stat").read_text().partition("(")[2].rpartition(")")
        except OSError:
            continue
        fields = rest.split()
        parents[int(path.name)] = int(fields[1])
        sizes[int(path.name)] = (name, int(fields[21]) * os.sysconf("SC_PAGE_SIZE"))
    family, grown = {root}, True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in family} - family
        grown = bool(more)
        family |= more
    found = [sizes[pid] for pid in family if pid in sizes]
    jvm = sum(size for name, size in found if name == "java")
    return TreeMemory(jvm, sum(size for _, size in found) - jvm, len(found))
