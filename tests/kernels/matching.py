"""Random inputs and options for EXISTS and NOT EXISTS, and which left rows have a match."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from hypothesis import strategies as st
from tests.kernels.signed import PATTERNS, Contents, Payload, Row, stream

from headgate.kernels.join.existence import Existence

LEFT = {"k": pl.Int64(), "x": pl.Float64()}
RIGHT = {"rk": pl.Int64(), "rx": pl.Float64()}

Condition = Callable[[Payload, Payload], bool]


def _number(value: Any) -> float:
    return float("inf") if value == "NaN" else float(value)


def _greater(left: Payload, right: Payload) -> bool:
    """`rx > x` as SQL has it: NULL makes it unknown, NaN is above all numbers."""
    return left[1] is not None and right[1] is not None and _number(right[1]) > _number(left[1])


RESIDUALS: tuple[tuple[pl.Expr, Condition], ...] = (
    (pl.col("rx") > pl.col("x"), _greater),
    (pl.col("rx") == 1.0, lambda left, right: right[1] == 1.0),
    (pl.lit(False), lambda left, right: False),
)

NO_RESIDUAL: tuple[pl.Expr | None, Condition] = (None, lambda left, right: True)

KEYS: tuple[tuple[tuple[str, str], ...], ...] = (
    (),
    (("k", "rk"),),
    (("x", "rx"),),
    (("k", "rk"), ("x", "rx")),
)

payloads = st.tuples(
    st.one_of(st.none(), st.integers(0, 1)), st.sampled_from([None, 0.0, -0.0, 1.0, float("nan")])
)


@dataclass(frozen=True)
class Case:
    """A kernel, its inputs, and what a match is."""

    kernel: Existence
    left: list[Row]
    right: list[Row]
    matches: Condition

    def has_match(self, payload: Payload, right: Contents) -> bool:
        return any(self.matches(payload, other) for other in right)


@st.composite
def cases(
    draw: st.DrawFn, kind: type[Existence], patterns: Sequence[str] = PATTERNS, residuals: bool | None = None
) -> Case:
    """Any keys and update patterns; residuals if wanted, or now and then; what is said of endings is true."""
    keys, null_equal = draw(st.sampled_from(KEYS)), draw(st.booleans())
    residual, holds = NO_RESIDUAL
    if residuals or (residuals is None and draw(st.booleans())):
        residual, holds = draw(st.sampled_from(RESIDUALS))
    shapes = draw(st.tuples(st.sampled_from(patterns), st.sampled_from(patterns)))
    columns = [(list(LEFT).index(ours), list(RIGHT).index(theirs)) for ours, theirs in keys]

    def matches(left: Payload, right: Payload) -> bool:
        equal = all(left[i] == right[j] and (null_equal or left[i] is not None) for i, j in columns)
        return equal and holds(left, right)

    endings = shapes[1] == "STR" or draw(st.booleans())
    kernel = kind(LEFT, RIGHT, keys, residual, null_equal, endings)
    left, right = (draw(stream(shape, payloads, most=8)) for shape in shapes)
    return Case(kernel, left, right, matches)
