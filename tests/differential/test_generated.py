"""Random queries over random streams: the local engine against the oracle, with the example's own batches."""

from __future__ import annotations

from zlib import crc32

import pytest
from hypothesis import HealthCheck, event, given, seed, settings
from tests.differential.local import output_of
from tests.oracle.generate import Example, examples
from tests.oracle.oracle import Oracle
from tests.oracle.values import same_output

from headgate.model.errors import MeaninglessError

PIECES = 20
"""The suite in pieces, so that several processes can share it; each draws its own examples."""

EXAMPLES_PER_PIECE = 30


def agree(example: Example, *, restore_every_step: bool = False) -> None:
    """Raises unless engine and oracle say the same about an example."""
    oracle = Oracle(example.text, example.inputs, example.tables)
    expected = oracle.output(example.query)
    if oracle.order_matters:
        return
    try:
        found = output_of(
            example.text,
            example.query,
            list(example.arrivals()),
            example.tables,
            restore_every_step=restore_every_step,
        )
    except MeaninglessError:
        # A table that changes cannot be joined with rows that may end early.
        assert "changing table" in example.features
        event("refused")
        return
    event("has output" if expected else "says nothing")
    assert same_output(found, expected, ticking=oracle.ticking(example.query)), (
        f"expected {expected}\nfound    {found}"
    )


@pytest.mark.parametrize("piece", range(PIECES))
def test_engine_says_what_the_oracle_says(piece: int) -> None:
    @settings(
        max_examples=EXAMPLES_PER_PIECE, deadline=None, suppress_health_check=list(HealthCheck), database=None
    )
    @seed(piece)
    @given(examples())
    def check(example: Example) -> None:
        # Its text decides: one in four is restored before every step, another has its inner streams in small parts.
        match crc32(example.text.encode()) % 4:
            case 0:
                agree(example, restore_every_step=True)
            case 1:
                agree_in_small_parts(example)
            case _:
                agree(example)

    check()


def agree_in_small_parts(example: Example) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headgate.kernels.emit.rstream.BLOCK", 3)
        agree(example)


@pytest.mark.long
@settings(max_examples=2_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(examples())
def test_restoring_before_every_step_changes_nothing(example: Example) -> None:
    agree(example, restore_every_step=True)


@pytest.mark.long
@settings(max_examples=2_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(examples())
def test_streams_inside_plans_in_small_parts(example: Example) -> None:
    agree_in_small_parts(example)


@pytest.mark.long
@settings(max_examples=20_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(examples())
def test_many_more(example: Example) -> None:
    agree(example)
