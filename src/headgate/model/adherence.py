"""Adherence: how closely the rows of a stream keep a constraint; the k of the k-Mon document, in rows or in time.

| written | a row may be off by |
|---|---|
| `WITHIN 50 ROWS` | so many rows |
| `WITHIN 5 MINUTES` | so much event time |
| `WITHIN AUTO` | what monitoring shall find; nothing can be relied on |
"""

from __future__ import annotations

from dataclasses import dataclass

from headgate.model.time import format_duration


@dataclass(frozen=True)
class WithinRows:
    """Up to so many rows of the stream that the constraint counts."""

    rows: int

    def __str__(self) -> str:
        return f"WITHIN {self.rows} ROWS"


@dataclass(frozen=True)
class WithinTime:
    """Up to so many microseconds of event time."""

    length: int

    def __str__(self) -> str:
        return f"WITHIN {format_duration(self.length)}"

    @property
    def words(self) -> str:
        """The time as a sentence has it: `5 minutes`."""
        return format_duration(self.length).lower()


@dataclass(frozen=True)
class Auto:
    """As many as monitoring shall find."""

    def __str__(self) -> str:
        return "WITHIN AUTO"


AUTO = Auto()

Bound = WithinRows | WithinTime
"""An adherence that can be relied on."""

Adherence = Bound | Auto
