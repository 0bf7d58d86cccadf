"""UNION, EXCEPT and INTERSECT over bound query blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
from sqlglot import exp

from headgate.language.parse import Statement
from headgate.model import types
from headgate.model.errors import TypeMismatchError, UnsupportedError
from headgate.model.scalar import Scalar
from headgate.plan.expressions import convert
from headgate.plan.nodes import Difference, Distinct, Emit, Negation, Node, Output, Project, SemiJoin, Union
from headgate.plan.relation import Relation


def operands(tree: exp.SetOperation) -> list[exp.Expr]:
    """What a set operation combines, left to right; a chain of UNIONs is one union of many."""
    found, node = [tree.expression], tree.this
    while isinstance(tree, exp.Union) and isinstance(node, exp.Union) and not node.args.get("with_"):
        if _is_distinct(node) and not _is_distinct(tree):
            break
        found.append(node.expression)
        node = node.this
    return [node, *reversed(found)]


def combine(
    tree: exp.SetOperation,
    relations: Sequence[Relation],
    statement: Statement,
    unique: Callable[[str], str],
) -> Relation:
    """The set operation over its bound operands; `unique` makes names that nothing else has."""
    members = _aligned(tree, relations, statement, unique)
    labels = relations[0].labels
    node = _operator(tree, members, statement)
    outputs = tuple(
        Output(label, Scalar.column(column.name, column.type))
        for label, column in zip(labels, node.schema, strict=True)
    )
    node = Project(node, outputs)
    streams = all(isinstance(relation.node, Emit) for relation in relations)
    if streams and isinstance(tree, exp.Union) and not _is_distinct(tree):
        node = Emit(node, "ISTREAM")
    return Relation(node, labels)


def _is_distinct(tree: exp.SetOperation) -> bool:
    return tree.args.get("distinct") is not False


def _operator(tree: exp.SetOperation, members: tuple[Node, ...], statement: Statement) -> Node:
    first, second = members[0], members[-1]
    pairs = tuple((a.name, b.name) for a, b in zip(first.schema, second.schema, strict=True))
    match tree:
        case exp.Union():
            return Distinct(Union(members)) if _is_distinct(tree) else Union(members)
        case exp.Except() if _is_distinct(tree):
            return Negation(Distinct(first), second, pairs, null_equal=True)
        case exp.Except():
            return Difference(first, second)
        case exp.Intersect() if _is_distinct(tree):
            return SemiJoin(Distinct(first), second, pairs, null_equal=True)
    raise UnsupportedError(f"{tree.key.upper()} ALL is not supported", place=statement.place(tree))


def _aligned(
    tree: exp.SetOperation,
    relations: Sequence[Relation],
    statement: Statement,
    unique: Callable[[str], str],
) -> tuple[Node, ...]:
    """All operands with the same types, column by column, under names that differ."""
    word, trees = tree.key.upper(), operands(tree)
    width = len(relations[0].labels)
    for relation, operand in zip(relations, trees, strict=True):
        if len(relation.labels) != width:
            raise TypeMismatchError(
                f"both sides of {word} need the same number of columns, not {width} and {len(relation.labels)}",
                place=statement.place(operand),
            )
    common = [column.type for column in relations[0].node.schema]
    for relation, operand in zip(relations[1:], trees[1:], strict=True):
        for index, column in enumerate(relation.node.schema):
            label = relations[0].labels[index]
            common[index] = _meet(common[index], column.type, label, word, statement, operand)
    return tuple(
        _converted(relation, common, relations[0].labels, unique(word.lower())) for relation in relations
    )


def _meet(
    left: pa.DataType, right: pa.DataType, label: str, word: str, statement: Statement, operand: exp.Expr
) -> pa.DataType:
    common = types.common_type(left, right)
    if common is None:
        raise TypeMismatchError(
            f"column {label} is {types.spark_name(left)} on the left of {word} "
            f"and {types.spark_name(right)} on the right",
            remedy="convert one of them with CAST",
            place=statement.place(operand),
        )
    return common


def _converted(relation: Relation, common: Sequence[pa.DataType], labels: Sequence[str], name: str) -> Node:
    outputs = tuple(
        Output(f"{name}.{label}", convert(Scalar.column(column.name, column.type), dtype))
        for label, column, dtype in zip(labels, relation.node.schema, common, strict=True)
    )
    return Project(relation.node, outputs)
