"""Plays an adversary's rows to the local engine: they are real rows, and they are really kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from headgate.model.errors import HeadgateError, InputError
from headgate.optimize.optimize import Optimized
from headgate.plan.bind import BoundQuery
from headgate.plan.catalog import Catalog, StreamDef
from headgate.plan.nodes import StreamScan
from headgate.runtime.local.workspace import LocalWorkspace
from headgate.runtime.output import safe_name
from headgate.safety.adversary import Adversary, Values

START = datetime(2026, 1, 1, tzinfo=UTC)
STEP = timedelta(seconds=1)
PARTS = 4

History = Sequence[tuple[str, Values]]


@dataclass(frozen=True)
class Growth:
    """After so many rows: the bits that any correct algorithm needs, and the rows that this engine keeps for them."""

    rows: int
    bits: int
    kept: int


@dataclass(frozen=True)
class Shown:
    """An adversary played: the growth, and the rows of all streams as frames, probes last."""

    adversary: Adversary
    growth: tuple[Growth, ...]
    frames: Mapping[str, pl.DataFrame]
    parquet: frozenset[str]
    """Streams that are read from Parquet."""

    def write(self, folder: Path) -> list[Path]:
        """Writes each stream's rows to a file: Parquet if the stream is read from such, CSV otherwise."""
        written = []
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for stream, frame in self.frames.items():
                kind = "parquet" if stream in self.parquet else "csv"
                path = folder / f"{safe_name(stream)}.{kind}"
                frame.write_parquet(path) if kind == "parquet" else frame.write_csv(path)
                written.append(path)
        except OSError as error:
            raise InputError(
                f"cannot write to {folder}: {error.strerror or error}", remedy="choose another --output"
            ) from error
        return written


def play(adversary: Adversary, query: BoundQuery, optimized: Optimized, catalog: Catalog) -> Shown | None:
    """Runs a query over an adversary's rows; None if the engine does not see in them what it should."""
    stage = _Stage(query, optimized, catalog)
    past: History = [(adversary.stream, row) for row in adversary.rows]
    setting, last = list(adversary.setting), adversary.probes[-1]
    try:
        if stage.answers([*past, *setting], last) == stage.answers([*past[:-1], *setting], last):
            return None
        growth = []
        others = stage.kept(setting) if setting else 0
        for part in range(1, PARTS + 1):
            count = len(past) * part // PARTS
            if count:
                growth.append(
                    Growth(count, adversary.bits(count), stage.kept([*past[:count], *setting]) - others)
                )
    except HeadgateError:
        # A row that its declaration does not allow, or an expression that fails on it: no witness then.
        return None
    probes = [row for probe in adversary.probes for row in probe]
    return Shown(adversary, tuple(growth), stage.frames([*past, *setting, *probes]), stage.parquet)


@dataclass(frozen=True)
class _Stage:
    query: BoundQuery
    optimized: Optimized
    catalog: Catalog

    @property
    def parquet(self) -> frozenset[str]:
        return frozenset(
            s.name for s in self._streams if s.source is not None and s.source.format == "parquet"
        )

    def frames(self, history: Iterable[tuple[str, Values]]) -> dict[str, pl.DataFrame]:
        """The rows of each stream in order, one a second, with plain values for columns that do not matter."""
        rows: dict[str, list[dict[str, Any]]] = {stream.name: [] for stream in self._streams}
        for number, (name, values) in enumerate(history):
            stream = next(each for each in self._streams if each.name == name)
            row = {column.name: _plain(column.type) for column in stream.columns} | dict(values)
            if stream.time is not None:
                row[stream.time] = START + number * STEP
            rows[name].append(row)
        found = {}
        for stream in self._streams:
            schema = pa.schema([(column.name, column.type) for column in stream.columns])
            found[stream.name] = pl.from_arrow(pa.Table.from_pylist(rows[stream.name], schema))
        return {name: frame for name, frame in found.items() if isinstance(frame, pl.DataFrame)}

    @cached_property
    def _streams(self) -> list[StreamDef]:
        """The streams that the query reads."""
        scans = [node for node in self.optimized.best.plan.walk() if isinstance(node, StreamScan)]
        return list({scan.stream.name: scan.stream for scan in scans}.values())

    def answers(self, past: History, probe: History) -> list[Any]:
        """What is said once a probe has come."""
        asked_at = START + len(past) * STEP
        said = self._run([*past, *probe]).to_dicts()
        return sorted((repr(row) for row in said if row["_time"] >= asked_at), key=str)

    def kept(self, past: History) -> int:
        return int(self._run(past).metrics.peak_state_rows)

    def _run(self, history: History) -> Any:
        workspace = LocalWorkspace()
        catalog = self.catalog
        for name, frame in self.frames(history).items():
            stream = next(each for each in self._streams if each.name == name)
            catalog = workspace.add_stream(catalog, name, frame, time=stream.time, slack=stream.slack)
        request = [(self.query, self.optimized)]
        results = workspace.run(request, catalog, base=Path(), allow_unbounded=True)
        return results[self.query.name]


def _plain(dtype: pa.DataType) -> Any:
    """A value of no importance."""
    if pa.types.is_boolean(dtype):
        return False
    if pa.types.is_integer(dtype) or pa.types.is_floating(dtype) or pa.types.is_decimal(dtype):
        return 0
    return "" if pa.types.is_string(dtype) else None
