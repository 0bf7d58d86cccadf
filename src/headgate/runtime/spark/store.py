"""Store: a shard's state as named chunks that outlive the worker, and its copies near by.

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

from headgate.model.errors import InputError, SetupError
from headgate.runtime.shard import ShardState
from headgate.runtime.spark.codec import decode, encode
from headgate.runtime.spark.local_state_cache import LocalStateCache
from headgate.runtime.stage import FORMAT, Stage

_MOST_CACHED = 64

_CACHE: OrderedDict[str, tuple[str, ShardState, frozenset[str]]] = OrderedDict()
"""For each shard that this worker has had, by lineage: the token, the state and its names; the latest saved last."""


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
    """A shard's state as it was stored, the names of its chunks there, and where it was found.

    The lineage is one name for all states of a shard in a run; the token is another for each of them.
    """

    state: ShardState
    lineage: str
    stored: frozenset[str] = frozenset()
    token: str | None = None
    found: Literal["worker", "machine", "store"] = "worker"


@dataclass(frozen=True)
class Saved:
    """What a save wrote."""

    token: str
    chunks: int
    bytes: int


def load(stage: Stage, store: DurableMap, local_cache: LocalStateCache | None = None) -> Loaded:
    """A shard's state, from this worker or this machine if it is the same there."""
    text = store.facts()
    if text is None:
        return Loaded(ShardState.initial(stage), uuid4().hex)
    facts = json.loads(text)
    check_readable(stage, facts)
    lineage, token = facts["lineage"], facts["token"]
    if lineage in _CACHE and _CACHE[lineage][0] == token:
        _, state, names = _CACHE[lineage]
        return Loaded(state, lineage, names, token)
    chunks = None if local_cache is None else local_cache.find(lineage, token)
    if chunks is not None and len(chunks) == facts["chunks"]:
        return _restored(stage, facts, chunks, "machine")
    chunks = dict(store.chunks())
    missing = facts["chunks"] - len(chunks)
    if missing:
        raise SetupError(
            f"query {stage.graph.query}: {abs(missing)} chunks of its state are "
            f"{'missing' if missing > 0 else 'too many'} in the checkpoint",
            remedy="restore the checkpoint from a copy, or start again with a new one",
        )
    if local_cache is not None:
        local_cache.keep(lineage, token, chunks, chunks, None)
    return _restored(stage, facts, chunks, "store")


def _restored(
    stage: Stage, facts: Mapping[str, Any], chunks: Mapping[str, bytes], found: Literal["machine", "store"]
) -> Loaded:
    frames = {name: decode(chunk) for name, chunk in chunks.items()}
    state = ShardState.restored(stage, facts, frames)
    return Loaded(state, facts["lineage"], frozenset(chunks), facts["token"], found)


def save(
    stage: Stage,
    store: DurableMap,
    before: Loaded,
    state: ShardState,
    local_cache: LocalStateCache | None = None,
) -> Saved:
    """Puts what changed into the store, and the state where it is quickly found."""
    chunks = state.chunks()
    for name in before.stored - chunks.keys():
        store.remove(name)
    added = {name: encode(chunks[name], compress=True) for name in chunks.keys() - before.stored}
    for name, blob in added.items():
        store.put(name, blob)
    token = uuid4().hex
    facts = {
        **state.facts(),
        "format": FORMAT,
        "fingerprint": stage.fingerprint,
        "chunks": len(chunks),
        "lineage": before.lineage,
        "token": token,
    }
    store.put_facts(json.dumps(facts))
    # Last of all: a state is known here only when the store has all of it.
    if local_cache is not None:
        local_cache.keep(before.lineage, token, chunks, added, before.token)
    _CACHE[before.lineage] = (token, state, frozenset(chunks))
    _CACHE.move_to_end(before.lineage)
    while len(_CACHE) > _MOST_CACHED:
        _CACHE.popitem(last=False)
    return Saved(token, len(added), sum(map(len, added.values())))


def check_readable(stage: Stage, facts: Mapping[str, Any]) -> None:
    """Raises unless a stored state is one that this stage can continue."""
    if facts.get("format") != FORMAT:
        raise InputError(
            f"the checkpoint's state has format {facts.get('format')}; this version reads format {FORMAT}",
            remedy="continue with the version that wrote it, or start again with a new checkpoint",
        )
    if facts["fingerprint"] != stage.fingerprint:
        raise InputError(
            f"the checkpoint belongs to another form of query {stage.graph.query}",
            remedy="start again with a new checkpoint, or run the query as it was",
        )


@lru_cache(maxsize=16)
def unpickled(stage: bytes) -> Stage:
    """The stage in bytes of our own making, once per worker."""
    found = pickle.loads(stage)
    assert isinstance(found, Stage)
    return found
