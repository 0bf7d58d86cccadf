"""Measure: all constraints that the samples of some streams obey, on the columns that queries use.

Left out are constraints that a stronger one on the same columns makes idle (no value of a key comes again, so its
rows are clustered), that their stream declares already, and whose k is so large that they would let nothing go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from headgate.model.adherence import AUTO
from headgate.model.batch import BORN
from headgate.plan.catalog import StreamDef
from headgate.profile.clusters import closed_share, clustering_distances
from headgate.profile.constraint import Constraint, Flag, Kind, Reference, Spread
from headgate.profile.keys import ENOUGH, find_keys
from headgate.profile.order import scrambling_distances
from headgate.profile.punctuations import find_closings, find_flags
from headgate.profile.references import join_distances
from headgate.profile.sample import Sample
from headgate.profile.uses import Link, Uses, can_be_promised, has_order

LARGEST = 0.5
"""A k that is a larger share of the rows which it counts, or of the time that they take, is of no use."""

LEAST_CLOSED = 0.5
"""Where a cluster closes fewer values, they all come again and again."""

MOST_FLAGGED = 2
"""So many columns that close the same values are worth telling."""


@dataclass(frozen=True)
class Measured:
    """What was found in the sample of a stream."""

    sample: Sample
    keys: tuple[tuple[str, ...], ...]
    constraints: tuple[Constraint, ...]
    """The keys that queries have a use for among them."""
    timed: tuple[Constraint, ...] = ()
    """References with a k in time."""


def find_stream_keys(sample: Sample, sets: Sequence[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """The keys of a stream: single columns but for the event time, and sets of columns that queries use."""
    stream = sample.stream
    single = [c.name for c in stream.columns if can_be_promised(c.type) and c.name != stream.time]
    return tuple(find_keys(sample.rows, single, sets))


def measure(samples: Mapping[str, Sample], uses: Uses, margin: float = 1.0) -> dict[str, Measured]:
    """What is found in each sample; `margin` is for the clauses."""
    keys = {name: find_stream_keys(each, list(uses.sets.get(name, {}))) for name, each in samples.items()}
    found: dict[str, Measured] = {}
    for name, sample in samples.items():
        constraints = [*_of_stream(sample, keys[name], uses, margin)] if sample.height >= ENOUGH else []
        for link in (each for each in uses.links if each.stream == name):
            constraints += _reference(samples, keys, link, margin)
        each_once = tuple(dict.fromkeys(constraints))
        found[name] = Measured(
            sample,
            keys[name],
            tuple(each for each in each_once if not each.in_time),
            tuple(each for each in each_once if each.in_time),
        )
    return found


def _of_stream(
    sample: Sample, keys: Sequence[tuple[str, ...]], uses: Uses, margin: float
) -> Iterator[Constraint]:
    """The constraints of a stream by itself."""
    stream, rows, name = sample.stream, sample.rows, sample.stream.name
    sets = list(uses.sets.get(name, {}))
    for key in keys:
        if any(set(key) <= set(each) for each in sets) and not _declares_key(stream, key):
            yield Constraint(Kind.KEY, name, key, rows.height)
    flags = find_flags(rows, [column.name for column in stream.columns])
    types = {column.name: column.type for column in stream.columns}
    for columns in sets:
        if not _has_key(stream, keys, columns):
            yield from _punctuations(sample, columns, flags)
            if not _declares_cluster(stream, columns):
                yield from _cluster(sample, columns, margin)
        if len(columns) == 1 and has_order(types[columns[0]]) and not _declares_order(stream, columns):
            kind = Kind.OAC if columns in keys else Kind.OAP
            yield from _order(sample, columns, kind, margin)


def _cluster(sample: Sample, columns: tuple[str, ...], margin: float) -> Iterator[Constraint]:
    """The cluster on some columns, if it closes values."""
    rows = sample.rows
    spread = Spread.of(clustering_distances(rows, columns))
    nulls = _nulls(sample, columns)
    found = Constraint(Kind.CA, sample.stream.name, columns, rows.height, spread, margin=margin, nulls=nulls)
    if _is_useful(found, sample) and closed_share(rows, columns, _allowed(found)) >= LEAST_CLOSED:
        yield found


def _order(sample: Sample, columns: tuple[str, ...], kind: Kind, margin: float) -> Iterator[Constraint]:
    """The order of a column that has several values, and is not the event time: that one closes by itself."""
    (name,), rows = columns, sample.rows
    if name == sample.stream.time or rows[name].drop_nulls().n_unique() < 2:
        return
    spread = Spread.of(scrambling_distances(rows[name]))
    nulls = _nulls(sample, columns)
    found = Constraint(kind, sample.stream.name, columns, rows.height, spread, margin=margin, nulls=nulls)
    if _is_useful(found, sample):
        yield found


def _nulls(sample: Sample, columns: tuple[str, ...]) -> int:
    return sample.height - sample.rows.select(columns).drop_nulls().height


def _allowed(found: Constraint) -> int:
    assert found.within is not None
    return found.within.k


def _punctuations(sample: Sample, columns: tuple[str, ...], flags: Sequence[Flag]) -> Iterator[Constraint]:
    stream = sample.stream
    if any(set(each.columns) == set(columns) for each in stream.punctuations):
        return
    nulls = _nulls(sample, columns)
    for closing in find_closings(sample.rows, columns, flags)[:MOST_FLAGGED]:
        yield Constraint(
            Kind.PUNCTUATION,
            stream.name,
            columns,
            sample.height,
            flag=closing.flag,
            share=closing.share,
            nulls=nulls,
        )


def _reference(
    samples: Mapping[str, Sample],
    keys: Mapping[str, Sequence[tuple[str, ...]]],
    link: Link,
    margin: float,
) -> Iterator[Constraint]:
    """The FOREIGN KEY that a link may be: only to what is, or is found to be, a key.

    Rows that have no partner break none, however many they are; the others must be enough to tell k by.
    """
    sample, other = samples.get(link.stream), samples.get(link.other)
    if sample is None or other is None or link.stream == link.other:
        return
    unique = any(set(key) == set(link.keys) for key in (*keys[link.other], *other.stream.keys))
    if not unique or sample.height < ENOUGH or _declares_reference(sample.stream, link):
        return
    joined = join_distances(sample.rows, link.columns, other.rows, link.keys)
    if len(joined.distances) < ENOUGH:
        return
    for spread in (Spread.of(joined.distances), Spread.of(joined.delays, in_time=True)):
        found = Constraint(
            Kind.RIDS,
            link.stream,
            link.columns,
            joined.asking,
            spread,
            Reference(link.other, link.keys),
            share=joined.share,
            margin=margin,
        )
        if _is_useful(found, other):
            yield found


def _is_useful(found: Constraint, counted: Sample) -> bool:
    """Whether k is small beside the rows of the sample that it counts, or the time that they take."""
    born = counted.rows[BORN]
    most = int(born[-1]) - int(born[0]) if found.in_time else counted.height
    return _allowed(found) <= LARGEST * most


def _has_key(stream: StreamDef, keys: Sequence[tuple[str, ...]], columns: tuple[str, ...]) -> bool:
    return any(set(key) <= set(columns) for key in (*keys, *stream.keys))


def _declares_key(stream: StreamDef, key: tuple[str, ...]) -> bool:
    return any(set(each) == set(key) for each in stream.keys)


def _declares_order(stream: StreamDef, columns: tuple[str, ...]) -> bool:
    return any(each.columns[:1] == columns and each.within != AUTO for each in stream.ordered)


def _declares_cluster(stream: StreamDef, columns: tuple[str, ...]) -> bool:
    return any(set(each.columns) == set(columns) and each.within != AUTO for each in stream.clustered)


def _declares_reference(stream: StreamDef, link: Link) -> bool:
    return any(
        each.columns == link.columns
        and each.parent.casefold() == link.other.casefold()
        and tuple(map(str.casefold, each.parent_columns)) == tuple(map(str.casefold, link.keys))
        and each.within != AUTO
        for each in stream.references
    )
