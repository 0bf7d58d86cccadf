"""Existence: what EXISTS and NOT EXISTS share, which is knowing when a left row has a match on the right.

Whether it has one depends on its *probe* alone: its keys and the columns that the residual reads. So DISTINCT
over the probes that match says when each probe gains and loses its matches, and every left row follows its
probe.

```
right rows of the key      [===)   [======)
                             [===)
probe present            --[=====)-[======)---      DISTINCT over the matches
left row              [=============)
EXISTS                     [=====) [=)
NOT EXISTS            [====)     [=)
```

Without a residual the right rows are the matches of their key and need not be kept: DISTINCT remembers
enough. With one, a match is a pair, and both sides are kept to find the pairs of rows that come later.

A left row leaves the state when it dies, or when a match comes that is sure to outlast it: EXISTS has then
announced all of it, and NOT EXISTS will never say it again. What can go before that, `side_purge` says.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from headgate.kernels.distinct.distinct import LATEST, VALUES, Distinct, DistinctState, Form
from headgate.kernels.distinct.multiplicity import group, starts
from headgate.kernels.distinct.presence import NOWHERE
from headgate.kernels.join.existence_purge import LEFT, RIGHT, SidePurge
from headgate.kernels.kernel import State
from headgate.kernels.keys import Mask, has_null, key_hash, keys_equal
from headgate.kernels.state.closings import CLOSINGS, Closings, after_sweep
from headgate.kernels.state.composite import Composite, States, of_part
from headgate.kernels.state.endings import Endings
from headgate.kernels.state.index import HashIndex
from headgate.kernels.state.sorted_runs import Ints
from headgate.kernels.state.store import Layout, Probes, rows_at, rows_where
from headgate.kernels.state.table import columns_of
from headgate.model.batch import BORN, DIES, LIFETIME_COLUMNS, SIGN, Batch
from headgate.model.time import NEVER, Clock

_LEFT, _RIGHT, _MATCHES = "left", "right", "matches"

# The key of rows that have none: every row has the same one.
_ANY_LEFT, _ANY_RIGHT = "_any_left", "_any_right"
_TOGETHER = "_together"


@dataclass(frozen=True, eq=False)
class ExistenceState(Composite):
    """Left rows, right rows if there is a residual, which probes have matches, and closed values."""

    left: Endings
    right: Endings | None
    matches: DistinctState
    closings: Closings | None = None

    @property
    def _parts(self) -> dict[str, State]:
        parts: dict[str, State] = {_LEFT: self.left, _MATCHES: self.matches}
        if self.right is not None:
            parts[_RIGHT] = self.right
        return parts if self.closings is None else {**parts, CLOSINGS: self.closings}


@dataclass(frozen=True, eq=False)
class Signed:
    """Signed lifetimes, and their instants and signs as arrays."""

    frame: pl.DataFrame

    @property
    def height(self) -> int:
        return self.frame.height

    @cached_property
    def born(self) -> Ints:
        return self.frame.get_column(BORN).to_numpy()

    @cached_property
    def dies(self) -> Ints:
        return self.frame.get_column(DIES).to_numpy()

    @cached_property
    def sign(self) -> Ints:
        return self.frame.get_column(SIGN).to_numpy().astype(np.int64)


@dataclass(frozen=True, eq=False)
class Existence(ABC):
    """A left row counts while the right side has a match for it, or while it has none.

    `keys` pairs a left with a right column. `residual` reads columns of both sides, whose names are disjoint.
    With `null_equal`, NULL keys match each other. `right_endings` says whether the right input may have any. With
    `side_purge`, the inputs of closed values follow the two.
    """

    left_schema: Mapping[str, pl.DataType]
    right_schema: Mapping[str, pl.DataType]
    keys: tuple[tuple[str, str], ...]
    residual: pl.Expr | None = None
    null_equal: bool = False
    right_endings: bool = True
    side_purge: SidePurge | None = None

    def __post_init__(self) -> None:
        if self.side_purge is None or not self.side_purge.covers(RIGHT):
            return
        if self.right_endings:
            raise ValueError("right rows that may end early are not forgotten")
        if self.residual is None and self.side_purge.retain[RIGHT] is not None:
            raise ValueError("right rows are forgotten by age only with a residual")

    @property
    @abstractmethod
    def negated(self) -> bool:
        """Whether a left row counts without a match."""

    @property
    @abstractmethod
    def sure_form(self) -> Form:
        """The form of DISTINCT over the matches when no match is ever cut short."""

    @cached_property
    def _keys(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        pairs = self.keys or ((_ANY_LEFT, _ANY_RIGHT),)
        return tuple(left for left, _ in pairs), tuple(right for _, right in pairs)

    @cached_property
    def _read(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The columns of each side that the residual reads."""
        names = () if self.residual is None else dict.fromkeys(self.residual.meta.root_names())
        left, right = (tuple(n for n in names if n in s) for s in (self.left_schema, self.right_schema))
        return left, right

    @cached_property
    def _probe(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self._keys[0], *self._read[0])))

    @cached_property
    def _matches(self) -> Distinct:
        schema = {**self.left_schema, _ANY_LEFT: pl.Int8()}
        form = "strict" if self.right_endings else self.sure_form
        return Distinct({name: schema[name] for name in self._probe}, form)

    def initial(self) -> ExistenceState:
        schema = dict(self.left_schema) if self.keys else {**self.left_schema, _ANY_LEFT: pl.Int8()}
        # The last of the keys by which rows are looked up is the probe.
        keys = (self._probe,) if self.residual is None else (self._keys[0], self._probe)
        left = Endings.empty(Layout(schema, keys), tuple(schema))
        closings = None if self.side_purge is None else self.side_purge.purge.initial()
        return ExistenceState(left, self._empty_right(), self._matches.initial(), closings)

    def restore(self, chunks: Mapping[str, pl.DataFrame]) -> ExistenceState:
        empty = self.initial()
        return ExistenceState(
            empty.left.restored(of_part(chunks, _LEFT)),
            None if empty.right is None else empty.right.restored(of_part(chunks, _RIGHT)),
            self._matches.restore(of_part(chunks, _MATCHES)),
            None if empty.closings is None else empty.closings.restored(of_part(chunks, CLOSINGS)),
        )

    def advance(
        self, state: ExistenceState, inputs: Sequence[Batch], clock: Clock
    ) -> tuple[ExistenceState, Batch]:
        """The left rows that count, from when on they do."""
        left, unmatchable = self._matchable(inputs[0].frame, self._keys[0], _ANY_LEFT)
        right, _ = self._matchable(inputs[1].frame, self._keys[1], _ANY_RIGHT)
        before = self._matches.until(state.matches, left.frame, self._probe, clock.after)
        matching = Batch(self._matching(state, left, right))
        matches, said = self._matches.advance(state.matches, [matching], clock)
        turns = Signed(said.frame)
        sure = self._matches.until(matches, turns.frame, self._probe, clock.upto)
        stored, settled = self._stored(state.left, turns, sure)
        arrived = self._arrived(left, before, turns)
        result = pl.concat([*([unmatchable] if self.negated else []), arrived, *stored])
        if np.any(left.sign < 0):
            result = _netted(result)
        waits = self._matches.until(matches, left.frame, self._probe, clock.upto) < left.dies
        kept = _kept(state.left, left, waits, settled, clock)
        right_kept = None
        if state.right is not None:
            right_kept = _kept(state.right, right, np.ones(right.height, dtype=np.bool_), [], clock)
        after = ExistenceState(kept, right_kept, matches, state.closings)
        closed = [batch.frame for batch in inputs[2:]]
        return self._forgotten(after, closed, left.height + right.height, clock), Batch(result)

    def _forgotten(
        self, state: ExistenceState, closed: Sequence[pl.DataFrame], arrived: int, clock: Clock
    ) -> ExistenceState:
        """The state after closed values were observed, without what can be forgotten if it is time to look."""
        if self.side_purge is None or state.closings is None or clock.upto <= clock.after:
            return state
        closings = state.closings.observe(closed, arrived, clock)
        if not closings.due:
            return replace(state, closings=closings)
        closed_values = closings.closed_values
        left, right, matches, upto = state.left, state.right, state.matches, clock.upto
        if self.side_purge.covers(LEFT):
            rows = left.live(upto)
            gone = self.side_purge.gone(LEFT, rows, closed_values, upto)
            # What a match has still to do is said when it dies.
            gone &= self._matches.until(matches, rows, self._probe, upto) <= upto
            left = left.only(rows_where(rows, ~gone), clock) if gone.any() else left
        if self.side_purge.covers(RIGHT):
            if right is not None:
                rows = right.live(upto)
                gone = self.side_purge.gone(RIGHT, rows, closed_values, upto)
                right = right.only(rows_where(rows, ~gone), clock) if gone.any() else right
            matches = self._without_matches(matches, closings, clock)
        after = ExistenceState(left, right, matches)
        stored = (left.live(upto), self._right_keys(matches) if right is None else right.live(upto))
        needed = self.side_purge.purge.only_needed(closed_values, stored.__getitem__, clock)
        return replace(after, closings=after_sweep(needed, after.rows))

    def _without_matches(self, matches: DistinctState, closings: Closings, clock: Clock) -> DistinctState:
        """The matches without those that stay for ever and that no left row asks for any more.

        With a residual all of these can go: a left row that comes finds the right rows that are kept.
        """
        assert self.side_purge is not None
        table = matches.tables.named[VALUES]
        rows = table.live_rows()
        gone = rows.get_column(LATEST).to_numpy() == NEVER
        if self.residual is None:
            gone &= self.side_purge.gone(RIGHT, self._right_keys(matches), closings.closed_values, clock.upto)
        if not gone.any():
            return matches
        left = table.only(rows_where(rows, ~gone), clock.upto)
        return replace(matches, tables=States({VALUES: left}))

    def _right_keys(self, matches: DistinctState) -> pl.DataFrame:
        """The keys that have matches, under the names of the right side."""
        rows = next(iter(matches.tables.named.values())).live_rows()
        return pl.DataFrame(
            [rows.get_column(ours).alias(theirs) for ours, theirs in zip(*self._keys, strict=True)]
        )

    def _empty_right(self) -> Endings | None:
        if self.residual is None:
            return None
        whole = {**self.right_schema, _ANY_RIGHT: pl.Int8()}
        schema = {name: whole[name] for name in dict.fromkeys((*self._keys[1], *self._read[1]))}
        return Endings.empty(Layout(schema, (self._keys[1],)), tuple(schema))

    def _matchable(
        self, frame: pl.DataFrame, keys: Sequence[str], any_key: str
    ) -> tuple[Signed, pl.DataFrame]:
        """The rows whose keys can equal others, and the rest."""
        if not self.keys:
            return Signed(frame.with_columns(pl.lit(0, dtype=pl.Int8).alias(any_key))), frame.clear()
        null = np.zeros(frame.height, dtype=np.bool_) if self.null_equal else has_null(frame, keys)
        return Signed(rows_where(frame, ~null)), rows_where(frame, null)

    def _matching(self, state: ExistenceState, left: Signed, right: Signed) -> pl.DataFrame:
        """Signed lifetimes of probes: one for each match that begins in the step, and for each that ends."""
        if self.residual is None:
            keys = [
                right.frame.get_column(theirs).alias(ours) for ours, theirs in zip(*self._keys, strict=True)
            ]
            return pl.DataFrame([*keys, *(right.frame.get_column(name) for name in LIFETIME_COLUMNS)])
        assert state.right is not None
        if not self.right_endings:
            # The ending of a left row leaves its probe as it was: there would still be a match for it.
            left = Signed(rows_where(left.frame, left.sign > 0))
        found = [Batch.empty(self._matches.schema).frame]
        for match in state.left.probe(0, Probes(right.frame, self._keys[1], right.born, right.dies)):
            born, dies = _overlap(match.born, match.dies, right, match.probe)
            found.append(self._holding(match.right, match.left, born, dies, right.sign[match.probe]))
        for match in state.right.probe(0, Probes(left.frame, self._keys[0], left.born, left.dies)):
            born, dies = _overlap(match.born, match.dies, left, match.probe)
            found.append(self._holding(match.left, match.right, born, dies, left.sign[match.probe]))
        for one, other in _pairs(left.frame, right.frame, *self._keys):
            born, dies = _overlap(left.born[one], left.dies[one], right, other)
            sign = left.sign[one] * right.sign[other]
            ours, theirs = rows_at(left.frame, one), rows_at(right.frame, other)
            found.append(self._holding(ours, theirs, born, dies, sign))
        return pl.concat(found)

    def _holding(
        self, left: pl.DataFrame, right: pl.DataFrame, born: Ints, dies: Ints, sign: Ints
    ) -> pl.DataFrame:
        """The probes of the pairs that live at some time and for which the residual holds."""
        assert self.residual is not None
        read = [
            frame.get_column(name)
            for frame, names in zip((left, right), self._read, strict=True)
            for name in names
        ]
        together = pl.DataFrame([pl.Series(_TOGETHER, dies > born), *read])
        holds = together.select((pl.col(_TOGETHER) & self.residual).fill_null(False)).to_series()
        lived = columns_of(left, self._probe).hstack(_lifetimes(born, dies, sign))
        return rows_where(lived, holds.to_numpy())

    def _arrived(self, left: Signed, until: Ints, turns: Signed) -> pl.DataFrame:
        """What the step's left rows say; `until` is how long their probes were sure to match before it."""
        pairs = [*_pairs(left.frame, turns.frame, self._probe, self._probe)]
        one = np.concatenate([np.empty(0, dtype=np.int64), *(pair[0] for pair in pairs)])
        other = np.concatenate([np.empty(0, dtype=np.int64), *(pair[1] for pair in pairs)])
        if self._matches.form == "star":
            rows = np.concatenate((np.arange(left.height), one))
            born = np.concatenate((left.born, np.maximum(left.born[one], turns.born[other])))
            dies = np.minimum(left.dies[rows], np.concatenate((until, turns.dies[other])))
            sign = left.sign[rows]
        else:
            early = turns.born[other] <= left.born[one]
            matched = (until != NOWHERE).astype(np.int64)
            np.add.at(matched, one[early], turns.sign[other[early]])
            counts = np.flatnonzero((matched == 0) == self.negated)
            one, other = one[~early], other[~early]
            rows = np.concatenate((counts, one))
            born = np.concatenate((left.born[counts], turns.born[other]))
            dies = left.dies[rows]
            turn = self._direction * turns.sign[other]
            sign = left.sign[rows] * np.concatenate((np.ones_like(counts), turn))
        lived = np.flatnonzero(dies > born)
        payload = rows_at(columns_of(left.frame, [*self.left_schema]), rows[lived])
        return payload.hstack(_lifetimes(born[lived], dies[lived], sign[lived]))

    def _stored(
        self, store: Endings, turns: Signed, sure: Ints
    ) -> tuple[list[pl.DataFrame], list[pl.DataFrame]]:
        """What the turns make the stored left rows say, and the rows of which all has been said."""
        final = np.zeros(turns.height, dtype=np.bool_)
        groups = group(turns.frame, self._probe, turns.born)
        final[groups.order[np.roll(groups.first, -1)]] = True
        said, settled = [], []
        key = len(store.layout.keys) - 2
        for match in store.probe(key, Probes(turns.frame, self._probe, turns.born, turns.dies)):
            which = match.probe
            born, dies = _overlap(match.born, match.dies, turns, which)
            payload = columns_of(match.right, [*self.left_schema])
            said.append(payload.hstack(_lifetimes(born, dies, self._direction * turns.sign[which])))
            rows = match.right.hstack([pl.Series(BORN, born), pl.Series(DIES, match.dies)])
            settled.append(rows_where(rows, final[which] & (sure[which] >= match.dies)))
        return said, settled

    @property
    def _direction(self) -> int:
        return -1 if self.negated else 1


def _lifetimes(born: Ints, dies: Ints, sign: Ints) -> list[pl.Series]:
    return [pl.Series(BORN, born), pl.Series(DIES, dies), pl.Series(SIGN, sign.astype(np.int8))]


def _overlap(born: Ints, dies: Ints, other: Signed, which: Ints) -> tuple[Ints, Ints]:
    """When lifetimes and the ones that `which` picks from others begin and stop to overlap."""
    return np.maximum(born, other.born[which]), np.minimum(dies, other.dies[which])


def _pairs(
    left: pl.DataFrame, right: pl.DataFrame, left_columns: Sequence[str], right_columns: Sequence[str]
) -> Iterator[tuple[Ints, Ints]]:
    """Row numbers of all pairs with equal columns, NULL equal to NULL, in blocks."""
    if left.is_empty() or right.is_empty():
        return
    for one, other in HashIndex.of(key_hash(right, right_columns)).find(key_hash(left, left_columns)):
        ours, theirs = rows_at(left, one), rows_at(right, other)
        equal = keys_equal(ours, theirs, left_columns, right_columns, null_equal=True)
        yield one[equal], other[equal]


def _kept(
    store: Endings, rows: Signed, waits: Mask, settled: Sequence[pl.DataFrame], clock: Clock
) -> Endings:
    """The store after the step: with the rows that wait, without those that end, are settled or have died."""
    columns = [*store.layout.schema, BORN, DIES]
    alive = rows.dies > clock.upto
    frame = columns_of(rows.frame, columns)
    if np.all(rows.sign > 0):
        born, ended = rows_where(frame, alive & waits), frame.clear()
    else:
        # An ending takes back a row of the same step before it looks for a stored one.
        groups = group(frame, (*store.layout.schema, DIES), rows.born)
        net = np.zeros(groups.leaders.size, dtype=np.int64)
        np.add.at(net, groups.codes, rows.sign[groups.order])
        net[~alive[groups.leaders]] = 0
        arriving = np.where(waits[groups.leaders], np.maximum(net, 0), 0)
        born = rows_at(frame, np.repeat(groups.leaders, arriving))
        ended = rows_at(frame, np.repeat(groups.leaders, np.maximum(-net, 0)))
    ended = pl.concat([ended, *settled])
    if not ended.is_empty():
        store = store.end(ended, clock).store
    return store.insert(born, clock).expire(clock.upto)


def _netted(said: pl.DataFrame) -> pl.DataFrame:
    """The same contents without rows that take back each other."""
    columns = [name for name in said.columns if name not in (BORN, SIGN)]
    born, sign = said.get_column(BORN).to_numpy(), said.get_column(SIGN).to_numpy().astype(np.int64)
    groups = group(said, columns, born)
    opens = np.flatnonzero(groups.first | starts(born[groups.order]))
    net = np.add.reduceat(sign[groups.order], opens) if opens.size else sign
    rows = np.repeat(groups.order[opens], np.abs(net))
    return rows_at(said, rows).with_columns(
        pl.Series(SIGN, np.sign(np.repeat(net, np.abs(net))), dtype=pl.Int8)
    )
