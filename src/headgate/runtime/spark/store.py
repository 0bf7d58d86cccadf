"""Store: the states of the shards at a place as named chunks that outlive the worker, and their copies near by.

The store writes what a micro-batch added and removes what it dropped. A copy, in this worker's memory or in a file of
this machine, is used only if the store bears its token, so a copy left by a failed attempt, another run or another
worker is never believed.
"""

from __future__ import annotations

import json
import pickle
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, Protocol
from uuid import uuid4

import polars as pl

from headgate.kernels.state.store import prefixed, under
from headgate.model.errors import InputError, SetupError
from headgate.runtime.shard import ShardState
from headgate.runtime.spark.codec import decode, encode
from headgate.runtime.spark.job import JobStage
from headgate.runtime.spark.local_state_cache import NONE_KNOWN, LocalStateCache, Stamp
from headgate.runtime.stage import FORMAT, Stage

_MOST_CACHED = 64

States = Mapping[int, ShardState]
"""By query."""


@dataclass(frozen=True, eq=False)
class Cached:
    """The states of a place as this worker saved them, and the files of their chunks on this machine."""

    token: str
    states: States
    chunks: Mapping[str, pl.DataFrame]
    stamps: Mapping[str, Stamp]


_CACHE: OrderedDict[str, Cached] = OrderedDict()
"""For each place that this worker has had, by lineage; the latest saved last."""


class DurableMap(Protocol):
    """Where a place's chunks and facts live between micro-batches."""

    def facts(self) -> str | None:
        """The facts as they were put last."""

    def put_facts(self, facts: str) -> None: ...

    def chunks(self) -> Iterator[tuple[str, bytes]]: ...

    def put(self, name: str, chunk: bytes) -> None: ...

    def remove(self, name: str) -> None: ...


@dataclass(frozen=True, eq=False)
class Loaded:
    """The states of a place as they were stored, the names of their chunks there, and where they were found.

    The lineage is one name for all states of a place in a run; the token is another for each of them.
    """

    states: States
    lineage: str
    stored: frozenset[str] = frozenset()
    token: str | None = None
    found: Literal["worker", "machine", "store"] = "worker"


@dataclass(frozen=True)
class Saved:
    """What a save wrote."""

    token: str
    written: Mapping[int, tuple[int, int]]
    """By query, how many chunks and bytes."""


def load(
    stages: Mapping[int, Stage], store: DurableMap, local_cache: LocalStateCache | None = None
) -> Loaded:
    """The states of the shards at a place, from this worker or this machine if they are the same there."""
    text = store.facts()
    if text is None:
        return Loaded({query: ShardState.initial(stage) for query, stage in stages.items()}, uuid4().hex)
    facts = json.loads(text)
    check_readable(stages, facts)
    lineage, token = facts["lineage"], facts["token"]
    cached = _CACHE.get(lineage)
    if cached is not None and cached.token == token:
        return Loaded(cached.states, lineage, frozenset(cached.chunks), token)
    known = NONE_KNOWN if cached is None else cached.stamps
    found = None if local_cache is None else local_cache.find(lineage, token, known)
    if found is not None and len(found) == facts["chunks"]:
        # Chunks that this worker had when the place was here last are as they were.
        before = {} if cached is None else cached.chunks
        frames = {name: before[name] if blob is None else decode(blob) for name, blob in found.items()}
        return _restored(stages, facts, frames, "machine")
    chunks = dict(store.chunks())
    missing = facts["chunks"] - len(chunks)
    if missing:
        raise SetupError(
            f"{_named(stages)}: {abs(missing)} chunks of the state are "
            f"{'missing' if missing > 0 else 'too many'} in the checkpoint",
            remedy="restore the checkpoint from a copy, or start again with a new one",
        )
    if local_cache is not None:
        local_cache.keep(lineage, token, chunks, chunks, None)
    frames = {name: decode(chunk) for name, chunk in chunks.items()}
    return _restored(stages, facts, frames, "store")


def _restored(
    stages: Mapping[int, Stage],
    facts: Mapping[str, Any],
    frames: Mapping[str, pl.DataFrame],
    found: Literal["machine", "store"],
) -> Loaded:
    states = {
        query: ShardState.restored(stage, facts["queries"][str(query)], under(frames, _prefix(query)))
        for query, stage in stages.items()
    }
    return Loaded(states, facts["lineage"], frozenset(frames), facts["token"], found)


def _prefix(query: int) -> str:
    """How the names of a query's chunks begin."""
    return f"q{query}/"


def _named(stages: Mapping[int, Stage]) -> str:
    names = [stage.graph.query for stage in stages.values()]
    return f"{'query' if len(names) == 1 else 'queries'} {', '.join(names)}"


def save(
    stages: Mapping[int, Stage],
    store: DurableMap,
    before: Loaded,
    states: States,
    local_cache: LocalStateCache | None = None,
) -> Saved:
    """Puts what changed into the store, and the states where they are quickly found."""
    named = {query: prefixed(state.chunks(), _prefix(query)) for query, state in states.items()}
    chunks = {name: chunk for mine in named.values() for name, chunk in mine.items()}
    for name in before.stored - chunks.keys():
        store.remove(name)
    added: dict[str, bytes] = {}
    written: dict[int, tuple[int, int]] = {}
    for query, mine in named.items():
        new = {name: encode(mine[name], compress=True) for name in mine.keys() - before.stored}
        written[query] = (len(new), sum(map(len, new.values())))
        added |= new
    for name, blob in added.items():
        store.put(name, blob)
    token = uuid4().hex
    facts = {
        "queries": {query: state.facts() for query, state in states.items()},
        "format": FORMAT,
        "fingerprint": fingerprint(stages),
        "chunks": len(chunks),
        "lineage": before.lineage,
        "token": token,
    }
    store.put_facts(json.dumps(facts))
    # Last of all: a state is known here only when the store has all of it.
    stamps = (
        NONE_KNOWN
        if local_cache is None
        else local_cache.keep(before.lineage, token, chunks, added, before.token)
    )
    _CACHE[before.lineage] = Cached(token, states, chunks, stamps)
    _CACHE.move_to_end(before.lineage)
    while len(_CACHE) > _MOST_CACHED:
        _CACHE.popitem(last=False)
    return Saved(token, written)


def fingerprint(stages: Mapping[int, Stage]) -> str:
    """Tells the queries whose shards lie at a place from all others."""
    return " ".join(f"{query}:{stage.fingerprint}" for query, stage in sorted(stages.items()))


def check_readable(stages: Mapping[int, Stage], facts: Mapping[str, Any]) -> None:
    """Raises unless stored states are those that these stages can continue."""
    if facts.get("format") != FORMAT:
        raise InputError(
            f"the checkpoint's state has format {facts.get('format')}; this version reads format {FORMAT}",
            remedy="continue with the version that wrote it, or start again with a new checkpoint",
        )
    if facts["fingerprint"] != fingerprint(stages):
        raise InputError(
            f"the checkpoint belongs to another form of {_named(stages)}",
            remedy="start again with a new checkpoint, or run the queries as they were",
        )


@lru_cache(maxsize=16)
def unpickled(job: bytes) -> JobStage:
    """The stage of a job in bytes of our own making, once per worker."""
    found = pickle.loads(job)
    assert isinstance(found, JobStage)
    return found
