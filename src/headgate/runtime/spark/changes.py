"""Tables that change while a query runs on Spark: their changes are streamed to every shard.

```
prices  ──+──────-+───────  feed `prices`: every change to all shards, with its instant; it has a clock too
bids    ─x──x─x──x──x──x──  feed `bids`: each row to its shard
```

The clock of a table's changes holds the query's as a stream's does: an answer is given once all changes up to its
instant are known.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from headgate.runtime.io.changes import ChangeStream
from headgate.runtime.stage import Feed, Stage


def with_changes(stage: Stage, changes: Iterable[ChangeStream]) -> Stage:
    """The stage with feeds for the changes of tables that it reads."""
    everywhere: tuple[tuple[str, ...], ...] = tuple(() for _ in stage.shares)
    added = [each for each in changes if each.stream.name not in {feed.name for feed in stage.feeds}]
    return replace(
        stage,
        streams=(*stage.streams, *(each.stream for each in added)),
        feeds=(
            *stage.feeds,
            *(Feed(each.stream.name, each.stream.name, everywhere, op=each.op) for each in added),
        ),
    )
