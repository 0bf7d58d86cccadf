"""When two answers are the same: rows as hashable tuples, compared by value."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, NamedTuple

Row = tuple[Any, ...]

NAN = float("nan")
"""The only NaN in canonical rows: a dictionary finds it by identity, so NaN equals NaN."""

RELATIVE, ABSOLUTE = 1e-9, 1e-9


class Change(NamedTuple):
    """One line of a query's output: op is None in a stream, '+' or '-' in the change log of a relation."""

    time: int
    op: str | None
    row: Row


def canonical(value: Any) -> Any:
    """A value as something hashable: one NaN, one zero, instants in UTC, lists and structs as tuples."""
    match value:
        case float():
            return NAN if math.isnan(value) else value + 0.0
        case datetime():
            return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        case Mapping():
            return tuple(sorted((name, canonical(each)) for name, each in value.items()))
        case list() | tuple():
            return tuple(canonical(each) for each in value)
        case _:
            return value


def canonical_row(values: Iterable[Any]) -> Row:
    return tuple(canonical(value) for value in values)


def order_key(value: Any) -> tuple[Any, ...]:
    """A total order of canonical values: NULL first, NaN after the numbers; kinds do not mix in a column."""
    match value:
        case None:
            return (0,)
        case bool():
            return (1, value)
        case float() if math.isnan(value):
            return (3,)
        case int() | float() | Decimal():
            return (2, value)
        case str():
            return (4, value)
        case datetime():
            return (6, value)
        case date():
            return (5, value)
        case tuple():
            return (7, *(order_key(each) for each in value))
        case _:
            raise TypeError(f"no order for {value!r}")


def change_key(change: Change) -> tuple[Any, ...]:
    """The canonical order of output: by time, deaths before births, then by value."""
    return (change.time, change.op != "-", order_key(change.row))


def same_value(left: Any, right: Any) -> bool:
    """Equal, or numbers of which one is floating and that differ by rounding only."""
    if left is right:
        return True
    if isinstance(left, bool) is not isinstance(right, bool):
        return False
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(same_value, left, right))
    numbers = (int, float, Decimal)
    if isinstance(left, numbers) and isinstance(right, numbers) and float in (type(left), type(right)):
        if math.isnan(left) or math.isnan(right):
            return math.isnan(left) and math.isnan(right)
        return math.isclose(float(left), float(right), rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    return bool(left == right)


def same_bag(
    left: Iterable[Iterable[Any]] | Counter[Row], right: Iterable[Iterable[Any]] | Counter[Row]
) -> bool:
    """Whether two bags of rows are equal, floating numbers within rounding; a Counter counts as its elements."""
    ours, theirs = _bag(left), _bag(right)
    missing, extra = list((ours - theirs).elements()), list((theirs - ours).elements())
    if len(missing) != len(extra):
        return False
    for row in missing:
        match_ = next((index for index, other in enumerate(extra) if same_value(row, other)), None)
        if match_ is None:
            return False
        del extra[match_]
    return True


def _bag(rows: Iterable[Iterable[Any]] | Counter[Row]) -> Counter[Row]:
    return Counter(canonical_row(row) for row in (rows.elements() if isinstance(rows, Counter) else rows))


def same_output(left: Iterable[Change], right: Iterable[Change], *, ticking: bool = False) -> bool:
    """Whether two outputs say the same at every instant, in whatever order within it.

    With `ticking`, for RSTREAM, an output may go on or stop while nothing changes any more.
    """
    ours, theirs = _by_instant(left), _by_instant(right)
    if ticking:
        ours, theirs = _settled(ours), _settled(theirs)
    return ours.keys() == theirs.keys() and all(same_bag(ours[at], theirs[at]) for at in ours)


_Instants = dict[tuple[int, str | None], list[Row]]


def _by_instant(changes: Iterable[Change]) -> _Instants:
    instants: _Instants = {}
    for time, op, row in changes:
        instants.setdefault((time, op), []).append(row)
    return instants


def _settled(instants: _Instants) -> _Instants:
    """Without the trailing instants that only repeat the one before."""
    times = sorted(instants, key=lambda at: at[0])
    while len(times) > 1 and same_bag(instants[times[-1]], instants[times[-2]]):
        times.pop()
    return {at: instants[at] for at in times}
