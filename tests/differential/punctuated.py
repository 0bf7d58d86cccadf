"""Random streams that keep their promises: values move up, and each stream closes the ones it leaves behind.

A stream has columns with values from a band that rises with time. For each scheme it has a flag column; a flagged row
is the last with its values. What a stream has closed it does not bring again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from random import Random

import pyarrow as pa
from tests.oracle.inputs import declared_schema

from headgate.language import nodes
from headgate.language.parse import parse
from headgate.model.source import SourceText

Rows = dict[str, list[dict[str, object]]]

APART = 20
"""In rows, how far from each other values of a column are at most that is used for a few rounds."""
APART_IN_TIME = 80
"""The same in seconds: of three streams a round takes less than 27."""


@dataclass(frozen=True)
class Punctuated:
    """A stream: its columns, and the sets of them that it closes, the n-th by rows with the flag `p<n>`; keys."""

    columns: str
    schemes: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    clusters: tuple[str, ...] = ()
    """Columns with at most `APART` between equal values, because a value is used for a few rounds only."""
    ordered: tuple[str, ...] = ()
    """Columns in order up to `APART`, because values of an earlier band do not come again."""
    refers: tuple[tuple[str, str], ...] = ()
    """Columns, and the stream whose column of the same name is a key, that has come when they do or soon after."""
    timed: bool = False
    """Whether it says in time, and not in rows, how close values are to each other."""
    lag: int = 0
    """For so many rounds it still brings values that the others have left behind; it closes none."""

    def declared(self, name: str) -> str:
        flags = "".join(f", p{number} BOOLEAN" for number in range(len(self.schemes)))
        columns = ", ".join(f"{column} BIGINT" for column in self.columns)
        words = [
            f"PUNCTUATED BY ({', '.join(scheme)}) WHEN p{number}"
            for number, scheme in enumerate(self.schemes)
        ]
        words += [f"KEY ({', '.join(key)})" for key in self.keys]
        within = f"WITHIN {APART_IN_TIME} SECONDS" if self.timed else f"WITHIN {APART} ROWS"
        words += [f"CLUSTERED BY ({', '.join(each)}) {within}" for each in self.clusters]
        words += [f"ORDERED BY ({each}) {within}" for each in self.ordered]
        words += [
            f"FOREIGN KEY ({each}) REFERENCES {parent} ({each}) {within}" for each, parent in self.refers
        ]
        other = {"s1": "s2", "s2": "s1"}.get(name)
        words += [
            f"FOREIGN KEY ({', '.join(each)}) REFERENCES {other} ({', '.join(each)}) "
            f"WITHIN {'99 SECONDS' if self.timed else '99 ROWS'}"
            for each in self.clusters
        ]
        return f"CREATE STREAM {name} (ts TIMESTAMP, {columns}{flags}) TIMESTAMP BY ts {' '.join(words)};\n"

    def without_promises(self) -> str:
        flags = "".join(f", p{number} BOOLEAN" for number in range(len(self.schemes)))
        return ", ".join(f"{column} BIGINT" for column in self.columns) + flags


@dataclass
class _Stream:
    about: Punctuated
    closed: list[set[tuple[int, ...]]]
    seen: list[set[tuple[int, ...]]]

    def allows(self, row: Mapping[str, int]) -> bool:
        broken = any(
            tuple(row[column] for column in scheme) in closed
            for scheme, closed in zip(self.about.schemes, self.closed, strict=True)
        )
        return not broken and not any(
            tuple(row[column] for column in key) in seen
            for key, seen in zip(self.about.keys, self.seen, strict=True)
        )


def random_rows(
    streams: Mapping[str, Punctuated], random: Random, *, rounds: int, band: int = 3, per_round: int = 4
) -> Rows:
    """Rows of all streams in order of time; in round r, values lie in [r, r + band), then r is closed everywhere."""
    states = {
        name: _Stream(about, [set() for _ in about.schemes], [set() for _ in about.keys])
        for name, about in streams.items()
    }
    rows: Rows = {name: [] for name in streams}
    clock = 0
    for low in range(rounds):
        names = [name for name in streams for _ in range(random.randint(0, per_round))]
        random.shuffle(names)
        values = range(low, low + band)
        for name in names:
            clock += random.randint(0, 2)
            lag = streams[name].lag
            _put(
                rows,
                name,
                states[name],
                {c: random.choice(range(max(0, low - lag), low + band)) for c in streams[name].columns},
                None,
                clock,
            )
        for name, state in states.items():
            for each in state.about.clusters:
                free = {column: random.choice(values) for column in state.about.columns}
                _put(rows, name, state, {**free, **dict.fromkeys(each, low)}, None, clock)
            for key, seen in zip(state.about.keys, state.seen, strict=True):
                # Whatever waits for the one row with a value must not wait in vain.
                if (low,) * len(key) not in seen:
                    free = {column: random.choice(values) for column in state.about.columns}
                    _put(rows, name, state, {**free, **dict.fromkeys(key, low)}, None, clock)
            for number, scheme in enumerate(state.about.schemes):
                # A value goes when its round does; of several columns together, when one of them goes, with
                # all that rows of other streams may have met it with.
                around = values if len(scheme) == 1 else range(low - band, low + 2 * band)
                for chosen in product(around, repeat=len(scheme)):
                    if low in chosen and chosen not in state.closed[number]:
                        clock += random.randint(0, 1)
                        fixed = dict(zip(scheme, chosen, strict=True))
                        _close(rows, name, state, number, fixed, values, random, clock)
    return rows


def _put(rows: Rows, name: str, state: _Stream, row: dict[str, int], flag: int | None, clock: int) -> None:
    if not state.allows(row):
        return
    flags = {f"p{number}": number == flag for number in range(len(state.about.schemes))}
    rows[name].append({"ts": clock, **row, **flags})
    for key, seen in zip(state.about.keys, state.seen, strict=True):
        seen.add(tuple(row[column] for column in key))
    if flag is not None:
        state.closed[flag].add(tuple(row[column] for column in state.about.schemes[flag]))


def _close(
    rows: Rows,
    name: str,
    state: _Stream,
    number: int,
    fixed: Mapping[str, int],
    values: Sequence[int],
    random: Random,
    clock: int,
) -> None:
    """A flagged row with the fixed values; the others are free, beyond all that is closed if need be."""
    free = [column for column in state.about.columns if column not in fixed]
    for attempt in range(50):
        far = 0 if attempt < 25 else 1000 + clock * 50 + attempt
        row = {**fixed, **{column: random.choice(values) + far for column in free}}
        if state.allows(row):
            _put(rows, name, state, row, number, clock)
            return


def tables(text: str, rows: Rows) -> dict[str, pa.Table]:
    """The rows as Arrow tables with the declared types; `ts` is in seconds."""
    found = {}
    for statement in parse(SourceText("<test>", text)):
        if isinstance(statement.tree, nodes.CreateStream):
            schema = declared_schema(statement.tree)
            name = statement.tree.this.name
            columns = {
                field.name: pa.array(
                    [
                        row[field.name] * 1_000_000 if field.name == "ts" else row[field.name]
                        for row in rows[name]
                    ]
                ).cast(field.type)
                if rows[name]
                else pa.array([], field.type)
                for field in schema
            }
            found[name] = pa.table(columns, schema=schema)
    return found
