"""Staging: where a run writes before its results are put in place, so that two runs never take away each other's.

```
DIR/.staging-<id>/           what a run has written so far
DIR/.staging-<id>/.queries   whose results it will put in place; locked while the run lives
DIR/unpublished.<id>/        results that could not be put in place, because others had come there meanwhile
```

A run that starts looks at the staging folders of others: one that nobody holds was left by a run that was killed, and
is removed; one that is held and has a query in common refuses the start. Whatever else may have come to the final
place since the start (from a run with a checkpoint, or by hand) is found before anything is replaced, for what is
there then has to be what was there at the start.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from headgate.model.errors import InputError
from headgate.runtime.disk import writing
from headgate.runtime.locks import Lock, locked
from headgate.runtime.output import check_free, clear, move, output_places, safe_name

_PREFIX, _QUERIES = ".staging-", ".queries"
_Found = frozenset[tuple[str, int, int]]


@contextmanager
def staging(root: Path, queries: Sequence[str], *, overwrite: bool) -> Iterator[Staging]:
    """A folder to write results to, put in place by `publish`; it is gone when the block ends, however it does."""
    names = [safe_name(each) for each in queries]
    with writing(root, "--output"):
        root.mkdir(parents=True, exist_ok=True)
        with locked(root):
            _refuse_others(root, names)
            for each in names:
                check_free(root, each, overwrite=overwrite)
            folder = root / f"{_PREFIX}{uuid4().hex}"
            folder.mkdir()
            held = folder / _QUERIES
            held.write_text(json.dumps(names) + "\n")
            lock = Lock(held)
            lock.take()
    try:
        yield Staging(root, folder, {each: _found(root, each) for each in names})
    finally:
        lock.release()
        shutil.rmtree(folder, ignore_errors=True)


class Staging:
    """A run's own folder beside the final place, and what was in that when the run began."""

    def __init__(self, root: Path, folder: Path, before: dict[str, _Found]) -> None:
        self.root, self.folder = root, folder
        self._before = before

    def publish(self) -> None:
        """Puts all results in place, or none if others have come there since the start."""
        with writing(self.root, "--output"), locked(self.root):
            for query, before in self._before.items():
                if _found(self.root, query) != before:
                    raise self._kept(query)
            for query in self._before:
                clear(self.root, query)
                move(self.folder, self.root, query)

    def _kept(self, query: str) -> InputError:
        kept = self.root / f"unpublished.{self.folder.name.removeprefix(_PREFIX)[:8]}"
        (self.folder / _QUERIES).unlink(missing_ok=True)
        self.folder.rename(kept)
        return InputError(
            f"another run has written results of {query} to {self.root} meanwhile; they are left as they are",
            remedy=f"the results of this run are in {kept}: keep or delete them",
        )


def _refuse_others(root: Path, queries: Sequence[str]) -> None:
    """Raises if a living run will put results of one of the queries here; removes what killed runs left."""
    for folder in root.glob(f"{_PREFIX}*"):
        held = folder / _QUERIES
        lock = Lock(held)
        try:
            free = lock.take()
        except FileNotFoundError:
            free = True
        if free:
            shutil.rmtree(folder, ignore_errors=True)
            lock.release()
        if free is not False:
            continue
        common = sorted({*json.loads(held.read_text())} & {*queries})
        if common:
            raise InputError(
                f"another run is writing results of {', '.join(common)} to {root}",
                remedy="wait until it has ended, or choose another --output",
            )


def _found(root: Path, query: str) -> _Found:
    """What there is of a query's results: what another run has put there, or added to, is told from it."""
    found = [(each, each.stat()) for each in output_places(root, query)]
    return frozenset((str(each), facts.st_ino, facts.st_mtime_ns) for each, facts in found)
