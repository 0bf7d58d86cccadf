"""Rewrite: puts clauses into the declarations of a CQL file and leaves everything else as it is, comments too.

```
before                                  after
CREATE STREAM bids (ts TIMESTAMP, …)    CREATE STREAM bids (ts TIMESTAMP, …)
  TIMESTAMP BY ts  -- arrival             TIMESTAMP BY ts  -- arrival
  USING csv OPTIONS (…);                  KEY (bidid)
                                          USING csv OPTIONS (…);
```
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from headgate.language.dialect import Cql
from headgate.language.nodes import CreateStream
from headgate.language.parse import Statement, parse
from headgate.language.render import render
from headgate.model.errors import InputError
from headgate.model.source import SourceText
from headgate.profile.constraint import Constraint
from headgate.profile.trial import declared_with

_BOM = b"\xef\xbb\xbf"


def rewritten(source: SourceText, clauses: Mapping[str, Sequence[Constraint]]) -> str:
    """The text with the clauses of each stream; it declares just what it did, and those."""
    statements = parse(source)
    wanted = {name.casefold(): list(each) for name, each in clauses.items() if each}
    text = source.text
    for statement in reversed(statements):
        tree = statement.tree
        if isinstance(tree, CreateStream) and tree.this.name.casefold() in wanted:
            added = [each.clause for each in wanted[tree.this.name.casefold()]]
            text = _inserted(text, statement, added)
    _require_same(source, statements, text, [c for each in wanted.values() for c in each])
    return text


def _inserted(text: str, statement: Statement, clauses: Sequence[str]) -> str:
    """The text with clauses in one of its statements, each on a line of its own."""
    newline = "\r\n" if "\r\n" in text else "\n"
    using = _using(text, statement)
    if using is None:
        end = statement.span.end
        return text[:end] + "".join(f"{newline}  {each}" for each in clauses) + text[end:]
    line = text.rfind("\n", 0, using) + 1
    before = text[line:using]
    if not before.strip():
        return text[:using] + "".join(f"{each}{newline}{before}" for each in clauses) + text[using:]
    added = "".join(f"{newline}  {each}" for each in clauses) + f"{newline}  "
    return text[:using].rstrip(" \t") + added + text[using:]


def _using(text: str, statement: Statement) -> int | None:
    """Where the USING of a declaration begins."""
    depth, offset = 0, statement.span.start
    for token in Cql().tokenize(text[offset : statement.span.end]):
        written = text[offset + token.start : offset + token.end + 1]
        if written in ("(", ")"):
            depth += 1 if written == "(" else -1
        elif depth == 0 and written.upper() == "USING":
            return offset + int(token.start)
    return None


def _require_same(
    source: SourceText, statements: Sequence[Statement], text: str, added: Sequence[Constraint]
) -> None:
    """Raises unless the text reads as the statements with the clauses."""
    trees = {s.tree.this.name.casefold(): s.tree for s in statements if isinstance(s.tree, CreateStream)}
    changed = declared_with(trees, added)
    wanted = [
        render(
            changed.get(s.tree.this.name.casefold(), s.tree) if isinstance(s.tree, CreateStream) else s.tree
        )
        for s in statements
    ]
    if [render(each.tree) for each in parse(SourceText(source.name, text))] != wanted:
        raise InputError(
            f"{source.name}: the clauses cannot be put in place without changing something else",
            remedy="paste them by hand",
        )


def write_clauses(path: Path, source: SourceText, clauses: Mapping[str, Sequence[Constraint]]) -> None:
    """Rewrites a file, from which `source` was read, in one step: its readers see the old text or the new one."""
    target = path.resolve()
    old = target.read_bytes()
    if old.removeprefix(_BOM) != source.text.encode("utf-8"):
        raise InputError(
            f"{path} was changed while its streams were read", remedy="run headgate profile again"
        )
    bom = _BOM if old.startswith(_BOM) else b""
    new = bom + rewritten(source, clauses).encode("utf-8")
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(new)
            out.flush()
            os.fsync(out.fileno())
        Path(name).chmod(stat.S_IMODE(target.stat().st_mode))
        Path(name).replace(target)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise
