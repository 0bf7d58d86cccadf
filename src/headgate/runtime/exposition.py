"""Exposition: metrics as the text that Prometheus reads (version 0.0.4).

```
# HELP headgate_state_rows Rows that an operator remembers.
# TYPE headgate_state_rows gauge
headgate_state_rows{query="hot",operator="4:join"} 5321
```
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Metrics = Mapping[str, Any]
Sample = tuple[Mapping[str, str], float]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True)
class Family:
    """One metric: its name, what it means, and its samples for a query's metrics."""

    name: str
    kind: Literal["gauge", "counter"]
    help: str
    samples: Callable[[Metrics], Iterable[Sample]]


def exposition(queries: Sequence[Metrics]) -> str:
    """The text for the metrics of some queries."""
    lines: list[str] = []
    for family in FAMILIES:
        samples = [
            ({"query": str(metrics["query"]), **labels}, value)
            for metrics in queries
            for labels, value in family.samples(metrics)
        ]
        if samples:
            lines.append(f"# HELP {family.name} {family.help}")
            lines.append(f"# TYPE {family.name} {family.kind}")
            lines += [f"{family.name}{_labels(labels)} {_number(value)}" for labels, value in samples]
    return "\n".join(lines) + "\n" if lines else ""


def _labels(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else repr(float(value))


def _plain(key: str, scale: float = 1) -> Callable[[Metrics], Iterator[Sample]]:
    """The value under a key, if it is there."""

    def samples(metrics: Metrics) -> Iterator[Sample]:
        value = metrics.get(key)
        if value is not None:
            yield {}, value if scale == 1 else value * scale

    return samples


def _by(label: str, key: str, *within: str) -> Callable[[Metrics], Iterator[Sample]]:
    """The values under a key, each under a name that becomes a label; `within` leads further into each value."""

    def samples(metrics: Metrics) -> Iterator[Sample]:
        for name, value in (metrics.get(key) or {}).items():
            found = value
            for step in within:
                found = found[step]
            yield {label: str(name)}, found

    return samples


def _spark(key: str) -> Callable[[Metrics], Iterator[Sample]]:
    return lambda metrics: _plain(key)(metrics.get("spark") or {})


def _spark_phases(metrics: Metrics) -> Iterator[Sample]:
    return _by("phase", "seconds")(metrics.get("spark") or {})


def _info(metrics: Metrics) -> Iterator[Sample]:
    yield {"engine": str(metrics["engine"]), "output": str(metrics["output"])}, 1


def _unbounded(metrics: Metrics) -> Iterator[Sample]:
    yield {}, int(bool(metrics["allowed_unbounded"]))


def _assumptions(metrics: Metrics) -> Iterator[Sample]:
    for each in metrics.get("assumes") or ():
        yield {"assumption": str(each["sentence"])}, int(bool(each["in_doubt"]))


def _constraints(key: str, scale: float = 1) -> Callable[[Metrics], Iterator[Sample]]:
    """What is known of monitored constraints under a key, if it is."""

    def samples(metrics: Metrics) -> Iterator[Sample]:
        for operator, known in (metrics.get("constraints") or {}).items():
            labels = {"operator": str(operator), "constraint": str(known["constraint"])}
            if known[key] is not None:
                yield labels, known[key] if scale == 1 else known[key] * scale

    return samples


FAMILIES = (
    Family("headgate_query_info", "gauge", "A query of this run; always 1.", _info),
    Family(
        "headgate_unbounded_allowed",
        "gauge",
        "1 if the query runs although its state is not proven bounded.",
        _unbounded,
    ),
    Family(
        "headgate_assumption_in_doubt",
        "gauge",
        "1 while rows pile up that should leave if what a conditional verdict assumes were so.",
        _assumptions,
    ),
    Family("headgate_rows_in_total", "counter", "Rows read.", _plain("rows_in")),
    Family("headgate_rows_out_total", "counter", "Rows written.", _plain("rows_out")),
    Family(
        "headgate_late_rows_total", "counter", "Rows that came later than slack allows.", _plain("late_rows")
    ),
    Family(
        "headgate_future_rows_total",
        "counter",
        "Rows set aside because their time is too far ahead.",
        _plain("future_rows"),
    ),
    Family(
        "headgate_rejected_rows_total",
        "counter",
        "Rows set aside because they do not fit their declaration.",
        _plain("rejected_rows"),
    ),
    Family(
        "headgate_waiting_rows", "gauge", "Rows that the clock has not passed yet.", _plain("waiting_rows")
    ),
    Family(
        "headgate_clock_seconds",
        "gauge",
        "The instant up to which the query has answered, in event time, as seconds since 1970.",
        _plain("clock", 1e-6),
    ),
    Family(
        "headgate_state_rows",
        "gauge",
        "Rows that an operator remembers.",
        _by("operator", "operators", "state_rows"),
    ),
    Family(
        "headgate_state_bytes",
        "gauge",
        "Bytes that an operator remembers.",
        _by("operator", "operators", "state_bytes"),
    ),
    Family(
        "headgate_peak_state_rows", "gauge", "The most rows all operators had.", _plain("peak_state_rows")
    ),
    Family(
        "headgate_peak_state_bytes", "gauge", "The most bytes all operators had.", _plain("peak_state_bytes")
    ),
    Family(
        "headgate_constraint_k",
        "gauge",
        "The k in use of a constraint WITHIN AUTO; missing while none is.",
        _constraints("k"),
    ),
    Family(
        "headgate_constraint_detectable",
        "gauge",
        "The longest distance between rows of a constraint WITHIN AUTO that is sure to be seen.",
        _constraints("detectable"),
    ),
    Family(
        "headgate_constraint_changes_total",
        "counter",
        "Changes of the k in use of a constraint WITHIN AUTO.",
        _constraints("changes"),
    ),
    Family(
        "headgate_constraint_changed_seconds",
        "gauge",
        "The event time of the last of these changes, as seconds since 1970.",
        _constraints("changed", 1e-6),
    ),
    Family(
        "headgate_constraint_violations_total",
        "counter",
        "How often rows strayed further than the k in use of a constraint WITHIN AUTO.",
        _constraints("violations"),
    ),
    Family("headgate_steps_total", "counter", "Steps of the clock.", _plain("steps")),
    Family("headgate_batches_total", "counter", "Micro-batches.", _plain("batches")),
    Family(
        "headgate_operator_seconds_total",
        "counter",
        "Time in each operator, over all shards.",
        _by("operator", "seconds"),
    ),
    Family(
        "headgate_stage_seconds_total",
        "counter",
        "Time that shards took to receive rows, load state, advance and save state.",
        _by("stage", "stage_seconds"),
    ),
    Family(
        "headgate_cache_hits_total",
        "counter",
        "Shards whose state was still in the worker.",
        _plain("cache_hits"),
    ),
    Family(
        "headgate_cache_misses_total",
        "counter",
        "Shards whose state was read from the store.",
        _plain("cache_misses"),
    ),
    Family("headgate_written_bytes_total", "counter", "State written to the store.", _plain("written_bytes")),
    Family(
        "headgate_spark_seconds_total",
        "counter",
        "Time of micro-batches by phase, as Spark reports it.",
        _spark_phases,
    ),
    Family(
        "headgate_spark_state_memory_bytes",
        "gauge",
        "Memory of Spark's state store.",
        _spark("state_memory_bytes"),
    ),
    Family(
        "headgate_spark_state_file_bytes",
        "gauge",
        "Files of Spark's state store.",
        _spark("state_file_bytes"),
    ),
)
