"""How long the text may be that a function makes: a short query must not ask for more than memory holds.

REPEAT, SPACE, LPAD, RPAD, REPLACE and REGEXP_REPLACE can make a long text of a short one. How much they make, or add
to what is there, is known before it is made; for a row that asks for too much nothing is made, and that is an error.
Other functions, and `||`, give what they are given, so a query's own length bounds how much that is.
"""

from __future__ import annotations

import polars as pl
from sqlglot import exp

from headgate.kernels.expressions.typed import Check, Checks

LONGEST_TEXT = 1_000_000
"""Characters that a function may make, or add, in one row."""

MOST_TEXT = 2**31 - 1
"""Bytes that a function may make of all rows of a step: what a column of text can hold in Arrow."""

_SHORTER = "ask for a shorter text, or exclude such rows before"
_FEWER = "ask for a shorter text, or take smaller steps with --batch-rows"


def fitting(characters: pl.Expr, size: pl.Expr, node: exp.Expr) -> tuple[pl.Expr, Checks]:
    """On which rows so many characters, of at most so many bytes, may be made, and the checks for the others.

    NULL stands for no text. The checks are guarded as all are: `IF(n < 10, REPEAT(s, n), '')` is fine.
    """
    too_long = (characters > LONGEST_TEXT).fill_null(False)
    total = pl.when(too_long).then(0).otherwise(size).cast(pl.Float64).sum()
    too_much = total > MOST_TEXT
    checks = (
        Check(too_long, f"would make more than {LONGEST_TEXT:,} characters", node, _SHORTER),
        Check(
            too_much & characters.is_not_null(), "would make more than 2 GB of text in one step", node, _FEWER
        ),
    )
    return ~too_long & ~too_much, checks
