"""Edit: one change to one statement, and Fix: edits that together make a refused query safe."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum, unique
from typing import Any

from sqlglot import exp

from headgate.language.masked import masked
from headgate.language.render import render

Trees = Mapping[str, exp.Expr]
"""Syntax trees of statements by the case-folded name of what they declare."""

KINDS = ("table", "punctuation", "key", "constraint", "check", "distinct", "values", "window", "internal")


@unique
class Burden(IntEnum):
    """What an edit asks of its reader, the lightest first; from PUNCTUATION on, only the data can prove it right."""

    TABLE = 1
    DISTINCT = 2
    CALENDAR = 3
    VALUES = 4
    WINDOW = 5
    INTERNAL = 6
    PUNCTUATION = 7
    KEY = 8
    CHECK = 9
    ORDER = 10
    NEW_COLUMN = 11
    OTHER_MEANING = 12
    """Something else is asked than was."""


@dataclass(frozen=True)
class Edit:
    """A change to the statement that declares `target`; `burden` orders edits, the lightest first.

    `change` is given a copy of the statement's tree and alters it. In `effect`, `{}` stands for the `subject`, so
    that edits with the same effect on several subjects are told in one sentence.
    """

    kind: str
    target: str
    change: Callable[[exp.Expr], None]
    shown: str
    effect: str
    subject: str
    burden: Burden
    changes_answer: bool = True
    """Whatever the data is; an edit that does not is a promise, and right only if the data keeps it."""
    columns: tuple[str, ...] = ()
    """The columns that a promise would close."""
    checks: tuple[str, ...] = ()
    """Queries over the data, read as a table of the stream's name, that find no rows if the edit is right."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"no such kind of edit: {self.kind}")


@dataclass(frozen=True)
class Fix:
    """Edits that make a query safe: the text to paste, what it does to the answer, and the statements as edited.

    `checks` find no rows in the data if the edits are right. Fixes go into reports, so a password in a statement's
    OPTIONS is masked.
    """

    kind: str
    edit: str
    changes_answer: bool
    effect: str
    statements: tuple[str, ...]
    checks: tuple[str, ...] = ()
    needs_proof: bool = False
    """Whether only the data can show that the answer is what was asked for."""

    def as_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "edit": self.edit,
            "changes_answer": self.changes_answer,
            "effect": self.effect,
            "statements": list(self.statements),
            "checks": list(self.checks),
            "needs_proof": self.needs_proof,
        }


def apply(edits: Iterable[Edit], trees: Trees) -> dict[str, str]:
    """The text of each statement that the edits change."""
    return {name: render(tree) for name, tree in _changed(edits, trees).items()}


def _changed(edits: Iterable[Edit], trees: Trees) -> dict[str, exp.Expr]:
    changed: dict[str, exp.Expr] = {}
    for edit in edits:
        if edit.target not in changed:
            changed[edit.target] = trees[edit.target].copy()
        edit.change(changed[edit.target])
    return changed


def fix_of(edits: tuple[Edit, ...], trees: Trees, note: str = "") -> Fix:
    """The edits as one fix, with a note on all of them; its kind is that of the heaviest."""
    heaviest = max(edits, key=lambda edit: edit.burden)
    return Fix(
        heaviest.kind,
        "\n".join(edit.shown for edit in edits),
        any(edit.changes_answer for edit in edits),
        "; ".join(filter(None, (_effect(edits), note))),
        tuple(render(masked(tree)) for tree in _changed(edits, trees).values()),
        tuple(dict.fromkeys(check for edit in edits for check in edit.checks)),
        any(not edit.changes_answer for edit in edits),
    )


def _effect(edits: tuple[Edit, ...]) -> str:
    subjects: dict[str, dict[str, None]] = {}
    for edit in edits:
        subjects.setdefault(edit.effect, {})[edit.subject] = None
    return "; ".join(effect.format(" and ".join(names)) for effect, names in subjects.items())
