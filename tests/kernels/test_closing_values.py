"""Kernels that forget closed values: what they say is what those say that remember all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import product

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.kernels.signed import (
    LAST,
    Contents,
    Payload,
    Row,
    assert_exact,
    contents,
    cuts,
    steps,
    stream,
    unbatched,
)

from headgate.kernels.aggregate import (
    Aggregate,
    AggregateCall,
    ClosedArgument,
    ClosingValues,
    Function,
    SettlingAggregate,
)
from headgate.kernels.distinct.closing_difference import ClosingDifference
from headgate.kernels.distinct.difference import Difference
from headgate.kernels.settled import Settled
from headgate.kernels.state import closings
from headgate.model.time import NEVER, Clock

ROW = {"k": pl.Int64(), "x": pl.Int64()}
KEY = {"k": pl.Int64()}

AT_LAST = Clock(LAST, LAST + 1, None)
"""A step in which a last sweep can be made."""

payloads = st.tuples(st.integers(0, 2), st.integers(0, 2))


@pytest.fixture(autouse=True)
def sweeping_often(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A sweep whenever something was closed."""
    monkeypatch.setattr(closings, "_FEW", 0)
    return


def closed(rows: list[Row], names: Iterable[str], delay: int) -> list[Row]:
    """For each value in some columns, some time after its last row, the word that no other comes."""
    places = [tuple(ROW).index(name) for name in names]
    last: dict[Payload, int] = dict.fromkeys(product(range(3), repeat=len(places)), 15)
    last |= {tuple(payload[place] for place in places): born for payload, born, _, _ in rows}
    return sorted(((values, at + delay, NEVER, 1) for values, at in last.items()), key=lambda row: row[1])


def calls(*named: tuple[str, str | None, bool]) -> tuple[AggregateCall, ...]:
    return tuple(
        AggregateCall(Function[function], argument, f"c{number}", distinct)
        for number, (function, argument, distinct) in enumerate(named)
    )


def assert_same(one: list[Row], other: list[Row]) -> None:
    for instant in (*range(LAST + 1), NEVER - 1):
        assert contents(one, instant) == contents(other, instant), f"at {instant}"


@given(
    rows=stream("MON", payloads),
    stops=cuts,
    delay=st.integers(0, 3),
    restored=st.booleans(),
    columns=st.sampled_from([("x",), ("k", "x"), ("x", "k"), ("k",)]),
    grouped=st.booleans(),
)
def test_a_counted_value_that_is_closed_is_not_remembered(
    rows: list[Row], stops: list[int], delay: int, restored: bool, columns: tuple[str, ...], grouped: bool
) -> None:
    keys = ("k",) if grouped or "k" in columns else ()
    named = calls(("COUNT", "x", True), ("SUM", "x", True), ("COUNT", None, False), ("MAX", "k", False))
    plain = Aggregate(ROW, keys, named, endings=False)
    kernel = ClosingValues(plain, (ClosedArgument("x", columns, (False,)),))
    expected = [row for step in steps(plain, [ROW], [rows], stops) for row in step.said]
    inputs = [rows, closed(rows, columns, delay)] if rows else [[], []]
    schema = {name: ROW[name] for name in columns}
    done = list(steps(kernel, [ROW, schema], inputs, stops, restored=restored))
    assert_same([row for step in done for row in step.said], expected)
    swept = kernel._swept(done[-1].state, AT_LAST)
    assert swept.values.bags["x"].rows == 0


@given(
    left=stream("MON", payloads),
    right=stream("MON", payloads),
    stops=cuts,
    delays=st.tuples(*[st.integers(0, 3)] * 2),
)
def test_copies_of_a_value_that_both_sides_have_closed_are_not_counted_any_more(
    left: list[Row], right: list[Row], stops: list[int], delays: tuple[int, int]
) -> None:
    kernel = ClosingDifference(Difference(ROW), ("k",), (False, False))
    inputs = [left, right, closed(left, KEY, delays[0]), closed(right, KEY, delays[1])]

    def more(ours: Contents, theirs: Contents, *_: Contents) -> Contents:
        return Counter({row: count - theirs[row] for row, count in ours.items() if count > theirs[row]})

    *_, last = assert_exact(kernel, [ROW, ROW, KEY, KEY], inputs, stops, more, restored=bool(stops))
    assert kernel._swept(last.state, AT_LAST).rows == 0


@st.composite
def groups(draw: st.DrawFn) -> list[Row]:
    """Rows (k, m) of groups that change now and then, none announced with a death."""
    rows: list[Row] = []
    for key in range(draw(st.integers(0, 4))):
        at = sorted(draw(st.lists(st.integers(1, 14), min_size=1, max_size=4, unique=True)))
        values = [draw(st.one_of(st.none(), st.integers(0, 5))) for _ in at]
        for number, (instant, value) in enumerate(zip(at, values, strict=True)):
            if number:
                rows.append(((key, values[number - 1]), instant, NEVER, -1))
            rows.append(((key, value), instant, NEVER, 1))
    return sorted(rows, key=lambda row: (row[1], row[3]))


@given(rows=groups(), stops=cuts, delay=st.integers(0, 3), restored=st.booleans())
def test_a_row_settles_once_when_its_group_is_closed(
    rows: list[Row], stops: list[int], delay: int, restored: bool
) -> None:
    kernel = Settled(ROW, ("k",), ("k",), (False,))
    last = {payload[0]: (payload, born) for payload, born, _, sign in rows if sign > 0}
    closings: list[Row] = [((key,), born + delay, NEVER, 1) for key, (_, born) in last.items()]
    closings.sort(key=lambda row: row[1])
    done = list(steps(kernel, [ROW, KEY], [rows, closings], stops, restored=restored))
    swept, said = kernel._swept(done[-1].state, AT_LAST)
    found = [row for step in done for row in step.said] + unbatched(said)
    assert Counter(row[0] for row in found) == Counter(payload for payload, _ in last.values())
    assert swept.rows == 0


@given(
    rows=groups(),
    stops=cuts,
    delay=st.integers(0, 6),
    restored=st.booleans(),
    which=st.sampled_from(["MIN", "MAX", "both"]),
)
@example(
    rows=[((0, 1), 1, NEVER, 1), ((1, 5), 1, NEVER, 1), ((2, 3), 2, NEVER, 1), ((3, 3), 9, NEVER, 1)],
    stops=[5],
    delay=0,
    restored=False,
    which="both",
)
@example(
    rows=[((0, 1), 1, NEVER, 1), ((1, 2), 1, NEVER, 1), ((2, 3), 1, NEVER, 1), ((3, 0), 9, NEVER, 1)],
    stops=[5],
    delay=0,
    restored=False,
    which="MAX",
)
def test_of_final_values_the_extreme_ones_are_remembered(
    rows: list[Row], stops: list[int], delay: int, restored: bool, which: str
) -> None:
    functions = ("MIN", "MAX") if which == "both" else (which,)
    called = calls(*((each, "x", False) for each in functions), ("SUM", "x", False))
    # With two groups of groups, and with one of all.
    halves = [((payload[0] % 2, payload[1]), *rest) for payload, *rest in rows]
    last = {payload[0]: (payload, born) for payload, born, _, sign in rows if sign > 0}
    for keys, all_rows in (((), rows), (("k",), halves)):
        plain = Aggregate(ROW, keys, called)
        final: list[Row] = [
            ((payload[0] % 2, payload[1]) if keys else payload, born + delay, NEVER, 1)
            for payload, born in last.values()
        ]
        final.sort(key=lambda row: row[1])
        expected = [row for step in steps(plain, [ROW], [all_rows], stops) for row in step.said]
        done = list(steps(SettlingAggregate(plain), [ROW, ROW], [all_rows, final], stops, restored=restored))
        assert_same([row for step in done for row in step.said], expected)
        # A value that was taken back may leave a trace until the next merge.
        left = done[-1].state.groups.bags["x"].tally.whole()
        assert left is None or max(Counter(left.group.tolist()).values()) <= len(functions)


def test_a_call_that_needs_every_value_does_not_settle() -> None:
    with pytest.raises(ValueError, match="needs every value"):
        SettlingAggregate(Aggregate(ROW, (), calls(("MEDIAN", "x", False))))


def test_only_values_that_are_remembered_can_be_forgotten() -> None:
    with pytest.raises(ValueError, match="are not remembered"):
        ClosingValues(
            Aggregate(ROW, (), calls(("SUM", "x", False))), (ClosedArgument("x", ("x",), (False,)),)
        )
