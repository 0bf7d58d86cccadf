"""Promise audit: whether rows of several streams keep all that the streams declare, relied on or not.

A run tells only the rows that break what its query relies on, and nothing of FOREIGN KEYs. Rows that shall prove
something have to be rows that may come, so here every KEY, PUNCTUATED BY, ORDERED BY, CLUSTERED BY, FOREIGN KEY and
CHECK counts. What is WITHIN AUTO names no number that could be exceeded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import polars as pl

from headgate.model.adherence import Auto, Bound, WithinRows, WithinTime
from headgate.model.batch import BORN
from headgate.plan.catalog import References, StreamDef
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
    allows to be out of order show nothing. Of a time none are: all that is played might lie within it.
    """
    for stream in streams:
        frame = rows[stream.name]
        for said, promise, spoken_of in _promises(stream, frame, allowance):
            _, broken = PromiseChecker([promise], memory=max(1, frame.height)).split(spoken_of)
            if not broken.is_empty():
                return f"{said} of {stream.name}"
        for each in stream.references:
            parent = next((s for s in streams if s.name.casefold() == each.parent.casefold()), None)
            if parent is None or isinstance(each.within, Auto):
                continue
            within = _granted(each.within, allowance)
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
        if not isinstance(cluster.within, Auto):
            said = f"CLUSTERED BY ({', '.join(cluster.columns)})"
            rows = WithinRows(_granted(cluster.within, allowance))
            yield said, Promise(name, cluster.columns, None, PromiseKind.CLUSTER, rows), frame
            if isinstance(cluster.within, WithinTime) and stream.time is not None:
                # Equal values that come one after the other may still come too long after each other.
                timed = frame.with_columns(pl.col(stream.time).dt.epoch("us").alias(BORN))
                yield said, Promise(name, cluster.columns, None, PromiseKind.CLUSTER, cluster.within), timed
    for order in stream.ordered:
        if not isinstance(order.within, Auto):
            within = WithinRows(_granted(order.within, allowance))
            promise = Promise(name, (_RANK,), None, PromiseKind.ORDER, within)
            yield f"ORDERED BY ({', '.join(order.columns)})", promise, _ranked(frame, list(order.columns))


def _granted(within: Bound, allowance: int) -> int:
    """By how many rows a constraint may be violated in rows that shall prove something."""
    return min(within.rows, allowance) if isinstance(within, WithinRows) else 0


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
