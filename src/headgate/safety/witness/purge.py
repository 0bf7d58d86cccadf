"""Purge witness: for a join that promises do not make safe, rows that stay although all that could be promised was.

The proof of Theorem 1 of the Punctuation document as rows of the query's own streams: row k of the stream that
cannot be purged, a partner with value k on each stream that it reaches, every punctuation that the schemes allow
for these values, and for each k a row of the open streams that still joins it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import pyarrow as pa
from sqlglot import exp

from headgate.model import types
from headgate.plan.nodes import Emit, Filter, Join, Project
from headgate.plan.patterns import label
from headgate.safety.lineage import Lineage
from headgate.safety.promise import promises_of
from headgate.safety.reasons.purge_analysis import PurgeAnalysis
from headgate.safety.theory.punctuation.witness import Punctuation, Row, find_witness
from headgate.safety.witness.model import Adversary, Values

_EPOCH = date(1970, 1, 1)
_MOST_PUNCTUATIONS = 20_000


def find_purge_adversary(plan: Emit, count: int) -> Adversary | None:
    """An adversary with `count` rows against a join of unwindowed streams; None if none is known."""
    node = plan.input
    while isinstance(node, (Filter, Project)):
        node = node.input
    if not isinstance(node, Join):
        return None
    analysis = PurgeAnalysis(node, label(plan))
    behind = [each for each in analysis.lineages if each is not None and each.window is None]
    stuck = next(iter(analysis.result.stuck), None)
    if (
        stuck is None
        or len(behind) < len(node.members)
        or len({b.scan.stream.name for b in behind}) < len(behind)
    ):
        return None
    found = find_witness(analysis.query, str(stuck), count)
    if found is None or len(found.punctuations) > _MOST_PUNCTUATIONS:
        return None
    script = _Script(behind)
    rows = [script.row(name, row) for name, row in found.rows if name == found.stream]
    setting = [(name, script.row(name, row)) for name, row in found.rows if name != found.stream]
    setting += [
        (each.stream, script.closing(each)) for each in found.punctuations if script.is_announced(each)
    ]
    probes = [
        [(name, script.row(name, row, fresh=-place)) for name, row in probe]
        for place, probe in enumerate(found.continuations, start=1)
    ]
    every = [*rows, *(row for _, row in setting), *(row for probe in probes for _, row in probe)]
    if any(row is None for row in every):
        return None

    def named(pairs: list[tuple[str, Values | None]]) -> tuple[tuple[str, Values], ...]:
        return tuple((script.stream(name), row) for name, row in pairs if row is not None)

    return Adversary(
        script.stream(found.stream),
        tuple(row for row in rows if row is not None),
        tuple(named(probe) for probe in probes),
        one_size=False,
        reason=analysis.result.stuck[stuck],
        setting=named(setting),
    )


@dataclass(frozen=True)
class _Script:
    behind: list[Lineage]

    def stream(self, name: str) -> str:
        return self.behind[int(name)].scan.stream.name

    def row(self, name: str, row: Row, fresh: int = 0) -> Values | None:
        """The columns of a stream's row; `fresh` takes the place of the value that nothing else has."""
        behind = self.behind[int(name)]
        if not row.keys() <= behind.columns.keys():
            # An expression is joined on: which values its columns take for it is not worked out.
            return None
        flags = dict.fromkeys(self._flags(name), False)
        # A row in which nothing is equal to anything gets its key where it is played.
        alone = fresh or max(row.values(), default=None)
        keyed = {column for key in behind.scan.stream.keys for column in key}
        unique = {} if alone is None else dict.fromkeys(keyed, alone)
        values = unique | {behind.columns[column]: value or fresh for column, value in row.items()}
        return self._typed(name, values, flags)

    def closing(self, punctuation: Punctuation) -> Values | None:
        """The row that announces a punctuation."""
        behind = self.behind[int(punctuation.stream)]
        closed = {behind.columns[column]: value for column, value in punctuation.values}
        number = 1_000_000 + max(closed.values(), default=0)
        unique = {column: number for key in behind.scan.stream.keys for column in key}
        flag = self._flag(punctuation)
        flags = {f: f == flag for f in self._flags(punctuation.stream)}
        return self._typed(punctuation.stream, unique | closed, flags)

    def is_announced(self, punctuation: Punctuation) -> bool:
        """Whether a row of its own says it; a key's punctuations come with the rows themselves."""
        return self._flag(punctuation) is not None

    def _flag(self, punctuation: Punctuation) -> str | None:
        behind = self.behind[int(punctuation.stream)]
        closed = {behind.columns[column] for column, _ in punctuation.values}
        for promise in promises_of(behind.scan.stream):
            if set(promise.columns) == closed and promise.when is not None:
                expression = promise.when.expression
                return expression.name if isinstance(expression, exp.Column) else None
        return None

    def _flags(self, name: str) -> list[str]:
        schemes = self.behind[int(name)].scan.stream.punctuations
        return [s.when.expression.name for s in schemes if s.when is not None and s.when.is_column]

    def _typed(self, name: str, values: Mapping[str, int], flags: Mapping[str, bool]) -> Values | None:
        stream = self.behind[int(name)].scan.stream
        columns = {column.name: column.type for column in stream.columns}
        found: dict[str, Any] = dict(flags)
        for column, value in values.items():
            typed = None if column == stream.time or column in flags else value_of(columns[column], value)
            if typed is None:
                return None
            found[column] = typed
        return found


def value_of(dtype: pa.DataType, number: int) -> Any:
    """A value of a type that is a different one for each number; None if there is none to write down."""
    if types.is_integer(dtype):
        return number
    if pa.types.is_string(dtype):
        return f"v{number}"
    return _EPOCH + timedelta(days=number) if pa.types.is_date(dtype) else None
