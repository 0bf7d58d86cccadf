"""EXISTS and NOT EXISTS that forget: the answers of a perfect memory, and nothing kept that cannot matter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kernels.signed import Contents, Payload, Row, assert_exact, cuts, steps, stream

from headgate.kernels.join.existence import Existence
from headgate.kernels.join.existence_purge import SidePurge
from headgate.kernels.join.negation import Negation
from headgate.kernels.join.purge import Chain, ChainStep, ClosingInput, PunctuationPurge, Purge
from headgate.kernels.join.semi_join import SemiJoin
from headgate.kernels.state.closings import Closings
from headgate.model.batch import BORN
from headgate.model.time import NEVER, Clock

LEFT = {"k": pl.Int64(), "x": pl.Int64()}
RIGHT = {"rk": pl.Int64(), "rx": pl.Int64()}
CLOSED_LEFT, CLOSED_RIGHT = {"k": pl.Int64()}, {"rk": pl.Int64()}
KEYS = (("k", "rk"),)
KINDS = (SemiJoin, Negation)

payloads = st.tuples(st.one_of(st.none(), st.integers(0, 2)), st.integers(0, 2))


@pytest.fixture(autouse=True)
def sweeping_often(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A sweep after every step."""
    monkeypatch.setattr(Closings, "due", True)
    return


def closing(*sides: int) -> SidePurge:
    """The unwindowed sides forget when the other one is closed at the key; a closed value goes with both."""
    chains = {0: Chain(0, (ChainStep(1, ("k",)),), True), 1: Chain(1, (ChainStep(0, ("rk",)),), True)}
    return SidePurge(
        Purge(
            (ClosingInput(0, CLOSED_LEFT, below=False), ClosingInput(1, CLOSED_RIGHT, below=False)),
            tuple(chains[side] for side in sides),
            (
                PunctuationPurge(((1, "rk", "k"),), ((1, (0,)),)),
                PunctuationPurge(((0, "k", "rk"),), ((0, (0,)),)),
            ),
            1000,
        )
    )


def test_a_side_is_closed_by_the_other_one_alone() -> None:
    chain = Chain(0, (ChainStep(1, ("k",)), ChainStep(0, ("rk",))), True)
    with pytest.raises(ValueError, match="by the other one alone"):
        SidePurge(Purge((), (chain,), (), 1000))


def closings(rows: list[Row], delay: int) -> list[Row]:
    """For each key, some time after its last row, the word that no other comes."""
    last = {payload[0]: born for payload, born, _, _ in rows if payload[0] is not None}
    for key in range(3):
        last.setdefault(key, 15)
    return [((key,), at + delay, NEVER, 1) for key, at in sorted(last.items(), key=lambda each: each[1])]


def answer(kernel: Existence, left: Contents, right: Contents) -> Contents:
    def matches(ours: Payload, theirs: Payload) -> bool:
        equal = ours[0] is not None and ours[0] == theirs[0]
        return equal and (kernel.residual is None or theirs[1] > ours[1])

    def counts(row: Payload) -> bool:
        return any(matches(row, other) for other in right) != kernel.negated

    return Counter({row: count for row, count in left.items() if counts(row)})


@pytest.mark.parametrize("kind", KINDS)
@given(
    greater=st.booleans(),
    shapes=st.sampled_from([("MON", "MON"), ("MON", "WKS"), ("WKS", "MON")]),
    data=st.data(),
    stops=cuts,
    restored=st.booleans(),
    delays=st.tuples(st.integers(0, 3), st.integers(0, 3)),
)
def test_closed_values_change_no_answer(
    kind: type[Existence],
    greater: bool,
    shapes: tuple[str, str],
    data: st.DataObject,
    stops: list[int],
    restored: bool,
    delays: tuple[int, int],
) -> None:
    left, right = (data.draw(stream(shape, payloads, most=8)) for shape in shapes)
    side_purge = closing(*(side for side, shape in enumerate(shapes) if shape == "MON"))
    residual = pl.col("rx") > pl.col("x") if greater else None
    kernel = kind(LEFT, RIGHT, KEYS, residual, right_endings=False, side_purge=side_purge)
    closed = [closings(rows, delay) for rows, delay in zip((left, right), delays, strict=True)]

    done = assert_exact(
        kernel,
        [LEFT, RIGHT, CLOSED_LEFT, CLOSED_RIGHT],
        [left, right, *closed],
        stops,
        lambda ours, theirs, *_: answer(kernel, ours, theirs),
        restored=restored,
    )
    # In the end all keys are closed on both sides, and what has a window has died.
    assert done[-1].state.rows == 0


@pytest.mark.parametrize("kind", KINDS)
@given(
    left=stream("MON", st.tuples(st.integers(0, 1)), most=8),
    right=stream("MON", st.tuples(st.integers(0, 1)), most=8),
    stops=cuts,
    restored=st.booleans(),
)
def test_rows_that_are_old_enough_change_no_answer(
    kind: type[Existence], left: list[Row], right: list[Row], stops: list[int], restored: bool
) -> None:
    """A right row from 2 instants before a left row up to 5 after it is a match."""
    near = pl.col("rx").is_between(pl.col("x") - 2, pl.col("x") + 5)
    none = Purge((), (), (), 0)
    kernel = kind(LEFT, RIGHT, KEYS, near, right_endings=False, side_purge=SidePurge(none, retain=(5, 2)))
    ours, theirs = (
        [((*payload, born), born, dies, sign) for payload, born, dies, sign in rows] for rows in (left, right)
    )

    def matched(left: Contents, right: Contents) -> Contents:
        def found(row: Payload) -> bool:
            return any(row[0] == other[0] and -2 <= other[1] - row[1] <= 5 for other in right)

        return Counter({row: count for row, count in left.items() if found(row) != kernel.negated})

    *_, last = assert_exact(kernel, [LEFT, RIGHT], [ours, theirs], stops, matched, restored=restored)
    assert last.state.rows == 0


def test_what_is_old_enough_is_not_kept() -> None:
    none = Purge((), (), (), 0)
    near = pl.col("rx").is_between(pl.col("x") - 2, pl.col("x") + 5)
    kernel = Negation(LEFT, RIGHT, KEYS, near, right_endings=False, side_purge=SidePurge(none, retain=(5, 2)))
    left: list[Row] = [((1, at), at, NEVER, 1) for at in range(1, 20)]
    right: list[Row] = [((2, at), at, NEVER, 1) for at in range(1, 20)]
    for step in steps(kernel, [LEFT, RIGHT], [left, right], range(1, 20)):
        assert step.state.rows <= 2 * (5 + 2 + 1)


def test_right_rows_are_forgotten_by_age_only_with_a_residual() -> None:
    side_purge = SidePurge(Purge((), (), (), 0), retain=(None, 2))
    with pytest.raises(ValueError, match="only with a residual"):
        SemiJoin(LEFT, RIGHT, KEYS, right_endings=False, side_purge=side_purge)


def test_right_rows_that_may_end_early_are_not_forgotten() -> None:
    side_purge = SidePurge(Purge((), (), (), 0), retain=(None, 2))
    near = pl.col("rx") > pl.col("x")
    with pytest.raises(ValueError, match="may end early"):
        SemiJoin(LEFT, RIGHT, KEYS, near, right_endings=True, side_purge=side_purge)


def test_the_newest_closed_values_that_nothing_needs_are_kept_for_a_while() -> None:
    purge = Purge(
        (ClosingInput(0, {"k": pl.Int64()}, below=False),), (), (PunctuationPurge(((1, "k", "k"),), ()),), 2
    )
    [nothing] = purge.initial().closed_values
    closed = nothing.observe(pl.DataFrame({"k": [5, 6, 7, 8, 9], BORN: [1, 2, 3, 4, 5]}), Clock(0, 5, None))
    stored = pl.DataFrame({"k": [6]})
    [kept] = purge.only_needed((closed,), lambda _: stored, Clock(5, 6, None))
    assert kept.frame["k"].to_list() == [6, 8, 9]
