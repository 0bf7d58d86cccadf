"""What declarations say about sources, looked at without reading a row: `headgate check` refuses what a run would."""

from __future__ import annotations

from contextlib import suppress

from headgate.model.errors import DeclarationError, SetupError
from headgate.plan.catalog import StreamDef, TableDef
from headgate.plan.nodes import Emit, StreamScan, TableScan
from headgate.runtime.io.changes import change_stream
from headgate.runtime.io.kafka_options import read_kafka_options
from headgate.runtime.io.postgres_table import is_in_postgres, read_relation
from headgate.runtime.io.registry import FILE_FORMATS, declared_files


def check_sources(plan: Emit) -> None:
    """Raises what a run of the plan would raise about the OPTIONS of what it reads.

    A declaration without USING may get its rows in memory, and options of other formats are Spark's to judge.
    """
    for node in plan.walk():
        if isinstance(node, StreamScan):
            check_source(node.stream)
        elif isinstance(node, TableScan):
            check_source(node.table)


def check_source(definition: StreamDef | TableDef) -> None:
    """Raises if the OPTIONS of a declaration cannot be meant so."""
    if isinstance(definition, TableDef):
        if is_in_postgres(definition):
            # Whether this machine has what it takes to ask a server is not the declaration's fault.
            with suppress(SetupError):
                read_relation(definition)
            return
        changes = change_stream(definition)
        definition = definition if changes is None else changes.stream
    format = None if definition.source is None else definition.source.format
    if format in FILE_FORMATS:
        declared_files(definition)
    elif format == "kafka" and isinstance(definition, StreamDef):
        read_kafka_options(definition)


def require_time(stream: StreamDef) -> None:
    """Raises DeclarationError if a stream has no event time."""
    if stream.time is None:
        raise DeclarationError(
            f"stream {stream.name} has no event time",
            remedy=f"add TIMESTAMP BY column to CREATE STREAM {stream.name}",
        )
