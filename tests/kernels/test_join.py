"""The join by example: lifetimes, endings, internal inputs, shapes, and what it refuses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import polars as pl
import pytest

from headgate.kernels.join.join import Join, JoinInput, JoinState
from headgate.kernels.join.probe_plan import plan_probes
from headgate.kernels.state.structure import Structure
from headgate.model.batch import LIFETIME_SCHEMA, Batch
from headgate.model.time import BEGINNING, NEVER, Clock

Row = tuple[Any, ...]
"""Payload, birth, death, sign."""


def batch(schema: Mapping[str, pl.DataType], rows: Iterable[Row]) -> Batch:
    return Batch(pl.DataFrame(list(rows), schema={**schema, **LIFETIME_SCHEMA}, orient="row"))


def input_(name: str, store: Structure, *, internal: bool = False) -> JoinInput:
    """An input with two columns of numbers, `k` and `v`."""
    return JoinInput({f"{name}.k": pl.Int64(), f"{name}.v": pl.Int64()}, internal, store)


def on_k(*inputs: JoinInput, residual: tuple[pl.Expr, ...] = ()) -> Join:
    """The join of all inputs on `k`."""
    names = [next(iter(each.schema)) for each in inputs]
    return Join(inputs, (tuple(enumerate(names)),), residual, tuple(range(len(inputs))))


def run(join: Join, *steps: tuple[int, Sequence[Sequence[Row]]]) -> tuple[JoinState, list[list[Row]]]:
    """The last state and the output of each step, given its end and the rows of each input."""
    state, after, said = join.initial(), BEGINNING, []
    for upto, inputs in steps:
        batches = [batch(each.schema, rows) for each, rows in zip(join.inputs, inputs, strict=True)]
        state, out = join.advance(state, batches, Clock(after, upto, 0))
        said.append(sorted(out.frame.rows()))
        after = upto
    return state, said


FIFO, ENDINGS, CALENDAR = Structure.RUNS, Structure.ENDINGS, Structure.CALENDAR


def test_a_result_lives_while_both_rows_do() -> None:
    join = on_k(input_("a", FIFO), input_("b", CALENDAR))
    _, [first, second] = run(
        join,
        (5, [[(1, 10, 0, 15, 1)], []]),
        (20, [[], [(1, 20, 6, 30, 1), (2, 21, 6, 30, 1), (1, 22, 15, 30, 1)]]),
    )
    assert first == []
    assert second == [(1, 10, 1, 20, 6, 15, 1)]


def test_rows_of_one_step_meet_once_in_whatever_order_they_are_born() -> None:
    join = on_k(input_("a", FIFO), input_("b", FIFO))
    rows = [[(1, 1, 3, 9, 1), (1, 2, 5, 11, 1)], [(1, 3, 4, 10, 1), (1, 4, 10, 16, 1)]]
    _, [out] = run(join, (20, rows))
    assert out == [(1, 1, 1, 3, 4, 9, 1), (1, 2, 1, 3, 5, 10, 1), (1, 2, 1, 4, 10, 11, 1)]


def test_an_ending_ends_every_result_of_its_row() -> None:
    join = on_k(input_("a", ENDINGS), input_("b", FIFO))
    _, [_, out] = run(
        join,
        (5, [[(1, 1, 0, NEVER, 1)], [(1, 2, 2, 22, 1), (1, 3, 3, 23, 1)]]),
        (10, [[(1, 1, 7, NEVER, -1)], []]),
    )
    assert out == [(1, 1, 1, 2, 7, 22, -1), (1, 1, 1, 3, 7, 23, -1)]


def test_a_row_that_was_taken_back_meets_nobody_any_more() -> None:
    join = on_k(input_("a", ENDINGS), input_("b", FIFO))
    state, [_, out] = run(
        join,
        (5, [[(1, 1, 0, NEVER, 1), (1, 1, 4, NEVER, -1)], []]),
        (10, [[], [(1, 2, 6, 26, 1)]]),
    )
    assert out == []
    assert [store.rows for store in state.stores] == [0, 1]


def test_rows_that_end_together_end_their_result_once() -> None:
    join = on_k(input_("a", ENDINGS), input_("b", ENDINGS))
    born = (1, [[(1, 1, 0, NEVER, 1)], [(1, 2, 1, 50, 1)]])
    _, [_, together] = run(join, born, (9, [[(1, 1, 7, NEVER, -1)], [(1, 2, 7, 50, -1)]]))
    assert together == [(1, 1, 1, 2, 7, 50, -1)]
    _, [_, apart] = run(join, born, (9, [[(1, 1, 8, NEVER, -1)], [(1, 2, 7, 50, -1)]]))
    assert apart == [(1, 1, 1, 2, 7, 50, -1)]


def test_a_result_that_dies_at_the_ending_needs_no_ending() -> None:
    join = on_k(input_("a", ENDINGS), input_("b", FIFO))
    born = (1, [[(1, 1, 0, NEVER, 1)], [(1, 2, 1, 7, 1)]])
    _, [_, out] = run(join, born, (9, [[(1, 1, 7, NEVER, -1)], []]))
    assert out == []


def test_an_internal_row_is_needed_for_the_birth_and_not_for_the_life_of_a_result() -> None:
    join = on_k(input_("a", FIFO), input_("b", FIFO, internal=True))
    _, [out] = run(join, (20, [[(1, 1, 5, 15, 1), (1, 2, 9, 19, 1)], [(1, 3, 0, 8, 1)]]))
    assert out == [(1, 1, 1, 3, 5, 15, 1)]


def test_results_of_internal_inputs_alone_never_die() -> None:
    join = on_k(input_("a", FIFO, internal=True), input_("b", ENDINGS, internal=True))
    _, [born, after] = run(
        join,
        (5, [[(1, 1, 3, 9, 1)], [(1, 2, 2, NEVER, 1)]]),
        (9, [[(1, 3, 8, 14, 1)], [(1, 2, 7, NEVER, -1)]]),
    )
    assert born == [(1, 1, 1, 2, 3, NEVER, 1)]
    assert after == []


def test_an_ending_finds_its_results_after_the_internal_row_is_gone() -> None:
    join = on_k(input_("a", ENDINGS), input_("b", FIFO, internal=True))
    state, [_, _, out] = run(
        join,
        (5, [[(1, 1, 0, NEVER, 1), (1, 1, 4, NEVER, 1)], [(1, 2, 2, 4, 1)]]),
        (10, [[], []]),
        (20, [[(1, 1, 15, NEVER, -1)], []]),
    )
    assert out == [(1, 1, 1, 2, 15, NEVER, -1)]
    assert state.rows == 1
    assert state.results is not None
    assert state.results.rows == 0


def test_an_ending_takes_the_results_of_its_row_and_of_no_later_one() -> None:
    join = on_k(input_("a", ENDINGS), input_("b", FIFO, internal=True))
    partner = (1, 9, 0, 30, 1)
    together = [(1, 1, 2, NEVER, 1), (1, 2, 3, NEVER, 1)]
    _, [_, _, out] = run(
        join,
        (5, [together, [partner]]),
        (10, [[(1, 3, 6, NEVER, 1)], []]),
        (20, [[(1, 2, 15, NEVER, -1)], []]),
    )
    assert out == [(1, 2, 1, 9, 15, NEVER, -1)]


def test_null_joins_nothing_and_is_not_stored() -> None:
    join = on_k(input_("a", FIFO), input_("b", ENDINGS))
    state, [out] = run(
        join, (5, [[(None, 1, 0, 9, 1)], [(None, 2, 0, 9, 1), (None, 2, 3, 9, -1), (None, 3, 0, 9, 1)]])
    )
    assert out == []
    assert state.rows == 0


def test_two_columns_of_one_input_in_a_class_must_be_equal_too() -> None:
    inputs = (input_("a", FIFO), input_("b", FIFO))
    join = Join(inputs, (((0, "a.k"), (0, "a.v"), (1, "b.k")),), (), (0, 1))
    state, [out] = run(join, (5, [[(1, 1, 0, 9, 1), (1, 2, 0, 9, 1), (2, None, 0, 9, 1)], [(1, 7, 0, 9, 1)]]))
    assert out == [(1, 1, 1, 7, 0, 9, 1)]
    assert [store.rows for store in state.stores] == [1, 1]


def test_inputs_without_an_equality_form_a_product_that_the_residual_thins() -> None:
    inputs = (input_("a", FIFO), input_("b", FIFO))
    join = Join(inputs, (), (pl.col("a.v") < pl.col("b.v"),), (0, 1))
    _, [out] = run(join, (5, [[(1, 1, 0, 9, 1), (1, 5, 0, 9, 1)], [(2, 3, 0, 9, 1), (2, None, 0, 9, 1)]]))
    assert out == [(1, 1, 2, 3, 0, 9, 1)]


def test_a_chain_over_different_attributes_is_one_join() -> None:
    inputs = (input_("a", FIFO), input_("b", FIFO), input_("c", FIFO))
    join = Join(inputs, (((0, "a.k"), (1, "b.k")), ((1, "b.v"), (2, "c.v"))), (), (0, 1, 2))
    _, said = run(
        join,
        (1, [[], [], [(9, 7, 1, 11, 1)]]),
        (2, [[(1, 4, 2, 12, 1)], [], []]),
        (3, [[], [(1, 7, 3, 13, 1), (1, 8, 3, 13, 1)], []]),
    )
    assert said == [[], [], [(1, 4, 1, 7, 9, 7, 3, 11, 1)]]


def test_an_input_without_columns_takes_part_as_a_count() -> None:
    join = Join((input_("a", FIFO), JoinInput({}, False, FIFO)), (), (), (0, 1))
    _, [out] = run(join, (5, [[(1, 1, 0, 9, 1)], [(2, 9, 1), (3, 9, 1)]]))
    assert out == [(1, 1, 2, 9, 1), (1, 1, 3, 9, 1)]


def test_lazy_expiry_keeps_the_dead_for_some_steps_and_answers_alike() -> None:
    inputs = (input_("a", FIFO), input_("b", FIFO))
    steps = [(t, [[(1, t, t, t + 2, 1)], [(1, -t, t, t + 2, 1)]]) for t in range(1, 8)]
    eager = Join(inputs, (((0, "a.k"), (1, "b.k")),), (), (0, 1))
    lazy = Join(inputs, eager.equalities, (), (0, 1), "lazy", lazy_steps=5)
    assert run(lazy, *steps)[1] == run(eager, *steps)[1]
    assert [run(eager, *steps[:count])[0].rows for count in (3, 5, 7)] == [4, 4, 4]
    assert [run(lazy, *steps[:count])[0].rows for count in (3, 5, 7)] == [6, 4, 6]


@pytest.mark.parametrize("expiry", ["eager", "lazy"])
def test_a_step_of_no_length_changes_nothing(expiry: Literal["eager", "lazy"]) -> None:
    join = replace(on_k(input_("a", FIFO), input_("b", FIFO)), expiry=expiry, lazy_steps=2)
    state, _ = run(join, (5, [[(1, 1, 0, 5, 1), (1, 1, 1, 6, 1)], []]))
    empty = [batch(each.schema, []) for each in join.inputs]
    after, out = join.advance(state, empty, Clock(5, 5, 0))
    assert out.height == 0
    before, now = state.chunks(), after.chunks()
    assert now.keys() == before.keys()
    assert all(now[name].equals(chunk) for name, chunk in before.items())


def test_unchanged_chunks_are_shared_between_states() -> None:
    join = on_k(input_("a", FIFO), input_("b", FIFO))
    state, _ = run(join, (5, [[(n, 1, 0, 50, 1) for n in range(8)], []]))
    more = [batch(join.inputs[0].schema, [(1, 1, 6, 56, 1)]), batch(join.inputs[1].schema, [])]
    after, _ = join.advance(state, more, Clock(5, 6, 0))
    [(name, chunk)] = state.chunks().items()
    assert after.chunks()[name] is chunk
    assert len(after.chunks()) == 2


def test_a_row_may_not_be_taken_back_where_none_was_announced() -> None:
    join = on_k(input_("a", ENDINGS), input_("b", FIFO))
    with pytest.raises(ValueError, match="never announced"):
        run(join, (5, [[(1, 1, 3, NEVER, -1)], []]))


def test_a_row_may_not_be_taken_back_on_an_input_that_promised_otherwise() -> None:
    join = on_k(input_("a", ENDINGS), input_("b", FIFO))
    with pytest.raises(ValueError, match="promised to live"):
        run(join, (5, [[], [(1, 1, 0, 9, 1), (1, 1, 3, 9, -1)]]))


@pytest.mark.parametrize(
    ("inputs", "equalities", "order", "complaint"),
    [
        (("a",), (), (0,), "at least two"),
        (("a", "b"), (), (0, 0), "not an order"),
        (("a", "a"), (), (0, 1), "two inputs"),
        (("a", "b"), (((0, "a.k"), (1, "b.text")),), (0, 1), "different types"),
    ],
)
def test_a_join_that_makes_no_sense_is_refused(
    inputs: tuple[str, ...], equalities: Any, order: tuple[int, ...], complaint: str
) -> None:
    each = [JoinInput({f"{n}.k": pl.Int64(), f"{n}.text": pl.String()}, False, FIFO) for n in inputs]
    with pytest.raises(ValueError, match=complaint):
        Join(tuple(each), equalities, (), order)


# --- the order of the probes --------------------------------------------------------------------------------


def probed(inputs: int, equalities: Any, order: Sequence[int]) -> list[list[int]]:
    return [[step.input for step in path] for path in plan_probes(inputs, equalities, order).paths]


def test_new_rows_probe_the_others_in_the_global_order() -> None:
    """Table 5.2 of Windows: S1, S2, S3 with one common attribute."""
    shared = (((0, "a"), (1, "b"), (2, "c")),)
    assert probed(3, shared, (0, 1, 2)) == [[1, 2], [0, 2], [0, 1]]
    assert probed(3, shared, (2, 0, 1)) == [[2, 1], [2, 0], [0, 1]]


def test_an_input_that_shares_nothing_yet_waits() -> None:
    chain = (((0, "a"), (1, "b")), ((1, "x"), (2, "y")))
    assert probed(3, chain, (0, 1, 2)) == [[1, 2], [0, 2], [1, 0]]


def test_one_key_serves_all_probes_by_the_same_columns() -> None:
    plan = plan_probes(3, (((0, "a"), (1, "b"), (2, "c")),), (0, 1, 2))
    assert plan.keys == ((("a",),), (("b",),), (("c",),))


def test_an_input_is_probed_by_everything_that_is_known() -> None:
    triangle = (((0, "a1"), (1, "a2")), ((1, "b1"), (2, "b2")), ((2, "c1"), (0, "c2")))
    plan = plan_probes(3, triangle, (0, 1, 2))
    last = plan.paths[0][-1]
    assert (last.input, plan.keys[2][last.key], last.columns) == (2, ("b2", "c1"), ("b1", "c2"))
