"""Purge: how a join forgets rows and punctuations once other inputs are closed at their values.

```
rows of S1     (a, b)   S2 closed at b? ── no ──► stays
                             │ yes
                        its rows of S2 with b; S3 closed at each of their c? ── no ──► stays
                             │ yes, or there is no such row
                        dropped
```

A sweep asks this of all rows at once. A lazy one comes when as many rows and punctuations have come since the last
as were left then, so a row is looked at a constant number of times on average, and what is kept is at most
about twice what must be. An eager one comes with every step that closes something: less is kept, and all that is
kept is looked at each time. (The Punctuation document, section 5.2, has both; queries run with the lazy one.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Literal, TypeAlias

import numpy as np
import polars as pl

from headgate.kernels.join.probe_plan import EqualityClass
from headgate.kernels.keys import Mask
from headgate.kernels.state.closed_values import ClosedValues, listed
from headgate.kernels.state.closings import Closings, after_sweep
from headgate.kernels.state.lifetime_runs import LifetimeRuns
from headgate.kernels.state.store import Store, rows_where
from headgate.model.batch import BORN
from headgate.model.time import Clock

_AT = "_at"


@dataclass(frozen=True)
class ClosingInput:
    """An input that brings closed values of one of the joined inputs, under that input's column names.

    With `below`, all lesser values are closed and not the value itself.
    """

    member: int
    schema: Mapping[str, pl.DataType]
    below: bool


@dataclass(frozen=True)
class ChainStep:
    """A closing, and the columns whose values it must have closed, in the order of its own columns.

    Or else the closing `aged`, the instant of birth of the chain's row.
    """

    closing: int
    values: tuple[str, ...]
    aged: int | None = None


@dataclass(frozen=True)
class Chain:
    """The closings that let rows of `member` go; see the safety of purging for what `closes_all` means."""

    member: int
    steps: tuple[ChainStep, ...]
    closes_all: bool


@dataclass(frozen=True)
class PunctuationPurge:
    """What a closed value waits for: stored partner rows (member, column, own column), other closings, a lifespan."""

    partners: tuple[tuple[int, str, str], ...]
    by: tuple[tuple[int, tuple[int, ...]], ...]


Live = Callable[[int], pl.DataFrame]

Sweeps: TypeAlias = Literal["eager", "lazy"]
"""When a join looks through rows and punctuations: at each step that closes something, or when enough has come."""


@dataclass(frozen=True)
class Purge:
    """Everything that a join has to know to forget."""

    closings: tuple[ClosingInput, ...]
    chains: tuple[Chain, ...]
    punctuation_purges: tuple[PunctuationPurge, ...]
    lifespan: int
    sweeps: Sweeps = "lazy"

    def initial(self) -> Closings:
        return Closings(tuple(ClosedValues.nothing(each.schema, below=each.below) for each in self.closings))

    @cached_property
    def members(self) -> frozenset[int]:
        return frozenset(chain.member for chain in self.chains)

    def is_due(self, closings: Closings, closed: Sequence[pl.DataFrame]) -> bool:
        """Whether it is time for a sweep after a step that closed these values."""
        if self.sweeps == "eager":
            return any(frame.height for frame in closed)
        return closings.due

    def sweep(
        self,
        stores: Sequence[Store],
        closings: Closings,
        equalities: Sequence[EqualityClass],
        clock: Clock,
    ) -> tuple[tuple[Store, ...], Closings]:
        """The stores and punctuations without what can be forgotten at the end of the step."""
        kept = list(stores)
        closed_values = closings.closed_values
        for chain in self.chains:
            live = _live(kept, clock.upto)
            store = kept[chain.member]
            assert isinstance(store, LifetimeRuns)
            rows = live(chain.member)
            gone = self._gone(chain, rows, live, closed_values, equalities)
            if gone.any():
                kept[chain.member] = store.only(rows_where(rows, ~gone), clock)
        after = self.only_needed(closed_values, _live(kept, clock.upto), clock)
        return tuple(kept), after_sweep(after, sum(kept[member].rows for member in self.members))

    def only_needed(
        self, closed_values: Sequence[ClosedValues], live: Live, clock: Clock
    ) -> tuple[ClosedValues, ...]:
        """The closed values that something still needs, given the rows of each input that are kept."""
        needed = self._needed(closed_values, live)
        return tuple(
            each if each.below else each.only(each.frame.filter(keep), clock.upto)
            for each, keep in zip(closed_values, needed, strict=True)
        )

    def _gone(
        self,
        chain: Chain,
        rows: pl.DataFrame,
        live: Live,
        closed_values: Sequence[ClosedValues],
        equalities: Sequence[EqualityClass],
    ) -> Mask:
        """Which rows can take part in no new result."""
        stays = np.zeros(rows.height, dtype=np.bool_)
        seen = {chain.member}
        found = rows.with_row_index(_AT)
        for number, step in enumerate(chain.steps):
            closing = self.closings[step.closing]
            closed = closed_values[step.closing].closes(found, step.values)
            if step.aged is not None:
                closed |= closed_values[step.aged].closes(found, [BORN])
            stays[found.filter(~closed)[_AT].to_numpy()] = True
            found = rows_where(found, ~stays[found[_AT].to_numpy()])
            if number == len(chain.steps) - 1 and chain.closes_all:
                return ~stays
            found = _with_partners(found, live(closing.member), closing.member, seen, equalities)
            seen.add(closing.member)
            later = {name for each in chain.steps[number + 1 :] for name in each.values}
            later.update(name for each in equalities for _, name in each)
            if any(each.aged is not None for each in chain.steps[number + 1 :]):
                later.add(BORN)
            found = found.select(name for name in found.columns if name == _AT or name in later).unique()
        stays[found[_AT].to_numpy()] = True
        return ~stays

    def _needed(self, closed_values: Sequence[ClosedValues], live: Live) -> list[pl.Series]:
        """For each closing, which of its values something still needs."""
        needed = []
        for number, (said, each) in enumerate(zip(closed_values, self.punctuation_purges, strict=True)):
            frame = said.frame
            keep = _stored(frame, each, live)
            if each.by:
                open_ = pl.Series([False]).new_from_index(0, frame.height)
                for other, places in each.by:
                    mine = [self._columns(number)[place] for place in places]
                    open_ |= ~closed_values[other].closes(frame, mine)
                needed.append(keep | open_)
            else:
                # The newest that no stored row needs are kept for a while, in case one comes that does.
                newest = np.zeros(frame.height, dtype=np.bool_)
                unneeded = np.flatnonzero(~keep.to_numpy())
                newest[unneeded[max(0, unneeded.size - self.lifespan) :]] = True
                needed.append(keep | pl.Series(newest))
        return self._mutual(closed_values, needed)

    def _mutual(self, closed_values: Sequence[ClosedValues], needed: list[pl.Series]) -> list[pl.Series]:
        """A value that a kept value of another closing waits for has to be kept as well."""
        frames = [each.frame for each in closed_values]
        changed = True
        while changed:
            changed = False
            for number, each in enumerate(self.punctuation_purges):
                kept = frames[number].filter(needed[number])
                for other, places in each.by:
                    if closed_values[other].below:
                        continue
                    mine = [self._columns(number)[place] for place in places]
                    waited = listed(frames[other], self._columns(other), kept, mine)
                    if (waited & ~needed[other]).any():
                        needed[other] = needed[other] | waited
                        changed = True
        return needed

    def _columns(self, closing: int) -> tuple[str, ...]:
        return tuple(self.closings[closing].schema)


def _live(stores: Sequence[Store], upto: int) -> Live:
    """The rows of each store that are not dead at an instant, gathered when asked for."""
    asked = tuple(stores)

    @cache
    def live(member: int) -> pl.DataFrame:
        return asked[member].live(upto)

    return live


def _stored(frame: pl.DataFrame, rule: PunctuationPurge, live: Live) -> pl.Series:
    """Which closed values a stored row has that may need them."""
    found = pl.Series([False]).new_from_index(0, frame.height)
    for member, column, own in rule.partners:
        found |= listed(frame, [own], live(member), [column])
    return found


def _with_partners(
    found: pl.DataFrame,
    rows: pl.DataFrame,
    member: int,
    seen: set[int],
    equalities: Sequence[EqualityClass],
) -> pl.DataFrame:
    """Combinations with the rows of one more input that agree with them."""
    pairs = []
    for each in equalities:
        mine = next((name for i, name in each if i in seen and name in found.columns), None)
        theirs = next((name for i, name in each if i == member), None)
        if mine is not None and theirs is not None:
            pairs.append((mine, theirs))
    left, right = [mine for mine, _ in pairs], [theirs for _, theirs in pairs]
    names = dict.fromkeys(name for each in equalities for i, name in each if i == member)
    return found.join(rows.select(list(names)), left_on=left, right_on=right, how="inner", coalesce=False)
