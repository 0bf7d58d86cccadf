"""Event time as a bound: what expressions over time say, what follows from conditions, and that state stays flat."""

from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction
from random import Random

import networkx as nx
import polars as pl
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from tests.safety.growth import ROWS, keeps

from headgate.kernels.expressions import compile_scalar
from headgate.model.errors import DataError
from headgate.model.time import DAY, HOUR, MILLISECOND, MINUTE, SECOND
from headgate.plan.nodes import Aggregate, Filter, Project
from headgate.plan.patterns import label
from headgate.safety.cause import Cause
from headgate.safety.reasons.time.differences import close
from headgate.safety.reasons.time.facts import EventTimes, _UnitsOf, comparisons
from headgate.safety.reasons.time.linear import INSTANTS, Kind, Unit, linear
from headgate.session import Query, Session

STREAMS = """
CREATE STREAM a (ts TIMESTAMP, k BIGINT, v BIGINT, due TIMESTAMP, until TIMESTAMP, expires TIMESTAMP,
  CHECK (until BETWEEN ts AND ts + INTERVAL 20 SECONDS), CHECK (expires <= until)) TIMESTAMP BY ts;
CREATE STREAM b (ts TIMESTAMP, k BIGINT, w BIGINT) TIMESTAMP BY ts;
CREATE STREAM c (ts TIMESTAMP, k BIGINT, x BIGINT) TIMESTAMP BY ts;
CREATE TABLE t (k BIGINT, name STRING) NON RETROACTIVE;
"""


def query(text: str) -> Query:
    session = Session()
    session.sql(f"{STREAMS} CREATE QUERY q AS {text};")
    return session.query("q")


def test_a_group_has_no_null_only_where_its_rows_have_none() -> None:
    plan = query("SELECT ts, due, year(ts) AS y, COUNT(*) AS n FROM a GROUP BY ts, due, year(ts)").plan
    (groups,) = (node for node in plan.walk() if isinstance(node, Aggregate))
    found = EventTimes(label(plan)).of(groups)
    year = next(name for name in groups.keys if "YEAR" in name)
    assert found.filled == {"a.ts", year}
    assert set(found.units) == {"a.ts", "a.due", year}


def test_numbers_may_differ_by_less_than_a_microsecond() -> None:
    plan = query("SELECT k FROM a WHERE k < v").plan
    (condition,) = (node.predicate for node in plan.walk() if isinstance(node, Filter))
    for unit, most in ((Unit(Kind.NUMBER, Fraction(1, 3)), 0), (INSTANTS, -1)):
        units = _UnitsOf({"a.k": unit, "a.v": unit}, {})
        assert list(comparisons(condition, units)) == [("a.k", "a.v", most)]


# -- expressions ----------------------------------------------------------------------------------

OF_TIME: dict[str, tuple[Fraction | int, Fraction | int] | None] = {
    "ts": (0, 0),
    "ts + INTERVAL 90 MINUTES": (90 * MINUTE, 90 * MINUTE),
    "ts - INTERVAL 1500 MILLISECONDS": (-1500 * MILLISECOND, -1500 * MILLISECOND),
    "ts + INTERVAL 2 MONTHS": (56 * DAY, 62 * DAY),
    "INTERVAL -13 MONTHS + ts": (-403 * DAY, -364 * DAY),
    "ts - INTERVAL 3 YEARS": (-1116 * DAY, -1008 * DAY),
    "CAST(ts AS DATE) - INTERVAL 1 QUARTER": (-94 * DAY + 1, -84 * DAY),
    "add_months(ts, -1)": (-32 * DAY + 1, -28 * DAY),
    "CAST(ts AS DATE) + INTERVAL 2 WEEKS": (13 * DAY + 1, 14 * DAY),
    "INTERVAL 1 DAY + CAST(ts AS DATE)": (1, DAY),
    "CAST(ts AS DATE) - INTERVAL '1 12:30' DAY TO MINUTE": (-3630 * MINUTE + 1, -2190 * MINUTE),
    "CAST(ts AS DATE) - 3": (-4 * DAY + 1, -3 * DAY),
    "40 + CAST(ts AS DATE)": (39 * DAY + 1, 40 * DAY),
    "ts + INTERVAL 1 HOUR * 3": (3 * HOUR, 3 * HOUR),
    "ts - 0.7 * INTERVAL '1 hour 11 seconds'": (-2527700 * MILLISECOND - 1, -2527700 * MILLISECOND + 1),
    "ts + INTERVAL 1 DAY / 7": (Fraction(86399999993, 7), Fraction(86400000007, 7)),
    "ts + (-INTERVAL 90 SECONDS)": (-90 * SECOND, -90 * SECOND),
    "ts - (INTERVAL 1 DAY + INTERVAL 2 HOURS * -3)": (-18 * HOUR, -18 * HOUR),
    "date_trunc('hour', ts)": (-HOUR + 1, 0),
    "date_trunc('week', ts - INTERVAL 1 DAY)": (-8 * DAY + 1, -DAY),
    "date_trunc('month', ts)": (-31 * DAY + 1, 0),
    "date_trunc('quarter', ts)": (-92 * DAY + 1, 0),
    "date_trunc('year', ts)": (-366 * DAY + 1, 0),
    "CAST(ts AS DATE)": (-DAY + 1, 0),
    "to_date(ts)": (-DAY + 1, 0),
    "trunc(ts, 'MM')": (-32 * DAY + 1, 0),
    "date_add(ts, 3)": (2 * DAY + 1, 3 * DAY),
    "timestampadd(HOUR, 3, ts)": (3 * HOUR, 3 * HOUR),
    "timestampadd(QUARTER, -1, ts)": (-93 * DAY, -84 * DAY),
    "dateadd(WEEK, -2, CAST(ts AS DATE))": (-15 * DAY + 1, -14 * DAY),
    "CAST(CAST(ts AS DATE) AS TIMESTAMP)": (-DAY + 1, 0),
    "unix_timestamp(ts)": (-SECOND + 1, SECOND - 1),
    "unix_seconds(ts)": (-SECOND + 1, 0),
    "unix_millis(ts)": (-MILLISECOND + 1, 0),
    "unix_micros(ts)": (0, 0),
    "unix_date(CAST(ts AS DATE))": (-DAY + 1, 0),
    "CAST(ts AS BIGINT)": (-SECOND, SECOND),
    "unix_timestamp(ts) DIV 300": (-301 * SECOND + 1, 301 * SECOND - 1),
    "unix_timestamp(ts) * 2 + 7": (2500 * MILLISECOND + 1, 4500 * MILLISECOND - 1),
    "3 * unix_timestamp(ts) - 5": (Fraction(-7999997, 3), Fraction(-2000003, 3)),
    "-unix_timestamp(ts)": (-SECOND + 1, SECOND - 1),
    "unix_timestamp(ts) - unix_timestamp(ts) % 300": (-301 * SECOND + 1, 301 * SECOND - 1),
    "floor(unix_timestamp(ts) / 300)": (-301008191, 301008191),
    "ceil(unix_millis(ts) / 7)": (-16191, 15192),
    "round(unix_timestamp(ts) / 60)": (-61008191, 61008191),
    "CAST(unix_timestamp(ts) / 3600 AS INT)": (-3601008191, 3601008191),
    "unix_timestamp(ts) / 300": (-1008191, 1008191),
    "unix_timestamp(ts) / 86400.0": (-86402004095, 86402004095),
    "CAST(unix_timestamp(ts) / 3600.0 AS DECIMAL(12, 0))": (-7202004095, 7202004095),
    "unix_timestamp(ts) / 7 + 0.1": None,
    "CAST(unix_millis(ts) AS DOUBLE) * 0.001 - 3": None,
    "year(ts)": (1035587124 * MINUTE + 1, 1036124244 * MINUTE),
    "year(CAST(ts AS DATE))": (1035587124 * MINUTE + 1, 1036124244 * MINUTE),
    "timestampadd(MONTH, 5, ts)": (140 * DAY, 155 * DAY),
    "dateadd(DAY, 3, ts)": (3 * DAY, 3 * DAY),
    "CAST(unix_timestamp(ts) AS DOUBLE)": (-1004095, 1004095),
    "CAST(unix_timestamp(ts) AS DECIMAL(20, 6))": (-2 * SECOND + 1, 2 * SECOND - 1),
    "CAST(unix_timestamp(ts) / 7 AS DECIMAL(20, 6))": (-8008191, 8008191),
    "CAST(unix_timestamp(ts) AS BIGINT)": (-SECOND + 1, SECOND - 1),
    "unix_timestamp(ts) / 7 * 7": (-1012287, 1012287),
    "unix_timestamp(ts) * 0.5": (-4004095, 4004095),
    "0.25 * unix_timestamp(ts)": (-6004095, 6004095),
    "unix_timestamp(ts) - unix_timestamp(ts) % 0.5": (-4504095, 4504095),
    "unix_timestamp(ts) / 7 - unix_timestamp(ts) / 7 % 2": (-15012287, 15012287),
    "-floor(unix_timestamp(ts) / 60)": (-61008191, 61008191),
    "ts + INTERVAL 1 DAY * 1.5": (36 * HOUR - 1, 36 * HOUR + 1),
    "ts - INTERVAL 1 DAY / -4": (6 * HOUR - 1, 6 * HOUR + 1),
    "ts + INTERVAL 2 DAYS * -0.3": (-864 * MINUTE - 1, -864 * MINUTE + 1),
    "unix_date(ts)": (-DAY + 1, 0),
    "CAST(ts AS DATE) + INTERVAL 1 DAY": (1, DAY),
    "date_trunc('day', CAST(ts AS DATE))": (-2 * DAY + 2, 0),
    "trunc(CAST(ts AS DATE), 'YEAR')": (-367 * DAY + 1, 0),
    "trunc(ts, 'WEEK')": (-8 * DAY + 1, 0),
    "unix_millis(ts) * 3 DIV 1000": (Fraction(-1002997, 3), Fraction(1000000, 3)),
    "year(ts) - 1": (62103670488 * SECOND + 1, 62135897688 * SECOND),
    "year(ts) * 2": (1035587124 * MINUTE + 1, 1036124244 * MINUTE),
    "CAST(ts AS DATE) - unix_date(CAST(ts AS DATE)) % 7": (-8 * DAY + 1, 7 * DAY),
}
"""How far scale × value is from the instant; None where the digits of a DOUBLE are part of that."""
NOT_OF_TIME = (
    "hour(ts)",
    "ts > due",
    "v",
    "v + unix_timestamp(ts)",
    "date_format(ts, 'HH')",
    "least(ts, due)",
    "ts + INTERVAL 1 HOUR * v",
    "v * INTERVAL 1 HOUR + ts",
    "ts + (due - ts) * 2",
    "ts + ((due - ts) * 2 - (due - ts) * 2)",
    "(due - ts) * 2 - (due - ts) * 2 + ts",
    "CAST(ts AS DATE) + v",
    "timestampdiff(MONTH, ts, due)",
    "timestampadd(HOUR, v, ts)",
    "(due - ts) * 9",
    "unix_timestamp(ts) * 1e26D",
    "(due - ts) / 2",
    "(due - ts) * 0.5",
    "(due - ts + INTERVAL 300000 DAYS) * 2 * 8",
    "add_months(ts, v)",
    "CAST(ts AS DATE) + unix_timestamp(ts) % 300",
    "unix_timestamp(ts) * 0",
    "unix_timestamp(ts) * -1",
    "unix_timestamp(ts) DIV -60",
    "unix_timestamp(ts) / -60",
    "unix_timestamp(ts) % 0",
    "unix_timestamp(ts) * v",
    "unix_timestamp(ts) % v",
    "unix_timestamp(ts) + unix_timestamp(due) * 2",
    "year(ts) + unix_timestamp(ts)",
    "round(unix_timestamp(ts) / 60, 2)",
    "abs(unix_timestamp(ts))",
    "CAST(unix_timestamp(ts) AS STRING)",
    "CAST(unix_timestamp(ts) AS FLOAT)",
    "CAST(unix_timestamp(ts) AS TIMESTAMP)",
    "TRY_CAST(ts AS DATE)",
    "trunc(ts, 'CENTURY')",
    "date_add(ts, v)",
    "hour(ts) * 2",
    "(due - ts + (due - ts)) * 2",
    "(due - ts) * 1.5",
    "(due - ts) / 0",
    "CAST(ts AS DATE) - INTERVAL 1 DAY * v",
    "ts + INTERVAL 10000000 HOURS / 0.001",
)


def outputs(text: str) -> Project:
    plan = query(f"SELECT ISTREAM({text} AS e) FROM a").plan
    return next(node for node in plan.walk() if isinstance(node, Project) and "e" in node.names)


@settings(max_examples=12, deadline=None)
@given(
    st.lists(
        st.datetimes(datetime(12, 1, 1), datetime(9990, 1, 1))  # noqa: DTZ001
        | st.datetimes(datetime(1969, 12, 30), datetime(1970, 1, 3)),  # noqa: DTZ001
        min_size=1,
        max_size=40,
    )
)
@pytest.mark.parametrize("text", OF_TIME, ids=str)
def test_a_linear_form_is_right_for_every_instant(text: str, instants: list[datetime]) -> None:
    project = outputs(text)
    (output,) = project.outputs
    form = linear(output.scalar.expression, lambda name: INSTANTS if name == "a.ts" else None)
    assert form is not None
    assert set(form.terms) == {"a.ts"}
    times = pl.Series("a.ts", [each.replace(tzinfo=UTC) for each in instants], dtype=pl.Datetime("us", "UTC"))
    values = pl.DataFrame([times]).select(compile_scalar(output.scalar).alias("e"))["e"]
    if isinstance(values.dtype, pl.Date):
        values = values.cast(pl.Int32)
    elif isinstance(values.dtype, pl.Datetime):
        values = values.dt.epoch("us")
    sign = form.terms["a.ts"]
    for instant, value in zip(times.dt.epoch("us"), values, strict=True):
        error = form.scale * Fraction(value) - sign * instant
        assert form.low <= error <= form.high


@pytest.mark.parametrize(("text", "error"), OF_TIME.items(), ids=OF_TIME)
def test_a_linear_form_allows_for_no_more_error_than_there_is(
    text: str, error: tuple[Fraction | int, Fraction | int] | None
) -> None:
    (output,) = outputs(text).outputs
    form = linear(output.scalar.expression, lambda name: INSTANTS if name == "a.ts" else None)
    assert form is not None
    assert error in (None, (form.low, form.high))


INSTANT, DAY_OF, LENGTH, NUMBER = "instant", "day", "length", "number"
WRITTEN = {
    INSTANT: (
        "({instant} + {length})",
        "({instant} - {length})",
        "({instant} + INTERVAL {few} MONTHS)",
        "({instant} - INTERVAL {few} YEARS)",
        "date_trunc('{unit}', {instant})",
        "CAST({day} AS TIMESTAMP)",
        "timestampadd(HOUR, {few}, {instant})",
        "dateadd(DAY, {few}, {day})",
        "dateadd({unit}, {few}, {instant})",
    ),
    DAY_OF: (
        "CAST({instant} AS DATE)",
        "({day} + {number})",
        "({day} - {few})",
        "({few} + {day})",
        "({day} + INTERVAL {few} DAYS)",
        "(INTERVAL {few} WEEKS + {day})",
        "({day} - INTERVAL {few} MONTHS)",
        "add_months({day}, {few})",
        "date_add({day}, {few})",
    ),
    LENGTH: (
        "INTERVAL {few} HOURS",
        "INTERVAL '{few} 11:59' DAY TO MINUTE",
        "({length} * {factor})",
        "({factor} * {length})",
        "({length} / {factor})",
        "(-{length})",
        "({length} - {length})",
        "({instant} - {instant})",
        "({instant} - {instant}) * {whole}",
        "({whole} * ({instant} - {instant}))",
    ),
    NUMBER: (
        "CAST(unix_timestamp({instant}) AS INT)",
        "unix_date({day})",
        "({number} % {few})",
        "CAST({number} DIV {few} AS INT)",
        "({number} - {number})",
        "({number} + {few})",
        "year({day})",
        "datediff({day}, {instant})",
        "CAST(timestampdiff({unit}, {instant}, {instant}) AS INT)",
        "CAST(date_diff(MINUTE, {day}, {instant}) AS INT)",
    ),
}
SIMPLEST = {
    INSTANT: ("ts", "due"),
    DAY_OF: ("CAST(ts AS DATE)", "CAST(due AS DATE)"),
    LENGTH: ("INTERVAL 90 SECONDS", "(due - ts)"),
    NUMBER: ("CAST(unix_timestamp(ts) % 300 AS INT)", "datediff(due, ts)"),
}


@st.composite
def composed(draw: st.DrawFn, kind: str, depth: int) -> str:
    """An expression of a kind, made of others."""
    if depth == 0:
        return draw(st.sampled_from(SIMPLEST[kind]))
    words = {
        "few": str(draw(st.integers(1, 40))),
        "factor": draw(st.sampled_from(["2", "3", "-1", "0.7", "1.5D", "7"])),
        "whole": draw(st.sampled_from(["2", "-1", "-3", "8", "9"])),
        "unit": draw(st.sampled_from(["hour", "week", "month", "year"])),
    }
    text = draw(st.sampled_from(WRITTEN[kind]))
    for name in (*WRITTEN, *words):
        while f"{{{name}}}" in text:
            part = words[name] if name in words else draw(composed(name, depth - 1))
            text = text.replace(f"{{{name}}}", part, 1)
    return text


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from(list(WRITTEN)).flatmap(
        lambda kind: st.integers(1, 3).flatmap(lambda depth: composed(kind, depth))
    ),
    st.lists(
        st.tuples(*[st.datetimes(datetime(1800, 1, 1), datetime(2200, 1, 1))] * 2),  # noqa: DTZ001
        min_size=1,
        max_size=20,
    ),
)
def test_a_linear_form_of_what_is_put_together_is_right(
    text: str, instants: list[tuple[datetime, datetime]]
) -> None:
    (output,) = outputs(text).outputs
    form = linear(output.scalar.expression, lambda name: INSTANTS if name in ("a.ts", "a.due") else None)
    known = "unknown" if form is None else f"of {len(form.terms)} columns"
    event(known)
    if form is None:
        return
    columns = zip(("a.ts", "a.due"), zip(*instants, strict=True), strict=True)
    rows = pl.DataFrame(
        [pl.Series(name, [each.replace(tzinfo=UTC) for each in values]) for name, values in columns]
    )
    try:
        values = rows.select(compile_scalar(output.scalar).alias("e"))["e"]
    except DataError:
        # A date that the calendar does not have.
        return
    times = [rows[name].dt.epoch("us") * count for name, count in form.terms.items()]
    counted = sum(times, pl.Series([0] * rows.height))
    for sum_of_terms, value in zip(counted, values.to_physical(), strict=len(values) > 1):
        error = form.scale * Fraction(value) - sum_of_terms
        assert form.low <= error <= form.high


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("unix_timestamp(ts) * 2", True),
        ("unix_timestamp(ts) DIV 300", True),
        ("CAST(unix_timestamp(ts) / 300 AS BIGINT)", True),
        ("floor(unix_timestamp(ts) / 300)", True),
        ("unix_timestamp(ts) / 300", False),
        ("unix_timestamp(ts) * 0.5", False),
        ("unix_timestamp(ts) + 0.5", False),
        ("CAST(unix_timestamp(ts) AS DECIMAL(12, 2))", False),
        ("unix_timestamp(ts) / 7 * 7", False),
        ("unix_timestamp(ts) % 7", True),
        ("unix_timestamp(ts) % 0.5", False),
        ("unix_timestamp(ts) / 7 % 7", False),
        ("CAST(unix_timestamp(ts) AS DOUBLE)", False),
        ("CAST(unix_timestamp(ts) AS INT)", True),
        ("unix_timestamp(ts) + 5", True),
        ("7 - unix_timestamp(ts) / 7", False),
    ],
)
def test_whole_numbers_are_not_rounded_again(text: str, whole: bool) -> None:
    (output,) = outputs(text).outputs
    form = linear(output.scalar.expression, lambda name: INSTANTS if name == "a.ts" else None)
    assert form is not None
    assert form.whole is whole


@pytest.mark.parametrize("text", NOT_OF_TIME)
def test_what_is_no_time_has_no_linear_form(text: str) -> None:
    (output,) = outputs(text).outputs
    form = linear(output.scalar.expression, lambda name: INSTANTS if name in ("a.ts", "a.due") else None)
    assert form is None


@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef"), st.integers(0, 50)), max_size=15)
)
def test_differences_are_shortest_paths(bounds: list[tuple[str, str, int]]) -> None:
    graph = nx.DiGraph()
    for later, earlier, most in bounds:
        known = graph.get_edge_data(earlier, later, {"weight": most})["weight"]
        graph.add_edge(earlier, later, weight=min(most, known))
    found = close(bounds)
    lengths = dict(nx.all_pairs_dijkstra_path_length(graph))
    for later in "abcdef":
        for earlier in "abcdef":
            if later != earlier:
                assert found.bound(later, earlier) == lengths.get(earlier, {}).get(later)


# -- verdicts -------------------------------------------------------------------------------------

KEPT_FOR = {
    "a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 HOUR": (HOUR, 0),
    "a.k = b.k AND b.ts > a.ts AND b.ts <= a.ts + INTERVAL 1 HOUR": (HOUR, 0),
    "a.ts = b.ts": (0, 0),
    "a.k = b.k AND a.ts BETWEEN b.ts - INTERVAL 2 MINUTES AND b.ts + INTERVAL 5 MINUTES": (
        2 * MINUTE,
        5 * MINUTE,
    ),
    "a.k = b.k AND b.ts - a.ts BETWEEN INTERVAL -1 MINUTES AND INTERVAL 1 MINUTES": (MINUTE, MINUTE),
    "date_trunc('hour', a.ts) = date_trunc('hour', b.ts)": (HOUR - 1, HOUR - 1),
    "CAST(a.ts AS DATE) = CAST(b.ts AS DATE)": (DAY - 1, DAY - 1),
    "a.k = b.k AND b.ts >= a.ts AND b.ts < a.until": (20 * SECOND - 1, 0),
    "unix_seconds(b.ts) - unix_seconds(a.ts) BETWEEN 0 AND 10": (11 * SECOND - 1, SECOND - 1),
    "a.k = b.k AND abs(unix_seconds(b.ts) - unix_seconds(a.ts)) < 10": (11 * SECOND - 2, 11 * SECOND - 2),
    "a.k = b.k AND timestampdiff(MINUTE, a.ts, b.ts) BETWEEN 0 AND 5": (6 * MINUTE - 1, MINUTE - 1),
    "a.k = b.k AND datediff(b.ts, a.ts) = 1": (2 * DAY - 1, 0),
    "a.k = b.k AND (b.ts - a.ts) * 3 BETWEEN INTERVAL -3 MINUTES AND INTERVAL 6 MINUTES": (
        2 * MINUTE + 8192,
        MINUTE + 8192,
    ),
    "a.k = b.k AND (b.ts - a.ts) * 8 BETWEEN INTERVAL 0 MINUTES AND INTERVAL 8 MINUTES": (
        MINUTE + 8192,
        8192,
    ),
    "a.k = b.k AND -(b.ts - a.ts) * 2 <= INTERVAL 1 MINUTE AND a.ts >= b.ts - INTERVAL 1 MINUTE": (
        MINUTE,
        MINUTE // 2 + 8192,
    ),
    "a.ts <=> b.ts": (0, 0),
    "a.k = b.k AND b.ts IN (a.ts, a.ts + INTERVAL 1 HOUR)": (HOUR, 0),
    "a.k = b.k AND (b.ts = a.ts OR b.ts = a.ts + INTERVAL 1 HOUR AND a.v = 1)": (HOUR, 0),
    "a.k = b.k AND NOT (b.ts < a.ts OR b.ts > a.ts + INTERVAL 1 HOUR)": (HOUR, 0),
    "a.k = b.k AND NOT (b.ts <> a.ts)": (0, 0),
    "a.k = b.k AND b.ts <= dateadd(HOUR, 1, a.ts) AND b.ts >= a.ts": (HOUR, 0),
    # Around 1970, two seconds have one number.
    "unix_timestamp(b.ts) - unix_timestamp(a.ts) BETWEEN 0 AND 10": (12 * SECOND - 2, 2 * SECOND - 2),
}


@pytest.mark.parametrize(("condition", "kept"), KEPT_FOR.items(), ids=str)
def test_a_join_keeps_rows_as_long_as_partners_can_come(condition: str, kept: tuple[int, int]) -> None:
    found = query(f"SELECT ISTREAM(a.v, b.w) FROM a, b WHERE {condition}")
    assert found.judged.admitted
    (retained,) = found.optimized.judgement.state_plan.retained.values()
    assert tuple(retained[number].length - 1 for number in (0, 1)) == kept
    assert [state.by for state in found.judged.states] == [Cause.TIME, Cause.TIME]


def test_a_row_that_appears_at_the_next_tick_finds_its_partners() -> None:
    found = query(
        "SELECT a.v, b.w FROM a [RANGE 8 SECONDS SLIDE 4 SECONDS], b "
        "WHERE b.ts BETWEEN a.ts AND a.ts + INTERVAL 5 SECONDS"
    )
    (retained,) = found.optimized.judgement.state_plan.retained.values()
    assert {number: each.length - 1 for number, each in retained.items()} == {1: 4 * SECOND - 1}


def test_rows_of_a_union_are_kept_as_long_as_those_of_its_members() -> None:
    found = query(
        "SELECT ISTREAM(u.v, c.x) FROM (SELECT ts AS e, v FROM a "
        "UNION ALL SELECT ts + INTERVAL 3 SECONDS AS e, w AS v FROM b) u, c "
        "WHERE c.ts BETWEEN u.e AND u.e + INTERVAL 5 SECONDS"
    )
    (retained,) = found.optimized.judgement.state_plan.retained.values()
    assert {number: each.length - 1 for number, each in retained.items()} == {0: 8 * SECOND, 1: 0}


@pytest.mark.parametrize(
    ("check", "admitted"),
    [
        ("due <= ts + INTERVAL 20 SECONDS", True),
        ("due BETWEEN ts - INTERVAL 1 SECOND AND ts + INTERVAL 20 SECONDS", True),
        ("due >= ts", False),
        ("NOT due > ts + INTERVAL 20 SECONDS", True),
        ("due = ts + INTERVAL 5 SECONDS OR due = ts + INTERVAL 20 SECONDS", True),
        ("due IN (ts, ts + INTERVAL 20 SECONDS)", True),
        ("due <= ts + INTERVAL 20 SECONDS OR k = 1", False),
        ("due = ts + INTERVAL 5 SECONDS", True),
        ("due = ts + INTERVAL 5 SECONDS OR due = ts + INTERVAL 20 SECONDS OR k = 1", False),
        (
            "due <= ts + INTERVAL 40 SECONDS AND due <= ts + INTERVAL 20 SECONDS AND due >= ts + INTERVAL 30 SECONDS",
            False,
        ),
        (
            "due >= ts + INTERVAL 10 SECONDS AND due >= ts + INTERVAL 30 SECONDS AND due <= ts + INTERVAL 20 SECONDS",
            False,
        ),
        # With NULL in `until` any row passes this one.
        ("due <= until AND until <= ts OR due <= until AND until <= ts + INTERVAL 1 SECOND", False),
        # Only NULL passes this one.
        ("due BETWEEN ts + INTERVAL 30 SECONDS AND ts + INTERVAL 20 SECONDS", False),
    ],
)
def test_a_check_bounds_how_long_partners_come_unless_it_contradicts_itself(
    check: str, admitted: bool
) -> None:
    session = Session()
    session.sql(
        f"CREATE STREAM a (ts TIMESTAMP, k BIGINT, due TIMESTAMP, until TIMESTAMP, CHECK ({check})) TIMESTAMP BY ts;"
        "CREATE STREAM b (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts;"
        "CREATE QUERY q AS SELECT ISTREAM(a.k) FROM a, b WHERE a.k = b.k AND b.ts >= a.ts AND b.ts < a.due;"
    )
    assert session.query("q").judged.admitted is admitted


REFUSED = (
    "SELECT ISTREAM(a.v, b.w) FROM a, b WHERE a.k = b.k AND b.ts > a.ts",
    "SELECT ISTREAM(a.v, b.w) FROM a, b WHERE a.k = b.k AND b.ts BETWEEN a.due AND a.due + INTERVAL 1 HOUR",
    "SELECT ISTREAM(a.v, b.w) FROM a, b WHERE a.k = b.k AND b.ts < a.due AND b.ts >= a.ts",
    "SELECT ISTREAM(a.v, b.w) FROM a [RANGE 1 MINUTE], b WHERE a.k = b.k AND b.ts < a.ts",
    "SELECT ISTREAM(a.v, b.w) FROM a, b, c WHERE a.k = b.k AND b.k = c.k AND a.ts = b.ts",
    "SELECT ISTREAM(a.v, b.w) FROM a, b WHERE a.k = b.k AND hour(a.ts) = hour(b.ts)",
    "SELECT ISTREAM(a.v, b.w) FROM a, b WHERE a.k = b.k AND (b.ts = a.ts OR a.v = 1)",
    "SELECT ISTREAM(a.v, b.w) FROM a, b WHERE a.k = b.k AND b.ts IN (a.ts, a.due)",
    "SELECT ISTREAM(a.v, b.w) FROM a, b WHERE a.k = b.k AND b.ts NOT IN (a.ts, a.ts + INTERVAL 1 HOUR)",
    "SELECT ISTREAM(a.v, b.w) FROM a, b WHERE a.k = b.k AND abs(unix_seconds(b.ts) - unix_seconds(a.ts)) > 10",
    "SELECT ISTREAM(a.v, b.w) FROM a, b WHERE NOT (a.k = b.k AND b.ts = a.ts)",
    # NULL equals NULL here, whenever the other row comes.
    "SELECT ISTREAM(a.v, b.v AS w) FROM a, a AS b WHERE a.until <=> b.until",
    # That partners come in time is a matter of a CHECK here, which nobody would ask the rows of a to keep.
    "SELECT DISTINCT a.v, b.w FROM a [ROWS 3], b WHERE a.k = b.k AND b.ts BETWEEN a.ts AND a.until",
    "SELECT due, COUNT(*) AS n FROM a GROUP BY due",
    "SELECT ISTREAM(DISTINCT date_trunc('hour', due)) FROM a",
    "SELECT RSTREAM(date_trunc('hour', ts), COUNT(*)) FROM a GROUP BY date_trunc('hour', ts)",
    "SELECT ISTREAM(DISTINCT date_format(ts, 'HH')) FROM a",
    "SELECT ISTREAM(DISTINCT date_format(ts, 'yyyy-dd')) FROM a",
    "SELECT ISTREAM(DISTINCT date_format(due, 'yyyy-MM-dd')) FROM a",
    # What a row of a partition meets is remembered until another row of its value comes, which may be never.
    "SELECT DISTINCT a.k FROM a [PARTITION BY k ROWS 1], b WHERE a.k IN (7, 8, 9) AND b.ts > a.ts",
    "SELECT a.v, b.w FROM a [ROWS 3], b WHERE b.ts > a.ts",
    # A NULL passes a CHECK, so what one says of two columns that may be NULL says nothing of their distance.
    "SELECT ISTREAM(a.v, b.w) FROM a, b WHERE a.k = b.k AND b.ts BETWEEN a.ts AND a.due AND a.due <= a.expires",
    # Far from zero a DOUBLE has no room for seconds.
    "SELECT CAST(unix_timestamp(ts) / 1 + 1e18 AS BIGINT) AS e, COUNT(*) AS n FROM a "
    "GROUP BY CAST(unix_timestamp(ts) / 1 + 1e18 AS BIGINT)",
    "SELECT ISTREAM(a.v, b.w) FROM a, b "
    "WHERE unix_timestamp(a.ts) * 1e300 * 1e300 = unix_timestamp(b.ts) * 1e300 * 1e300",
    # A row of `a` comes back when the row that hid it has died, whatever its time.
    "SELECT ISTREAM(DISTINCT ts) FROM a WHERE NOT EXISTS (SELECT * FROM b [RANGE 1 MINUTE] WHERE b.k = a.k)",
)


@pytest.mark.parametrize("text", REFUSED)
def test_what_time_does_not_bound_is_refused(text: str) -> None:
    assert not query(text).judged.admitted


CLOSED_BY = {
    "ts": "a.ts",
    "date_trunc('hour', ts)": "DATE_TRUNC('HOUR', a.ts), at most 1 HOUR after its first row",
    "CAST(ts AS DATE)": "CAST(a.ts AS DATE), at most 1 DAY after its first row",
    "year(ts)": "YEAR(CAST(TO_DATE(a.ts) AS TIMESTAMP)), at most 373 DAYS after its first row",
    "unix_timestamp(ts) DIV 60": "UNIX_TIMESTAMP(a.ts) DIV 60, at most 122 SECONDS after its first row",
}


@pytest.mark.parametrize("key", CLOSED_BY)
def test_groups_are_closed_by_time_of_any_type(key: str) -> None:
    judged = query(f"SELECT k, {key} AS at, COUNT(*) AS n FROM a GROUP BY k, {key}").judged
    assert judged.admitted
    (state,) = (each for each in judged.states if each.by is Cause.TIME)
    assert state.reason.endswith(f"a group is final when event time has passed its {CLOSED_BY[key]}")


FLAT = (
    "SELECT ISTREAM(a.v, b.w) FROM a, b WHERE b.ts BETWEEN a.ts - INTERVAL 3 SECONDS AND a.ts + INTERVAL 9 SECONDS",
    "SELECT ISTREAM(a.v, b.w) FROM a, b WHERE a.ts = b.ts",
    "SELECT a.v, b.w FROM a [RANGE 9 SECONDS], b WHERE a.k = b.k AND b.ts > a.ts",
    "SELECT a.v, b.w FROM a, b [ROWS 3] WHERE b.ts BETWEEN a.ts AND a.ts + INTERVAL 9 SECONDS",
    "SELECT a.v, b.w FROM a [RANGE 8 SECONDS SLIDE 4 SECONDS], b "
    "WHERE b.ts BETWEEN a.ts AND a.ts + INTERVAL 5 SECONDS",
    "SELECT ISTREAM(a.v, x) FROM a, b, c WHERE b.ts BETWEEN a.ts AND a.ts + INTERVAL 5 SECONDS AND c.ts = b.ts",
    "SELECT ISTREAM(a.v, b.w, name) FROM a, b, t WHERE a.k = b.k AND t.k = a.k AND b.ts >= a.ts AND b.ts < a.until",
    "SELECT k, date_trunc('minute', ts) AS m, COUNT(DISTINCT v) AS n, MEDIAN(v) AS o FROM a "
    "GROUP BY k, date_trunc('minute', ts)",
    "SELECT k, date_format(ts, 'yyyy-MM-dd HH:mm') AS m, COUNT(DISTINCT v) AS n FROM a "
    "GROUP BY k, date_format(ts, 'yyyy-MM-dd HH:mm')",
    "SELECT ISTREAM(DISTINCT k, date_format(ts, 'yyyyMMddHHmmss') AS s) FROM a",
    "SELECT ISTREAM(DISTINCT k, unix_timestamp(ts) DIV 10 AS bucket) FROM a",
    "SELECT ISTREAM(DISTINCT ts, k) FROM a",
    "SELECT date_trunc('minute', a.ts) AS m, SUM(w) AS w FROM a, b "
    "WHERE a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 5 SECONDS GROUP BY date_trunc('minute', a.ts)",
    "SELECT ISTREAM(DISTINCT u) FROM (SELECT ts AS u FROM a UNION ALL SELECT ts AS u FROM b) x",
    "SELECT ISTREAM(v) FROM a WHERE EXISTS "
    "(SELECT * FROM b WHERE b.k = a.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 9 SECONDS)",
    "SELECT v FROM a WHERE NOT EXISTS "
    "(SELECT * FROM b WHERE b.k = a.k AND b.ts BETWEEN a.ts - INTERVAL 4 SECONDS AND a.ts + INTERVAL 9 SECONDS)",
    "SELECT v FROM a WHERE NOT EXISTS (SELECT * FROM b WHERE b.ts = a.ts)",
    "SELECT ISTREAM(v) FROM a WHERE EXISTS (SELECT * FROM b WHERE b.ts = a.until)",
    "SELECT ts FROM a INTERSECT SELECT ts FROM b",
    "SELECT ts FROM b INTERSECT SELECT due FROM a WHERE due BETWEEN ts AND ts + INTERVAL 9 SECONDS",
    "SELECT ts FROM b EXCEPT SELECT due FROM a WHERE due BETWEEN ts AND ts + INTERVAL 9 SECONDS",
    "SELECT v FROM a [RANGE 9 SECONDS] WHERE EXISTS (SELECT * FROM b WHERE b.k = a.k AND b.ts > a.ts)",
    "SELECT ISTREAM(x.n, c.x) FROM (SELECT DISTINCT ts, k AS n FROM a) x, c "
    "WHERE c.ts BETWEEN x.ts AND x.ts + INTERVAL 7 SECONDS",
)


@pytest.mark.parametrize("text", FLAT)
def test_state_stays_flat(text: str) -> None:
    found = query(text)
    assert found.judged.admitted, found.judged.states
    kept = keeps(found, "unique", Random(1))
    assert kept.sizes is not None
    assert max(kept.sizes) < ROWS
    assert not kept.grows, kept.sizes
