"""Settle: one clock step of an early purge; which rows that have come are stored, and which stored ones go.

```
chains, children first     what has come      asked before it is stored
                           what is stored     asked when as many rows and closings have come as were left last time
```

So a row is asked a constant number of times on average, and a step costs what has come in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from headgate.kernels.join.early_purge import (
    BelowCloser,
    Choice,
    Closer,
    EarlyChain,
    EarlyPurge,
    EarlyState,
    EarlyStep,
    KeyCloser,
    Keys,
    ValueCloser,
    birth_of,
)
from headgate.kernels.keys import Mask, key_hash, keys_agree
from headgate.kernels.state.index import Positions
from headgate.kernels.state.lifetime_runs import LifetimeRuns
from headgate.kernels.state.store import Layout, Probes, Store, rows_where
from headgate.model.batch import BORN, DIES, SIGN
from headgate.model.time import BEGINNING, NEVER, Clock

_AT, _ASKED = "_at", "_asked"
_NONE = np.empty(0, dtype=np.int64)
# So few stored rows are not worth a look.
_FEW = 128
# So often in the time for which keys are remembered it is decided anew whether all of them are.
_REVIEWS = 8


def settle(
    purge: EarlyPurge,
    state: EarlyState,
    stores: Sequence[Store],
    arrived: Sequence[pl.DataFrame],
    further: Sequence[pl.DataFrame],
    clock: Clock,
) -> tuple[tuple[Store, ...], EarlyState]:
    """The stores after a step, with the rows that have `arrived` on inputs with chains and that may still matter.

    The stores of the other inputs have theirs already; `further` are the rows of the inputs of keys and bounds.
    """
    settling = _Settling(purge, list(stores), arrived, state, further, clock)
    for number, chain in enumerate(purge.chains):
        settling.look_at(number, chain)
    keys = tuple(settling.remember(number) for number in range(len(purge.keys)))
    return tuple(settling.stores), EarlyState(
        keys, settling.bounds, tuple(settling.since), tuple(settling.choices)
    )


@dataclass(frozen=True, eq=False)
class _Partners:
    """Rows of one more input that may meet those that ask: who asked, their columns, and births."""

    asked: Positions
    rows: pl.DataFrame

    def any_for(self, height: int) -> Mask:
        """Which of so many rows have one."""
        found = np.zeros(height, dtype=np.bool_)
        found[self.asked] = True
        return found


class _Settling:
    def __init__(
        self,
        purge: EarlyPurge,
        stores: list[Store],
        arrived: Sequence[pl.DataFrame],
        state: EarlyState,
        further: Sequence[pl.DataFrame],
        clock: Clock,
    ) -> None:
        self.purge, self.stores, self.clock = purge, stores, clock
        self.arrived = {member: arrived[member] for member in purge.members}
        """Rows that have come and are not stored yet."""
        self.known = tuple(
            known.only(known.live(clock.upto).clear(), clock)
            if keys.observed and keys.source is not None and _taken_back(further[keys.source])
            else known
            for known, keys in zip(state.keys, purge.keys, strict=True)
        )
        self.dropped: dict[int, list[pl.DataFrame]] = {}
        """Rows that were dropped in this step, by input."""
        self.indexed: dict[int, tuple[pl.DataFrame, LifetimeRuns]] = {}
        self.waiting: dict[int, LifetimeRuns] = {}
        """Rows that have come and have not been looked at, to be looked up."""
        self.bounds = tuple(
            (bound.nothing if bound.observed and _taken_back(further[bound.source]) else each).observe(
                further[bound.source], clock
            )
            for each, bound in zip(state.bounds, purge.bounds, strict=True)
        )
        self.choices = list(state.choices)
        self.told = [self._told(number, further) for number in range(len(purge.keys))]
        self.since = list(state.since)
        self.coming = [frame.height for frame in arrived]
        self.news = sum(frame.height for frame in further)

    def look_at(self, number: int, chain: EarlyChain) -> None:
        """Stores what stays of the rows that have come on a chain's input, and drops what goes of those stored."""
        store = self.stores[chain.member]
        assert isinstance(store, LifetimeRuns)
        heard = {chain.member, *(step.input for step in chain.steps)}
        self.since[number] += self.news + sum(self.coming[each] for each in heard)
        new = self.arrived[chain.member]
        new = rows_where(new, new[DIES].to_numpy() > self.clock.upto)
        if self._due(number, store.rows):
            rows = pl.concat([store.live(self.clock.upto), new])
            kept = self._kept(chain, rows)
            store = store.insert(new, self.clock) if kept is rows else store.only(kept, self.clock)
        else:
            store = self._without_orphans(chain, store).insert(self._kept(chain, new), self.clock)
        self.stores[chain.member] = store
        del self.arrived[chain.member]

    def _kept(self, chain: EarlyChain, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows of a chain's input that a later result may have."""
        if rows.is_empty():
            return rows
        done, dead = self._judged(chain, rows)
        gone = done | dead
        if not gone.any():
            return rows
        self._refuse(chain, rows_where(rows, dead))
        self.dropped.setdefault(chain.member, []).append(rows_where(rows, gone))
        return rows_where(rows, ~gone)

    def _without_orphans(self, chain: EarlyChain, store: LifetimeRuns) -> LifetimeRuns:
        """The stored rows of a chain's input but for those whose one partner has just been dropped."""
        asked = [
            (
                store.layout.keys.index(step.values),
                Probes(rows, step.probe, _all(rows, BEGINNING), _all(rows, NEVER)),
            )
            for step in chain.own
            if any(isinstance(closer, KeyCloser) for closer in step.closers)
            for rows in self.dropped.get(step.input, ())
        ]
        if not asked:
            return store
        rest, orphans = store.without(asked, self.clock.upto)
        if orphans.height:
            self._refuse(chain, orphans)
            self.dropped.setdefault(chain.member, []).append(orphans)
        return rest

    def _refuse(self, chain: EarlyChain, rows: pl.DataFrame) -> None:
        """Remembers the keys of rows that have no partners, if somebody asks."""
        if chain.refuses is not None and rows.height:
            columns = [*self.purge.keys[chain.refuses].schema, BORN, DIES]
            refused = self._chosen(chain.refuses, rows.select(columns))
            self.told[chain.refuses] = pl.concat([self.told[chain.refuses], refused])

    def remember(self, number: int) -> LifetimeRuns:
        """The keys with this number after the step, when all chains have been looked at."""
        keys, known, told = self.purge.keys[number], self.known[number], self.told[number]
        if keys.chosen and self._reviewed(number, keys, known):
            sampled = known.live(self.clock.upto)
            known = known.only(rows_where(sampled, _sampled(sampled, keys)), self.clock)
            return known.insert(self._chosen(number, told), self.clock)
        at = len(self.purge.chains) + number
        self.since[at] += told.height + (self.news if keys.until else 0)
        if (keys.until or keys.holders is not None) and self._due(at, known.rows):
            rows = pl.concat([known.live(self.clock.upto), told])
            return known.only(rows_where(rows, self._needed(keys, rows)), self.clock)
        return known.insert(told, self.clock).expire(self.clock.upto)

    def _reviewed(self, number: int, keys: Keys, known: LifetimeRuns) -> bool:
        """Notes what keys have cost, and decides anew now and then; whether most are to be forgotten now."""
        choice = self.choices[number]
        if choice.begun is None:
            self.choices[number] = replace(choice, begun=self.clock.upto)
            return False
        # The first step of all begins before time.
        spent = max(0, self.clock.upto - max(self.clock.after, choice.begun))
        choice = replace(choice, kept=choice.kept + float(known.rows) * spent)
        if (self.clock.upto - (choice.begun or 0)) * _REVIEWS < keys.lifetime:
            self.choices[number] = choice
            return False
        self.choices[number] = Choice(choice.better, self.clock.upto)
        return choice.all and not choice.better

    def _spare(self, number: int, rows: pl.DataFrame, let_go: Mask, closers: Sequence[Closer]) -> None:
        """Notes for how long rows would have waited that refused keys let go, until they were old enough."""
        for closer in closers:
            if isinstance(closer, BelowCloser) and let_go.any():
                value = self.bounds[closer.bound].value
                born = rows.get_column(closer.value).to_numpy()[let_go]
                dies = rows.get_column(DIES).to_numpy()[let_go]
                waits = dies - born if value is None else np.minimum(dies - born, self.clock.upto - value)
                spared = float(np.maximum(waits, 0).astype(np.float64).sum())
                choice = self.choices[number]
                self.choices[number] = replace(choice, spared=choice.spared + spared)

    def _chosen(self, number: int, told: pl.DataFrame) -> pl.DataFrame:
        """Of refused keys, those that are remembered."""
        keys = self.purge.keys[number]
        if not keys.chosen or self.choices[number].all or told.is_empty():
            return told
        return rows_where(told, _sampled(told, keys))

    def _due(self, at: int, rows: int) -> bool:
        """Whether so much has come that it is worth a look at so many rows; then counting begins anew."""
        due = self.since[at] >= (1 if self.purge.eager else max(_FEW, rows // 2))
        if due:
            self.since[at] = 0
        return due

    def _needed(self, keys: Keys, rows: pl.DataFrame) -> Mask:
        """Which of these keys somebody may still ask for."""
        if keys.holders is None:
            closed = np.ones(rows.height, dtype=np.bool_)
            for closers in keys.until:
                closed &= self._closed(closers, rows, _NONE)
            return ~closed
        needed = np.zeros(rows.height, dtype=np.bool_)
        probes = Probes(rows, tuple(keys.schema), _all(rows, BEGINNING), _all(rows, NEVER))
        for member, columns in keys.holders:
            store = self.stores[member]
            assert isinstance(store, LifetimeRuns)
            for _, probe, _ in store.meet(store.layout.keys.index(columns), probes):
                needed[probe] = True
        for each in keys.refused:
            needed |= self._among(each, rows, tuple(keys.schema))
        return needed

    def _judged(self, chain: EarlyChain, rows: pl.DataFrame) -> tuple[Mask, Mask]:
        """Which rows have met all their partners, and which have no partner where they need one."""
        dead = np.zeros(rows.height, dtype=np.bool_)
        open_ = np.zeros(rows.height, dtype=np.bool_)
        columns = [rows.get_column(name) for name in rows.columns if name in chain.reads or name == DIES]
        if birth_of(chain.member) in chain.reads:
            columns.append(rows.get_column(BORN).alias(birth_of(chain.member)))
        asking = pl.DataFrame(columns)
        looked: list[_Partners] = []
        for step in chain.own:
            closed, partners = self._look(step, asking, chain.carries)
            dead |= closed & ~partners.any_for(rows.height)
            open_ |= ~closed
            looked.append(partners)
        done = ~dead & ~open_ if chain.closes_all else np.zeros(rows.height, dtype=np.bool_)
        if chain.further and done.any():
            combined = (
                asking.with_row_index(_AT).with_columns(pl.col(_AT).cast(pl.Int64)).filter(pl.Series(done))
            )
            for partners in looked:
                if partners.rows.width:
                    combined = _combined(combined, _AT, partners)
            self._follow(chain, combined, done, dead)
        return done, dead

    def _follow(self, chain: EarlyChain, combined: pl.DataFrame, done: Mask, dead: Mask) -> None:
        """Takes out of `done` the rows with combinations that are open, and moves those to `dead` that have none."""
        for step in chain.further:
            closed, partners = self._look(step, combined, chain.carries)
            done[combined[_AT].to_numpy()[~closed]] = False
            combined = _combined(
                combined.with_columns(pl.int_range(pl.len()).alias(_ASKED)), _ASKED, partners
            )
            combined = combined.drop(_ASKED).unique()
        left = np.zeros(len(done), dtype=np.bool_)
        left[combined[_AT].to_numpy()] = True
        dead |= done & ~left

    def _look(self, step: EarlyStep, rows: pl.DataFrame, carries: frozenset[str]) -> tuple[Mask, _Partners]:
        """For each row whether an input is closed for it, and its partners there that may still meet it."""
        probes = Probes(rows, step.values, _all(rows, BEGINNING), rows[DIES].to_numpy())
        wanted = [name for name in self.stores[step.input].layout.schema if name in carries]
        ours, theirs = [mine for mine, _ in step.alike], [its for _, its in step.alike]
        met, asked, columns = [_NONE], [_NONE], []
        for gone in self.dropped.get(step.input, ()):
            # The one partner has come, and no later result has it.
            dead = LifetimeRuns(Layout(self.stores[step.input].layout.schema, (step.probe,)))
            met += [probe for _, probe, _ in dead.insert(gone, self.clock).meet(0, probes)]
        for store in self._stores_of(step.input):
            for run, probe, position in store.meet(store.layout.keys.index(step.probe), probes):
                met.append(probe)
                alive = run.ends.take(position) > self.clock.upto
                if ours:
                    alive &= keys_agree((rows, ours, probe), (run.frame, theirs, position))
                asked.append(probe[alive])
                if not carries:
                    continue
                where = position[alive]
                found = [run.frame.get_column(name).gather(where) for name in wanted]
                if birth_of(step.input) in carries:
                    found.append(pl.Series(birth_of(step.input), run.born.take(where)))
                columns.append(pl.DataFrame(found))
        partners = pl.concat(columns) if columns else self._no_partners(step.input, wanted, carries)
        closed = self._closed(step.closers, rows, np.concatenate(met))
        return closed, _Partners(np.concatenate(asked), partners)

    def _no_partners(self, member: int, wanted: Sequence[str], carries: frozenset[str]) -> pl.DataFrame:
        schema = {name: self.stores[member].layout.schema[name] for name in wanted}
        if birth_of(member) in carries:
            schema[birth_of(member)] = pl.Int64()
        return pl.DataFrame(schema=schema)

    def _closed(self, closers: Sequence[Closer], rows: pl.DataFrame, met: Positions) -> Mask:
        """For which rows an input is closed, some of which have `met` a row of it, dead ones included."""
        closed = np.zeros(rows.height, dtype=np.bool_)
        for closer in closers:
            match closer:
                case KeyCloser():
                    closed[met] = True
                    if closer.refused is not None:
                        refused = self._among(closer.refused, rows, closer.values)
                        if self.purge.keys[closer.refused].chosen:
                            self._spare(closer.refused, rows, refused & ~closed, closers)
                        closed |= refused
                case ValueCloser():
                    closed |= self._among(closer.keys, rows, closer.values)
                case BelowCloser():
                    closed |= self.bounds[closer.bound].passed(rows.get_column(closer.value)).to_numpy()
        return closed

    def _stores_of(self, member: int) -> tuple[LifetimeRuns, ...]:
        """Where the rows of an input are: those that have just come may not have been looked at yet."""
        store = self.stores[member]
        assert isinstance(store, LifetimeRuns)
        new = self.arrived.get(member)
        if new is None or new.is_empty():
            return (store,)
        if member not in self.waiting:
            self.waiting[member] = LifetimeRuns(store.layout).insert(new, self.clock)
        return (store, self.waiting[member])

    def _told(self, number: int, further: Sequence[pl.DataFrame]) -> pl.DataFrame:
        """The keys that a further input brings in this step, with how long they are to be remembered."""
        keys = self.purge.keys[number]
        if keys.source is None or further[keys.source].is_empty():
            return pl.DataFrame(schema={**keys.schema, BORN: pl.Int64(), DIES: pl.Int64()})
        frame = further[keys.source].select(*keys.schema, BORN).drop_nulls()
        return self._chosen(number, frame.with_columns((pl.col(BORN) + keys.lifetime).alias(DIES)))

    def _among(self, number: int, rows: pl.DataFrame, values: tuple[str, ...]) -> Mask:
        """For each row whether its values are among some keys, those of this step included."""
        found = np.zeros(rows.height, dtype=np.bool_)
        probes = Probes(rows, values, _all(rows, BEGINNING), _all(rows, NEVER))
        for store in (self.known[number], *self._just_told(number)):
            for _, probe, _ in store.meet(0, probes):
                found[probe] = True
        return found

    def _just_told(self, number: int) -> tuple[LifetimeRuns, ...]:
        """The keys of this step, to be looked up; refused ones may become more while chains are looked at."""
        told = self.told[number]
        if told.is_empty():
            return ()
        before, found = self.indexed.get(number, (None, None))
        if found is None or before is not told:
            found = LifetimeRuns(self.known[number].layout).insert(told, self.clock)
            self.indexed[number] = (told, found)
        return (found,)


def _sampled(rows: pl.DataFrame, keys: Keys) -> Mask:
    """Which keys belong to the sample: the same ones always."""
    part: Mask = (key_hash(rows, tuple(keys.schema)) >> np.uint64(60)) == 0
    return part


def _taken_back(said: pl.DataFrame) -> bool:
    """Whether what was said before is taken back; that comes first, and without values."""
    return not said.is_empty() and int(said.get_column(SIGN)[0]) < 0


def _combined(rows: pl.DataFrame, at: str, partners: _Partners) -> pl.DataFrame:
    """Rows, numbered by a column, side by side with their partners."""
    numbers = pl.Series(at, partners.asked, dtype=pl.Int64)
    theirs = pl.DataFrame([numbers, *partners.rows.get_columns()])
    return rows.join(theirs, on=at, how="inner")


def _all(rows: pl.DataFrame, instant: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.full(rows.height, instant, dtype=np.int64)
