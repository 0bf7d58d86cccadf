"""When rows, bags and outputs count as the same."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

from tests.oracle.values import NAN, Change, canonical_row, change_key, same_bag, same_output


def test_nan_is_one_value() -> None:
    rows = [canonical_row([float("nan")]), canonical_row([float("nan")])]
    assert Counter(rows) == {(NAN,): 2}
    assert same_bag([(float("nan"),)], [(float("nan"),)])
    assert not same_bag([(float("nan"),)], [(1.0,)])


def test_floats_may_differ_by_rounding_and_decimals_may_not() -> None:
    assert same_bag([(0.1 + 0.2, "a")], [(0.3, "a")])
    assert same_bag([(Decimal("0.30"),)], [(0.1 + 0.2,)])
    assert same_bag([(Decimal("0.30"),)], [(Decimal("0.3"),)])
    assert not same_bag([(Decimal("0.30"),)], [(Decimal("0.3000000000001"),)])
    assert not same_bag([(0.3,)], [(0.30001,)])


def test_bags_count_copies() -> None:
    assert same_bag([(1,), (1,), (None,)], Counter({(1,): 2, (None,): 1}))
    assert not same_bag([(1,), (1,)], [(1,)])
    assert not same_bag([(1,), (1,), (2,)], [(1,), (2,), (2,)])


def test_instants_compare_across_zones() -> None:
    noon = datetime(2024, 1, 1, 12, tzinfo=UTC)
    assert same_bag([(noon,)], [(noon.astimezone(timezone(timedelta(hours=2))),)])
    assert same_bag([(noon,)], [(noon.replace(tzinfo=None),)])


def test_lists_and_structs_compare_by_content() -> None:
    assert same_bag([([{"item": 1, "count": 2}],)], [([{"count": 2, "item": 1}],)])
    assert not same_bag([([{"item": 1, "count": 2}],)], [([{"item": 1, "count": 3}],)])


def test_output_has_no_order_within_an_instant_but_between_them() -> None:
    one, two = Change(1, "+", (7,)), Change(1, "+", (8,))
    assert same_output([one, two], [two, one])
    assert not same_output([one], [one._replace(time=2)])
    assert not same_output([one], [one._replace(op="-")])


def test_ticks_may_repeat_the_last_answer() -> None:
    said = [Change(1, None, (7,)), Change(2, None, (8,))]
    longer = [*said, Change(3, None, (8,))]
    assert same_output(said, longer, ticking=True)
    assert not same_output(said, longer)
    assert not same_output(said, [*said, Change(3, None, (9,))], ticking=True)


def test_canonical_order_is_by_time_then_deaths_then_value_with_null_first() -> None:
    rows = [Change(1, "+", (None,)), Change(1, "+", (2,)), Change(1, "-", (9,)), Change(0, "+", (5,))]
    assert sorted(rows, key=change_key) == [rows[3], rows[2], rows[0], rows[1]]
