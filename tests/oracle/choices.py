"""Choices written on a tape of bytes, so that Hypothesis can vary and shrink a whole example as one value.

A separate draw for every choice would let Hypothesis spend most of its examples on small variations of a few queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Choices:
    """Reads choices off a tape; zeros, and all that lies past its end, stand for the simplest choice."""

    def __init__(self, tape: bytes) -> None:
        self._tape = iter(tape)
        self.features: set[str] = set()
        """Which parts of the language were written of so far."""

    def choose(self, options: Sequence[T]) -> T:
        """One of some options; the first is the simplest."""
        return options[next(self._tape, 0) % len(options)]

    def weigh(self, options: dict[T, int]) -> T:
        """One of some options, each as often as its weight says."""
        return self.choose([option for option, weight in options.items() for _ in range(weight)])

    def chance(self, percent: int) -> bool:
        """True about so often; False is the simpler."""
        return next(self._tape, 0) * 100 >= 256 * (100 - percent)

    def subset(self, options: Sequence[T], least: int, most: int) -> list[T]:
        """Some of the options, in their order."""
        count = self.choose(range(min(least, len(options)), min(most, len(options)) + 1))
        left = list(range(len(options)))
        picked = [left.pop(next(self._tape, 0) % len(left)) for _ in range(count)]
        return [options[position] for position in sorted(picked)]
