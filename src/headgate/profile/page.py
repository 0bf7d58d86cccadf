"""A profile as an HTML page of its own, without scripts and without anything from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from headgate.explain.describe import visible
from headgate.explain.glossary import glossary_html
from headgate.profile.constraint import Constraint
from headgate.profile.picture import spread_picture, states_picture
from headgate.profile.profile import Profile
from headgate.profile.report import (
    caution_words,
    read_words,
    refuted_words,
    spare_words,
    together_words,
    worth_words,
)

_STYLE = (
    "body{font:14px/1.5 system-ui,sans-serif;margin:2em;max-width:70em;color:#222}h2{font-size:1.1em}"
    "table{border-collapse:collapse}td,th{padding:.2em .8em .2em 0;text-align:left;vertical-align:top}"
    "pre{background:#f5f5f5;padding:.6em;margin-bottom:0;white-space:pre-wrap}pre+p{margin-top:.2em}"
    "svg{max-width:100%;height:auto}dd{margin:0 0 .8em 1.5em}dd p{margin:.2em 0}"
)


def page(found: Profile) -> str:
    """The page: what was read, the clauses to paste, and pictures of what they save."""
    parts = [f"<p>{_html(caution_words(found))}</p>"]
    rows = "".join(
        f"<tr><td>{_html(each.sample.stream.name)}</td><td>{_html(read_words(each))}</td></tr>"
        for each in found.streams
    )
    parts.append(f"<table>{rows}</table>")
    if found.clauses:
        parts.append("<h2>Clauses to paste, the most useful first</h2>")
    for worth in found.clauses:
        words = (worth.constraint.evidence, *worth_words(worth), *spare_words(found, worth))
        lines = "<br>".join(map(_html, words))
        parts.append(f"<pre>{_html(worth.constraint.shown)}</pre><p>{lines}</p>")
    if found.savings:
        parts.append(f"<h2>What the queries keep</h2>{states_picture(found.savings)}")
    parts += [f"<p>{_html(together_words(each))}.</p>" for each in found.together]
    spread = spread_picture([worth.constraint for worth in found.clauses])
    if spread:
        parts.append(f"<h2>How closely the rows keep to it</h2>{spread}")
    refuted = [(each, refuted_words(each)) for each in found.refuted]
    idle = [(each, each.evidence) for each in found.idle]
    parts.append(_listed("Not proposed", refuted))
    parts.append(_listed("True as well, and of no further use to these queries", idle))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>headgate profile</title>'
        f"<style>{_STYLE}</style></head><body><h1>headgate profile</h1>"
        f'<p><a href="#glossary">What the words mean</a></p>{"".join(parts)}{glossary_html()}</body></html>'
    )


def _listed(title: str, constraints: Sequence[tuple[Constraint, str]]) -> str:
    if not constraints:
        return ""
    rows = "".join(
        f"<tr><td><code>{_html(each.shown)}</code></td><td>{_html(words)}</td></tr>"
        for each, words in constraints
    )
    return f"<h2>{title}</h2><table>{rows}</table>"


def _html(words: str) -> str:
    return escape(visible(words))
