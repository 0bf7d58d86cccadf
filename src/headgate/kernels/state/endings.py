"""Endings: rows that may be taken back before their announced death (STR).

A row that was taken back is marked and from then on never found; when a run is more than half dead it is
written anew, and merging leaves the dead behind. So the store follows the live rows, not the number of
endings that have come.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from headgate.kernels.keys import keys_equal
from headgate.kernels.state.ending_matches import match_endings
from headgate.kernels.state.index import Positions
from headgate.kernels.state.lifetime_run import LifetimeRun
from headgate.kernels.state.lifetime_runs import LifetimeRuns
from headgate.kernels.state.store import ENDS, Instants, Layout, Probes, rows_at, rows_where
from headgate.model.batch import BORN, DIES
from headgate.model.time import Clock


@dataclass(frozen=True, eq=False)
class Taken:
    """What endings did to a store."""

    store: Endings
    """The store without the rows that were taken back."""
    rows: pl.DataFrame
    """Those rows, with `_ends`, the instant at which each was taken back."""
    rest: pl.DataFrame
    """The endings that found nothing to take back."""


@dataclass(frozen=True, eq=False)
class Endings(LifetimeRuns):
    """Runs of rows, each row marked once it is taken back. For `end`, the last key is the row's identity."""

    @staticmethod
    def empty(layout: Layout, identity: Sequence[str]) -> Endings:
        """A store in which an ending finds its row by the `identity` columns and the announced death."""
        return Endings(Layout(layout.schema, (*layout.keys, (*identity, DIES))))

    def highest(self, column: str) -> int:
        """The largest number in a column that only grows from row to row; -1 if there are no rows."""
        return int(self.runs[-1].frame[column].max()) if self.runs else -1  # type: ignore[arg-type]

    def end(self, endings: pl.DataFrame, clock: Clock) -> Taken:
        """Takes back a row for each ending: `_born` is the instant, `_dies` the death that was announced."""
        endings = endings.sort(BORN, maintain_order=True)
        instants = endings[BORN].to_numpy()
        matches = match_endings(self.runs, len(self.layout.keys) - 1, self.layout.keys[-1], endings)
        found = np.zeros(endings.height, dtype=np.bool_)
        hits = []
        for each in matches:
            found[each.ending] = True
            rows = each.rows.hstack([pl.Series(ENDS, instants.take(each.ending))])
            hits.append((each.run, each.position, rows))
        return self._without(hits, rows_where(endings, ~found), clock)

    def end_partners(self, probes: Sequence[tuple[int, Probes]], clock: Clock) -> Taken:
        """Takes back every row that is a partner, by any of the given keys, of the probes.

        It goes when the probe ends; if it has several, when the first of them does.
        """
        hits = []
        for run in self.runs:
            position, instant = [], []
            for key, probing in probes:
                for probe, suspect in run.suspects(key, probing):
                    ours, theirs = rows_at(probing.frame, probe), rows_at(run.payload, suspect)
                    columns = self.layout.keys[key]
                    equal = keys_equal(ours, theirs, probing.columns, columns, null_equal=True)
                    position.append(suspect[equal])
                    instant.append(probing.ends.take(probe[equal]))
            if position:
                where, instants = _earliest(np.concatenate(position), np.concatenate(instant))
                rows = rows_at(run.frame, where).hstack([pl.Series(ENDS, instants)])
                hits.append((run, where, rows))
        return self._without(hits, self._nothing(), clock)

    def _without(
        self, hits: Sequence[tuple[LifetimeRun, Positions, pl.DataFrame]], rest: pl.DataFrame, clock: Clock
    ) -> Taken:
        """The rows at these positions, which have `_ends` already, taken back."""
        positions: dict[str, list[Positions]] = {}
        for run, position, _ in hits:
            positions.setdefault(run.name, []).append(position)
        marked = (
            run.without(np.concatenate(positions[run.name]), clock.upto) if run.name in positions else run
            for run in self.runs
        )
        runs = tuple(run for run in marked if run.removals < run.height)
        rows = pl.concat([self._nothing(), *(rows for _, _, rows in hits)], rechunk=True)
        return Taken(replace(self, runs=runs), rows, rest)

    def _nothing(self) -> pl.DataFrame:
        instants = {BORN: pl.Int64(), DIES: pl.Int64(), ENDS: pl.Int64()}
        return pl.DataFrame(schema={**self.layout.schema, **instants})


def _earliest(position: Positions, instant: Instants) -> tuple[Positions, Instants]:
    """Each position once, with the earliest of its instants."""
    order = np.lexsort((instant, position))
    position, instant = position[order], instant[order]
    first = np.ones(len(position), dtype=np.bool_)
    first[1:] = position[1:] != position[:-1]
    return position[first], instant[first]
