"""What `check` does for large queries, counted: sets of comparisons tried, edits tried, levels of a tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlglot import exp
from tests.safety.large_queries import (
    all_below,
    each_below,
    long_and,
    long_chain,
    long_or,
    many_streams,
    streams,
)

from headgate.model import types
from headgate.model.scalar import Scalar, conjunction
from headgate.optimize import planned
from headgate.safety.advice import advise
from headgate.safety.reasons import purge_analysis
from headgate.safety.theory.memory import polynomial
from headgate.safety.theory.punctuation.graph import closed_in_turn
from headgate.session import Query, Session


def asked(text: str) -> Query:
    found = Session().sql(text)
    assert found is not None
    return found


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Callable[[object, str], list[object]]:
    """Counts the calls of a function of a module."""

    def count(module: object, name: str) -> list[object]:
        made: list[object] = []
        called = getattr(module, name)

        def counted(*arguments: object, **options: object) -> object:
            made.append(arguments)
            return called(*arguments, **options)

        monkeypatch.setattr(module, name, counted)
        return made

    return count


def test_comparisons_that_look_alike_are_tried_once(calls: Callable[[object, str], list[object]]) -> None:
    tried = calls(polynomial, "orderings")
    assert asked(all_below()).judged.admitted
    assert len(tried) < 10


def test_a_query_with_too_many_cases_is_refused_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polynomial, "MOST_PATTERNS", 2)
    found = asked(all_below()).judged
    assert not found.admitted
    assert "the query has too many cases to be judged" in found.unbounded[-1].reason


def test_what_promises_are_needed_is_asked_in_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []

    def counted(*arguments: Any) -> Iterator[str]:
        for stream in closed_in_turn(*arguments):
            closed.append(stream)
            yield stream

    monkeypatch.setattr(purge_analysis, "closed_in_turn", counted)
    steps = []
    for count in (10, 20):
        closed.clear()
        assert "punctuation" in [fix.kind for fix in asked(long_chain(count)).fixes]
        steps.append(len(closed))
    # Each promise is tried once, and a trial goes along the chain once: the square of its length, not the cube.
    assert steps[1] < 5 * steps[0]


@pytest.mark.parametrize("text", [many_streams(), each_below(), long_chain()])
def test_a_large_query_gets_advice_in_few_trials(
    text: str, calls: Callable[[object, str], list[object]]
) -> None:
    tried = calls(advise, "apply")
    fixes = asked(text).fixes
    assert fixes
    assert len(tried) <= 40


def test_a_fix_that_could_not_be_made_smaller_says_so() -> None:
    fixes = asked(many_streams()).fixes
    windows = next(fix for fix in fixes if fix.kind == "window")
    assert windows.effect.endswith(advise.NOT_MINIMAL)
    smaller = asked(many_streams(3)).fixes
    assert all(advise.NOT_MINIMAL not in fix.effect for fix in smaller)


def test_queries_that_read_each_other_share_their_trials(
    calls: Callable[[object, str], list[object]],
) -> None:
    chain = "CREATE QUERY q0 AS SELECT a, b FROM s0;\n" + "".join(
        f"CREATE QUERY q{n} AS SELECT DISTINCT a, b FROM q{n - 1};\n" for n in range(1, 10)
    )
    judged = calls(planned, "is_bounded")
    opened = Session()
    opened.sql(streams(1) + chain)
    assert all(each.fixes for each in opened.queries if not each.judged.admitted)
    # Edits of q0 or of s0 are the same for all nine; each query has a few of its own.
    assert len(judged) < 9 * 12


@pytest.mark.parametrize("text", [long_or(), long_or(1_000), long_and()])
def test_long_chains_are_read_and_judged(text: str) -> None:
    assert asked(text).judged.admitted


def test_a_long_chain_reads_the_same_when_it_is_written() -> None:
    opened = Session()
    opened.sql(long_or(20))
    written = opened.render()
    assert " OR ".join(f"a = {n} AND b > {n}" for n in range(20)) in " ".join(written.split())


def test_a_conjunction_has_few_levels() -> None:
    parts = [Scalar.column(f"c{n}", types.BOOLEAN) for n in range(1_000)]
    joined = conjunction(parts).expression
    assert max(_depth(leaf) for leaf in joined.find_all(exp.Column)) <= 12
    assert [leaf.name for leaf in joined.find_all(exp.Column, bfs=False)] == [f"c{n}" for n in range(1_000)]


def _depth(node: exp.Expr) -> int:
    levels = 0
    while node.parent is not None:
        node, levels = node.parent, levels + 1
    return levels
