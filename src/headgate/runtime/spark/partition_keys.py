"""Partition keys: a value for each shard such that Spark's hash puts every shard into a partition of its own."""

from __future__ import annotations

from itertools import count

_MASK = 0xFFFFFFFF


def shard_partition_keys(shards: int, partitions: int) -> tuple[int, ...]:
    """One label per shard; with at least as many partitions as shards, no two of them share one."""
    labels: list[int] = []
    taken: set[int] = set()
    for candidate in count():
        if len(labels) == shards:
            return tuple(labels)
        place = partition_of(candidate, partitions)
        if place not in taken or len(taken) == partitions:
            taken.add(place)
            labels.append(candidate)
    raise AssertionError("count() does not end")


def partition_of(label: int, partitions: int) -> int:
    """The partition that Spark's hash partitioning gives an INT: Murmur3 with seed 42, modulo."""
    mixed = _rotate((label * 0xCC9E2D51) & _MASK, 15)
    mixed = (mixed * 0x1B873593) & _MASK
    found = _rotate(42 ^ mixed, 13)
    found = (found * 5 + 0xE6546B64) & _MASK
    found ^= 4
    found ^= found >> 16
    found = (found * 0x85EBCA6B) & _MASK
    found ^= found >> 13
    found = (found * 0xC2B2AE35) & _MASK
    found ^= found >> 16
    signed = found - (1 << 32) if found >= 1 << 31 else found
    return signed % partitions


def _rotate(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (32 - bits))) & _MASK
