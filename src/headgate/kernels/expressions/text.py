"""Functions on text. Positions count characters from 1, from the end when negative."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import pyarrow.compute as pc
from sqlglot import exp

from headgate.kernels.expressions.compile import compile_node, constant_integer, constant_text, named
from headgate.kernels.expressions.dtypes import type_name
from headgate.kernels.expressions.text_length import LONGEST_TEXT, fitting
from headgate.kernels.expressions.typed import Scope, Typed, combine, one_height, shown
from headgate.model.errors import UnsupportedError


@compile_node.register
def _(node: exp.Concat, scope: Scope) -> Typed:
    return _joined([compile_node(part, scope) for part in node.expressions], node)


@compile_node.register
def _(node: exp.DPipe, scope: Scope) -> Typed:
    return _joined([compile_node(part, scope) for part in (node.this, node.expression)], node)


def _joined(parts: list[Typed], node: exp.Expr) -> Typed:
    wrong = next((part.dtype for part in parts if part.dtype not in (pl.String, pl.Null)), None)
    if wrong is not None:
        raise UnsupportedError(
            f"`{shown(node)}` joins text; cast its part of type {type_name(wrong)} to STRING"
        )
    return combine(lambda *values: pl.concat_str([value.cast(pl.String) for value in values]), *parts)


@compile_node.register
def _(node: exp.ConcatWs, scope: Scope) -> Typed:
    separator = constant_text(node.expressions[0], "the separator of CONCAT_WS")
    parts = [compile_node(part, scope) for part in node.expressions[1:]]
    return combine(lambda *values: pl.concat_str(values, separator=separator, ignore_nulls=True), *parts)


@compile_node.register
def _(node: exp.Upper, scope: Scope) -> Typed:
    return compile_node(node.this, scope).map(lambda a: a.str.to_uppercase())


@compile_node.register
def _(node: exp.Lower, scope: Scope) -> Typed:
    return compile_node(node.this, scope).map(lambda a: a.str.to_lowercase())


@compile_node.register
def _(node: exp.Initcap, scope: Scope) -> Typed:
    # A word starts after a space only, so that x-ray becomes X-ray.
    words = compile_node(node.this, scope).map(lambda a: a.str.to_lowercase().str.split(" "))
    first, rest = pl.element().str.slice(0, 1).str.to_uppercase(), pl.element().str.slice(1)
    return words.map(lambda a: a.list.eval(first + rest).list.join(" "))


@compile_node.register
def _(node: exp.Length, scope: Scope) -> Typed:
    return compile_node(node.this, scope).map(lambda a: a.str.len_chars().cast(pl.Int32))


@compile_node.register
def _(node: exp.Reverse, scope: Scope) -> Typed:
    return compile_node(node.this, scope).map(lambda a: a.str.reverse())


@compile_node.register
def _(node: exp.Substring, scope: Scope) -> Typed:
    operands = [compile_node(part, scope).once() for part in (node.this, node.args["start"])]
    if (length := node.args.get("length")) is not None:
        operands.append(compile_node(length, scope))
    return combine(_slice, *operands)


def _slice(text: pl.Expr, start: pl.Expr, length: pl.Expr | None = None) -> pl.Expr:
    position = start.cast(pl.Int64)
    offset = pl.when(position > 0).then(position - 1).otherwise(position)
    # Polars takes an offset or length of NULL for none at all.
    if length is None:
        # Counted from the end beyond the beginning, the rest is the whole text.
        rest = text.str.slice(pl.max_horizontal(offset, -text.str.len_chars().cast(pl.Int64)))
        return pl.when(position.is_not_null()).then(rest)
    part = text.str.slice(offset, pl.max_horizontal(length.cast(pl.Int64), pl.lit(0)))
    return pl.when(position.is_not_null() & length.is_not_null()).then(part)


@compile_node.register
def _(node: exp.Left, scope: Scope) -> Typed:
    text, count = compile_node(node.this, scope).once(), compile_node(node.expression, scope).once()
    return combine(lambda a, n: _slice(a, pl.lit(1), n), text, count)


@compile_node.register
def _(node: exp.Right, scope: Scope) -> Typed:
    text, count = compile_node(node.this, scope).once(), compile_node(node.expression, scope).once()
    return combine(
        lambda a, n: (
            pl.when(n > 0).then(_slice(a, -n.cast(pl.Int64))).when(n.is_not_null()).then(a.str.slice(0, 0))
        ),
        text,
        count,
    )


@compile_node.register
def _(node: exp.Trim, scope: Scope) -> Typed:
    given = node.args.get("expression")
    characters = " " if given is None else constant_text(given, "the characters of TRIM")
    return _trimmed(compile_node(node.this, scope), str(node.args.get("position") or "BOTH"), characters)


@named("btrim")
def _(arguments: list[Typed], node: exp.Anonymous) -> Typed:
    given = node.expressions[1:]
    return _trimmed(
        arguments[0], "BOTH", constant_text(given[0], "the characters of BTRIM") if given else " "
    )


def _trimmed(text: Typed, side: str, characters: str) -> Typed:
    match side.upper():
        case "LEADING":
            return text.map(lambda a: a.str.strip_chars_start(characters))
        case "TRAILING":
            return text.map(lambda a: a.str.strip_chars_end(characters))
    return text.map(lambda a: a.str.strip_chars(characters))


@compile_node.register
def _(node: exp.Replace, scope: Scope) -> Typed:
    search = constant_text(node.expression, "what REPLACE looks for")
    text = compile_node(node.this, scope)
    if not search:
        return text
    given = node.args.get("replacement")
    replacement = Typed(pl.lit(""), scope) if given is None else compile_node(given, scope)
    text, replacement = text.once(), replacement.once()

    def replaced(a: pl.Expr, new: pl.Expr) -> pl.Expr:
        # Polars stops at a replacement that is NULL.
        found = a.str.replace_all(search, new.fill_null(""), literal=True)
        return pl.when(new.is_not_null()).then(found)

    value = combine(replaced, text, replacement)
    if given is None or (isinstance(given, exp.Literal) and len(given.name) <= len(search)):
        return value
    hits = text.expr.str.count_matches(search, literal=True).cast(pl.Int64)
    new = replacement.expr
    fits, checks = fitting(
        hits * (new.str.len_chars().cast(pl.Int64) - len(search)),
        hits * new.str.len_bytes().cast(pl.Int64),
        node,
    )
    made = combine(lambda a, new: replaced(pl.when(fits).then(a), new), text, replacement)
    return made.failing(checks)


@compile_node.register
def _(node: exp.Translate, scope: Scope) -> Typed:
    old = constant_text(node.args["from_"], "the characters of TRANSLATE")
    new = constant_text(node.args["to"], "the characters of TRANSLATE")
    # The first mention of a character counts; characters without a counterpart disappear.
    pairs = {character: new[i : i + 1] for i, character in reversed(list(enumerate(old)))}
    text = compile_node(node.this, scope)
    return text.map(lambda a: a.str.replace_many(list(pairs), list(pairs.values()))) if pairs else text


@compile_node.register
def _(node: exp.StrPosition, scope: Scope) -> Typed:
    text, part = compile_node(node.this, scope).once(), compile_node(node.args["substr"], scope).once()
    if (given := node.args.get("position")) is None:
        return combine(_position, text, part)
    start = compile_node(given, scope).once()

    def from_start(a: pl.Expr, b: pl.Expr, n: pl.Expr) -> pl.Expr:
        first = n.cast(pl.Int64)
        at = _position(_slice(a, first.clip(lower_bound=1)), b)
        found = pl.when((first > 0) & (at > 0)).then(at + first - 1).otherwise(0)
        # The empty text is at the beginning, wherever the search begins.
        found = pl.when(b == "").then((first > 0).cast(pl.Int64)).otherwise(found).cast(pl.Int32)
        # Whatever the text is, LOCATE from nowhere is 0.
        return pl.when(n.is_null()).then(0).when(at.is_not_null()).then(found)

    return combine(from_start, text, part, start)


def _position(text: pl.Expr, part: pl.Expr) -> pl.Expr:
    """Where a part begins in a text, in characters from 1 on; 0 if it does not occur."""
    # Polars answers in bytes; the characters before the hit are counted.
    at = text.str.find(part, literal=True)
    before = text.cast(pl.Binary).bin.slice(0, at.fill_null(0)).cast(pl.String).str.len_chars()
    found = pl.when(at.is_null()).then(0).otherwise(before.cast(pl.Int64) + 1).cast(pl.Int32)
    return pl.when(text.is_not_null() & part.is_not_null()).then(found)


@compile_node.register
def _(node: exp.StartsWith, scope: Scope) -> Typed:
    return combine(
        lambda a, b: a.str.starts_with(b),
        compile_node(node.this, scope),
        compile_node(node.expression, scope),
    )


@compile_node.register
def _(node: exp.EndsWith, scope: Scope) -> Typed:
    return combine(
        lambda a, b: a.str.ends_with(b), compile_node(node.this, scope), compile_node(node.expression, scope)
    )


@compile_node.register
def _(node: exp.Contains, scope: Scope) -> Typed:
    text, part = compile_node(node.this, scope), compile_node(node.expression, scope)
    return combine(lambda a, b: a.str.contains(b, literal=True), text, part)


@compile_node.register
def _(node: exp.Pad, scope: Scope) -> Typed:
    width = max(0, constant_integer(node.expression, "the width of LPAD and RPAD"))
    given = node.args.get("fill_pattern")
    fill = " " if given is None else constant_text(given, "the filling of LPAD and RPAD")
    text = compile_node(node.this, scope).once()
    length = text.expr.str.len_chars().cast(pl.Int64)
    # Without a filling a text only gets shorter.
    wanted = pl.when(length.is_not_null()).then(width if fill else 0)
    fits, checks = fitting(wanted, wanted * max(map(len, map(str.encode, fill)), default=1), node)
    filler = pl.lit((fill * width)[:width] if width <= LONGEST_TEXT else "")

    def padded(text: pl.Expr) -> pl.Expr:
        missing = pl.when(fits).then(width - length).otherwise(0)
        filling = filler.str.slice(0, pl.max_horizontal(missing, pl.lit(0)))
        kept = text.str.slice(0, width)
        return pl.concat_str(filling, kept) if node.args.get("is_left") else pl.concat_str(kept, filling)

    return text.map(padded).failing(checks)


@compile_node.register
def _(node: exp.Repeat, scope: Scope) -> Typed:
    return _repeated(compile_node(node.this, scope), compile_node(node.args["times"], scope), node)


@compile_node.register
def _(node: exp.Space, scope: Scope) -> Typed:
    return _repeated(Typed(pl.lit(" "), scope, simple=True), compile_node(node.this, scope), node)


def _repeated(text: Typed, times: Typed, node: exp.Expr) -> Typed:
    text, times = text.once(), times.once()
    # Lengths are multiplied as floating-point numbers: no product is too large, and those of allowed ones are exact.
    count = times.expr.cast(pl.Int64).clip(lower_bound=0)
    characters = text.expr.str.len_chars().cast(pl.Float64) * count
    fits, checks = fitting(characters, text.expr.str.len_bytes().cast(pl.Float64) * count, node)

    def repeated(a: pl.Expr, n: pl.Expr) -> pl.Expr:
        asked = pl.when(fits).then(n).otherwise(0)
        return pl.map_batches([a, asked], _repeat, return_dtype=pl.String, is_elementwise=True)

    return combine(lambda a, _: repeated(a, count), text, times).failing(checks)


def _repeat(columns: Sequence[pl.Series]) -> pl.Series:
    """Each text so many times; NULL if either is."""
    text, times = one_height(columns)
    found = pl.from_arrow(pc.binary_repeat(text.cast(pl.String).to_arrow(), times.cast(pl.Int64).to_arrow()))
    assert isinstance(found, pl.Series)
    return found


@compile_node.register
def _(node: exp.SplitPart, scope: Scope) -> Typed:
    delimiter = constant_text(node.args["delimiter"], "the delimiter of SPLIT_PART")
    index = constant_integer(node.args["part_index"], "the index of SPLIT_PART")
    if index == 0:
        raise UnsupportedError("SPLIT_PART counts parts from 1, or from the end from -1")
    at = index - 1 if index > 0 else index

    def part(a: pl.Expr) -> pl.Expr:
        # Between no characters nothing is split.
        parts = a.str.split(delimiter) if delimiter else pl.concat_list(a)
        return pl.when(a.is_not_null()).then(parts.list.get(at, null_on_oob=True).fill_null(""))

    return compile_node(node.this, scope).map(part)
