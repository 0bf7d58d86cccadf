"""The closure is exact: what it implies is what holds in every solution."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.safety.memory_queries import ALL, query, random_queries

from headgate.safety.theory.memory.answers import holds
from headgate.safety.theory.memory.closure import Bound, close
from headgate.safety.theory.memory.domain import Code, Domain
from headgate.safety.theory.memory.ordering import added, is_ordered, orderings
from headgate.safety.theory.memory.query import Attribute, Comparison, Constant, Element, SpjQuery

A, B, C = Attribute("S", "A"), Attribute("S", "B"), Attribute("S", "C")
D = Attribute("T", "D")


WHOLE: list[Code] = list(range(-3, 9))
# Around each constant, and beyond the outermost: whole numbers, and enough fractions between them.
FINE: list[Code] = sorted(
    {Fraction(n, 4) for n in range(-4, 12)}
    | {Fraction(n, 4) for n in (-10, -8, -7, -6, 12, 14, 16, 18, 20, 21, 22, 23, 24, 26, 28, 30)}
)


def solutions(tried: SpjQuery) -> list[dict[Attribute, Code]]:
    """All solutions on a grid that holds every order which constants 0, 1, 2, 5 and three attributes can have."""
    found: list[dict[Attribute, Code]] = [{}]
    for attribute in tried.attributes:
        grid = FINE if tried.domain(attribute).dense else WHOLE
        longer = [{**solution, attribute: value} for solution in found for value in grid]
        known = {*longer[0]} if longer else set()
        decided = [
            p for p in tried.predicates if attribute in p.attributes and known.issuperset(p.attributes)
        ]
        found = [solution for solution in longer if all(holds(p, solution) for p in decided)]
    return found


def test_two_bounds_with_one_integer_between_fix_the_value() -> None:
    closure = close(query("", "A>3, A<5", distinct=False))
    assert closure is not None
    assert closure.implies(Comparison(A, "=", Constant(4)))


def test_attributes_in_one_gap_are_equal() -> None:
    closure = close(query("", "A>3, A<5, D>3, D<5", distinct=False))
    assert closure is not None
    assert closure.relation(A, D) == "="


def test_no_integer_lies_between_neighbours() -> None:
    assert close(query("", "A>3, A<4", distinct=False)) is None


def test_a_fraction_does() -> None:
    dense = {"A": Domain.continuous()}
    closure = close(query("", "A>3, A<4", distinct=False, domains=dense))
    assert closure is not None
    assert closure.lower(A) == Bound(3, strict=True)


def test_a_strict_chain_takes_one_integer_per_step() -> None:
    assert close(query("", "A>0, A<B, B<C, C<3", distinct=False)) is None
    assert close(query("", "A>0, A<B, B<C, C<4", distinct=False)) is not None


def test_a_circle_of_weak_inequalities_is_an_equality() -> None:
    closure = close(query("", "A<=D, D<=B, B<=A", distinct=False))
    assert closure is not None
    assert closure.relation(A, D) == "="
    assert closure.classes([A, B, C, D]) == [[A, B, D], [C]]


def test_a_fraction_that_equals_an_integer_takes_its_gaps() -> None:
    dense = {"A": Domain.continuous()}
    closure = close(query("", "A=D, A>3, A<5", distinct=False, domains=dense))
    assert closure is not None
    assert closure.implies(Comparison(A, "=", Constant(4)))


def test_bounds_of_the_domain_count() -> None:
    small = {"A": Domain.integers(0, 3)}
    closure = close(query("", "A<D", distinct=False, domains=small))
    assert closure is not None
    assert closure.is_bounded(A)
    assert closure.is_lower_bounded(D)
    assert not closure.is_bounded(D)


def test_a_domain_may_have_one_end() -> None:
    ends = {"A": Domain.integers(high=3), "B": Domain.integers(low=0)}
    closure = close(query("", "D<A, B<E", distinct=False, domains=ends))
    assert closure is not None
    assert closure.implies(Comparison(D, "<", Constant(3)))
    assert closure.is_lower_bounded(Attribute("T", "E"))
    assert not any(closure.is_bounded(each) for each in (A, B, D))


def test_an_interval_of_a_continuous_domain_is_not_bounded() -> None:
    dense = {"A": Domain.continuous(), "B": Domain.continuous()}
    closure = close(query("", "A>1, A<2, B=7", distinct=False, domains=dense))
    assert closure is not None
    assert not closure.is_bounded(A)
    assert closure.is_bounded(B)


@pytest.mark.parametrize("ops", [("<", "=", ">"), ALL])
@pytest.mark.parametrize("dense", [False, True, None])
def test_satisfiability_and_implication_are_exact(ops: tuple[str, ...], dense: bool | None) -> None:
    @settings(max_examples=15 if dense else 40)
    @given(tried=random_queries(ops=ops, dense=dense, max_attributes=3))  # type: ignore[arg-type]
    def compare(tried: SpjQuery) -> None:
        found = solutions(tried)
        closure = close(tried)
        assert (closure is not None) == bool(found)
        if closure is not None:
            sides: list[Element] = [*tried.attributes, *tried.constants]
            for left, right in product(tried.attributes, sides):
                for op in ALL:
                    comparison = Comparison(left, op, right)
                    always = all(holds(comparison, solution) for solution in found)
                    assert closure.implies(comparison) == always, comparison

    compare()


@given(tried=random_queries(ops=ALL, dense=None, max_attributes=3), data=st.data())
def test_every_solution_is_in_exactly_one_ordered_part(tried: SpjQuery, data: st.DataObject) -> None:
    closure = close(tried)
    if closure is None:
        return
    parts = list(orderings(closure))
    assert all(is_ordered(part) for part in parts)
    solution = data.draw(st.sampled_from(solutions(tried)))
    holding = [p for p in parts if all(holds(predicate, solution) for predicate in p.predicates())]
    assert len(holding) == 1


def test_ordered_parts_of_one_attribute_and_two_constants() -> None:
    closure = close(query("", "A>1, A<9, D=5", distinct=False, streams={"S": "A", "T": "D"}))
    assert closure is not None
    # A between 1 and 5, at 5, between 5 and 9.
    assert [closure.constants[0].value, *sorted(str(p.lower(A)) for p in orderings(closure))] == [
        1,
        "Bound(value=2, strict=False)",
        "Bound(value=5, strict=False)",
        "Bound(value=6, strict=False)",
    ]


def test_what_is_added_names_the_nearest_constants_only() -> None:
    streams = {"S": "A", "T": "D"}
    constants = "D>1, D>5, D<90, D<120"
    wide = close(query("", constants, distinct=False, streams=streams))
    for condition, expected in (("A>90", "S.A > 90"), ("A<5", "S.A < 5")):
        narrow = close(query("", f"{condition}, {constants}", distinct=False, streams=streams))
        assert wide is not None
        assert narrow is not None
        assert [str(each) for each in added(narrow, wide, [A])] == [expected]
