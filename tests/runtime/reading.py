"""Short ways to declare a stream over files and to read it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from headgate.language.parse import parse
from headgate.model.errors import DataError, HeadgateError
from headgate.model.source import SourceText
from headgate.plan.catalog import StreamDef, build_catalog
from headgate.runtime.io import FileSource, RejectPolicy


def declare(columns: str, using: str) -> StreamDef:
    """The stream `s` with columns and clauses as in CQL."""
    (stream,) = build_catalog(parse(SourceText("test", f"CREATE STREAM s ({columns}) {using}"))).streams
    return stream


def source(
    base: Path, columns: str, using: str, *, chunk: int = 1_000, rejects: Path | None = None
) -> FileSource:
    policy = RejectPolicy.stop() if rejects is None else RejectPolicy.rejects(rejects)
    return FileSource(declare(columns, using), base, rows_per_chunk=chunk, on_bad_row=policy)


def read(
    base: Path, columns: str, using: str, *, chunk: int = 1_000, rejects: Path | None = None
) -> pl.DataFrame:
    """All rows of a stream."""
    return pl.concat(source(base, columns, using, chunk=chunk, rejects=rejects).chunks())


def rows(base: Path, columns: str, using: str, **options: Any) -> list[tuple[Any, ...]]:
    return read(base, columns, using, **options).rows()


def refusal(base: Path, columns: str, using: str, kind: type[HeadgateError] = DataError) -> str:
    """The message with which reading stops."""
    with pytest.raises(kind) as caught:
        read(base, columns, using)
    assert type(caught.value) is kind
    return str(caught.value)


def rejected(base: Path, columns: str, using: str) -> tuple[list[tuple[Any, ...]], list[dict[str, Any]]]:
    """The rows that are read when bad ones are set aside, and those that were."""
    folder = base / "rejects"
    good = rows(base, columns, using, rejects=folder)
    written = folder / "s" / "rejects.json"
    return good, [json.loads(line) for line in written.read_text().splitlines()] if written.exists() else []


def csv(path: str = "a.csv", options: str = "") -> str:
    return f"USING csv OPTIONS (path '{path}'{', ' + options if options else ''})"


def jsonl(path: str = "a.json", options: str = "") -> str:
    return f"USING json OPTIONS (path '{path}'{', ' + options if options else ''})"


def parquet(path: str = "a.parquet", options: str = "") -> str:
    return f"USING parquet OPTIONS (path '{path}'{', ' + options if options else ''})"
