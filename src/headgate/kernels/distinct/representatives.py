"""Representatives: of the rows of each bucket, those that can stand for all of them where duplicates do not matter.

```
rows (A, B), the least B of each A        (11, 7)   (11, 9)   (12, 3)   (11, 5)
output                                     born      -         born      born, and (11, 7) ends
```

What a row that ends has met, the row that takes its place meets too, so above a DISTINCT, MIN or MAX nobody sees the
change. The state holds the representatives and nothing else (Memory document, section 7).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

from headgate.kernels.state.sorted_runs import Runs
from headgate.model.batch import BORN, DIES, SIGN, Batch
from headgate.model.time import NEVER, Clock

Direction = Literal["greatest", "least", "any"]
Bucket = tuple[int | None, ...]

_SIDE, _SCORE, _NEW, _AT = "_side", "_score", "_new", "_at"


@dataclass(frozen=True)
class Side:
    """Who stands for a bucket: the row with the greatest least, or the least greatest, of some codes; or any row."""

    direction: Direction
    codes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Representatives:
    """Keeps the rows that `sides` of their bucket choose; `condition` drops rows that can meet nothing.

    `codes` are columns of numbers, `cells` the bucket in terms of them.
    """

    schema: Mapping[str, pl.DataType]
    condition: pl.Expr | None
    codes: Mapping[str, pl.Expr]
    cells: tuple[pl.Expr, ...]
    sides: Callable[[Bucket], tuple[Side, ...]]

    @property
    def _cells(self) -> list[str]:
        return [f"_cell{number}" for number in range(len(self.cells))]

    def initial(self) -> Runs:
        """No representatives: of each, the payload, its birth, its bucket and its side."""
        cells = dict.fromkeys(self._cells, pl.Int64())
        return Runs({**self.schema, BORN: pl.Int64(), **cells, _SIDE: pl.Int32()})

    def restore(self, chunks: Mapping[str, pl.DataFrame]) -> Runs:
        return self.initial().restored(chunks)

    def advance(self, state: Runs, inputs: Sequence[Batch], clock: Clock) -> tuple[Runs, Batch]:
        """Births of new representatives, and endings of those that they replace."""
        (batch,) = inputs
        rows = batch.frame if self.condition is None else batch.frame.filter(self.condition)
        if rows.is_empty():
            return state, Batch.empty(self.schema)
        located = rows.sort(BORN, maintain_order=True).with_columns(
            expression.alias(name) for name, expression in self.codes.items()
        )
        located = located.with_columns(
            cell.cast(pl.Int64).alias(name) for cell, name in zip(self.cells, self._cells, strict=True)
        ).select(*self.schema, BORN, *self._cells)
        buckets: list[Bucket] = [()]
        if self.cells:
            buckets = [tuple(row) for row in located.select(self._cells).unique().rows()]
        chains = [
            self._chain(state.frame, located, side, number, chosen)
            for (number, side), chosen in self._by_side(buckets).items()
        ]
        chain = pl.concat(chains)
        said = self._said(chain)
        if said.is_empty():
            return state, Batch.empty(self.schema)
        last = chain.filter(pl.col(_AT).is_null()).select(state.frame.columns)
        touched = chain.select(*self._cells, _SIDE).unique()
        kept = state.frame.join(touched, on=[*self._cells, _SIDE], how="anti", nulls_equal=True)
        return state.only(pl.concat([kept, last]), clock.upto), Batch(said)

    def _by_side(self, buckets: list[Bucket]) -> dict[tuple[int, Side], list[Bucket]]:
        """The buckets that each side is about; the number tells sides of one bucket apart."""
        found: dict[tuple[int, Side], list[Bucket]] = {}
        for bucket in buckets:
            for number, side in enumerate(self.sides(bucket)):
                found.setdefault((number, side), []).append(bucket)
        return found

    def _chain(
        self, kept: pl.DataFrame, rows: pl.DataFrame, side: Side, number: int, buckets: list[Bucket]
    ) -> pl.DataFrame:
        """Old and new representatives in order; `_at` is when the next one takes over, NULL for the last."""
        new = rows.with_columns(pl.lit(number, dtype=pl.Int32).alias(_SIDE))
        old = kept.filter(pl.col(_SIDE) == number)
        if self.cells:
            schema = dict.fromkeys(self._cells, pl.Int64())
            chosen = pl.DataFrame(buckets, schema=schema, orient="row")
            new, old = (
                each.join(chosen, on=self._cells, how="semi", nulls_equal=True) for each in (new, old)
            )
        both = pl.concat(
            [
                old.with_columns(pl.lit(False).alias(_NEW)),
                new.select(*old.columns).with_columns(pl.lit(True).alias(_NEW)),
            ]
        )
        codes = [self.codes[name] for name in side.codes]
        score = pl.lit(None, dtype=pl.Int64)
        if side.direction == "greatest":
            score = codes[0] if len(codes) == 1 else pl.min_horizontal(codes)
        elif side.direction == "least":
            score = codes[0] if len(codes) == 1 else pl.max_horizontal(codes)
        both = both.with_columns(score.alias(_SCORE))
        value = pl.col(_SCORE)
        if side.direction == "any":
            beats = pl.lit(False)
        else:
            running = value.cum_max() if side.direction == "greatest" else value.cum_min()
            best = self._over(running.forward_fill().shift(1))
            beats = value > best if side.direction == "greatest" else value < best
            beats = beats | (best.is_null() & value.is_not_null())
        first = self._over(pl.int_range(pl.len())) == 0
        both = both.filter(first | beats)
        following = self._over(pl.col(BORN).shift(-1))
        both = both.with_columns(following.alias(_AT)).drop(_SCORE)
        # Of several at one instant only the last has a life.
        return both.filter(pl.col(_AT).is_null() | (pl.col(_AT) != pl.col(BORN)))

    def _over(self, expression: pl.Expr) -> pl.Expr:
        return expression.over(self._cells) if self.cells else expression

    def _said(self, chain: pl.DataFrame) -> pl.DataFrame:
        payload = list(self.schema)
        never, one = pl.lit(NEVER, dtype=pl.Int64).alias(DIES), pl.lit(1, dtype=pl.Int8)
        born = chain.filter(pl.col(_NEW)).select(*payload, BORN, never, one.alias(SIGN))
        ended = chain.filter(pl.col(_AT).is_not_null()).select(
            *payload, pl.col(_AT).alias(BORN), never, (-one).alias(SIGN)
        )
        return pl.concat([born, ended])
