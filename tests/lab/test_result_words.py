"""What the bench of result words counts."""

from __future__ import annotations

import pytest

from headgate.lab.bench.result_words import BURST, KEYS, LENGTH, SLIDE, WORDS, compare, measure
from headgate.model.time import SECOND


@pytest.mark.parametrize("word", WORDS)
def test_a_pause_after_each_burst_adds_ticks_and_nothing_else(word: str) -> None:
    short, long = (measure(word, 3 * BURST, pause, times=1) for pause in (1_000 * SECOND, 100_000 * SECOND))
    assert long.ticks > 50 * short.ticks
    assert long.said == short.said > 0


def test_what_is_there_at_a_tick_is_said_for_every_group() -> None:
    once = measure("RSTREAM", BURST, SLIDE, times=1)
    births = [(n * (LENGTH // BURST), n % KEYS) for n in range(BURST)]
    ticks = range(0, births[-1][0] + LENGTH + 1, SLIDE)
    assert once.said == sum(len({k for t, k in births if tick - LENGTH < t <= tick}) for tick in ticks)


def test_every_word_is_measured_three_times() -> None:
    assert len(compare(quick=True)) == 3 * len(WORDS)
