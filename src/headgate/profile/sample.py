"""Sample: the first rows of the streams of a session, as a query would see them.

```
bids    ──────────────────x   so many rows were asked for, and the stream goes on
items   ─────x────┊           the stream ends
                  ┊
        ─────────┤            what is looked at of both: up to here, both are known
```

Late rows are left out, since no query sees them. The others stand in order of event time, those of one instant in
order of arrival: that is the order in which constraints count rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from headgate.model.batch import BORN
from headgate.model.errors import UnsupportedError
from headgate.plan.catalog import StreamDef
from headgate.runtime.io import FileSource, RejectPolicy
from headgate.runtime.io.arrival import Arrival
from headgate.runtime.io.declared import require_time
from headgate.runtime.io.registry import FILE_FORMATS
from headgate.runtime.lateness import Counts, added, counted

_CHUNK_ROWS = 100_000

Heard = Callable[[str, int], None]
"""Is told a stream and how many of its rows have been read."""


@dataclass(frozen=True, eq=False)
class Sample:
    """The rows of a stream that are on time, in order, with their instants as `_born`."""

    stream: StreamDef
    rows: pl.DataFrame
    late: int
    late_by: Counts
    """How many of the late rows are late by how much."""
    whole: bool
    """Whether the stream was read to its end."""

    @property
    def height(self) -> int:
        return self.rows.height

    @property
    def columns(self) -> pl.DataFrame:
        """The rows as the stream brought them."""
        return self.rows.drop(BORN)

    def until(self, instant: int) -> Sample:
        """The rows up to an instant."""
        rows = self.rows.filter(pl.col(BORN) <= instant)
        return self if rows.height == self.height else replace(self, rows=rows, whole=False)


def read_sample(
    stream: StreamDef,
    base: Path,
    given: pl.DataFrame | None,
    limit: int | None,
    heard: Heard = lambda stream, rows: None,
) -> Sample:
    """The first `limit` rows of a stream, or all; errors as those of a run, if its files cannot be read."""
    require_time(stream)
    if given is None:
        _require_files(stream)
        chunk = _CHUNK_ROWS if limit is None else min(limit, _CHUNK_ROWS)
        source = FileSource(stream, base, rows_per_chunk=chunk, on_bad_row=RejectPolicy.stop())
        chunks = source.chunks()
    else:
        chunks = given.iter_slices(_CHUNK_ROWS) if given.height else iter([given])
    arrival, admitted, read, whole = Arrival(stream), [], 0, True
    late, late_by = 0, counted(pl.Series(dtype=pl.Int64))
    for frame in chunks:
        wanted = frame if limit is None else frame.head(limit - read)
        whole = wanted.height == frame.height
        found = arrival.admit(wanted)
        admitted.append(found.rows)
        read, late = read + wanted.height, late + found.late.height
        late_by = added(late_by, counted(found.late_by))
        heard(stream.name, read)
        if not whole:
            break
    rows = pl.concat(admitted)
    return Sample(stream, rows.sort(BORN, maintain_order=True), late, late_by, whole)


def aligned(samples: Mapping[str, Sample], together: Sequence[frozenset[str]]) -> dict[str, Sample]:
    """The samples, of which those that are read `together` end at one instant: behind it, some of them are not known.

    Streams that share a set with a third end together as well.
    """
    found = dict(samples)
    for group in _merged(together):
        ends = [
            int(each.rows[BORN][-1]) for name in group if (each := samples[name]).height and not each.whole
        ]
        for name in group if ends else ():
            found[name] = samples[name].until(min(ends))
    return found


def _merged(sets: Sequence[frozenset[str]]) -> list[frozenset[str]]:
    merged: list[frozenset[str]] = []
    for each in sets:
        joined = [known for known in merged if known & each]
        merged = [known for known in merged if not known & each] + [each.union(*joined)]
    return merged


def _require_files(stream: StreamDef) -> None:
    source = stream.source
    if source is not None and source.format not in FILE_FORMATS:
        raise UnsupportedError(
            f"{stream.name} reads from {source.format}, and profile looks at files ({', '.join(FILE_FORMATS)})",
            remedy=f"write some of it to files (SELECT ISTREAM(*) FROM {stream.name} [NOW]) and declare those",
        )
