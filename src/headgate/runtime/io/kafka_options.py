"""Options of a Kafka stream: what its declaration says about servers, topics and columns, checked without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from headgate.model.errors import DeclarationError
from headgate.model.suggest import did_you_mean
from headgate.model.types import is_timestamp
from headgate.plan.catalog import StreamDef
from headgate.runtime.io.kafka_topic import HOW_TO_SIGN_IN, NO_USER, SERVERS
from headgate.runtime.io.literals import JSON_FORMS, TextForms
from headgate.runtime.io.options import text_forms

_TOPICS = ("subscribe", "subscribePattern", "assign")
_OURS = {
    each.casefold(): each
    for each in ("keyColumn", "timestampColumn", "missingFields", "timestampFormat", "dateFormat")
}


@dataclass(frozen=True)
class KafkaOptions:
    """The checked options of a Kafka stream: those for Spark, and what each message's parts mean."""

    spark: Mapping[str, str]
    key: str | None = None
    """The column that takes the message's key."""
    timestamp: str | None = None
    """The column that takes the message's timestamp."""
    complete: bool = False
    forms: TextForms = JSON_FORMS

    @property
    def topics(self) -> list[str] | None:
        """The topics by name; None if they are chosen otherwise."""
        named = self.spark.get("subscribe")
        return None if named is None else [each.strip() for each in named.split(",")]


def read_kafka_options(stream: StreamDef) -> KafkaOptions:
    """The options of a stream that reads from Kafka; DeclarationError if something is missing or makes no sense."""
    assert stream.source is not None
    ours: dict[str, str] = {}
    spark: dict[str, str] = {}
    for key, value in stream.source.options:
        spelled = _OURS.get(key.casefold())
        if spelled is not None:
            ours[spelled] = value
        else:
            spark[next((each for each in _TOPICS if each.casefold() == key.casefold()), key)] = value
    if SERVERS not in spark:
        raise DeclarationError(
            f"{stream.name}: no Kafka servers are named", remedy=f"add {SERVERS} 'host:9092' to its OPTIONS"
        )
    if "@" in spark[SERVERS]:
        raise DeclarationError(f"{stream.name}: {NO_USER}", remedy=HOW_TO_SIGN_IN)
    if sum(each in spark for each in _TOPICS) != 1:
        raise DeclarationError(
            f"{stream.name}: exactly one of {', '.join(_TOPICS)} says which topics are read",
            remedy="add subscribe 'topic' to its OPTIONS",
        )
    key_column = _column(stream, ours.get("keyColumn"), "keyColumn")
    timestamp = _column(stream, ours.get("timestampColumn"), "timestampColumn")
    if timestamp is not None and not is_timestamp(type_of(stream, timestamp)):
        raise DeclarationError(
            f"{stream.name}: timestampColumn {timestamp} is not a TIMESTAMP", remedy="declare it as TIMESTAMP"
        )
    missing = ours.get("missingFields", "null").casefold()
    if missing not in ("null", "reject"):
        raise DeclarationError(
            f"{stream.name}: missingFields is '{missing}'", remedy="missingFields is null or reject"
        )
    # Nothing is lost: a new stream begins where its topics begin.
    return KafkaOptions(
        {"startingOffsets": "earliest", **spark},
        key_column,
        timestamp,
        missing == "reject",
        text_forms(ours.get("timestampFormat"), ours.get("dateFormat"), base64=True),
    )


def _column(stream: StreamDef, name: str | None, option: str) -> str | None:
    if name is None:
        return None
    names = [each.name for each in stream.columns]
    found = next((each for each in names if each.casefold() == name.casefold()), None)
    if found is None:
        raise DeclarationError(
            f"{stream.name}: {option} names {name}, which is no column", remedy=did_you_mean(name, names)
        )
    return found


def type_of(stream: StreamDef, name: str) -> pa.DataType:
    return next(each.type for each in stream.columns if each.name == name)
