"""Domain: the values an attribute can take, as integer codes with an order.

The Memory document (section 3) reasons over the integers. Every discrete ordered type maps onto them; a
type without gaps does not, and then less can be proven (see `Domain.continuous`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction

Code = int | Fraction
"""A value as the closure sees it; a fraction only where the domain has no gaps."""


@dataclass(frozen=True)
class Domain:
    """The order type of an attribute: with or without gaps, the least and greatest code, the values behind codes."""

    low: int | None = None
    high: int | None = None
    dense: bool = False
    values: tuple[Hashable, ...] | None = None

    def __post_init__(self) -> None:
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"a domain from {self.low} to {self.high} has no value")
        if self.values is not None and len(set(self.values)) != len(self.values):
            raise ValueError(f"a value occurs twice in {self.values}")

    @staticmethod
    def integers(low: int | None = None, high: int | None = None) -> Domain:
        """All integers, or those from `low` to `high`; dates and timestamps count in their smallest unit."""
        return Domain(low, high)

    @staticmethod
    def finite(values: Iterable[Hashable]) -> Domain:
        """Finitely many values in their order, such as FALSE, TRUE or a CHECK … IN list; codes are positions."""
        listed = tuple(values)
        if not listed:
            raise ValueError("a domain has at least one value")
        return Domain(0, len(listed) - 1, values=listed)

    @staticmethod
    def continuous(low: int | None = None, high: int | None = None) -> Domain:
        """An order in which another value lies between any two: fractions, text.

        What is lost: an interval holds infinitely many values, so bounds do not make such an attribute finite;
        only equality with a constant, or with an attribute that has gaps and bounds, does. What is admitted is
        bounded in every total order, because the synopses only compare.
        """
        return Domain(low, high, dense=True)

    @property
    def is_finite(self) -> bool:
        return not self.dense and self.low is not None and self.high is not None

    def code(self, value: Hashable) -> int:
        """The code of a listed value."""
        if self.values is None:
            raise ValueError("only a finite domain has codes of its own")
        if value not in self.values:
            raise ValueError(f"{value!r} is none of {self.values}")
        return self.values.index(value)

    def value(self, code: Code) -> Hashable:
        """The value behind a code: the code itself, unless the values are listed."""
        return code if self.values is None else self.values[int(code)]


INTEGERS = Domain.integers()


def ranks(values: Iterable[str]) -> dict[str, int]:
    """A code for each constant of a continuous order that has no numbers, such as text: its rank among them."""
    return {value: rank for rank, value in enumerate(sorted(set(values)))}
