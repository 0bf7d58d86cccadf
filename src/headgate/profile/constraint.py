"""Constraint: one thing that the rows of a stream were seen to obey, and the clause that would promise it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, assert_never

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from headgate.language import nodes
from headgate.language.render import render
from headgate.profile.within import Within

SHARES = (0.5, 0.9, 0.99)
"""For these shares of the rows a report says what k would do."""


class Kind(StrEnum):
    """What is obeyed, in the terms of the k-Mon document and the Punctuation document."""

    KEY = "key"
    PUNCTUATION = "punctuation"
    OAP = "oap"
    OAC = "oac"
    CA = "ca"
    RIDS = "rids"


@dataclass(frozen=True)
class Flag:
    """Which rows close something: those with this value in a column."""

    column: str
    value: bool | int | str

    @property
    def tree(self) -> exp.Expr:
        named = exp.column(exp.to_identifier(self.column))
        if isinstance(self.value, bool):
            return named if self.value else exp.Not(this=named)
        value = exp.Literal.string(self.value) if isinstance(self.value, str) else exp.convert(self.value)
        return exp.EQ(this=named, expression=value)


@dataclass(frozen=True)
class Reference:
    """The partner of each row: the stream that has it, and by which of its columns."""

    stream: str
    columns: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.stream} ({', '.join(self.columns)})"


@dataclass(frozen=True)
class Spread:
    """How k is distributed: what is enough for each of some shares of the rows, and for all."""

    shares: tuple[tuple[float, Within], ...]
    most: Within

    @staticmethod
    def of(distances: npt.NDArray[np.int64], *, in_time: bool = False) -> Spread:
        """From the k that each row needs, 0 or more, in rows or in microseconds."""
        if not len(distances):
            return Spread((), Within(0, in_time))
        found = np.quantile(distances, SHARES, method="inverted_cdf")
        shares = tuple((share, Within(int(k), in_time)) for share, k in zip(SHARES, found, strict=True))
        return Spread(shares, Within(int(distances.max()), in_time))


@dataclass(frozen=True)
class Constraint:
    """A constraint that all rows of a sample obey; `margin` is what its clause allows beyond what was seen."""

    kind: Kind
    stream: str
    columns: tuple[str, ...]
    rows: int
    """How many rows were looked at."""
    spread: Spread | None = None
    """For what has a k: the k of the rows."""
    references: Reference | None = None
    flag: Flag | None = None
    share: float | None = None
    """Of a reference, the share of rows that have a partner; of a punctuation, that of values which are closed."""
    margin: float = 1.0
    nulls: int = 0
    """How many of the rows have NULL in one of the columns."""

    @property
    def k(self) -> Within | None:
        """The smallest k that no row breaks."""
        return None if self.spread is None else self.spread.most

    @property
    def within(self) -> Within | None:
        """What the clause says."""
        return None if self.k is None else self.k.widened(self.margin)

    @property
    def tree(self) -> exp.Expr:
        """The clause as syntax."""
        names = _identifiers(self.columns)
        within = None if self.within is None else self.within.tree
        match self.kind:
            case Kind.KEY:
                return nodes.Key(expressions=names)
            case Kind.PUNCTUATION:
                assert self.flag is not None
                return nodes.PunctuatedBy(expressions=names, when=self.flag.tree)
            case Kind.OAP | Kind.OAC:
                return nodes.OrderedBy(expressions=names, within=within)
            case Kind.CA:
                return nodes.ClusteredBy(expressions=names, within=within)
            case Kind.RIDS:
                assert self.references is not None
                return nodes.ForeignKey(
                    expressions=names,
                    parent=exp.to_identifier(self.references.stream),
                    columns=_identifiers(self.references.columns),
                    within=within,
                )
            case _:
                assert_never(self.kind)

    @property
    def clause(self) -> str:
        """The clause to paste into the declaration of the stream."""
        return render(self.tree)

    @property
    def shown(self) -> str:
        """The clause with the declaration into which it belongs, as `headgate check` shows its fixes."""
        return f"CREATE STREAM {self.stream} … {self.clause}"

    @property
    def slot(self) -> tuple[str, frozenset[str], str | None]:
        """Constraints with one slot stand for each other: a stream's values are closed by one of them."""
        return self.stream, frozenset(self.columns), None if self.references is None else str(self.references)

    @property
    def in_time(self) -> bool:
        """Whether its k is a time."""
        return self.k is not None and self.k.in_time

    @property
    def evidence(self) -> str:
        """What was seen, in a sentence."""
        names, rows = " and ".join(self.columns), f"{self.rows:,} rows"
        match self.kind:
            case Kind.KEY:
                return f"{rows}, no two with the same {names}, none with NULL"
            case Kind.PUNCTUATION:
                return (
                    f"{rows}: no value of {names} came again once it was closed; {self.share:.1%} were closed"
                )
            case Kind.OAP | Kind.OAC:
                if not self._strays:
                    return f"{rows}, all in order of {names}"
                return (
                    f"{rows} in order of {names}, but for those that came up to {self.k} behind a greater one"
                    f"{self._spread_said}"
                )
            case Kind.CA:
                if not self._strays:
                    return f"{rows}: those of one {names} came one after the other"
                return f"{rows}: at most {self.k} of others between two of one {names}{self._spread_said}"
            case Kind.RIDS:
                assert self.references is not None
                other = self.references.stream
                later = f"{self.k} later" if self.in_time else f"{self.k} of {other} later"
                came = f"at most {later}" if self._strays else "before them or at their instant"
                return f"{rows}: {self.share:.1%} have their row of {other}, which came {came}{self._spread_said}"
            case _:
                assert_never(self.kind)

    @property
    def _strays(self) -> bool:
        return self.k is not None and self.k.k > 0

    @property
    def _spread_said(self) -> str:
        if self.spread is None or not self._strays:
            return ""
        share, k = self.spread.shares[-1]
        return f" (for {share:.0%} of them, {k if k.in_time else f'{k.k:,}'})"

    def as_dict(self) -> dict[str, Any]:
        other = self.references
        return {
            "kind": str(self.kind),
            "columns": list(self.columns),
            "references": None if other is None else {"stream": other.stream, "columns": list(other.columns)},
            "k": None if self.k is None else self.k.k,
            "unit": None if self.k is None else "microseconds" if self.k.in_time else "rows",
            "clause": self.clause,
        }


def _identifiers(names: tuple[str, ...]) -> list[exp.Expr]:
    return [exp.to_identifier(name) for name in names]
