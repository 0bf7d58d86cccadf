"""The formats of files that Headgate reads and writes by itself, on both engines. This is the list of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeGuard, assert_never, get_args

from headgate.model.errors import DeclarationError, UnsupportedError
from headgate.plan.catalog import StreamDef, TableDef
from headgate.runtime.io.format import FileFormat, Reader
from headgate.runtime.io.options import ALL_FILES, Options

FormatName = Literal["parquet", "orc", "csv", "json"]
FILE_FORMATS: tuple[FormatName, ...] = get_args(FormatName)


def file_format(name: FormatName) -> FileFormat:
    """What is known of a format. Its module is imported now: a process that reads no such files does without it."""
    match name:
        case "parquet":
            from headgate.runtime.io.parquet import PARQUET

            return PARQUET
        case "orc":
            from headgate.runtime.io.orc import ORC

            return ORC
        case "csv":
            from headgate.runtime.io.csv import CSV

            return CSV
        case "json":
            from headgate.runtime.io.json import JSON

            return JSON
        case _:
            assert_never(name)


def is_file_format(name: str) -> TypeGuard[FormatName]:
    """Whether a format is one of these."""
    return name in FILE_FORMATS


@dataclass(frozen=True)
class DeclaredFiles:
    """Where the files of a declaration are, and what reads them."""

    path: str
    reader: Reader


def declared_files(definition: StreamDef | TableDef) -> DeclaredFiles:
    """The files of a stream or table; raises on options that are not known, or cannot be meant so."""
    source = definition.source
    if source is None:
        raise DeclarationError(
            f"{definition.name} has no source to read rows from",
            remedy="add USING parquet OPTIONS (path '…') to its declaration, or hand its rows over in memory",
        )
    if not is_file_format(source.format):
        raise UnsupportedError(
            f"{definition.name} reads from {source.format}",
            remedy=f"the local engine reads files ({', '.join(FILE_FORMATS)}); run other sources on Spark",
        )
    format = file_format(source.format)
    options = Options.of(definition.name, format.name, source.options, (*ALL_FILES, *format.options))
    return DeclaredFiles(options.path, format.reader(definition.columns, options))
