"""The shards of several queries at one place of a job: which message is for whom, and what all of them say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from time import perf_counter

from headgate.runtime.shard import ShardState
from headgate.runtime.spark.exchange import Decoded, Outcome, advance
from headgate.runtime.spark.job import JobStage
from headgate.runtime.spark.messages import RELAY, Message, relayed


@dataclass
class PlaceOutcome(Outcome):
    """What the shards at a place say: to the sinks, and to places of the next stage."""

    states: dict[int, ShardState] = field(default_factory=dict)
    """By query, after the micro-batch."""
    seconds: dict[int, float] = field(default_factory=dict)
    """By query, how long its kernels ran."""


def advance_place(
    job: JobStage,
    place: int,
    states: Mapping[int, ShardState],
    messages: Sequence[Message],
    now_ms: int | None,
) -> PlaceOutcome:
    """What the shards at a place become and say in a micro-batch."""
    inboxes = _inboxes(job, place, messages)
    outcome = PlaceOutcome()
    decoded = Decoded()
    for query, stage, shard in job.at(place):
        begun = perf_counter()
        inbox = inboxes.get(query, [])
        if not inbox:
            outcome.states[query] = states[query]
            continue
        outcome.states[query], said = advance(stage, shard, states[query], inbox, now_ms, query, decoded)
        outcome.replies = chain(outcome.replies, said.replies)
        outcome.sent += [(job.place_of(query, target), message) for target, message in said.sent]
        outcome.seconds[query] = perf_counter() - begun
    outcome.replies = chain(outcome.replies, [relayed(each) for each in messages if each.feed == RELAY])
    return outcome


def _inboxes(job: JobStage, place: int, messages: Sequence[Message]) -> dict[int, list[Message]]:
    """The messages that each query gets, with the feeds as it counts them."""
    found: dict[int, list[Message]] = {}
    here = {query for query, _, _ in job.at(place)}
    for message in messages:
        stage = job.stages[message.query]
        if message.feed == RELAY:
            continue
        if message.feed < 0 or (stage is not None and stage.senders):
            found.setdefault(message.query, []).append(message)
            continue
        for query, feed in job.feeds[message.feed].readers:
            if query not in here:
                continue
            counted = job.is_first_feed(query, feed)
            mine = replace(
                message,
                query=query,
                feed=feed,
                late=message.late if counted else None,
                read=message.read if counted else 0,
            )
            found.setdefault(query, []).append(mine)
    return found
