"""What a query's state depends on, in words that are the same in every process and differ where a query does."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum

import polars as pl
import pyarrow as pa

from headgate.model.scalar import Scalar
from headgate.model.types import spark_name
from headgate.plan.catalog import StreamDef, TableDef
from headgate.plan.nodes import Node

_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")


def plan_lines(plan: Node) -> Iterator[str]:
    """A plan line by line, parents first: each operator with all that it computes and compares."""
    for depth, node in _with_depth(plan, 0):
        yield f"plan {'  ' * depth}{_operator(node)}"


def described(value: object) -> str:
    """A kernel, or a part of one.

    An expression is told as far as it prints; constants in compiled arithmetic do not, but the plan has them.
    What a function does follows from the plan too. Sets are told in order.
    """
    match value:
        case Scalar():
            return f"{value.expression.sql(dialect='spark')} {spark_name(value.type)}"
        case pl.Expr():
            return " ".join(_ADDRESS.sub("", str(value)).split())
        case pa.DataType():
            return spark_name(value)
        case StreamDef() | TableDef():
            return value.name
        case Enum():
            return value.name
        case Mapping():
            return (
                "{" + ", ".join(f"{described(key)}: {described(each)}" for key, each in value.items()) + "}"
            )
        case frozenset() | set():
            return "{" + ", ".join(sorted(map(described, value))) + "}"
        case tuple() | list():
            return "(" + ", ".join(map(described, value)) + ")"
    if is_dataclass(value):
        return f"{type(value).__name__}({_parts(value)})"
    if callable(value):
        return "…"
    return repr(value)


def _operator(node: Node) -> str:
    return f"{type(node).__name__.lower()} {_parts(node)}".rstrip()


def _parts(value: object) -> str:
    """The fields of a dataclass that are not as always, without the inputs of a node."""
    assert is_dataclass(value)
    found = ((field, getattr(value, field.name)) for field in fields(value))
    return ", ".join(
        f"{field.name}={described(part)}"
        for field, part in found
        if not (_is_input(part) or _is_same(part, field.default))
    )


def _is_input(part: object) -> bool:
    return isinstance(part, Node) or (isinstance(part, tuple) and bool(part) and isinstance(part[0], Node))


def _is_same(part: object, default: object) -> bool:
    if not isinstance(default, (bool, int, str, tuple)):
        return part is default
    return type(part) is type(default) and part == default


def _with_depth(node: Node, depth: int) -> Iterator[tuple[int, Node]]:
    yield depth, node
    for each in node.inputs:
        yield from _with_depth(each, depth + 1)
