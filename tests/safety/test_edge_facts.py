"""What the gate says of an edge is true of every row that flows over it: values, instants and lives.

Random queries are run operator by operator. Verdicts rest on these facts, so one that is wrong is noticed here even
where no answer is wrong for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import polars as pl
from hypothesis import HealthCheck, event, given, settings
from tests.differential.local import compiled, table_rows
from tests.oracle.generate import Example, examples
from tests.oracle.values import canonical

from headgate.model.batch import BORN, DIES, SIGN
from headgate.model.errors import MeaninglessError
from headgate.model.time import NEVER, SECOND
from headgate.physical.program import CompiledQuery
from headgate.plan.nodes import Node, StreamScan
from headgate.plan.patterns import Edges, Pattern, label
from headgate.runtime.data import frame_of
from headgate.runtime.query import QueryState
from headgate.safety.reasons.column_values import column_values
from headgate.safety.reasons.finite_values import Values
from headgate.safety.reasons.time import facts as time_facts
from headgate.safety.reasons.time.facts import EventTimes

STEPS = 3


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(examples())
def test_what_is_known_of_an_edge_is_true_of_its_rows(example: Example) -> None:
    try:
        ready = compiled(example.text, example.query, example.tables)
    except MeaninglessError:
        return
    edges = label(ready.facts.plan)
    times = EventTimes(edges)
    for node, rows in _flowing(ready, example):
        known = column_values(node)
        births = rows.filter(pl.col(SIGN) > 0)
        assert not known.empty or births.is_empty(), node
        for column in node.schema:
            _has_values(known.column(column.name), births[column.name], (node, column.name))
        _has_times(times, node, births)
        _has_lives(edges, node, rows)


def _flowing(ready: CompiledQuery, example: Example) -> Iterator[tuple[Node, pl.DataFrame]]:
    """The rows of each node that has a step of its own, in all steps of the clock together."""
    frames = {}
    for stream in ready.streams:
        assert stream.time is not None
        rows = frame_of(example.inputs[stream.name], list(stream.columns))
        born = pl.col(stream.time).cast(pl.Int64).alias(BORN)
        frames[stream.name] = rows.with_columns(born).sort(BORN, maintain_order=True)
    frames |= {each.name: table_rows(example.tables[each.name], each.columns) for each in ready.tables}
    births = sorted(at for rows in frames.values() for at in rows[BORN].to_list())
    cuts = [births[len(births) * n // STEPS] for n in range(1, STEPS)] if births else []
    state = QueryState(ready.graph)
    places = ready.graph.places
    seen: dict[Node, list[pl.DataFrame]] = {node: [] for node in places}
    for upto in dict.fromkeys([*cuts, (births[-1] if births else 0) + 60 * SECOND]):
        now = {
            name: rows.filter(pl.col(BORN).is_between(state.clock, upto, closed="right"))
            for name, rows in frames.items()
        }
        for part in state.export(now, upto, list(places.values())):
            for node, batch in zip(places, part, strict=True):
                seen[node].append(batch.frame)
    yield from ((node, pl.concat(parts)) for node, parts in seen.items() if parts)


def _has_values(claimed: Values, column: pl.Series, where: tuple[Node, str]) -> None:
    seen = {canonical(value) for value in column.to_list() if not isinstance(value, list)}
    told = seen - {None}
    assert claimed.nullable or None not in seen, (*where, claimed)
    if claimed.count is not None and not claimed.tables:
        assert len(told) <= claimed.count, (*where, claimed, told)
    assert claimed.listed is None or told <= claimed.listed, (*where, claimed, told)
    if column.dtype.is_integer():
        assert all(claimed.low is None or claimed.low <= value for value in told), (*where, claimed, told)
        assert all(claimed.high is None or claimed.high >= value for value in told), (*where, claimed, told)


def _has_times(times: EventTimes, node: Node, births: pl.DataFrame) -> None:
    facts = times.of(node)
    units = times._units((node,))

    def micros(name: Any) -> list[Fraction | None]:
        if name == time_facts.BORN:
            return [Fraction(at) for at in births[BORN].to_list()]
        unit = units(name)
        assert unit is not None
        column = births[name]
        whole = column.to_physical() if column.dtype.is_temporal() else column
        return [None if value is None else Fraction(value) * unit.scale for value in whole.to_list()]

    for later, earlier, most in facts.differences.bounds:
        event("an instant is bounded")
        for one, other in zip(micros(later), micros(earlier), strict=True):
            assert one is None or other is None or one - other <= most, (node, later, earlier, most)
    for name in facts.filled:
        assert births[name].null_count() == 0, (node, name)


def _has_lives(edges: Edges, node: Node, rows: pl.DataFrame) -> None:
    edge = edges[node]
    if not any(isinstance(each, StreamScan) for each in node.walk()):
        # A NON RETROACTIVE table tells its changes, though they take nothing back.
        return
    if max(edge.pattern, edge.expiry) == Pattern.MON:
        assert rows.filter((pl.col(SIGN) < 0) | (pl.col(DIES) < NEVER)).is_empty(), node
    if edge.lifetime is not None:
        assert rows.filter(pl.col(SIGN) > 0).filter(pl.col(DIES) - pl.col(BORN) > edge.lifetime).is_empty(), (
            node
        )
