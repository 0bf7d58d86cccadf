"""Connectors: what Spark needs beside its own jars for a format, named as Spark resolves it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from headgate.model.errors import SetupError, UnsupportedError
from headgate.plan.catalog import StreamDef

PACKAGES = "spark.jars.packages"
_SCALA = "2.13"


def connector(format: str, version: str | None = None) -> str | None:
    """The Maven coordinates of what a format needs, in the installed Spark's version; None if it needs nothing."""
    name = {"kafka": "spark-sql-kafka-0-10", "avro": "spark-avro"}.get(format)
    return None if name is None else f"org.apache.spark:{name}_{_SCALA}:{version or _spark_version()}"


def packages_for(streams: Iterable[StreamDef], sinks: Iterable[str] = ()) -> dict[str, str]:
    """The setting with which a Spark session finds the connectors of all these; empty if none is needed.

    A machine that already says where such jars come from, in PYSPARK_SUBMIT_ARGS, is left alone.
    """
    if any(
        word in os.environ.get("PYSPARK_SUBMIT_ARGS", "") for word in ("--packages", "--jars", "spark.jars")
    ):
        return {}
    formats = [each.source.format for each in streams if each.source is not None]
    needed = {found for each in [*formats, *sinks] if (found := connector(each)) is not None}
    return {PACKAGES: ",".join(sorted(needed))} if needed else {}


def missing(format: str) -> SetupError:
    """What is said when Spark does not know a format."""
    package = connector(format)
    if package is None:
        return SetupError(
            f"Spark has no format {format}",
            remedy="check its name, or add its connector to Spark",
        )
    return SetupError(
        f"Spark has no connector for {format} here",
        remedy=f"start Spark with {PACKAGES}={package}",
    )


def require_files(spark: Any, format: str) -> None:
    """Raises unless Spark knows a format, and writes it as files of a folder."""
    datasources = spark._jvm.org.apache.spark.sql.execution.datasources
    try:
        found = datasources.DataSource.lookupDataSource(format, spark._jsparkSession.sessionState().conf())
    except Exception as error:
        if is_missing(str(error)):
            raise missing(format) from error
        raise
    name = spark._jvm.java.lang.Class.forName
    kinds = ("FileFormat", "v2.FileDataSourceV2")
    package = "org.apache.spark.sql.execution.datasources"
    if not any(name(f"{package}.{kind}").isAssignableFrom(found) for kind in kinds):
        raise UnsupportedError(
            f"Spark does not write {format} as files, and a micro-batch that comes again could not replace its rows",
            remedy="write another --output-format; from Python, to_df() gives all of Spark's writeStream",
        )


def is_missing(text: str) -> bool:
    """Whether Spark's message says that it does not know a format."""
    return any(sign in text for sign in _SIGNS)


_SIGNS: Sequence[str] = (
    "Failed to find data source",
    "DATA_SOURCE_NOT_FOUND",
    "Failed to find the data source",
)


def _spark_version() -> str:
    from pyspark import __version__  # noqa: PLC0415 - the rest of this module needs no Spark

    return str(__version__)
