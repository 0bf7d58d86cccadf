"""Queries and domains check themselves."""

from __future__ import annotations

import pytest
from tests.safety.memory_queries import query

from headgate.safety.theory.memory.domain import Domain, ranks
from headgate.safety.theory.memory.query import Attribute, Comparison, Constant, SpjQuery, StreamSchema


def test_a_listed_value_has_a_code_and_a_code_its_value() -> None:
    sizes = Domain.finite(("small", "large"))
    assert sizes.code("large") == 1
    assert sizes.value(0) == "small"
    assert sizes.is_finite


def test_an_unlisted_value_has_none() -> None:
    with pytest.raises(ValueError, match="is none of"):
        Domain.finite((False, True)).code("maybe")


def test_an_empty_domain_is_no_domain() -> None:
    with pytest.raises(ValueError, match="has no value"):
        Domain.integers(3, 2)


def test_a_list_has_each_value_once() -> None:
    with pytest.raises(ValueError, match="occurs twice"):
        Domain.finite(("small", "large", "small"))


def test_a_bounded_continuous_domain_is_not_finite() -> None:
    assert not Domain.continuous(0, 1).is_finite


def test_constants_without_numbers_are_coded_by_rank() -> None:
    assert ranks(["pear", "apple", "pear"]) == {"apple": 0, "pear": 1}


def test_comparisons_are_read_from_the_smaller_side() -> None:
    a = Attribute("S", "A")
    assert Comparison(a, ">", Constant(3)).ascending == Comparison(Constant(3), "<", a)
    assert str(Comparison(a, ">=", Constant(3)).mirrored) == "3 <= S.A"


def test_occurrences_of_one_stream_need_names() -> None:
    twice = (StreamSchema("S", ("A",)), StreamSchema("S", ("A",)))
    with pytest.raises(ValueError, match="two occurrences have one name"):
        SpjQuery(twice, ())


def test_an_unknown_attribute_is_named() -> None:
    with pytest.raises(ValueError, match=r"S\.X"):
        SpjQuery((StreamSchema("S", ("A",)),), (), (Attribute("S", "X"),))


def test_codes_of_different_lists_do_not_compare() -> None:
    with pytest.raises(ValueError, match="different lists"):
        query("", "A=D", distinct=True, domains={"A": Domain.finite("xy"), "D": Domain.finite("yx")})


def test_constants_of_domains_are_constants_of_the_query() -> None:
    tried = query("", "A<D, D<9", distinct=True, domains={"A": Domain.integers(0, 3)})
    assert [constant.value for constant in tried.constants] == [0, 3, 9]
