"""Early lowering: what safety says of dropping rows of a join early, as kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from sqlglot import exp

from headgate.kernels import filter as filtering
from headgate.kernels import project as projecting
from headgate.kernels.expressions import polars_type
from headgate.kernels.join import early_purge as kernels
from headgate.kernels.kernel import Kernel
from headgate.model import types
from headgate.model.monitoring import Monitoring
from headgate.model.scalar import Scalar
from headgate.physical.purge_lowering import closing_kernels
from headgate.plan.nodes import Join, StreamScan
from headgate.safety.reasons.early_purge import (
    BelowClosed,
    Closed,
    ClosedKeys,
    EarlyChain,
    EarlyStep,
    JoinEarlyPurge,
    KeyClosed,
    RefusedKeys,
    ValuesClosed,
)
from headgate.safety.reasons.purge_analysis import AGED, Closing


@dataclass(frozen=True)
class KeySource:
    """A further input of a join: the streams behind it, and the kernels that make keys or bounds of their rows."""

    scans: tuple[StreamScan, ...]
    kernels: tuple[Kernel[Any], ...]


def early_purge_of(
    join: Join, found: JoinEarlyPurge, monitors: Monitoring
) -> tuple[kernels.EarlyPurge, tuple[KeySource, ...]]:
    """How a join drops rows before they die, and what brings the keys and bounds that this takes."""
    type_of = {name: polars_type(member.type_of(name)) for member in join.members for name in member.names}
    sources: list[KeySource] = []
    keys = []
    for each in found.keys:
        schema = {name: type_of[name] for name in _columns(each)}
        source = _key_source(join, each, monitors)
        number = None if source is None else len(sources)
        keys.append(_keys(each, schema, number))
        sources += () if source is None else (source,)
    bounds = []
    for closing in found.bounds:
        (column,) = closing.columns
        dtype = pl.Int64() if column == AGED else type_of[column]
        bounds.append(kernels.Bound(column, dtype, len(sources), closing.promise.is_observed))
        sources.append(_closing_source(closing, monitors))
    chains = tuple(_chain(each) for each in found.chains)
    return kernels.EarlyPurge(chains, tuple(keys), tuple(bounds)), tuple(sources)


def _keys(keys: RefusedKeys | ClosedKeys, schema: dict[str, pl.DataType], source: int | None) -> kernels.Keys:
    match keys:
        case RefusedKeys():
            until = tuple(tuple(_closer(each) for each in one) for one in keys.until)
            # An input that nothing closes may ask for ever.
            until = until if all(until) else ()
            return kernels.Keys(schema, source, keys.lifetime, until=until, chosen=keys.chosen)
        case ClosedKeys():
            return kernels.Keys(
                schema,
                source,
                keys.lifetime,
                holders=keys.holders,
                refused=keys.refused,
                observed=keys.closing.promise.is_observed,
            )


def _columns(keys: RefusedKeys | ClosedKeys) -> Sequence[str]:
    return keys.columns if isinstance(keys, RefusedKeys) else keys.closing.columns


def _key_source(join: Join, keys: RefusedKeys | ClosedKeys, monitors: Monitoring) -> KeySource | None:
    match keys:
        case ClosedKeys():
            return _closing_source(keys.closing, monitors)
        case RefusedKeys(filter=None):
            return None
        case RefusedKeys():
            assert keys.filter is not None
            return KeySource((keys.scan,), tuple(_refused(join, keys, keys.filter)))


def _closing_source(closing: Closing, monitors: Monitoring) -> KeySource:
    scans = (closing.scan,) if closing.referring is None else (closing.scan, closing.referring[0])
    return KeySource(scans, tuple(closing_kernels(closing, monitors)))


def _refused(join: Join, keys: RefusedKeys, passes: Scalar) -> Iterator[Kernel[Any]]:
    """The kernels that make of a stream's rows the keys of those that a filter refuses, by FALSE or by NULL."""
    true = exp.Coalesce(this=passes.expression.copy(), expressions=[exp.false()])
    yield filtering.Filter(Scalar(exp.Not(this=exp.Paren(this=true)), types.BOOLEAN))
    member = join.members[keys.member]
    yield projecting.Project(
        tuple(
            (name, Scalar.column(f"{keys.scan.name}.{source}", member.type_of(name)))
            for name, source in zip(keys.columns, keys.sources, strict=True)
        )
    )


def _chain(chain: EarlyChain) -> kernels.EarlyChain:
    return kernels.EarlyChain(
        chain.member,
        tuple(_step(each) for each in chain.own),
        tuple(_step(each) for each in chain.further),
        chain.closes_all,
        chain.refuses,
    )


def _step(step: EarlyStep) -> kernels.EarlyStep:
    return kernels.EarlyStep(
        step.member,
        tuple(name for name, _ in step.probe),
        tuple(value for _, value in step.probe),
        step.alike,
        tuple(_closer(each) for each in step.closed),
    )


def _closer(closed: Closed) -> kernels.Closer:
    match closed:
        case KeyClosed():
            return kernels.KeyCloser(closed.values, closed.refused)
        case ValuesClosed():
            return kernels.ValueCloser(closed.keys, closed.values)
        case BelowClosed(column=None):
            assert closed.member is not None
            return kernels.BelowCloser(closed.bound, kernels.birth_of(closed.member))
        case BelowClosed():
            assert closed.column is not None
            return kernels.BelowCloser(closed.bound, closed.column)
