"""Rows that refer to a refused one wait for their age, or its key is kept: a running join does what keeps less."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from headgate.kernels.join.join import Join
from headgate.model.batch import BORN
from headgate.model.time import SECOND
from headgate.physical.compile import compile_query
from headgate.physical.graph import KernelStep, OperatorGraph
from headgate.runtime.query import QueryState
from headgate.session import Session

STEPS, PER_STEP = 60, 100


def kept_rows(graph: OperatorGraph, referring: int) -> float:
    """What the join keeps on average in the second half, if so many rows refer to each of the other stream."""
    state, sizes, rng = QueryState(graph), [], np.random.default_rng(5)
    place = next(
        n for n, step in enumerate(graph.steps) if isinstance(step, KernelStep) and step.operator == "join"
    )
    for step in range(STEPS):
        ids = np.arange(step * PER_STEP, (step + 1) * PER_STEP)
        at = ids * SECOND
        child = pl.DataFrame({"ts": at, "a": ids, "c": rng.integers(0, 10, PER_STEP), BORN: at})
        parent = pl.DataFrame(
            {"ts": np.repeat(at, referring), "a": np.repeat(ids, referring), BORN: np.repeat(at, referring)}
        )
        state.advance({"s1": parent, "s2": child}, int(at[-1]))
        sizes.append(state.states[place].rows)
    return float(np.mean(sizes[STEPS // 2 :]))


def graph(within: int) -> OperatorGraph:
    session = Session()
    session.sql(
        "CREATE STREAM s2 (ts TIMESTAMP, a BIGINT, c BIGINT) TIMESTAMP BY ts KEY (a); "
        "CREATE STREAM s1 (ts TIMESTAMP, a BIGINT) TIMESTAMP BY ts "
        f"FOREIGN KEY (a) REFERENCES s2 (a) WITHIN {within} ROWS"
    )
    query = session.sql(
        "SELECT ISTREAM(s1.a, s2.c) FROM s1 [RANGE 1000 SECONDS], s2 [RANGE 1000 SECONDS] "
        "WHERE s1.a = s2.a AND s2.c < 1"
    )
    assert query is not None
    return compile_query(query.planned).graph


def always(graph: OperatorGraph) -> OperatorGraph:
    """The same query that keeps all refused keys, whatever it costs."""

    def changed(kernel: Join) -> Join:
        assert kernel.early is not None
        keys = tuple(replace(each, chosen=False) for each in kernel.early.keys)
        return replace(kernel, early=replace(kernel.early, keys=keys))

    steps = (
        replace(step, kernel=changed(step.kernel))
        if isinstance(step, KernelStep) and isinstance(step.kernel, Join)
        else step
        for step in graph.steps
    )
    return replace(graph, steps=tuple(steps))


@pytest.mark.parametrize(("within", "referring", "all_keys"), [(20, 1, False), (900, 3, True)])
def test_it_keeps_about_the_least(within: int, referring: int, all_keys: bool) -> None:
    chosen, every = kept_rows(graph(within), referring), kept_rows(always(graph(within)), referring)
    if all_keys:
        assert chosen < 1.2 * every
    else:
        assert chosen < 0.5 * every
