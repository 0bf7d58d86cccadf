"""Random examples are what they promise to be: judged without complaint, various, and seldom empty."""

from __future__ import annotations

from collections import Counter
from random import Random

import pyarrow as pa
from hypothesis import given
from tests.oracle.generate import SHAPES, TAPE, Example, examples, write_example
from tests.oracle.oracle import Oracle


@given(examples())
def test_no_row_is_late(example: Example) -> None:
    oracle = Oracle(example.text, example.inputs, example.tables)
    assert all(oracle.late(stream).num_rows == 0 for stream in example.inputs)


@given(examples())
def test_batches_bring_every_row_once_in_order_of_arrival(example: Example) -> None:
    brought = list(example.arrivals())
    for stream, table in example.inputs.items():
        together = pa.concat_tables([batch[stream] for batch in brought])
        # NaN differs from itself, but not in print.
        assert repr(together.to_pylist()) == repr(table.to_pylist())


def test_an_empty_tape_is_the_simplest_example() -> None:
    example = write_example(b"")
    assert example.text.endswith(
        "CREATE QUERY answer AS SELECT ISTREAM(p.ts AS c0) FROM s AS p [RANGE 5 SECONDS];\n"
    )
    assert {name: table.num_rows for name, table in example.inputs.items()} == {"s": 1, "t": 1}


def test_examples_are_various() -> None:
    tapes = [Random(seed).randbytes(TAPE) for seed in range(400)]
    made = [write_example(tape) for tape in tapes]
    features = Counter(feature for example in made for feature in example.features)
    assert len({example.text for example in made}) == len(made)
    assert all(features[shape] >= 5 for shape in SHAPES)
    kinds = (
        "istream",
        "dstream",
        "rstream",
        "relation",
        "istream restore",
        "rstream restore",
        "wstream",
        "internal",
    )
    windows = ("range", "slide", "rows", "partition", "now", "unbounded", "window over query")
    clauses = ("distinct", "group by", "having", "global aggregate", "exists", "not exists", "table")
    sets = ("union all", "union", "except all", "except", "join of 2", "join of 3", "inequality join")
    assert not [each for each in (*kinds, *windows, *clauses, *sets) if features[each] < 3]


def test_most_examples_have_something_to_say() -> None:
    spoke = 0
    for seed in range(80):
        example = write_example(Random(seed).randbytes(TAPE))
        spoke += bool(Oracle(example.text, example.inputs, example.tables).output(example.query))
    assert spoke > 48
