from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.kernels.keys import Hashes
from headgate.kernels.state import index
from headgate.kernels.state.index import HashIndex, Positions
from headgate.kernels.state.removed import Removed
from headgate.kernels.state.tiers import newest_to_merge

# Hashes as they come, with repetitions, and with all their weight in few bits.
VALUES = st.integers(0, 2**64 - 1) | st.integers(0, 3).map(lambda n: n << 62) | st.just(2**64 - 1)
SOME = st.lists(VALUES, max_size=40)


def hashes(values: Sequence[int]) -> Hashes:
    return np.array(values, dtype=np.uint64)


def found(within: HashIndex, values: Sequence[int]) -> list[tuple[int, int]]:
    pairs = []
    for probe, position in within.find(hashes(values)):
        pairs += zip(probe.tolist(), position.tolist(), strict=True)
    return pairs


def agreeing(stored: Sequence[int], values: Sequence[int], width: int) -> set[tuple[int, int]]:
    return {
        (probe, position)
        for probe, value in enumerate(values)
        for position, other in enumerate(stored)
        if value >> width == other >> width
    }


@pytest.fixture(params=[2, 1 << 21])
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "_BLOCK", request.param)


@pytest.mark.usefixtures("block")
@given(SOME, SOME)
def test_finds_every_agreeing_pair_once(stored: list[int], other: list[int]) -> None:
    within = HashIndex.of(hashes(stored))
    values = other + stored[:5]
    pairs = found(within, values)
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == agreeing(stored, values, within.width)


@given(SOME, SOME, SOME)
def test_the_span_of_a_hash_is_its_rows_in_order(one: list[int], two: list[int], values: list[int]) -> None:
    within = HashIndex.merged([HashIndex.of(hashes(one)), HashIndex.of(hashes(two))], [0, len(one)])
    low, high = within.span(hashes(values + one))
    for value, first, past in zip(values + one, low.tolist(), high.tolist(), strict=True):
        rows = within.positions(np.arange(first, past)).tolist()
        assert rows == [n for n, h in enumerate(one + two) if h >> within.width == value >> within.width]


@given(st.lists(SOME, min_size=1, max_size=4), st.data())
def test_a_merged_index_is_that_of_the_rows_that_stay(parts: list[list[int]], data: st.DataObject) -> None:
    keeps = [data.draw(st.none() | st.lists(st.booleans(), min_size=len(p), max_size=len(p))) for p in parts]
    moves: list[Positions | int] = []
    height = 0
    for part, keep in zip(parts, keeps, strict=True):
        stays = np.ones(len(part), dtype=np.bool_) if keep is None else np.array(keep, dtype=np.bool_)
        moves.append(height if keep is None else np.where(stays, height + np.cumsum(stays) - 1, -1))
        height += int(stays.sum())
    merged = HashIndex.merged([HashIndex.of(hashes(part)) for part in parts], moves)
    stay = [
        value
        for part, keep in zip(parts, keeps, strict=True)
        for place, value in enumerate(part)
        if keep is None or keep[place]
    ]
    assert set(found(merged, stay)) == agreeing(stay, stay, merged.width)


def test_without_a_key_everything_is_found() -> None:
    within = HashIndex.of(hashes([0, 0, 0]))
    assert found(within, [0, 0]) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]


@given(st.lists(st.sets(st.integers(0, 99), min_size=1), max_size=12))
def test_removed_positions_are_remembered_by_bits_and_by_log(steps: list[set[int]]) -> None:
    removed = Removed.none(100)
    gone: set[int] = set()
    for step, positions in enumerate(steps):
        fresh = sorted(positions - gone)
        gone |= positions
        removed = removed.adding(np.array(fresh, dtype=np.int64), step)
    restored = Removed.none(100).remembering(removed.log)
    for each in (removed, restored):
        assert np.flatnonzero(each.mask()).tolist() == sorted(gone)
        assert each.has(np.arange(100)).tolist() == [n in gone for n in range(100)]
        assert each.count == len(gone)


def test_the_set_before_an_addition_is_unchanged() -> None:
    before = Removed.none(10)
    before.adding(np.array([3]), 1)
    assert before.count == 0
    assert not before.mask().any()


def test_a_removed_position_takes_a_bit_and_four_bytes() -> None:
    assert Removed.none(80).nbytes == 10
    assert Removed.none(80).adding(np.array([3, 40]), 1).nbytes == 18


@pytest.mark.parametrize(
    ("sizes", "count"),
    [
        ([10], 1),
        ([10, 10, 10], 1),
        ([10, 10, 10, 10], 4),
        ([40, 40, 40, 10, 10, 10, 10], 7),
        ([160, 40, 40, 10, 10, 10, 10], 4),
        ([160, 10, 10, 100], 3),
        ([10, 10, 10, 10_000], 4),
        ([60, 13, 13, 13, 13], 4),
        ([15, 5, 5, 5, 5], 5),
    ],
)
def test_four_of_a_size_become_one_and_smaller_ones_join_it(sizes: list[int], count: int) -> None:
    assert newest_to_merge(sizes) == count


@given(st.lists(st.integers(1, 5_000), min_size=1, max_size=300))
def test_runs_stay_few_and_rows_are_rarely_copied(batches: list[int]) -> None:
    sizes: list[int] = []
    copied = 0
    for batch in batches:
        sizes.append(batch)
        count = newest_to_merge(sizes)
        if count > 1:
            merged = sum(sizes[-count:])
            copied += merged
            sizes[-count:] = [merged]
    tiers = (sum(batches).bit_length() + 1) // 2
    assert len(sizes) <= 3 * tiers
    assert copied <= 2 * tiers * sum(batches)
