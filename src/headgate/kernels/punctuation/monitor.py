"""Monitor: which k a stream's rows have kept to of late, told from the distances that are seen between them.

```
window 4       distances  2 0 1 0 │ 1 0 2 1 │ 0 1 3 …
k in use       ∞                2         2       ∞ at once, until four more rows have come
```

Rows are watched in windows of so many. After one in which no distance was as great as the k in use, the greatest is
the k from then on. A greater one shows that the k was too small: nothing is relied on until another whole window has
come (k-Mon document, sections 4.3, 5.3 and 6.3). Windows follow each other, and begin anew with each such break.

What is remembered to see distances ends at a floor: nothing before that position is known any more, but for a sample.
The floor rises with the rows by the k that was in use as each of them came, so that neither the k nor what is seen
depends on how the rows are cut into steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from headgate.model.batch import BORN, DIES, LIFETIME_COLUMNS, SIGN, Batch
from headgate.model.monitoring import Monitoring
from headgate.model.time import NEVER

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]
Distances = Callable[[int, int, Numbers], Numbers]
"""The distances seen at the rows from one position to before another, given the floor at each of them."""

_WATCH = {
    **dict.fromkeys(("arrived", "k", "watched", "largest"), pl.Int64()),
    **dict.fromkeys(("floor", "changes", "changed", "violations", "referred"), pl.Int64()),
}


@dataclass(frozen=True)
class Watch:
    """What is known of a constraint after some rows."""

    arrived: int = 0
    k: int | None = None
    """The k in use, if one is."""
    watched: int = 0
    """Rows of the window so far, and the largest distance among them."""
    largest: int = 0
    floor: int = 0
    """Positions before it are forgotten, but for a sample."""
    changes: int = 0
    changed: int | None = None
    """The birth of the row at which k changed last."""
    violations: int = 0
    """How often a distance was seen that was greater than the k in use."""
    referred: int = 0
    """Rows of another stream that refer to these, where distances are to them."""

    def followed(
        self, options: Monitoring, rows: int, distances: Distances, born: Callable[[int], int], ahead: int = 0
    ) -> Watch:
        """After so many more rows, with their distances and births by their places.

        A distance of d at position i is seen up to position i + ahead - d.
        """
        watch, end = self, self.arrived + rows
        while watch.arrived < end:
            first = watch.arrived
            last = min(end, first + options.window - watch.watched)
            reach = options.detectable(watch.k)
            floors = np.maximum(watch.floor, np.arange(first, last, dtype=np.int64) + ahead - reach)
            found = distances(first, last, floors)
            broken = np.flatnonzero(found > watch.k) if watch.k is not None else found[:0]
            if broken.size:
                place = int(broken[0])
                watch = watch._broken(
                    first + place + 1, int(floors[place]), born(first + place - self.arrived)
                )
                continue
            watch = replace(
                watch,
                arrived=last,
                watched=watch.watched + last - first,
                largest=max(watch.largest, int(found.max())),
                floor=int(floors[-1]),
            )
            if watch.watched == options.window:
                watch = watch._judged(options.limit, born(last - 1 - self.arrived))
        return watch

    def _broken(self, arrived: int, floor: int, born: int) -> Watch:
        begun = replace(self, arrived=arrived, k=None, watched=0, largest=0, floor=floor)
        return replace(begun, changes=self.changes + 1, changed=born, violations=self.violations + 1)

    def _judged(self, limit: int, born: int) -> Watch:
        """After a whole window; distances as long as the limit need not have been seen whole."""
        after = replace(self, watched=0, largest=0)
        if self.largest >= (limit if self.k is None else self.k):
            return after
        return replace(after, k=self.largest, changes=self.changes + 1, changed=born)

    @property
    def frame(self) -> pl.DataFrame:
        """As a row."""
        return pl.DataFrame([asdict(self)], schema=_WATCH)

    @staticmethod
    def of(frame: pl.DataFrame) -> Watch:
        """The one of such a row."""
        return Watch(**frame.row(0, named=True))

    def report(self, constraint: str, options: Monitoring) -> dict[str, Any]:
        """For metrics."""
        return {
            "constraint": constraint,
            "k": self.k,
            "detectable": options.detectable(self.k),
            "changes": self.changes,
            "changed": self.changed,
            "violations": self.violations,
            "arrived": self.arrived,
            "window": options.window,
        }


@dataclass(frozen=True, eq=False)
class MonitorState:
    """What is remembered of rows to see distances, by name, and what is known of the constraint."""

    parts: Mapping[str, pl.DataFrame]
    watch: Watch = Watch()
    built: int = 0

    @property
    def rows(self) -> int:
        return sum(each.height for each in self.parts.values())

    @property
    def nbytes(self) -> int:
        return sum(int(each.estimated_size()) for each in self.parts.values())

    def chunks(self) -> Mapping[str, pl.DataFrame]:
        if self.watch == Watch():
            return {}
        return {
            f"{name}.{self.built}": each for name, each in {**self.parts, "watch": self.watch.frame}.items()
        }

    def restored(self, chunks: Mapping[str, pl.DataFrame]) -> MonitorState:
        """The state like this empty one whose `chunks()` these are."""
        found = {name.partition(".")[0]: each for name, each in chunks.items()}
        if not found:
            return self
        built = int(next(iter(chunks)).partition(".")[2])
        return MonitorState({name: found[name] for name in self.parts}, Watch.of(found["watch"]), built)


@dataclass(frozen=True)
class Monitor:
    """A punctuator that watches over a constraint, which `constraint` names, and closes values by what it finds."""

    options: Monitoring
    constraint: str

    def initial(self) -> MonitorState:
        """Nothing seen."""
        raise NotImplementedError

    def restore(self, chunks: Mapping[str, pl.DataFrame]) -> MonitorState:
        return self.initial().restored(chunks)

    def report(self, state: MonitorState) -> dict[str, Any]:
        """What is known of the constraint, for metrics."""
        return state.watch.report(self.constraint, self.options)


def chosen(positions: Numbers, part: float) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which positions belong to a sample; the same ones whenever it is asked."""
    mixed = positions.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return np.asarray(mixed < np.uint64(min(2**64 - 1, int(part * 2**64))), dtype=np.bool_)


def said(values: pl.DataFrame, at: int, *, anew: bool) -> Batch:
    """Closed values at an instant; `anew`: what was said before is first taken back, by a row of negative sign."""
    rows = values.with_columns(pl.lit(1, dtype=pl.Int8).alias(SIGN))
    if anew:
        back = pl.DataFrame({SIGN: [-1]}, schema={SIGN: pl.Int8()})
        rows = pl.concat([back, rows], how="diagonal")
    lives = rows.with_columns(
        pl.lit(at, dtype=pl.Int64).alias(BORN), pl.lit(NEVER, dtype=pl.Int64).alias(DIES)
    )
    return Batch(lives.select(*values.columns, *LIFETIME_COLUMNS))
