"""Bad rows on Spark: every task sets aside those of what it reads, under a name that a second attempt takes again.

```
REJECTS/bids/rejects-00000012-000-5.json    five bad rows of the first file of task 12, one to a line
```

So a micro-batch that is tried twice leaves its bad rows once, and the names alone say how many there are. Beside them
stands the id of the run that set them aside; another run is refused. A table's are those of its last reading.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import uuid4

from headgate.model.errors import HeadgateError, InputError
from headgate.runtime.io.rejects import BadRow, RejectPolicy, RejectState, folder_name, unwritable
from headgate.runtime.ownership import MARK, mark, owner_of

TABLE = "table"
"""The place of a table's bad rows: it is read whole, at each start, and they are written anew."""

_NAME = re.compile(r"rejects-.*-(\d+)\.json")


@dataclass
class Gathered(RejectState):
    """Bad rows that are written as they come and get their name when all have come."""

    target: Path | None = None
    """The folder; None if another query keeps the bad rows of this stream."""
    run: str | None = None
    """The run that the folder then belongs to."""
    hidden: Path | None = field(default=None, repr=False)
    origin: str | None = None
    """How people know the file, if it is read from a copy."""

    def __post_init__(self) -> None:
        """What earlier tasks left in the folder belongs to the same run."""

    def refuse_file(self, file: Path, error: HeadgateError) -> None:
        """Sets the unread rest of a file aside; others may be fine."""
        self._keep([BadRow(file, error.cause)])
        self.files += 1

    def _keep(self, rows: Sequence[BadRow]) -> None:
        if self.target is None:
            return
        if self.origin is not None:
            rows = [replace(row, file=self.origin) for row in rows]
        try:
            if self.hidden is None:
                self.target.mkdir(parents=True, exist_ok=True)
                if self.run is not None:
                    mark(self.target, self.run)
                self.hidden = self.target / f".{uuid4().hex}"
            with self.hidden.open("a", encoding="utf-8", errors="backslashreplace") as out:
                out.writelines(row.as_json() + "\n" for row in rows)
        except OSError as error:
            raise unwritable(self.target, error) from error

    def publish(self, place: str) -> None:
        """Gives what was written its name, in place of what an earlier attempt left, even if nothing is bad now."""
        if self.target is None:
            return
        try:
            for earlier in self.target.glob(f"rejects-{place}-*.json"):
                earlier.unlink(missing_ok=True)
            if self.hidden is not None:
                self.hidden.rename(self.target / f"rejects-{place}-{self.rows + self.files}.json")
        except OSError as error:
            raise unwritable(self.target, error) from error


@dataclass(frozen=True)
class Aside:
    """Where the bad rows of a query's inputs go: nowhere, and the first one stops the run, without a folder."""

    folder: str | None = None
    names: frozenset[str] = frozenset()
    """The streams and tables whose bad rows this query keeps; those of others another query keeps."""
    run: str | None = None
    """The id of the run, which the folders of its streams' bad rows bear."""

    @property
    def policy(self) -> RejectPolicy:
        return RejectPolicy.stop() if self.folder is None else RejectPolicy.rejects(self.folder)

    def state(self, name: str) -> RejectState:
        """What takes the bad rows of one piece of an input; `publish` it when the piece is read."""
        if self.folder is None:
            return RejectState(self.policy, name)
        target = self._place(name) if name in self.names else None
        return Gathered(self.policy, name, target=target, run=self.run)

    def check(self) -> None:
        """Raises InputError where bad rows of another run would be mixed with those of this one."""
        for place, used in self._used():
            if _streamed(used) and (self.run is None or owner_of(place) != self.run):
                raise InputError(
                    f"{place} has rejects of an earlier run",
                    remedy="name another folder for rejects, or empty this one",
                )

    def prepare(self) -> None:
        """Clears away what killed tasks and emptied folders left."""
        for place, used in self._used():
            mine = owner_of(place) == self.run
            try:
                for left in used:
                    if left.startswith(".") and not (left == MARK and mine):
                        (place / left).unlink(missing_ok=True)
            except OSError as error:
                raise unwritable(place, error) from error

    def _used(self) -> list[tuple[Path, list[str]]]:
        """The folders that are there, and what is in them."""
        found = []
        for name in sorted(self.names) if self.folder is not None else []:
            place = self._place(name)
            try:
                found.append((place, _listed(place)))
            except OSError as error:
                raise unwritable(place, error) from error
        return found

    def count(self) -> int:
        """How many bad rows are there by now."""
        if self.folder is None:
            return 0
        found = [_NAME.fullmatch(each) for name in self.names for each in _listed(self._place(name))]
        return sum(int(each[1]) for each in found if each)

    def _place(self, name: str) -> Path:
        assert self.folder is not None
        return Path(self.folder) / folder_name(name)


def publish(state: RejectState, place: str) -> None:
    """Ends the piece of an input whose bad rows a state took."""
    if isinstance(state, Gathered):
        state.publish(place)


def _streamed(names: Sequence[str]) -> list[str]:
    """Those files that a stream's bad rows are in; a table's are written anew."""
    return [each for each in names if not each.startswith((".", f"rejects-{TABLE}-"))]


def _listed(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - names are all that is wanted
    except FileNotFoundError:
        return []
