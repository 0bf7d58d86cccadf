"""Promises: what a stream's declaration says will not come again, each as a punctuation scheme with its origin.

| declared | closes the values of its columns |
|---|---|
| `PUNCTUATED BY (c) WHEN p` | of a row for which p holds, once it has come |
| `KEY (c)` | of every row, once it has come: no other row has them |

The other constraints (ORDERED BY, CLUSTERED BY, FOREIGN KEY within k rows) would close values too, but nothing
carries them out yet, so they close nothing here.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from headgate.model.scalar import Scalar
from headgate.plan.catalog import AUTO, StreamDef


@dataclass(frozen=True)
class Promise:
    """No later row of `stream` has the values that a row with `when` (every row if None) has in `columns`."""

    stream: str
    columns: tuple[str, ...]
    when: Scalar | None
    cause: str
    """punctuation or key."""

    def __str__(self) -> str:
        names = ", ".join(self.columns)
        return f"KEY ({names})" if self.cause == "key" else f"PUNCTUATED BY ({names})"


def promises_of(stream: StreamDef) -> tuple[Promise, ...]:
    """The promises of a stream that close values, at most one for a set of columns; keys first, they come soonest.

    Columns of floating-point numbers are left out: equality of such values is not what a promise rests on.
    """
    offered = [Promise(stream.name, key, None, "key") for key in stream.keys]
    offered += [
        Promise(stream.name, scheme.columns, scheme.when, "punctuation") for scheme in stream.punctuations
    ]
    types = {column.name: column.type for column in stream.columns}
    found: dict[frozenset[str], Promise] = {}
    for promise in offered:
        if not any(pa.types.is_floating(types[name]) for name in promise.columns):
            found.setdefault(frozenset(promise.columns), promise)
    return tuple(found.values())


def unused_constraints(stream: StreamDef) -> tuple[str, ...]:
    """The declared constraints that would help and do not yet, in words."""
    words = [
        *((f"ORDERED BY ({', '.join(each.columns)})", each.within) for each in stream.ordered),
        *((f"CLUSTERED BY ({', '.join(each.columns)})", each.within) for each in stream.clustered),
        *((f"FOREIGN KEY ({', '.join(each.columns)})", each.within) for each in stream.references),
    ]
    return tuple(
        f"{said} WITHIN AUTO asks for monitoring, which proves nothing"
        if within == AUTO
        else f"{said} WITHIN {within} ROWS is not used to drop rows yet"
        for said, within in words
    )
