"""A profile for people and programs: as text and as data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rich.text import Text

from headgate.model.time import in_whole_units
from headgate.profile.constraint import Constraint
from headgate.profile.measure import Measured
from headgate.profile.profile import Profile, Together, Worth
from headgate.profile.savings import Saving, Standing
from headgate.runtime.lateness import KEPT, slack_for

_STYLES = {"bounded": "green", "conditional": "yellow", "refused": "bold red"}

CAUTION = (
    "What was seen in these rows is an observation, not a proof: a row that breaks a clause is late and in no answer "
    "(the folder _late, late_rows in the metrics), and a partner that comes later than a FOREIGN KEY says is missed; "
    "--margin 1.5 leaves room."
)


MOST_IDLE = 6
"""So many constraints are listed that no query needs."""


def as_dict(found: Profile) -> dict[str, Any]:
    """The profile as JSON has it."""
    return {
        "streams": [
            {
                "name": each.sample.stream.name,
                "rows": each.sample.height,
                "keys": [list(key) for key in each.keys],
                "constraints": [c.as_dict() for c in (*each.constraints, *each.timed) if c.kind != "key"],
            }
            for each in found.streams
        ],
        "queries": [
            {
                "name": each.query,
                "before": _standing(each.before),
                "after": _standing(each.after),
                "clauses": [c.shown for c in each.constraints],
            }
            for each in found.savings
        ],
    }


def _standing(standing: Standing) -> dict[str, Any]:
    return {"verdict": standing.verdict, "state_rows": standing.state_rows}


def to_text(found: Profile) -> Text:
    """What was read, the clauses to paste, and what they make of the queries."""
    text = Text()
    for each in found.streams:
        text.append(each.sample.stream.name, style="bold")
        text.append(f"  {read_words(each)}\n")
    if found.clauses:
        text.append("\npaste, most useful first\n", style="cyan")
    for worth in found.clauses:
        text.append(f"  {worth.constraint.shown}\n", style="bold")
        for line in (worth.constraint.evidence, *worth_words(worth), *spare_words(found, worth)):
            text.append(f"         {line}\n", style="dim")
    if found.savings:
        text.append("\nqueries\n", style="cyan")
    for saving in found.savings:
        _query(text, saving)
    for together in found.together:
        text.append(f"         {together_words(together)}\n", style="dim")
    for refuted in found.refuted:
        text.append(f"\n  {refuted.shown}\n", style="bold")
        text.append(f"         {refuted_words(refuted)}\n")
    if found.idle:
        text.append("\ntrue as well, and of no further use to these queries\n", style="cyan")
    for idle in found.idle[:MOST_IDLE]:
        text.append(f"  {idle.shown}\n")
        text.append(f"         {idle.evidence}\n", style="dim")
    if len(found.idle) > MOST_IDLE:
        text.append(f"  and {len(found.idle) - MOST_IDLE} more, which --format json lists\n", style="dim")
    text.append(f"\n{caution_words(found)}\n", style="dim")
    return text


def _query(text: Text, saving: Saving) -> None:
    text.append(f"  {saving.query}  ", style="bold")
    text.append(said(saving.before), style=_STYLES[saving.before.verdict])
    if saving.constraints:
        text.append(" → ")
        text.append(said(saving.after), style=_STYLES[saving.after.verdict])
    else:
        text.append(", and nothing was found that would help")
    text.append("\n")


def read_words(measured: Measured) -> str:
    """What was read of a stream, and its keys."""
    sample = measured.sample
    parts = [f"{sample.height:,} rows" + ("" if sample.whole else ", a sample")]
    if sample.late:
        slack = slack_for(sample.late_by)
        kept = "" if slack is None else f" (a slack of {in_whole_units(slack)} would keep {KEPT:.1%} of them)"
        parts.append(f"{sample.late:,} late ones left out{kept}")
    if measured.keys:
        parts.append("keys: " + ", ".join(_key(key) for key in measured.keys))
    return "; ".join(parts)


def _key(key: tuple[str, ...]) -> str:
    return key[0] if len(key) == 1 else f"({', '.join(key)})"


def worth_words(worth: Worth) -> Iterator[str]:
    """What each query would be without a clause."""
    for query, after, without in worth.helps:
        if after.admitted and not without.admitted:
            kept = "" if without.state_rows is None else f", and keeps {without.state_rows:,} rows"
            yield f"{query}: refused without it{kept}"
        elif after.state_rows is not None and without.state_rows is not None:
            yield f"{query}: keeps {after.state_rows:,} rows, without it {without.state_rows:,}"
        else:
            yield f"{query}: needs it for its verdict"


def refuted_words(refuted: Constraint) -> str:
    """Why a constraint is not proposed that the rows obey, and what to do if it is wanted."""
    words = "not proposed: with it, the answer over these rows is another one"
    if not refuted.nulls:
        return words
    names = " or ".join(refuted.columns)
    return (
        f"{words}, for rows with NULL in {names} ({refuted.nulls:,} of {refuted.rows:,}) would be late; "
        f"if they do not matter, say WHERE {refuted.columns[0]} IS NOT NULL"
    )


def together_words(together: Together) -> str:
    """What the clauses for other queries make of one."""
    words = f"with all of these clauses together, {together.query} is {said(together.standing)}"
    return words if together.same_answer else f"{words}, and its answer is another one: paste fewer"


def spare_words(found: Profile, worth: Worth) -> Iterator[str]:
    """That a clause is of no use beside the others, if it is not."""
    if worth.constraint in found.spare:
        yield "of no use beside the other clauses, so --write leaves it out"


def said(standing: Standing) -> str:
    """A verdict with the state behind it."""
    if standing.state_rows is None:
        return f"{standing.verdict}, state not measured (too many answers)"
    return f"{standing.verdict}, {standing.state_rows:,} rows of state"


def caution_words(found: Profile) -> str:
    """What the clauses rest on, or why there are none."""
    if found.clauses:
        return CAUTION
    if not found.savings:
        return "There is no query here that a clause could help."
    return "No clause would help these queries; headgate check shows other ways."


def written_words(written: Iterable[Constraint]) -> Iterator[str]:
    """What --write has written."""
    for each in written:
        yield f"written: {each.shown}"
