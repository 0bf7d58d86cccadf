"""Job: the queries of a program as one Spark job. Each stream is read and packed once, and a shard holds all queries.

```
            read, packed once              place 0            place 1
bids ─────┬ by item ───────────────────┬─ hot, shard 0     hot, shard 1      two shards
          └ everything to one place ───┼─ total, shard 0                     one shard
                                       └──────────────     best, shard 0     one shard, begins at the next place
```

A place is where Spark keeps the state of one key: the shards of queries that lie there share a task, a state store
and the messages that they want alike. Queries have as many stages as they need; those that end before the last stage
of the job have their answers passed on by the later ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from headgate.plan.catalog import StreamDef
from headgate.runtime.description import described
from headgate.runtime.stage import Feed, Stage


@dataclass(frozen=True, eq=False)
class JobFeed:
    """Rows of a stream that some queries of a job want in the same way, and so are sent once."""

    query: int
    """The first query that reads it; the rows take its routes."""
    feed: int
    """Its number there."""
    readers: tuple[tuple[int, int], ...]
    """All that read it: queries, and its number in each."""
    counts: bool
    """Whether some query counts the rows of the stream, and learns of late ones, by this feed."""


@dataclass(frozen=True, eq=False)
class JobStage:
    """What one operator of a Spark job runs: the stage with the same number of each query."""

    stages: tuple[Stage | None, ...]
    """By query; None if it has ended with an earlier stage."""
    places: int
    """Of all stages of the job."""
    first: tuple[int, ...]
    """By query, the place of its first shard; the others follow, and after the last place comes the first."""
    drains: tuple[bool, ...]
    """By query, whether its clock runs on when the streams have ended."""
    onward: JobStage | None = None

    @staticmethod
    def of(stages: Sequence[Stage], drains: Sequence[bool] | None = None) -> JobStage:
        """The job of queries, given by their first stages. All of them drain if nothing else is said."""
        places = max(stage.most_shards for stage in stages)
        first, following = [], 0
        for stage in stages:
            first.append(following if stage.most_shards < places else 0)
            following = (following + stage.most_shards) % places
        levels = [stage.chain for stage in stages]
        onward: JobStage | None = None
        for number in reversed(range(max(map(len, levels)))):
            onward = JobStage(
                tuple(chain[number] if number < len(chain) else None for chain in levels),
                places,
                tuple(first),
                tuple(drains) if drains is not None else (True,) * len(stages),
                onward,
            )
        assert onward is not None
        return onward

    def for_packing(self) -> JobStage:
        """The same as packing needs it: without tables, the stages after it, and options, which may be secret."""
        stages = tuple(
            None
            if stage is None
            else replace(stage, tables={}, onward=None, streams=tuple(map(_without_options, stage.streams)))
            for stage in self.stages
        )
        return replace(self, stages=stages, onward=None)

    @property
    def chain(self) -> tuple[JobStage, ...]:
        """This stage and all after it."""
        return (self,) if self.onward is None else (self, *self.onward.chain)

    @property
    def queries(self) -> dict[int, Stage]:
        """The stages by number of their query."""
        return {number: stage for number, stage in enumerate(self.stages) if stage is not None}

    @cached_property
    def streams(self) -> tuple[StreamDef, ...]:
        """The streams that it reads, each once."""
        found: dict[str, StreamDef] = {}
        for stage in self.queries.values():
            for stream in stage.streams:
                if found.setdefault(stream.name, stream) != stream:
                    raise ValueError(f"two queries read stream {stream.name} by different declarations")
        return tuple(found.values())

    @property
    def idle_ms(self) -> int | None:
        """After how long a silent input holds up nobody; only a stage that reads streams asks."""
        return next(
            (stage.clock.idle_ms for stage in self.queries.values() if not stage.senders),
            None,
        )

    @cached_property
    def feeds(self) -> tuple[JobFeed, ...]:
        """What is sent to its shards, if it reads streams: feeds of queries, each kind of them once."""
        found: dict[tuple[object, ...], list[tuple[int, int]]] = {}
        for query, stage in self.queries.items():
            for number, feed in enumerate(stage.feeds if not stage.senders else ()):
                found.setdefault(self._kind(query, stage, feed), []).append((query, number))
        return tuple(
            JobFeed(*readers[0], tuple(readers), any(map(self._is_first, readers)))
            for readers in found.values()
        )

    def _kind(self, query: int, stage: Stage, feed: Feed) -> tuple[object, ...]:
        """Feeds of one kind have the same rows for the same places."""
        predicate = None if feed.predicate is None else described(feed.predicate)
        return feed.stream, feed.columns, predicate, stage.shares, self.first[query]

    def _is_first(self, reader: tuple[int, int]) -> bool:
        query, number = reader
        stage = self.stages[query]
        assert stage is not None
        return stage.feeds_of(stage.feeds[number].stream)[0] == number

    def feeds_of(self, stream: str) -> list[tuple[int, JobFeed]]:
        """The feeds of a stream, with their numbers."""
        return [(number, feed) for number, feed in enumerate(self.feeds) if self.feed(feed).stream == stream]

    def feed(self, shared: JobFeed) -> Feed:
        """The feed of the first query that reads it."""
        return self.routes(shared).feeds[shared.feed]

    def routes(self, shared: JobFeed) -> Stage:
        """The stage by whose routes the rows of a feed go."""
        stage = self.stages[shared.query]
        assert stage is not None
        return stage

    def place_of(self, query: int, shard: int) -> int:
        """Where a shard of a query lies."""
        return (self.first[query] + shard) % self.places

    def places_of(self, query: int) -> list[int]:
        """Where the shards of a query lie in this stage, in their order."""
        stage = self.stages[query]
        return [] if stage is None else [self.place_of(query, shard) for shard in range(stage.shards)]

    def at(self, place: int) -> Iterator[tuple[int, Stage, int]]:
        """What lies at a place: queries, their stages and the numbers of their shards there."""
        for query, stage in self.queries.items():
            shard = (place - self.first[query]) % self.places
            if shard < stage.shards:
                yield query, stage, shard

    def is_first_feed(self, query: int, feed: int) -> bool:
        """Whether a query counts a stream's rows by this feed of its."""
        return self._is_first((query, feed))


def _without_options(stream: StreamDef) -> StreamDef:
    source = None if stream.source is None else replace(stream.source, options=())
    return replace(stream, source=source)
