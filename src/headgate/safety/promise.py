"""Promises: what a stream's declaration says will not come, each with its origin.

| declared | closes the values of its columns |
|---|---|
| `KEY (c)` | of every row, once it has come: no other row has them |
| `PUNCTUATED BY (c) WHEN p` | of a row for which p holds, once it has come |
| `CLUSTERED BY (c) WITHIN k ROWS` | once k + 1 rows with other values have come since the last with them |

A value that never comes is never closed. For punctuations and keys that is the user's care: something closes what is
open. A cluster promises nothing of the kind, so it counts only where a FOREIGN KEY says that each value does come.

A CHECK is a promise too: no row fails it. It closes nothing, but bounds what values there are.

ORDERED BY and FOREIGN KEY within k rows would let rows be dropped by themselves as well, but nothing carries that out
yet, so it counts for nothing here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from headgate.model.scalar import Scalar
from headgate.plan.catalog import AUTO, StreamDef


@dataclass(frozen=True)
class Promise:
    """No later row of `stream` has the values that a row with `when` (every row if None) has in `columns`.

    With `within`, only after so many rows with other values. Without columns, a CHECK: no row fails `when`.
    """

    stream: str
    columns: tuple[str, ...]
    when: Scalar | None
    cause: str
    """punctuation, key, constraint or check."""
    within: int | None = None

    def __str__(self) -> str:
        names = ", ".join(self.columns)
        match self.cause:
            case "key":
                return f"KEY ({names})"
            case "constraint":
                return f"CLUSTERED BY ({names}) WITHIN {self.within} ROWS"
            case "check":
                return "CHECK"
        return f"PUNCTUATED BY ({names})"


def promises_of(stream: StreamDef) -> tuple[Promise, ...]:
    """The promises of a stream that close values, at most one for a set of columns; keys first, they come soonest.

    Columns of floating-point numbers are left out: equality of such values is not what a promise rests on.
    """
    offered = [Promise(stream.name, key, None, "key") for key in stream.keys]
    offered += [
        Promise(stream.name, scheme.columns, scheme.when, "punctuation") for scheme in stream.punctuations
    ]
    offered += [
        Promise(stream.name, each.columns, None, "constraint", each.within)
        for each in stream.clustered
        if each.within != AUTO
    ]
    types = {column.name: column.type for column in stream.columns}
    found: dict[frozenset[str], Promise] = {}
    for promise in offered:
        if not any(pa.types.is_floating(types[name]) for name in promise.columns):
            found.setdefault(frozenset(promise.columns), promise)
    return tuple(found.values())


def refers(stream: StreamDef, to: StreamDef, pairs: Mapping[str, str]) -> bool:
    """Whether every row of a stream has a partner in another, by FOREIGN KEY over these pairs of columns."""
    return any(
        each.parent.casefold() == to.name.casefold()
        and {
            theirs.casefold(): own.casefold()
            for own, theirs in zip(each.columns, each.parent_columns, strict=True)
        }
        == {theirs.casefold(): own.casefold() for own, theirs in pairs.items()}
        and each.within != AUTO
        for each in stream.references
    )


def checks_of(stream: StreamDef) -> tuple[Promise, ...]:
    """The CHECKs of a stream."""
    return tuple(Promise(stream.name, (), check, "check") for check in stream.checks)


def unused_constraints(stream: StreamDef) -> tuple[str, ...]:
    """The declared constraints that would help and do not yet, in words."""
    words = [
        *((f"ORDERED BY ({', '.join(each.columns)})", each.within) for each in stream.ordered),
        *(
            (f"CLUSTERED BY ({', '.join(each.columns)})", each.within)
            for each in stream.clustered
            if each.within == AUTO
        ),
        *((f"FOREIGN KEY ({', '.join(each.columns)})", each.within) for each in stream.references),
    ]
    return tuple(
        f"{said} WITHIN AUTO asks for monitoring, which proves nothing"
        if within == AUTO
        else f"{said} WITHIN {within} ROWS is not used to drop rows yet"
        for said, within in words
    )
