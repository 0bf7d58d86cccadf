"""Plays an adversary's rows to the local engine before they are shown to anybody.

An adversary claims that any part of its rows may have come, and that the answers to come tell all parts apart. So
three things are tried, and where one fails nothing is shown:

* the rows keep every promise of their streams, with all of the rows before the asking ones and with none;
* parts of the rows that differ are answered differently by the row that asks, parts of equal size too, so that a mere
  count does not pass for a memory; and every row makes a difference to the row that asks for it;
* what is kept grows with the rows, from each quarter of them to the next: state that stops growing proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from headgate.kernels.emit.emit import TIME
from headgate.model.errors import HeadgateError, InputError
from headgate.model.schema import Column
from headgate.model.time import DAY, SECOND
from headgate.physical.program import CompiledQuery, Program
from headgate.plan.catalog import StreamDef
from headgate.plan.nodes import Window
from headgate.runtime.data import frame_of
from headgate.runtime.io.changes import static_table
from headgate.runtime.local.engine import LocalRun, Stop
from headgate.runtime.local.promise_audit import PLACE, broken_promise
from headgate.runtime.output import escaped_name
from headgate.runtime.query import Metrics
from headgate.safety.witness.model import Adversary, Values
from headgate.safety.witness.purge import value_of

START = datetime(2026, 1, 1, tzinfo=UTC)
_START_AT = (START - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
LONGEST = 3_000 * 365 * DAY
"""The calendar ends; rows that would be played beyond it are not played."""
PARTS = 4
LEAST_ROWS = 24
"""So many rows are played where fewer are to be shown: of few rows a growing state says little."""
_AT_ONCE = 64
"""So many probes are played at once: all answers to very many would be very many."""
_UNIQUE = 2_000_003
"""Where the values begin that stand in the columns of a key that nothing else is said of."""
_ALLOWANCE = 8
"""At most one of so many rows may be out of order, however many its stream allows."""

Places = frozenset[int]
"""Which of an adversary's rows have come."""


@dataclass(frozen=True)
class Growth:
    """After so many rows: the bits that any correct algorithm needs, and the rows that this engine keeps for them."""

    rows: int
    bits: int
    kept: int


@dataclass(frozen=True)
class NotShown:
    """Why an adversary's rows are no proof."""

    reason: str


@dataclass(frozen=True)
class Shown:
    """An adversary played: the growth, and the rows of all streams as frames, probes last."""

    adversary: Adversary
    growth: tuple[Growth, ...]
    frames: Mapping[str, pl.DataFrame]
    parquet: frozenset[str]
    """Streams that are read from Parquet."""

    def write(self, folder: Path) -> list[Path]:
        """Writes each stream's rows to a file: Parquet if the stream is read from such, CSV otherwise."""
        written = []
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for stream, frame in self.frames.items():
                kind = "parquet" if stream in self.parquet else "csv"
                path = folder / f"{escaped_name(stream)}.{kind}"
                frame.write_parquet(path) if kind == "parquet" else frame.write_csv(path)
                written.append(path)
        except OSError as error:
            raise InputError(
                f"cannot write to {folder}: {error.strerror or error}", remedy="choose another --output"
            ) from error
        return written


def play(adversary: Adversary, query: CompiledQuery) -> Shown | NotShown:
    """The growth of what a query keeps over the rows of an adversary, or why its claim does not hold.

    Of fewer rows than are tried out otherwise the growth says little, and is not judged.
    """
    try:
        played = _Played(adversary, query)
        refuted = played.breach() or played.indifference()
        if refuted is None and len(adversary.rows) >= LEAST_ROWS:
            refuted = played.stagnation()
        return refuted or Shown(adversary, played.growth, played.frames, played.parquet)
    except _UNPLAYABLE:
        return NotShown("the rows that would show it cannot be played")


_UNPLAYABLE = (HeadgateError, pa.ArrowException, OverflowError)
"""A row that its declaration does not allow, or an expression that fails on it."""


@dataclass(frozen=True)
class _Played:
    adversary: Adversary
    query: CompiledQuery

    # -- what is tried ----------------------------------------------------------------------------

    def breach(self) -> NotShown | None:
        """A promise that the rows break: with all rows, and for some of the asking ones without any."""
        count, asking = len(self.adversary.rows), len(self.adversary.probes)
        every, some = frozenset(range(count)), sorted({0, asking // 2, asking - 1})
        histories = [self._chosen(every, range(asking))]
        histories += [self._chosen(frozenset(), [probe]) for probe in some]
        for rows in histories:
            broken = broken_promise(self._streams, rows, allowance=count // _ALLOWANCE)
            if broken is not None:
                return NotShown(f"the rows that would show it break a promise: {broken}")
        played = range(asking) if count <= _AT_ONCE else some
        late = self._run(self._chosen(every, played), drain=True)[1].late_rows
        return NotShown("the rows that would show it come late or break a promise") if late else None

    def indifference(self) -> NotShown | None:
        """Parts of the rows that are not told apart."""
        if (self.adversary.one_size or self._all_are_asked_for()) and all(
            self._answers(one, [probe]) != self._answers(other, [probe])
            for one, other, last in self._alternatives()
            for probe in (min(last, len(self.adversary.probes) - 1),)
        ):
            return None
        return NotShown("the rows that would show it do not change the answers to come")

    def _all_are_asked_for(self) -> bool:
        """Whether each row makes a difference to the probe that asks for it.

        Some rows and their probes are played at once; where earlier probes hide later ones, each by itself. Of very
        many that hide each other some are tried.
        """
        hidden: list[int] = []
        count = len(self.adversary.probes)
        for start in range(0, count, _AT_ONCE):
            some = range(start, min(count, start + _AT_ONCE))
            every, none = self._answers(frozenset(some), some), self._answers(frozenset(), some)
            hidden += [probe for probe in some if every.get(probe) == none.get(probe)]
        chosen = hidden[:: 1 + len(hidden) // (2 * _AT_ONCE)]
        return all(
            self._answers(frozenset([probe]), [probe]) != self._answers(frozenset(), [probe])
            for probe in chosen
        )

    def stagnation(self) -> NotShown | None:
        """A quarter of the rows that are not all kept."""
        steps = [Growth(0, 0, 0), *self.growth]
        if all(now.kept - then.kept >= now.rows - then.rows for then, now in pairwise(steps)):
            return None
        return NotShown("what is kept does not grow with the rows that would show it")

    def _alternatives(self) -> Iterator[tuple[Places, Places, int]]:
        """Pairs of parts of the rows with the last place in which they differ."""
        count = len(self.adversary.rows)
        half = frozenset(np.random.default_rng(0).permutation(count)[: count // 2].tolist())
        middle, third, last = count // 2, count // 3, count - 1
        swaps = [(last - 1, last), (0, last), (0, 1), (middle, middle + 2), (third, third + 5), (1, middle)]
        for one, other in swaps:
            if not 0 <= one < other < count:
                continue
            rest = half - {one, other}
            yield rest | {one}, rest | {other}, other
        for place in () if self.adversary.one_size else {0, third, middle, last}:
            yield half | {place}, half - {place}, place

    @cached_property
    def growth(self) -> tuple[Growth, ...]:
        """What is kept after each quarter of the rows, beyond what is kept for the rows that come in any case."""
        count, found = len(self.adversary.rows), []
        others = self._kept(frozenset()) if self.adversary.setting else 0
        for part in range(1, PARTS + 1):
            size = count * part // PARTS
            if size:
                kept = self._kept(frozenset(range(size))) - others
                found.append(Growth(size, self.adversary.bits(size), kept))
        return tuple(found)

    # -- rows -------------------------------------------------------------------------------------

    @property
    def parquet(self) -> frozenset[str]:
        return frozenset(
            s.name for s in self._streams if s.source is not None and s.source.format == "parquet"
        )

    @property
    def frames(self) -> dict[str, pl.DataFrame]:
        """All rows of each stream in order."""
        return {name: frame.drop(PLACE) for name, frame in self._script.items()}

    @cached_property
    def _streams(self) -> list[StreamDef]:
        """The streams that the query reads."""
        return list(self.query.streams)

    @cached_property
    def _step(self) -> int:
        """The time between two rows: longer than any window, so that what is still known was remembered."""
        windows = [node.window for node in self.query.plan.walk() if isinstance(node, Window)]
        return SECOND + max(((w.length or 0) + (w.slide or 0) for w in windows), default=0)

    @cached_property
    def _history(self) -> list[tuple[int, int, str, Values]]:
        """All rows: the place and the instant of each, its stream, and its values."""
        adversary, step = self.adversary, self._step
        first = [(adversary.stream, row) for row in adversary.rows] + list(adversary.setting)
        found = [(place, place * step, *row) for place, row in enumerate(first)]
        place = len(found)
        for number, probe in enumerate(adversary.probes):
            # Rows of one probe come at one instant, or one after the other if their stream is the same.
            offsets = dict.fromkeys((stream for stream, _ in probe), 0)
            for stream, row in probe:
                found.append((place, self._asked_at(number) + offsets[stream], stream, row))
                offsets[stream] += 1
                place += 1
        if self._asked_at(len(adversary.probes)) > LONGEST:
            raise OverflowError("the rows would reach beyond the calendar")
        return found

    def _asked_at(self, probe: int) -> int:
        return (len(self.adversary.rows) + len(self.adversary.setting) + probe) * self._step

    @cached_property
    def _script(self) -> dict[str, pl.DataFrame]:
        """The rows of each stream with their places, and plain values in the columns that do not matter."""
        rows: dict[str, list[dict[str, Any]]] = {stream.name: [] for stream in self._streams}
        streams = {stream.name: stream for stream in self._streams}
        plain = {stream.name: _plain_row(stream) for stream in self._streams}
        for place, instant, name, values in self._history:
            stream = streams[name]
            row = plain[name] | _unique_row(stream, place) | dict(values) | {PLACE: place}
            if stream.time is not None:
                row[stream.time] = START + timedelta(microseconds=instant)
            rows[name].append(row)
        found = {}
        for stream in self._streams:
            fields = [*((column.name, column.type) for column in stream.columns), (PLACE, pa.int64())]
            table = pa.Table.from_pylist(rows[stream.name], pa.schema(fields))
            found[stream.name] = frame_of(table, (*stream.columns, Column(PLACE, pa.int64())))
        return found

    @cached_property
    def _probe_places(self) -> list[range]:
        place = len(self.adversary.rows) + len(self.adversary.setting)
        found = []
        for probe in self.adversary.probes:
            found.append(range(place, place + len(probe)))
            place += len(probe)
        return found

    def _chosen(self, places: Places, probes: Sequence[int]) -> dict[str, pl.DataFrame]:
        """The rows of each stream if these of the adversary's have come, the setting, and these probes."""
        mask = np.zeros(len(self._history), dtype=np.bool_)
        mask[len(self.adversary.rows) : len(self.adversary.rows) + len(self.adversary.setting)] = True
        mask[list(places)] = True
        for probe in probes:
            mask[self._probe_places[probe].start : self._probe_places[probe].stop] = True
        return {
            name: frame.filter(pl.Series(mask[frame[PLACE].to_numpy()]))
            for name, frame in self._script.items()
        }

    # -- runs -------------------------------------------------------------------------------------

    def _answers(self, places: Places, probes: Sequence[int]) -> dict[int, list[str]]:
        """What is said once each probe has come."""
        pieces, _ = self._run(self._chosen(places, probes), drain=True)
        found: dict[int, list[str]] = {}
        for row in pl.concat(pieces).iter_rows(named=True) if pieces else ():
            since = row[TIME] - _START_AT - self._asked_at(0)
            if since >= 0:
                probe = min(since // self._step, len(self.adversary.probes) - 1)
                found.setdefault(probe, []).append(repr(row))
        return {probe: sorted(rows) for probe, rows in found.items()}

    def _kept(self, places: Places) -> int:
        return self._run(self._chosen(places, ()), drain=False)[1].state_rows

    def _run(self, rows: Mapping[str, pl.DataFrame], *, drain: bool) -> tuple[list[pl.DataFrame], Metrics]:
        """What is said over the rows, and what that took."""
        streams = [(stream, iter([rows[stream.name].drop(PLACE)])) for stream in self.query.streams]
        # A table has no rows that could grow with those of the streams.
        tables = {table.name: static_table(frame_of([], table.columns)) for table in self.query.tables}
        run = LocalRun(Program((self.query,)), streams, tables, Stop.DRAINED if drain else Stop.LAST_ROW)
        pieces: list[pl.DataFrame] = []
        run.run(lambda query, frame: pieces.append(frame), lambda query, stream, late: None)
        return [each for each in pieces if each.height], run.states[self.query.name].metrics


def _plain_row(stream: StreamDef) -> dict[str, Any]:
    return {column.name: _plain(column.type) for column in stream.columns}


def _unique_row(stream: StreamDef, place: int) -> dict[str, Any]:
    """Values of its own for the columns of a row's keys."""
    keyed = {name for key in stream.keys for name in key}
    return {c.name: value_of(c.type, _UNIQUE + place) for c in stream.columns if c.name in keyed}


def _plain(dtype: pa.DataType) -> Any:
    """A value of no importance."""
    if pa.types.is_boolean(dtype):
        return False
    if pa.types.is_integer(dtype) or pa.types.is_floating(dtype) or pa.types.is_decimal(dtype):
        return 0
    return "" if pa.types.is_string(dtype) else None
