"""Purge lowering: what safety says of purges and closings, as kernels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import polars as pl

from headgate.kernels import filter as filtering
from headgate.kernels import project as projecting
from headgate.kernels.expressions import polars_type
from headgate.kernels.join import purge as join_purge
from headgate.kernels.kernel import Kernel
from headgate.kernels.punctuation import (
    age,
    clusters,
    clusters_in_time,
    monitored_age,
    monitored_clusters,
    monitored_order,
    order,
    order_in_time,
)
from headgate.kernels.punctuation.watermark import WatermarkPunctuator
from headgate.kernels.window import time_window as windowing
from headgate.model.adherence import Auto, WithinRows, WithinTime
from headgate.model.monitoring import DEFAULT, Monitoring
from headgate.model.scalar import Scalar
from headgate.plan.nodes import Node, StreamScan
from headgate.safety.promise import Promise, PromiseKind
from headgate.safety.reasons.purge_analysis import AGED, LIFESPAN, Closing, JoinPurge

NO_PURGE = join_purge.Purge((), (), (), LIFESPAN)
"""Nothing is forgotten by promises."""


def purge_of(inputs: Sequence[Node], found: JoinPurge) -> join_purge.Purge:
    """How an operator over some inputs forgets the rows that their promises let go."""
    return join_purge.Purge(
        tuple(
            join_purge.ClosingInput(
                each.member,
                {name: _type(inputs[each.member], name) for name in each.columns},
                each.below,
            )
            for each in found.closings
        ),
        tuple(
            join_purge.Chain(
                chain.member,
                tuple(
                    join_purge.ChainStep(step.closing, tuple(name for _, name in step.values), step.aged)
                    for step in chain.steps
                ),
                chain.closes_all,
            )
            for chain in found.chains.values()
        ),
        tuple(join_purge.PunctuationPurge(each.partners, each.by) for each in found.punctuation_purges),
        LIFESPAN,
    )


def _type(node: Node, name: str) -> pl.DataType:
    return pl.Int64() if name == AGED else polars_type(node.type_of(name))


def closing_kernels(closing: Closing, monitors: Monitoring = DEFAULT) -> Iterator[Kernel[Any]]:
    """The kernels that make of a stream's rows, one after the other, the values that it closes.

    They come out under the names that the reader knows. `monitors` says how what is only observed is watched.
    """
    scan, promise = closing.scan, closing.promise
    names = {column.name: f"{scan.name}.{column.name}" for column in scan.stream.columns}
    schema: dict[str, pl.DataType] = {AGED: pl.Int64()}
    if closing.referring is not None:
        yield _monitored_age(closing, monitors, *closing.referring)
    elif promise.kind is PromiseKind.REFERENCE:
        yield _age(promise)
    else:
        if promise.when is not None:
            yield filtering.Filter(promise.when.rename(names))
        outputs = tuple(
            (mine, Scalar.column(names[theirs], scan.type_of(names[theirs])))
            for mine, theirs in zip(closing.columns, closing.sources, strict=True)
        )
        yield projecting.Project(outputs)
        schema = {name: polars_type(scalar.type) for name, scalar in outputs}
        if promise.kind is PromiseKind.ORDER:
            yield _order(closing, schema, monitors)
        elif promise.kind is PromiseKind.CLUSTER:
            yield _clusters(closing, schema, monitors)
    if closing.slide is not None:
        # Rows of the stream are seen at ticks only, so what closes them must not be heard before.
        yield windowing.Window(windowing.Range(closing.slide, closing.slide), schema, "deaths")


def _age(promise: Promise) -> Kernel[Any]:
    match promise.within:
        case WithinRows(rows):
            return age.AgePunctuator(AGED, rows)
        case WithinTime(length):
            # How old a row is, the clock tells by itself.
            return WatermarkPunctuator(AGED, pl.Int64(), Fraction(1), length)
        case Auto() | None:
            raise AssertionError(f"{promise} says not by when")


def _monitored_age(
    closing: Closing, monitors: Monitoring, referring: StreamScan, columns: tuple[str, ...]
) -> Kernel[Any]:
    """The kernel that takes the rows of a stream, and those that refer to them."""
    scan = closing.scan
    names = [f"{scan.name}.{source}" for source in closing.sources]
    return monitored_age.MonitoredAgePunctuator(
        monitors,
        closing.constraint,
        AGED,
        {name: polars_type(scan.type_of(name)) for name in names},
        tuple(f"{referring.name}.{column}" for column in columns),
    )


def _order(closing: Closing, schema: Mapping[str, pl.DataType], monitors: Monitoring) -> Kernel[Any]:
    promise = closing.promise
    [(name, dtype)] = schema.items()
    match promise.within:
        case WithinRows(rows):
            return order.OrderPunctuator(name, dtype, rows)
        case WithinTime(length):
            return order_in_time.OrderInTimePunctuator(name, dtype, length)
        case Auto():
            return monitored_order.MonitoredOrderPunctuator(monitors, closing.constraint, name, dtype)
        case None:
            raise AssertionError(f"{promise} says not up to what")


def _clusters(closing: Closing, schema: Mapping[str, pl.DataType], monitors: Monitoring) -> Kernel[Any]:
    promise = closing.promise
    match promise.within:
        case WithinRows(rows):
            return clusters.ClusterPunctuator(schema, rows)
        case WithinTime(length):
            return clusters_in_time.ClusterInTimePunctuator(schema, length)
        case Auto():
            return monitored_clusters.MonitoredClusterPunctuator(monitors, closing.constraint, schema)
        case None:
            raise AssertionError(f"{promise} says not up to what")
