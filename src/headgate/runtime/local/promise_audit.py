"""Promise audit: whether rows of several streams keep all that the streams declare, relied on or not.

A run tells only the rows that break what its query relies on, and nothing of FOREIGN KEYs. Rows that shall prove
something have to be rows that may come, so here every KEY, PUNCTUATED BY, ORDERED BY, CLUSTERED BY, FOREIGN KEY and
CHECK counts. What is WITHIN AUTO names no number that could be exceeded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import polars as pl

from headgate.plan.catalog import AUTO, References, StreamDef
from headgate.runtime.promise_checker import PromiseChecker
from headgate.safety.promise import Promise, PromiseKind, checks_of

PLACE = "_place"
"""The column with a row's place in the order of arrival over all streams."""

_RANK, _SEEN, _PARTNER = "_rank", "_seen", "_partner"


def broken_promise(
    streams: Sequence[StreamDef], rows: Mapping[str, pl.DataFrame], *, allowance: int
) -> str | None:
    """The first promise that the rows of the streams break, as declared; None if they keep all.

    Of what may be violated WITHIN so many rows, at most `allowance` are granted: rows fewer than those that a stream
    allows to be out of order show nothing.
    """
    for stream in streams:
        frame = rows[stream.name]
        for said, promise, spoken_of in _promises(stream, frame, allowance):
            _, broken = PromiseChecker([promise], memory=max(1, frame.height)).split(spoken_of)
            if not broken.is_empty():
                return f"{said} of {stream.name}"
        for each in stream.references:
            parent = next((s for s in streams if s.name.casefold() == each.parent.casefold()), None)
            if parent is None or each.within == AUTO:
                continue
            within = min(each.within, allowance)
            if _is_overdue(each, frame, rows[parent.name], within, ordered=bool(parent.ordered)):
                return f"FOREIGN KEY ({', '.join(each.columns)}) of {stream.name}"
    return None


def _promises(
    stream: StreamDef, frame: pl.DataFrame, allowance: int
) -> Iterator[tuple[str, Promise, pl.DataFrame]]:
    """The promises of a stream about its own rows: as declared, as told, and the rows that each speaks of."""
    name = stream.name
    closing = [Promise(name, key, None, PromiseKind.KEY) for key in stream.keys]
    closing += [
        Promise(name, each.columns, each.when, PromiseKind.PUNCTUATION) for each in stream.punctuations
    ]
    for promise in (*closing, *checks_of(stream)):
        yield str(promise), promise, frame
    for cluster in stream.clustered:
        if cluster.within != AUTO:
            promise = Promise(
                name, cluster.columns, None, PromiseKind.CLUSTER, min(cluster.within, allowance)
            )
            yield f"CLUSTERED BY ({', '.join(cluster.columns)})", promise, frame
    for order in stream.ordered:
        if order.within != AUTO:
            within = min(order.within, allowance)
            promise = Promise(name, (_RANK,), None, PromiseKind.ORDER, within)
            yield f"ORDERED BY ({', '.join(order.columns)})", promise, _ranked(frame, list(order.columns))


def _ranked(frame: pl.DataFrame, columns: list[str]) -> pl.DataFrame:
    """Rows without NULL in some columns, with their place in the order of these."""
    known = frame.drop_nulls(columns).sort(columns)
    changes = [pl.col(name).ne_missing(pl.col(name).shift()) for name in columns]
    return known.with_columns(pl.any_horizontal(changes).cum_sum().alias(_RANK)).sort(PLACE)


def _is_overdue(
    reference: References, children: pl.DataFrame, parents: pl.DataFrame, within: int, *, ordered: bool
) -> bool:
    """Whether rows refer to partners that have not come and are overdue, or that can no longer all come in time."""
    names = list(reference.columns)
    parent_names = list(reference.parent_columns)
    first = (
        parents.select(parent_names)
        .with_row_index(_PARTNER)
        .drop_nulls(parent_names)
        .unique(subset=parent_names, keep="first")
    )
    seen = np.searchsorted(parents[PLACE].to_numpy(), children[PLACE].to_numpy(), side="right")
    asked = (
        children.with_columns(pl.Series(_SEEN, seen, dtype=pl.Int64))
        .drop_nulls(names)
        .join(first, left_on=names, right_on=parent_names, how="left")
    )
    due = pl.col(_SEEN) + within
    missing = pl.col(_PARTNER).is_null()
    if asked.filter(missing & (due <= parents.height) | (pl.col(_PARTNER).cast(pl.Int64) >= due)).height:
        return True
    # Those still missing need a row each, soon enough and, where the parents are in order, not too late.
    waiting = asked.filter(missing).select(names).n_unique()
    return waiting > (0 if ordered else within)
