"""Keys: one 64-bit hash per row of some columns, and the equality that the hash only suspects.

Equality is Spark SQL's: NaN equals NaN, -0.0 equals 0.0, and NULL equals nothing unless the caller says that
two NULLs are the same value (as GROUP BY, DISTINCT and row identity do).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

Hashes = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]

# Fixed, so that two processes with the same library agree: a restarted state may then be probed with
# hashes made elsewhere.
_SEED = 0x9E3779B97F4A7C15


def key_hash(frame: pl.DataFrame, columns: Sequence[str]) -> Hashes:
    """One hash per row of `columns`, equal wherever the values are equal; NULL hashes like any other value.

    The name of a column does not matter, its position among `columns` does. No columns: every row alike.
    """
    if not columns:
        return np.zeros(frame.height, dtype=np.uint64)
    key = [_by_value(frame[name]).alias(str(place)) for place, name in enumerate(columns)]
    return pl.DataFrame(key).hash_rows(_SEED).to_numpy()


def has_null(frame: pl.DataFrame, columns: Sequence[str]) -> Mask:
    """Whether a row has NULL in any of `columns`; a NULL inside a list or struct does not count."""
    nullable = [name for name in columns if frame[name].null_count()]
    if not nullable:
        return np.zeros(frame.height, dtype=np.bool_)
    return frame.select(pl.any_horizontal(pl.col(name).is_null() for name in nullable)).to_series().to_numpy()


def keys_equal(
    left: pl.DataFrame,
    right: pl.DataFrame,
    left_columns: Sequence[str],
    right_columns: Sequence[str],
    null_equal: bool,
) -> Mask:
    """Row by row, whether two equally tall frames agree on all paired columns."""
    if left.height != right.height:
        raise ValueError(f"frames of {left.height} and {right.height} rows cannot be compared row by row")
    equal = np.ones(left.height, dtype=np.bool_)
    for ours, theirs in zip(left_columns, right_columns, strict=True):
        one, other = left[ours], right[theirs]
        # The plain comparison is the quicker one, but it answers NULL for NULL.
        whole = one.null_count() == 0 and other.null_count() == 0
        equal &= (one == other if whole else one.eq_missing(other)).to_numpy()
    return equal if null_equal else equal & ~has_null(left, left_columns)


def keys_agree(
    left: tuple[pl.DataFrame, Sequence[str], npt.NDArray[np.int64]],
    right: tuple[pl.DataFrame, Sequence[str], npt.NDArray[np.int64]],
) -> Mask:
    """Pair by pair, whether rows at positions of two frames agree on their columns; NULL equals NULL."""
    (ours, our_columns, at), (theirs, their_columns, there) = left, right
    equal = np.ones(len(at), dtype=np.bool_)
    for one, other in zip(our_columns, their_columns, strict=True):
        mine, its = ours.get_column(one), theirs.get_column(other)
        if mine.dtype.is_integer() and mine.null_count() == its.null_count() == 0:
            # No copy of the columns is needed to look at some of their values.
            equal &= mine.to_numpy().take(at) == its.to_numpy().take(there)
        else:
            equal &= mine.gather(at).eq_missing(its.gather(there)).to_numpy()
    return equal


def with_plain_zeros(name: str, dtype: pl.DataType) -> pl.Expr:
    """The column of a name and type, -0.0 as 0.0: equal values in it look alike, bit by bit but for NaN.

    Adding 0.0 is not enough, because Polars leaves such an addition out.
    """
    column = pl.col(name)
    if not dtype.is_float():
        return column
    return pl.when(column == 0).then(pl.lit(0.0, dtype)).otherwise(column).alias(name)


def _by_value(column: pl.Series) -> pl.Series:
    """The column as something whose hash follows from its values alone.

    A categorical hashes its code, and codes follow the order in which a process met the values.
    """
    return column.cast(pl.String) if isinstance(column.dtype, (pl.Categorical, pl.Enum)) else column
