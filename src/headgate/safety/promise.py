"""Promises: what a stream's declaration says will not come, each with its origin.

| declared | closes the values of its columns |
|---|---|
| `KEY (c)` | of every row, once it has come: no other row has them |
| `PUNCTUATED BY (c) WHEN p` | of a row for which p holds, once it has come |
| `ORDERED BY (c) WITHIN k ROWS` | that are less than one that came more than k rows ago |
| `CLUSTERED BY (c) WITHIN k ROWS` | once k + 1 rows with other values have come since the last with them |
| `ORDERED BY (c) WITHIN d` | that are less than one that came more than d ago |
| `CLUSTERED BY (c) WITHIN d` | once d has passed since the last row with them |

A value that never comes is never closed by a key, a punctuation or a cluster; an order closes it all the same. For
punctuations and keys that is the user's care: something closes what is open. A cluster promises nothing of the
kind, so it counts only where a FOREIGN KEY says that each value does come.

`FOREIGN KEY (c) REFERENCES t (d) WITHIN k ROWS` closes nothing for everybody. For the row that refers it says by when
its partner has come: with a key on t (d), after k more rows of t none comes any more (k-Mon document, section 4). So
it is after a time, where k is one; then the clock alone tells, and nothing has to come.

A CHECK is a promise too: no row fails it. It closes nothing, but bounds what values there are.

NULL is closed by nothing, since it equals no value. Joins leave it out. Where it would be kept as a value, by
DISTINCT and GROUP BY, every promise includes the CHECK that its columns are not NULL, as SQL's PRIMARY KEY does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

import pyarrow as pa
from sqlglot import exp

from headgate.model import types
from headgate.model.adherence import Adherence, Auto
from headgate.model.scalar import Scalar, column, conjunction
from headgate.plan.catalog import References, StreamDef
from headgate.safety.cause import Cause


class PromiseKind(StrEnum):
    """Which clause of a declaration a promise comes from."""

    KEY = "KEY"
    PUNCTUATION = "PUNCTUATED BY"
    ORDER = "ORDERED BY"
    CLUSTER = "CLUSTERED BY"
    REFERENCE = "FOREIGN KEY"
    CHECK = "CHECK"

    @property
    def cause(self) -> Cause:
        """What a state is bounded by that it bounds."""
        match self:
            case PromiseKind.KEY:
                return Cause.KEY
            case PromiseKind.PUNCTUATION:
                return Cause.PUNCTUATION
            case PromiseKind.ORDER | PromiseKind.CLUSTER | PromiseKind.REFERENCE:
                return Cause.CONSTRAINT
            case PromiseKind.CHECK:
                return Cause.VALUES
            case _:
                assert_never(self)


@dataclass(frozen=True)
class Promise:
    """No later row of `stream` has the values that a row with `when` (every row if None) has in `columns`.

    With `within`, only after so many rows with other values, or so much time; of an ORDER, all lesser values are
    closed then. Without columns, a CHECK: no row fails `when`.

    `WITHIN AUTO` is no promise but asks for an observation: what rows have kept to of late. No bound rests on it, and
    no row breaks it.
    """

    stream: str
    columns: tuple[str, ...]
    when: Scalar | None
    kind: PromiseKind
    within: Adherence | None = None

    @property
    def is_observed(self) -> bool:
        """Whether it is only what monitoring finds."""
        return isinstance(self.within, Auto)

    @property
    def cause(self) -> Cause:
        """What a state is bounded by that it bounds."""
        return self.kind.cause

    def __str__(self) -> str:
        columns = f" ({', '.join(self.columns)})" if self.columns else ""
        return f"{self.kind}{columns}" + ("" if self.within is None else f" {self.within}")


def closing_promises(stream: StreamDef) -> tuple[Promise, ...]:
    """The promises of a stream that close values; keys first, they come soonest.

    Columns of floating-point numbers are left out: equality of such values is not what a promise rests on.
    """
    offered = [Promise(stream.name, key, None, PromiseKind.KEY) for key in stream.keys]
    offered += [
        Promise(stream.name, scheme.columns, scheme.when, PromiseKind.PUNCTUATION)
        for scheme in stream.punctuations
    ]
    offered += [each for each in _constraints(stream) if not each.is_observed]
    return _exact(stream, offered)


def observed_promises(stream: StreamDef) -> tuple[Promise, ...]:
    """What monitoring is asked to find out of a stream, WITHIN AUTO, that closes values."""
    return _exact(stream, [each for each in _constraints(stream) if each.is_observed])


def _constraints(stream: StreamDef) -> Iterator[Promise]:
    # Rows that are in order of several columns are in order of the first of them.
    for order in stream.ordered:
        yield Promise(stream.name, order.columns[:1], None, PromiseKind.ORDER, order.within)
    for cluster in stream.clustered:
        yield Promise(stream.name, cluster.columns, None, PromiseKind.CLUSTER, cluster.within)


def _exact(stream: StreamDef, offered: Iterable[Promise]) -> tuple[Promise, ...]:
    type_of = {each.name: each.type for each in stream.columns}
    return tuple(
        promise
        for promise in offered
        if not any(pa.types.is_floating(type_of[name]) for name in promise.columns)
    )


def promises_of(stream: StreamDef) -> tuple[Promise, ...]:
    """Of the promises of a stream that close values, the first for each set of columns."""
    found: dict[frozenset[str], Promise] = {}
    for promise in closing_promises(stream):
        found.setdefault(frozenset(promise.columns), promise)
    return tuple(found.values())


def reference(
    stream: StreamDef, to: StreamDef, pairs: Mapping[str, str], *, observed: bool = False
) -> References | None:
    """The FOREIGN KEY over these pairs of columns by which every row of a stream has a partner in another.

    With `observed`, one that monitoring is asked to find the k of.
    """
    wanted = {theirs.casefold(): own.casefold() for own, theirs in pairs.items()}
    for each in stream.references:
        names = {
            theirs.casefold(): own.casefold()
            for own, theirs in zip(each.columns, each.parent_columns, strict=True)
        }
        if (
            each.parent.casefold() == to.name.casefold()
            and names == wanted
            and isinstance(each.within, Auto) == observed
        ):
            return each
    return None


def closes_within(stream: StreamDef, columns: Iterable[str]) -> bool:
    """Whether a promise of a stream other than a CHECK speaks of some of these columns alone.

    Then rows that keep it may still show less than it forbids, because what it closes need not have been closed.
    """
    promised = [*stream.keys, *(each.columns for each in stream.punctuations)]
    promised += [each.columns[:1] for each in stream.ordered if not isinstance(each.within, Auto)]
    promised += [each.columns for each in stream.clustered if not isinstance(each.within, Auto)]
    promised += [each.columns for each in stream.references if not isinstance(each.within, Auto)]
    known = frozenset(columns)
    return any(known.issuperset(names) for names in promised)


def checks_of(stream: StreamDef) -> tuple[Promise, ...]:
    """The CHECKs of a stream."""
    return tuple(Promise(stream.name, (), check, PromiseKind.CHECK) for check in stream.checks)


def not_null(stream: StreamDef, columns: Iterable[str]) -> Promise:
    """The CHECK that no row of a stream has NULL in these columns."""
    parts = [
        Scalar(exp.Not(this=exp.Is(this=column(name), expression=exp.Null())), types.BOOLEAN)
        for name in columns
    ]
    return Promise(stream.name, (), conjunction(parts), PromiseKind.CHECK)


def unused_constraints(stream: StreamDef) -> tuple[str, ...]:
    """The declared constraints that bound nothing by themselves, in words."""
    monitored = [
        *(("ORDERED BY", each.columns, each.within) for each in stream.ordered),
        *(("CLUSTERED BY", each.columns, each.within) for each in stream.clustered),
        *(("FOREIGN KEY", each.columns, each.within) for each in stream.references),
    ]
    found = [
        f"{said} ({', '.join(columns)}) WITHIN AUTO asks for monitoring, which proves nothing"
        for said, columns, within in monitored
        if isinstance(within, Auto)
    ]
    found += [
        f"FOREIGN KEY ({', '.join(each.columns)}) lets a row of {stream.name} go, and only if "
        f"{each.parent} ({', '.join(each.parent_columns)}) is a KEY"
        for each in stream.references
        if not isinstance(each.within, Auto)
    ]
    return tuple(found)
