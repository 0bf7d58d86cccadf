"""LIKE patterns and Java regular expressions as the regular expressions that Polars runs."""

from __future__ import annotations

import re

import polars as pl
from sqlglot import exp

from headgate.kernels.expressions.compile import compile_node, constant_integer, constant_text
from headgate.kernels.expressions.text_length import fitting
from headgate.kernels.expressions.typed import Scope, Typed
from headgate.model.errors import UnsupportedError


@compile_node.register(exp.Like)
@compile_node.register(exp.ILike)
def _(node: exp.Like | exp.ILike, scope: Scope) -> Typed:
    pattern = like_regex(constant_text(node.expression, "the pattern of LIKE"))
    flags = "(?si)" if isinstance(node, exp.ILike) else "(?s)"
    return compile_node(node.this, scope).map(lambda a: a.str.contains(flags + pattern))


def like_regex(pattern: str) -> str:
    """The regular expression of a LIKE pattern, anchored at both ends."""
    parts: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character == "\\":
            escaped = next(characters, None)
            if escaped not in ("%", "_", "\\"):
                raise UnsupportedError(f"the LIKE pattern {pattern!r} escapes something other than % and _")
            parts.append(re.escape(escaped))
        else:
            parts.append({"%": ".*", "_": "."}.get(character) or re.escape(character))
    return f"^{''.join(parts)}$"


def checked_regex(node: exp.Expr | None, what: str) -> str:
    """A constant regular expression that Polars can run."""
    pattern = constant_text(node, what)
    try:
        pl.select(pl.lit("").str.contains(pattern))
    except pl.exceptions.ComputeError as error:
        reason = str(error).split("error: ")[-1].splitlines()[0]
        raise UnsupportedError(f"the regular expression {pattern!r} cannot run: {reason}") from error
    return pattern


@compile_node.register
def _(node: exp.RegexpLike, scope: Scope) -> Typed:
    pattern = checked_regex(node.expression, "the pattern of RLIKE")
    return compile_node(node.this, scope).map(lambda a: a.str.contains(pattern))


@compile_node.register
def _(node: exp.RegexpReplace, scope: Scope) -> Typed:
    if node.args.get("position") is not None:
        raise UnsupportedError("REGEXP_REPLACE from a position on is not supported")
    pattern = checked_regex(node.expression, "the pattern of REGEXP_REPLACE")
    replacement = _replacement(constant_text(node.args["replacement"], "the replacement of REGEXP_REPLACE"))
    text = compile_node(node.this, scope)
    # What a group repeats is text of the row, so only what stands between groups can be multiplied.
    added = len(re.sub(r"\$\{\d+\}", "", replacement).encode())
    if not added:
        return text.map(lambda a: a.str.replace_all(pattern, replacement))
    text = text.once()
    hits = text.expr.str.count_matches(pattern).cast(pl.Int64)
    fits, checks = fitting(hits * added, hits * added, node)
    made = text.map(lambda a: pl.when(fits).then(a).str.replace_all(pattern, replacement))
    return made.failing(checks)


def _replacement(java: str) -> str:
    """Java ends `$1` at the digits and escapes a dollar; in Polars a name runs on and a dollar is doubled."""
    parts = re.split(r"(\\.|\$\d+)", java)
    return "".join(
        part[1:].replace("$", "$$")
        if part.startswith("\\")
        else f"${{{part[1:]}}}"
        if part.startswith("$")
        else part
        for part in parts
    )


@compile_node.register
def _(node: exp.RegexpExtract, scope: Scope) -> Typed:
    pattern = checked_regex(node.expression, "the pattern of REGEXP_EXTRACT")
    given = node.args.get("group")
    group = 1 if given is None else constant_integer(given, "the group of REGEXP_EXTRACT")
    groups = re.compile(pattern).groups
    if not 0 <= group <= groups:
        raise UnsupportedError(f"the regular expression {pattern!r} has {groups} groups, not {group}")
    return compile_node(node.this, scope).map(
        lambda a: pl.when(a.is_not_null()).then(a.str.extract(pattern, group).fill_null(""))
    )


@compile_node.register
def _(node: exp.RegexpSplit, scope: Scope) -> Typed:
    limit = node.args.get("limit")
    if limit is not None and constant_integer(limit, "the limit of SPLIT") > 0:
        raise UnsupportedError("SPLIT with a limit is not supported")
    pattern = checked_regex(node.expression, "the pattern of SPLIT")
    return compile_node(node.this, scope).map(lambda a: a.str.split(pattern, literal=False))
