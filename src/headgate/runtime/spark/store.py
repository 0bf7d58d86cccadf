"""Store: a shard's state as named chunks that outlive the worker, and the worker's cache of it.

The store writes what a micro-batch added and removes what it dropped. A cached state is used only if the store
bears its token, so a cache left by a failed attempt, another run or another worker is never believed.
"""

from __future__ import annotations

import json
import pickle
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol
from uuid import uuid4

from headgate.model.errors import SetupError
from headgate.runtime.spark.compact import decode, encode
from headgate.runtime.spark.shard import ShardState
from headgate.runtime.spark.stage import FORMAT, Stage

_MOST_CACHED = 64

_CACHE: OrderedDict[str, tuple[ShardState, frozenset[str]]] = OrderedDict()
"""States by token, the most recently saved last."""


class DurableMap(Protocol):
    """Where a shard's chunks and facts live between micro-batches."""

    def facts(self) -> str | None:
        """The facts as they were put last."""

    def put_facts(self, facts: str) -> None: ...

    def chunks(self) -> Iterator[tuple[str, bytes]]: ...

    def put(self, name: str, chunk: bytes) -> None: ...

    def remove(self, name: str) -> None: ...


@dataclass(frozen=True, eq=False)
class Loaded:
    """A shard's state as it was stored, the names of its chunks there, and whether this worker still had it."""

    state: ShardState
    stored: frozenset[str] = frozenset()
    token: str | None = None
    cached: bool = True


@dataclass(frozen=True)
class Saved:
    """What a save wrote."""

    token: str
    chunks: int
    bytes: int


def load(stage: Stage, store: DurableMap) -> Loaded:
    """A shard's state, from this worker if it is the same there."""
    text = store.facts()
    if text is None:
        return Loaded(ShardState.initial(stage))
    facts = json.loads(text)
    check_readable(stage, facts)
    token = facts["token"]
    cached = _CACHE.get(token)
    if cached is not None:
        return Loaded(*cached, token)
    found = dict(store.chunks())
    missing = facts["chunks"] - len(found)
    if missing:
        raise SetupError(
            f"query {stage.graph.query}: {abs(missing)} chunks of its state are "
            f"{'missing' if missing > 0 else 'too many'} in the checkpoint",
            remedy="restore the checkpoint from a copy, or start again with a new one",
        )
    chunks = {name: decode(chunk) for name, chunk in found.items()}
    return Loaded(ShardState.restored(stage, facts, chunks), frozenset(found), token, cached=False)


def save(stage: Stage, store: DurableMap, before: Loaded, state: ShardState) -> Saved:
    """Puts what changed into the store, and the state into the cache."""
    chunks = state.chunks()
    for name in before.stored - chunks.keys():
        store.remove(name)
    added, written = chunks.keys() - before.stored, 0
    for name in added:
        blob = encode(chunks[name], compress=True)
        written += len(blob)
        store.put(name, blob)
    token = uuid4().hex
    facts = {
        **state.facts(),
        "format": FORMAT,
        "fingerprint": stage.fingerprint,
        "chunks": len(chunks),
        "token": token,
    }
    store.put_facts(json.dumps(facts))
    # Last of all: a state is known here only when the store has all of it.
    _CACHE[token] = (state, frozenset(chunks))
    _CACHE.pop(before.token or "", None)
    while len(_CACHE) > _MOST_CACHED:
        _CACHE.popitem(last=False)
    return Saved(token, len(added), written)


def check_readable(stage: Stage, facts: Mapping[str, Any]) -> None:
    """Raises unless a stored state is one that this stage can continue."""
    if facts.get("format") != FORMAT:
        raise SetupError(
            f"the checkpoint's state has format {facts.get('format')}; this version reads format {FORMAT}",
            remedy="continue with the version that wrote it, or start again with a new checkpoint",
        )
    if facts["fingerprint"] != stage.fingerprint:
        raise SetupError(
            f"the checkpoint belongs to another form of query {stage.graph.query}",
            remedy="start again with a new checkpoint, or run the query as it was",
        )


@lru_cache(maxsize=16)
def unpickled(stage: bytes) -> Stage:
    """The stage in bytes of our own making, once per worker."""
    found = pickle.loads(stage)
    assert isinstance(found, Stage)
    return found
