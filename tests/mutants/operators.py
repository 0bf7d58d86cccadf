"""Operators: the small changes to Python code that tests ought to notice.

Each change replaces the text of one node of the syntax tree and leaves all other text and every line where it is.
Annotations, decorators, assertions and text are left alone: nothing that runs depends on them, or the change is
one of words. So is `strict=True` of a zip, which asserts that its lists are equally long, and `rechunk`, which says
how a frame lies in memory.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_BINARY: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.FloorDiv: ast.Mult,
}
_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}
_DROPPED = ("filter", "unique", "drop_nulls", "sort", "fill_null", "abs")
_LEFT_ALONE = (ast.JoinedStr, ast.Assert, ast.Import, ast.ImportFrom)


@dataclass(frozen=True)
class Mutant:
    """One change: where it is, the old and the new text of the place, and the function that it is in."""

    path: str
    line: int
    function: str
    statement: int
    """The first line of the statement; 0 if it runs when the module is imported."""
    start: int
    end: int
    original: str
    mutated: str
    place: int = 1
    """Which it is of the like changes of the function."""

    def __str__(self) -> str:
        before, after = " ".join(self.original.split()), " ".join(self.mutated.split())
        return f"{self.path}:{self.line}  {before} → {after}"

    @property
    def key(self) -> str:
        """How the list of equivalent changes names it; it stays when lines move."""
        before, after = " ".join(self.original.split()), " ".join(self.mutated.split())
        which = f" (place {self.place})" if self.place > 1 else ""
        return f"{self.path} {self.function}: {before} → {after}{which}"

    def applied(self, source: bytes) -> bytes:
        return source[: self.start] + self.mutated.encode() + source[self.end :]


def mutants(path: str, source: bytes) -> list[Mutant]:
    """All changes of a module, in order of the text, each once."""
    tree = ast.parse(source)
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found: dict[tuple[int, int, str], Mutant] = {}
    returns = _returns(tree)

    def span(node: ast.expr | ast.stmt) -> tuple[int, int]:
        last = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        return starts[node.lineno - 1] + node.col_offset, last

    around = {top: span(top) for top in tree.body}
    places = ((top, *place) for top in tree.body for place in _places(ast.Module([top], []), "", 0))
    for top, node, function, statement in places:
        start, end = span(node)
        original = source[start:end].decode()
        for text in _changes(node, returns.get(node, "")):
            made = Mutant(path, node.lineno, function, statement, start, end, original, text)
            if text == original or (start, end, text) in found:
                continue
            # Only the class or function that it is in is compiled: the whole module takes more than twice as long.
            first, last = around[top]
            if _compiles(source[first:start] + text.encode() + source[end:last]):
                found[start, end, text] = made
    return list(_numbered(sorted(found.values(), key=lambda each: (each.start, each.mutated))))


def _numbered(found: Iterable[Mutant]) -> Iterator[Mutant]:
    """The changes, each with its place among those of its function that have the same texts."""
    like = Counter[str]()
    for each in found:
        like[each.key] += 1
        yield replace(each, place=like[each.key])


def _compiles(source: bytes) -> bool:
    try:
        compile(source, "<mutant>", "exec")
    except (SyntaxError, ValueError):
        return False
    return True


def _returns(tree: ast.AST) -> dict[ast.AST, str]:
    """For each `return`, the annotation of what its function gives."""
    return {
        node: ast.unparse(function.returns)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef) and function.returns is not None
        for node in ast.walk(function)
        if isinstance(node, ast.Return)
    }


def _places(node: ast.AST, function: str, statement: int) -> Iterator[tuple[ast.expr | ast.stmt, str, int]]:
    """The nodes that may be changed, with the qualified name of their function and the line of their statement."""
    inside = function
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        inside = f"{function}.{node.name}" if function else node.name
    runs_later = statement > 0 or isinstance(node, ast.FunctionDef)
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "bases"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, _LEFT_ALONE):
                continue
            if _is_words(child) or _changes_no_value(node, child):
                continue
            line = child.lineno if runs_later and isinstance(child, ast.stmt) else statement
            if isinstance(child, (ast.expr, ast.stmt)):
                yield child, inside, line
            yield from _places(child, inside, line)


def _is_words(node: ast.AST) -> bool:
    """Whether a statement only says something: a docstring, a block for types, a refusal of what cannot be."""
    match node:
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Expr(value=ast.Call(func=ast.Name(id="assert_never"))):
            return True
        case ast.Raise(exc=ast.Call(func=ast.Name(id="AssertionError"))):
            return True
    return False


def _changes_no_value(call: ast.AST, child: ast.AST) -> bool:
    """Whether a word of a call asserts something or says how values are kept: it cannot change what is computed."""
    if not (isinstance(call, ast.Call) and isinstance(child, ast.keyword)):
        return False
    return child.arg == "rechunk" or ast.unparse(call.func) + ast.unparse(child) == "zipstrict=True"


def _changes(node: ast.expr | ast.stmt, returns: str) -> Iterator[str]:
    for changed in _changed(node, returns):
        text = "pass" if isinstance(changed, ast.Pass) else ast.unparse(changed)
        needs = isinstance(changed, ast.expr) and not isinstance(changed, (ast.Name, ast.Constant))
        yield f"({text})" if needs else text


def _changed(node: ast.expr | ast.stmt, returns: str) -> Iterator[ast.AST]:
    match node:
        case ast.Compare():
            for number, op in enumerate(node.ops):
                if type(op) in _COMPARISONS:
                    copy = deepcopy(node)
                    copy.ops[number] = _COMPARISONS[type(op)]()
                    yield copy
        case ast.BoolOp():
            other: ast.boolop = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield ast.BoolOp(other, node.values)
            for number in range(len(node.values)):
                kept = [value for n, value in enumerate(node.values) if n != number]
                yield kept[0] if len(kept) == 1 else ast.BoolOp(node.op, kept)
        case ast.BinOp() if type(node.op) in _BINARY:
            yield ast.BinOp(node.left, _BINARY[type(node.op)](), node.right)
        case ast.UnaryOp(op=ast.Not() | ast.Invert() | ast.USub()):
            yield node.operand
        case ast.Constant(value=bool()):
            yield ast.Constant(not node.value)
        case ast.Constant(value=int(number)):
            yield ast.Constant(number + 1)
        case ast.Call():
            yield from _changed_call(node)
        case ast.IfExp():
            yield node.body
            yield node.orelse
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Raise() | ast.Continue() | ast.Break():
            yield ast.Pass()
        case ast.Assign(targets=[ast.Subscript() | ast.Attribute()]):
            yield ast.Pass()
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            if returns == "bool":
                yield ast.Return(ast.UnaryOp(ast.Not(), value))
            elif returns.endswith("| None"):
                yield ast.Return(ast.Constant(None))


def _changed_call(node: ast.Call) -> Iterator[ast.AST]:
    match node.func:
        case ast.Name(id=name) if name in _NAMES:
            yield ast.Call(ast.Name(_NAMES[name]), node.args, node.keywords)
        case ast.Attribute(value=receiver, attr=name) if name in _NAMES:
            yield ast.Call(ast.Attribute(receiver, _NAMES[name]), node.args, node.keywords)
        case ast.Attribute(value=ast.Name(id="np" | "pl")):
            pass  # A function, not a method: without its call there is a module.
        case ast.Attribute(value=receiver, attr=name) if name in _DROPPED:
            yield receiver
