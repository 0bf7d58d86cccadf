"""Statistics: rates and distinct counts, from a YAML file or assumed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from headgate.model.errors import InputError, Place
from headgate.model.source import SourceText, Span
from headgate.model.suggest import did_you_mean
from headgate.plan.catalog import Catalog, QueryDef

DEFAULT_RATE = 1.0
DEFAULT_DISTINCT = 1000.0
DEFAULT_TABLE_ROWS = 10_000.0
DEFAULT_CLOSES = 600.0
"""Seconds until a value is closed, where nothing is known of it."""
_LARGEST = 1e15
HORIZON = 3600.0
"""Seconds of history that an unbounded input is costed with; its state is still reported as unbounded."""


@dataclass(frozen=True)
class StreamStatistics:
    """Rows per second and distinct values per column (by case-folded name); for a table, its rows.

    `closes` says for a column how many seconds a row that waits for one of its values to be closed has to wait.
    """

    rate: float = DEFAULT_RATE
    distinct: Mapping[str, float] = field(default_factory=dict)
    rows: float = DEFAULT_TABLE_ROWS
    closes: Mapping[str, float] = field(default_factory=dict)

    def distinct_of(self, column: str) -> float:
        return self.distinct.get(column.casefold(), DEFAULT_DISTINCT)


@dataclass(frozen=True)
class Statistics:
    """What is known of each stream and table, by case-folded name; `given` is false when all is assumed."""

    streams: Mapping[str, StreamStatistics] = field(default_factory=dict)
    given: bool = False

    def of(self, name: str) -> StreamStatistics:
        return self.streams.get(name.casefold(), StreamStatistics())


def read_statistics(text: str, name: str, catalog: Catalog) -> Statistics:
    """Statistics from YAML: `streams: {S1: {rate: 10, distinct: {a: 500}}}`; raises InputError with the path."""
    document = _document(text, name)
    streams = _mapping(_mapping(document, name, "the file").get("streams", {}), name, "streams")
    known = {d.name.casefold(): d for d in catalog.definitions.values() if not isinstance(d, QueryDef)}
    found: dict[str, StreamStatistics] = {}
    for stream, given in streams.items():
        where = f"streams.{stream}"
        definition = known.get(str(stream).casefold())
        if definition is None:
            remedy = did_you_mean(str(stream), [d.name for d in known.values()])
            raise InputError(f"{name}: {where}: no such stream or table", remedy=remedy)
        entry = _mapping(given, name, where)
        unknown = set(entry) - {"rate", "distinct", "rows", "closes"}
        if unknown:
            raise InputError(
                f"{name}: {where}: unknown entry {sorted(map(str, unknown))[0]}",
                remedy="entries are rate, distinct, closes and, for tables, rows",
            )
        columns = [column.name for column in definition.columns]
        found[str(stream).casefold()] = StreamStatistics(
            rate=_number(entry.get("rate", DEFAULT_RATE), name, f"{where}.rate", least=0),
            distinct=_by_column(entry.get("distinct"), name, f"{where}.distinct", columns, least=1),
            rows=_number(entry.get("rows", DEFAULT_TABLE_ROWS), name, f"{where}.rows", least=0),
            closes=_by_column(entry.get("closes"), name, f"{where}.closes", columns, least=0),
        )
    return Statistics(found, given=True)


def _by_column(given: Any, name: str, where: str, columns: list[str], *, least: float) -> dict[str, float]:
    """A number for each of some columns, by case-folded name."""
    known = {column.casefold() for column in columns}
    found: dict[str, float] = {}
    for column, value in _mapping(given, name, where).items():
        if str(column).casefold() not in known:
            remedy = did_you_mean(str(column), columns)
            raise InputError(f"{name}: {where}.{column}: no such column", remedy=remedy)
        found[str(column).casefold()] = _number(value, name, f"{where}.{column}", least=least)
    return found


def _document(text: str, name: str) -> Any:
    source = SourceText(name, text)
    try:
        return yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        at = error.problem_mark.index if error.problem_mark is not None else 0
        raise InputError(
            f"this is not YAML: {error.problem or error.context}", place=Place(source, Span(at, at))
        ) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # A date that does not exist and a document that is nested too deeply are not YAML's own errors.
        raise InputError("this is not YAML that can be read", place=Place(source, Span(0, 0))) from error


def _mapping(value: Any, name: str, where: str) -> Mapping[Any, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InputError(
            f"{name}: {where} must be a mapping",
            remedy="for example: streams: {bids: {rate: 100, distinct: {itemid: 5000}}}",
        )
    return value


def _number(value: Any, name: str, where: str, *, least: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= _LARGEST:
        raise InputError(f"{name}: {where} must be a number from {least:g} to {_LARGEST:g}, not {value!r}")
    return float(value)
