"""Ticks: the multiples of a slide since the epoch, column by column."""

from __future__ import annotations

import polars as pl

from headgate.model.time import NEVER


def next_tick(instant: pl.Expr, slide: int) -> pl.Expr:
    """The first multiple of `slide` at or after each instant; NEVER where time ends before it."""
    tick = -((-instant) // slide) * slide
    return pl.when(instant > NEVER - slide).then(NEVER).otherwise(tick)
