"""A join that is told when partners have come for the last time does not keep what it is told of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
import pytest
from tests.differential.local import compiled, restore
from tests.differential.test_null_promises import played

from headgate.kernels.join.join import Join
from headgate.kernels.join.purge import Sweeps
from headgate.model.time import SECOND
from headgate.physical.graph import KernelStep, SourceStep
from headgate.physical.program import Program
from headgate.runtime.data import frame_of
from headgate.runtime.local.engine import LocalRun, Progress

KEYS = 1_000
STEP = 100
LAG = 300
"""How many keys one stream is behind the other."""


def closed(after: int, keys: int = KEYS) -> pa.Table:
    """Two rows of each key, one after the other, of which the second says that it is the last."""
    instants = [(4 * (number // 2) + 2 * (number % 2) + after) * SECOND for number in range(2 * keys)]
    return pa.table(
        {
            "ts": pa.array(instants, pa.timestamp("us", tz="UTC")),
            "k": pa.array([number // 2 for number in range(2 * keys)], pa.int64()),
            "last": pa.array([number % 2 == 1 for number in range(2 * keys)], pa.bool_()),
        }
    )


DECLARED = "".join(
    f"CREATE STREAM {name} (ts TIMESTAMP, k BIGINT, last BOOLEAN) TIMESTAMP BY ts PUNCTUATED BY (k) WHEN last;\n"
    for name in "abc"
)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ISTREAM(a.k) FROM a, b WHERE a.k = b.k",
        "SELECT ISTREAM(a.k) FROM a, b, c [RANGE 1 MINUTE] WHERE a.k = b.k AND b.k = c.k",
    ],
)
def test_closed_values_are_forgotten(query: str) -> None:
    rows = {name: closed(number) for number, name in enumerate("abc")}
    largest, late = played(f"{DECLARED}CREATE QUERY q AS {query};", rows, step=STEP)
    assert late.is_empty()
    assert largest < KEYS


def test_closed_values_are_remembered_by_a_restored_state() -> None:
    """Rows of a come when their keys have been closed on b: a state that forgot that would keep them for ever."""
    rows = {"a": closed(after=4 * LAG, keys=3 * KEYS), "b": closed(after=0, keys=3 * KEYS)}
    text = f"{DECLARED}CREATE QUERY q AS SELECT ISTREAM(a.k) FROM a, b WHERE a.k = b.k;"
    assert largest_size(text, rows, restore_every=6) < 1.5 * largest_size(text, rows, restore_every=KEYS)


def test_an_eager_join_keeps_the_keys_that_are_open_and_a_lazy_one_at_most_twice_as_much() -> None:
    """Keys come on b `LAG` keys after a: so many are open on b alone, each with two rows and a closing of a."""
    rows = {"a": closed(after=0, keys=3 * KEYS), "b": closed(after=4 * LAG, keys=3 * KEYS)}
    text = f"{DECLARED}CREATE QUERY q AS SELECT ISTREAM(a.k) FROM a, b WHERE a.k = b.k;"
    eager, lazy = (
        largest_size(text, rows, restore_every=3 * KEYS, sweeps=sweeps) for sweeps in ("eager", "lazy")
    )
    assert 3 * LAG <= eager <= 3 * LAG + 2 * STEP
    assert eager + STEP < lazy < 2 * eager + 2 * STEP


def largest_size(
    text: str, rows: Mapping[str, pa.Table], *, restore_every: int, sweeps: Sweeps = "lazy"
) -> int:
    """How many rows a query keeps at most, if its state is put together from its chunks every so many steps."""
    ready = compiled(text, "q", {})
    ready = replace(
        ready, graph=replace(ready.graph, steps=tuple(swept(each, sweeps) for each in ready.graph.steps))
    )
    streams = [(each, frame_of(rows[each.name], each.columns).iter_slices(STEP)) for each in ready.streams]
    run = LocalRun(Program((ready,)), streams)
    sizes: list[int] = []

    def after_step(progress: Progress) -> None:
        sizes.append(progress.state_rows)
        if len(sizes) % restore_every == 0:
            restore(run.shards["q"])

    run.run(lambda *_: None, lambda query, stream, late: None, after_step)
    return max(sizes)


def swept(step: KernelStep | SourceStep, sweeps: Sweeps) -> KernelStep | SourceStep:
    """A step whose join looks through what it keeps in another way."""
    if not isinstance(step, KernelStep) or not isinstance(step.kernel, Join) or step.kernel.purge is None:
        return step
    return replace(step, kernel=replace(step.kernel, purge=replace(step.kernel.purge, sweeps=sweeps)))
