"""Local state cache: the newest states of shards as files on this machine, for its workers to go on with.

Spark gives a shard's next micro-batch to any idle worker. The state store is the truth, but to read a whole state
from it takes far longer than a file does. A state lies under the token that the store bears when it is the current
one; chunks that it shares with the state before are links.

```
FOLDER/headgate-states/LINEAGE/TOKEN/6%2F0%2Frun.170…
```

All of this may fail or vanish at any time: then the state is read from the store.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import quote, unquote


class LocalStateCache:
    """States in a folder that belongs to this application alone."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "headgate-states"

    def find(self, lineage: str, token: str) -> dict[str, bytes] | None:
        """The chunks of a state by name; None if it is not here."""
        try:
            files = list((self._folder / lineage / token).iterdir())
            return {unquote(file.name): file.read_bytes() for file in files}
        except OSError:
            return None

    def keep(
        self,
        lineage: str,
        token: str,
        names: Iterable[str],
        added: Mapping[str, bytes],
        before: str | None,
    ) -> None:
        """Puts a state here: the chunks that were added, and the others from the state before."""
        mine = self._folder / lineage
        place, hidden = mine / token, mine / f".{token}"
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
            # Only whole states have a name.
            hidden.rename(place)
        except OSError:
            shutil.rmtree(hidden, ignore_errors=True)
        self._forget(mine, but={token, before})

    def _forget(self, mine: Path, but: set[str | None]) -> None:
        """Drops all states of a shard but the newest and the one before, from which a failed task starts again."""
        try:
            others = [each for each in mine.iterdir() if each.name.removeprefix(".") not in but]
        except OSError:
            return
        for each in others:
            shutil.rmtree(each, ignore_errors=True)
