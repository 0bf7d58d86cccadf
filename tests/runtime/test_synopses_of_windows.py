"""The worked examples of the k-Mon document: what a join of windows keeps after each row.

The document's synopses, as they are kept here: *Yes* and *Unknown* rows are stored, *No* rows are dropped and, if
somebody asks for them, their keys are kept. A row that only made its results [*Yes* of a cover] is dropped too.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from headgate.kernels.join import settle_early
from headgate.kernels.join.join import Join, JoinState
from headgate.kernels.state.lifetime_runs import LifetimeRuns
from headgate.model.batch import BORN
from headgate.model.time import SECOND
from headgate.physical.compile import compile_query
from headgate.physical.graph import KernelStep, OperatorGraph
from headgate.runtime.query import QueryState
from headgate.session import Session

Row = tuple[int, ...]


@pytest.fixture(autouse=True)
def no_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a reference can be waited for, the document keeps no *No* rows; here a sample of them is kept."""
    monkeypatch.setattr(settle_early, "_sampled", lambda rows, keys: np.zeros(rows.height, dtype=np.bool_))


STREAMS = {
    # Figure 2(a): S1 refers to S2 by a and to S3 by b; S3 is filtered.
    "a": ({"s1": "ab", "s2": "ac", "s3": "bd"}, "s1.a = s2.a AND s1.b = s3.b AND s3.d < 8"),
    # Figure 2(b): S1 refers to S2 by b, S2 to S3 by c; S3 is filtered.
    "b": ({"s1": "ab", "s2": "bc", "s3": "cd"}, "s1.b = s2.b AND s2.c = s3.c AND s3.d > 8"),
    # Figure 17(a): S1 refers to S2 and S3, and both to S4.
    "dag": (
        {"s1": "ab", "s2": "ac", "s3": "bd", "s4": "cd"},
        "s1.a = s2.a AND s1.b = s3.b AND s2.c = s4.c AND s3.d = s4.d",
    ),
    # Figure 17(b): a ring.
    "ring": ({"s1": "ab", "s2": "bc", "s3": "ca"}, "s1.b = s2.b AND s2.c = s3.c AND s3.a = s1.a"),
    # Section 1.1: packets on three links, one after the other.
    "links": ({"c": "p", "b": "p", "o": "p"}, "c.p = b.p AND b.p = o.p"),
}


class Playing:
    """A join of windows of an hour that is given a row a second, and looks at all that it keeps after each."""

    def __init__(self, graph: str, **clauses: str) -> None:
        self.columns, condition = STREAMS[graph]
        session = Session()
        texts = []
        for name, columns in self.columns.items():
            declared = ", ".join(f"{column} BIGINT" for column in columns)
            clause = clauses.get(name, "")
            texts.append(f"CREATE STREAM {name} (ts TIMESTAMP, {declared}) TIMESTAMP BY ts {clause};")
        session.sql("\n".join(texts))
        shown = ", ".join(
            f"{name}.{column} AS {name}_{column}" for name, each in self.columns.items() for column in each
        )
        inputs = ", ".join(f"{name} [RANGE 1 HOUR]" for name in self.columns)
        query = session.sql(f"SELECT ISTREAM({shown}) FROM {inputs} WHERE {condition}")
        assert query is not None
        self.state = QueryState(_eager(compile_query(query.planned).graph))
        self.clock = 0

    def give(self, name: str, *rows: Row) -> list[Row]:
        """The results that rows of a stream lead to, each made of the columns of all streams."""
        found: list[Row] = []
        for row in rows:
            self.clock += SECOND
            values = {column: [value] for column, value in zip(self.columns[name], row, strict=True)}
            frame = pl.DataFrame({**values, "ts": [None], BORN: [self.clock]})
            out = self.state.advance({name: frame}, self.clock)
            found += out.drop(name for name in out.columns if name.startswith("_")).rows()
        return found

    def kept(self, name: str) -> set[Row]:
        """The rows of a stream that are stored."""
        store = self._join.stores[list(self.columns).index(name)]
        return set(store.live(self.clock).select(f"{name}.{each}" for each in self.columns[name]).rows())

    @property
    def refused(self) -> set[Row]:
        """The keys of *No* rows."""
        early = self._join.early
        assert early is not None
        return {row for keys in early.keys for row in _keys(keys, self.clock)}

    @property
    def _join(self) -> JoinState:
        (found,) = (state for state in self.state.states.values() if isinstance(state, JoinState))
        return found


def _keys(keys: LifetimeRuns, clock: int) -> list[Row]:
    return keys.live(clock).select(list(keys.layout.schema)).rows()


def _eager(graph: OperatorGraph) -> OperatorGraph:
    """The same operators, but that joins look at all that they keep in every step."""
    steps = [
        replace(step, kernel=replace(step.kernel, early=replace(step.kernel.early, eager=True)))
        if isinstance(step, KernelStep) and isinstance(step.kernel, Join) and step.kernel.early is not None
        else step
        for step in graph.steps
    ]
    return replace(graph, steps=tuple(steps))


def figure_2a(s1: str = "", s3: str = "") -> Playing:
    """Figure 2(a) with its rows: what S2 and S3 keep before a row of S1 has come."""
    playing = Playing("a", s1=s1, s2="KEY (a)", s3=f"KEY (b) {s3}")
    playing.give("s2", (6, 20), (4, 15))
    playing.give("s3", (7, 9), (5, 3), (10, 12))
    return playing


def test_rows_with_all_children_make_results_and_those_of_refused_children_go() -> None:
    """Example 3.1."""
    playing = figure_2a()
    assert playing.kept("s2") == {(6, 20), (4, 15)}
    assert playing.kept("s3") == {(5, 3)}
    assert playing.refused == {(7,), (10,)}
    assert playing.give("s1", (6, 5)) == [(6, 5, 6, 20, 5, 3)]
    assert playing.give("s1", (8, 10)) == []
    assert playing.kept("s1") == set()


def test_a_child_that_comes_late_settles_its_parents_one_after_the_other() -> None:
    """Example 3.2."""
    playing = Playing("b", s2="KEY (b)", s3="KEY (c)")
    playing.give("s2", (2, 4))
    assert playing.give("s1", (1, 2)) == []
    assert (playing.kept("s1"), playing.kept("s2")) == ({(1, 2)}, {(2, 4)})
    assert playing.give("s3", (4, 12)) == [(1, 2, 2, 4, 4, 12)]
    assert playing.kept("s1") == set()
    assert (playing.kept("s2"), playing.kept("s3")) == ({(2, 4)}, {(4, 12)})


def test_a_child_that_is_refused_has_its_parents_refused() -> None:
    """Example 3.2 with a row of S3 that its filter refuses."""
    playing = Playing("b", s2="KEY (b)", s3="KEY (c)")
    playing.give("s2", (2, 4))
    playing.give("s1", (1, 2))
    assert playing.give("s3", (4, 8)) == []
    assert (playing.kept("s1"), playing.kept("s2"), playing.kept("s3")) == (set(), set(), set())
    assert playing.refused == {(2,), (4,)}
    playing.give("s1", (7, 2))
    assert playing.kept("s1") == set()


def test_without_the_keys_of_refused_rows_a_reference_is_waited_for() -> None:
    """Example 4.1: RIDS(1)."""
    playing = figure_2a(s1="FOREIGN KEY (b) REFERENCES s3 (b) WITHIN 1 ROWS")
    assert playing.refused == set()
    playing.give("s1", (4, 10))
    assert playing.kept("s1") == {(4, 10)}
    playing.give("s3", (1, 1))
    assert playing.kept("s1") == set()


def test_a_child_goes_when_no_parent_can_come_and_none_waits() -> None:
    """Example 5.1: CA(1). A cluster counts from its last row here, so one more row with another value closes it."""
    playing = figure_2a(s1="CLUSTERED BY (b) WITHIN 1 ROWS")
    found = playing.give("s1", (6, 5), (8, 8), (4, 5), (11, 10))
    assert found == [(6, 5, 6, 20, 5, 3), (4, 5, 4, 15, 5, 3)]
    assert playing.kept("s1") == {(8, 8)}
    playing.give("s1", (12, 10))
    assert playing.kept("s3") == set()
    assert playing.kept("s2") == {(6, 20), (4, 15)}


def test_two_constraints_together_drop_more_than_each_alone() -> None:
    """Example 8.1: CA(0) on S1.A, OAC(0) on S3.B."""
    cluster, order = "CLUSTERED BY (a) WITHIN 0 ROWS", "ORDERED BY (b) WITHIN 0 ROWS"
    kept = []
    for clauses in ({"s1": cluster}, {"s3": order}, {"s1": cluster, "s3": order}):
        playing = Playing("a", s1=clauses.get("s1", ""), s2="KEY (a)", s3=f"KEY (b) {clauses.get('s3', '')}")
        playing.give("s2", (6, 20), (4, 15))
        playing.give("s3", (5, 3), (7, 9), (10, 12))
        assert playing.give("s1", (4, 5), (6, 8), (3, 13)) == [(4, 5, 4, 15, 5, 3)]
        kept.append((playing.kept("s1"), playing.kept("s2")))
    assert kept == [
        ({(6, 8), (3, 13)}, {(6, 20)}),
        ({(3, 13)}, {(6, 20), (4, 15)}),
        ({(3, 13)}, set()),
    ]


def test_a_reference_makes_rows_wait_that_refused_keys_would_let_go_at_once() -> None:
    """Example 8.2: CA(0) on S1.B, without and with RIDS(3)."""
    cluster, reference = "CLUSTERED BY (b) WITHIN 0 ROWS", "FOREIGN KEY (b) REFERENCES s3 (b) WITHIN 3 ROWS"
    alone = figure_2a(s1=cluster)
    alone.give("s1", (6, 10), (4, 10), (8, 8))
    assert alone.kept("s1") == {(8, 8)}
    both = figure_2a(s1=f"{cluster} {reference}")
    both.give("s1", (6, 10), (4, 10), (8, 8))
    assert both.kept("s1") == {(6, 10), (4, 10), (8, 8)}
    both.give("s3", (1, 1), (2, 1))
    assert both.kept("s1") == {(6, 10), (4, 10), (8, 8)}
    both.give("s3", (3, 1))
    assert both.kept("s1") == set()


def test_children_of_a_row_may_exist_and_yet_refer_to_different_rows() -> None:
    """Example C.1: a join graph that is no tree."""
    playing = Playing("dag", s2="KEY (a)", s3="KEY (b)", s4="KEY (c) KEY (d)")
    playing.give("s4", (1, 2), (5, 6))
    playing.give("s2", (3, 1))
    playing.give("s3", (4, 6))
    assert playing.give("s1", (3, 4)) == []
    assert playing.kept("s1") == set()
    playing.give("s3", (7, 2))
    assert playing.give("s1", (3, 7)) == [(3, 7, 3, 1, 7, 2, 1, 2)]
    assert playing.kept("s1") == set()


def test_a_ring_is_settled_by_its_last_row() -> None:
    """Example D.1: each stream refers to the next."""
    playing = Playing("ring", s1="KEY (a)", s2="KEY (b)", s3="KEY (c)")
    playing.give("s3", (3, 1))
    playing.give("s2", (2, 3))
    assert (playing.kept("s3"), playing.kept("s2")) == ({(3, 1)}, {(2, 3)})
    assert playing.give("s1", (1, 2)) == [(1, 2, 2, 3, 3, 1)]
    assert playing.give("s1", (4, 2)) == []


def test_an_order_of_the_child_refuses_what_it_has_passed() -> None:
    """Example F.1: OAC(2)."""
    playing = figure_2a(s3="ORDERED BY (b) WITHIN 2 ROWS")
    assert playing.refused == set()
    playing.give("s1", (6, 4))
    assert playing.kept("s1") == set()
    playing.give("s1", (6, 8))
    assert playing.kept("s1") == {(6, 8)}


def test_packets_that_no_other_link_has_leave_nothing_behind() -> None:
    """Section 1.1: O learns through B what C never had, so the keys of C's packets need not be kept."""
    playing = Playing(
        "links",
        c="KEY (p) FOREIGN KEY (p) REFERENCES b (p) WITHIN 1 ROWS",
        b="KEY (p) FOREIGN KEY (p) REFERENCES c (p) WITHIN 0 ROWS "
        "FOREIGN KEY (p) REFERENCES o (p) WITHIN 1 ROWS",
        o="KEY (p) FOREIGN KEY (p) REFERENCES b (p) WITHIN 0 ROWS",
    )
    playing.give("c", (1,), (2,))
    playing.give("b", (1,), (8,))
    assert (playing.kept("c"), playing.kept("b")) == ({(1,)}, {(1,)})
    assert playing.give("o", (1,)) == [(1, 1, 1)]
    playing.give("o", (9,))
    playing.give("b", (10,), (11,))
    assert [playing.kept(link) for link in "cbo"] == [set(), set(), set()]
    assert playing.refused == set()
