"""Local state cache: the newest states of shards as files on this machine, for its workers to go on with.

Spark gives a shard's next micro-batch to any idle worker. The state store is the truth, but to read a whole state
from it takes far longer than a file does. A state lies under the token that the store bears when it is the current
one; chunks that it shares with the state before are links.

```
FOLDER/headgate-states/LINEAGE/TOKEN/6%2F0%2Frun.170…
```

A worker that had an earlier state of the shard reads only files that it does not know: a file is known by its stamp,
which links share and which no other file has.

All of this may fail or vanish at any time: then the state is read from the store.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from urllib.parse import quote, unquote

Stamp = tuple[int, int, int]
"""What tells a file from all others, whatever its names: its number on the disk, when it was written, its size."""
NONE_KNOWN: Mapping[str, Stamp] = MappingProxyType({})


class LocalStateCache:
    """States in a folder that belongs to this application alone."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "headgate-states"

    def find(
        self, lineage: str, token: str, known: Mapping[str, Stamp] = NONE_KNOWN
    ) -> dict[str, bytes | None] | None:
        """The chunks of a state by name, without those whose files are `known`; None if it is not here."""
        try:
            files = list((self._folder / lineage / token).iterdir())
            named = ((unquote(file.name), file) for file in files)
            return {
                name: None if name in known and known[name] == _stamp(file) else file.read_bytes()
                for name, file in named
            }
        except OSError:
            return None

    def keep(
        self,
        lineage: str,
        token: str,
        names: Iterable[str],
        added: Mapping[str, bytes],
        before: str | None,
    ) -> dict[str, Stamp]:
        """Puts a state here: the chunks that were added, and the others from the state before. The files' stamps."""
        mine = self._folder / lineage
        place, hidden = mine / token, mine / f".{token}"
        stamps: dict[str, Stamp] = {}
        try:
            hidden.mkdir(parents=True, mode=0o700)
            for name in names:
                file = quote(name, safe="")
                if name in added:
                    (hidden / file).write_bytes(added[name])
                elif before is not None:
                    os.link(mine / before / file, hidden / file)
                else:
                    raise FileNotFoundError(name)
                stamps[name] = _stamp(hidden / file)
            # Only whole states have a name.
            hidden.rename(place)
        except OSError:
            stamps = {}
            shutil.rmtree(hidden, ignore_errors=True)
        self._forget(mine, but={token, before})
        return stamps

    def _forget(self, mine: Path, but: set[str | None]) -> None:
        """Drops all states of a shard but the newest and the one before, from which a failed task starts again."""
        try:
            others = [each for each in mine.iterdir() if each.name.removeprefix(".") not in but]
        except OSError:
            return
        for each in others:
            shutil.rmtree(each, ignore_errors=True)


def _stamp(file: Path) -> Stamp:
    found = file.stat()
    return found.st_ino, found.st_mtime_ns, found.st_size
