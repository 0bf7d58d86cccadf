"""Edit: one change to one statement, and Fix: edits that together make a refused query safe."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from headgate.language.masked import masked
from headgate.language.render import render

Trees = Mapping[str, exp.Expr]
"""Syntax trees of statements by the case-folded name of what they declare."""

KINDS = ("punctuation", "key", "constraint", "distinct", "values", "window", "internal")


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
    burden: int
    changes_answer: bool = True
    columns: tuple[str, ...] = ()
    """The columns that a promise would close."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"no such kind of edit: {self.kind}")


@dataclass(frozen=True)
class Fix:
    """Edits that make a query safe: the text to paste, what it does to the answer, and the statements as edited.

    Fixes go into reports, so a password in a statement's OPTIONS is masked.
    """

    kind: str
    edit: str
    changes_answer: bool
    effect: str
    statements: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "edit": self.edit,
            "changes_answer": self.changes_answer,
            "effect": self.effect,
            "statements": list(self.statements),
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
    )


def _effect(edits: tuple[Edit, ...]) -> str:
    subjects: dict[str, dict[str, None]] = {}
    for edit in edits:
        subjects.setdefault(edit.effect, {})[edit.subject] = None
    told = [effect.format(" and ".join(names)) for effect, names in subjects.items()]
    return "; ".join(told if any(edit.changes_answer for edit in edits) else ["the answer stays", *told])
