"""Needed: of many promises that could be made, a smallest set that lets all joins of a plan forget.

A join of ten streams has some thirty promises to offer, and to try each at the gate takes long. Whether rows can be
dropped is a question to the punctuation graph alone, so it is asked there, a few microseconds each time; the gate
then judges what is left.
"""

from __future__ import annotations

from collections.abc import Sequence

from headgate.plan.nodes import Emit, Join
from headgate.plan.patterns import label
from headgate.safety.advice.edit import Edit
from headgate.safety.reasons.purge_analysis import PurgeAnalysis
from headgate.safety.theory.punctuation.query import Scheme


def needed_promises(plan: Emit, offered: Sequence[Edit]) -> tuple[Edit, ...] | None:
    """A set of the promises with which every join can drop its rows, and from which none can be left out.

    None if there is none, or if the plan has no join.
    """
    edges = label(plan)
    analyses = [PurgeAnalysis(node, edges) for node in plan.walk() if isinstance(node, Join)]
    if not analyses:
        return None
    schemes = [{edit: _schemes(analysis, edit) for edit in offered} for analysis in analyses]

    def enough(edits: Sequence[Edit]) -> bool:
        return all(
            analysis.suffices(
                [*analysis.query.schemes, *(scheme for edit in edits for scheme in known[edit])]
            )
            for analysis, known in zip(analyses, schemes, strict=True)
        )

    if not enough(offered):
        return None
    kept = list(offered)
    for edit in sorted(offered, key=lambda edit: (-edit.burden, -len(edit.columns))):
        fewer = [each for each in kept if each is not edit]
        if enough(fewer):
            kept = fewer
    return tuple(kept)


def _schemes(analysis: PurgeAnalysis, edit: Edit) -> list[Scheme]:
    """What a promise would close on the inputs of a join."""
    found = []
    for number, behind in enumerate(analysis.lineages):
        if behind is not None and behind.scan.stream.name.casefold() == edit.target:
            names = [
                next((n for n, c in behind.columns.items() if c == column and n in analysis.joined), None)
                for column in edit.columns
            ]
            known = frozenset(name for name in names if name is not None)
            if len(known) == len(edit.columns):
                found.append(Scheme(str(number), known))
    return found
