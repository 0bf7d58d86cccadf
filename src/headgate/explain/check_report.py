"""A check's result for people: the verdict on a query with its join graphs and sizes, as text, data, HTML and SVG."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from rich.text import Text

from headgate.explain.describe import visible
from headgate.explain.glossary import glossary_html
from headgate.explain.join_picture import Titled, join_picture
from headgate.explain.sizes import Sizes
from headgate.safety.reasons.join_graph import JoinGraph
from headgate.safety.reasons.join_plans import JoinPlans
from headgate.safety.verdict import Kind, Verdict

_GOOD, _BAD, _MIDDLE = "#2e7d32", "#c62828", "#9a6700"
_COLOURS: Mapping[Kind, str] = {"bounded": _GOOD, "conditional": _MIDDLE, "refused": _BAD}
_STYLES: Mapping[Kind, str] = {"bounded": "green", "conditional": "yellow", "refused": "bold red"}
_CLASSES: Mapping[Kind, str] = {"bounded": "good", "conditional": "middle", "refused": "bad"}
_STYLE = (
    "body{font:14px/1.5 system-ui,sans-serif;margin:2em;max-width:70em;color:#222}h2{font-size:1.1em}"
    "table{border-collapse:collapse}td,th{padding:.2em .8em .2em 0;text-align:left;vertical-align:top}"
    f"pre{{background:#f5f5f5;padding:.6em}}.good{{color:{_GOOD}}}.bad{{color:{_BAD};font-weight:bold}}"
    f".middle{{color:{_MIDDLE}}}svg{{max-width:100%;height:auto}}dd{{margin:0 0 .8em 1.5em}}dd p{{margin:.2em 0}}"
)


@dataclass(frozen=True)
class WitnessTable:
    """Rows of a stream that have to be remembered: how many, the bits that takes at least, the rows kept here."""

    stream: str
    reason: str
    growth: tuple[tuple[int, int, int], ...]
    files: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        growth = [{"rows": rows, "bits": bits, "kept": kept} for rows, bits, kept in self.growth]
        return {"stream": self.stream, "reason": self.reason, "growth": growth, "files": list(self.files)}

    def lines(self) -> list[str]:
        if not self.growth:
            return [self.reason]
        head = f"{self.reason}; whatever the algorithm, after"
        table = [
            f"{rows:>8,} rows of {self.stream} it needs {bits:>8,} bits; {kept:>8,} rows are kept here"
            for rows, bits, kept in self.growth
        ]
        return [head, *table, *(f"written to {file}" for file in self.files)]


@dataclass(frozen=True)
class CheckReport:
    """The verdict on one query, the graphs of its joins, and the sizes of its states if they were asked for."""

    verdict: Verdict
    graphs: tuple[JoinGraph, ...] = ()
    sizes: Sizes | None = None
    witness: WitnessTable | None = None
    plans: tuple[JoinPlans, ...] = ()
    next: str = ""
    """The command that would help a refused query on, if there is one, and what it finds."""

    def as_dict(self) -> dict[str, Any]:
        found = self.verdict.as_dict() | {"graphs": [graph.as_dict() for graph in self.graphs]}
        found["punctuation"] = [each.as_dict() for each in self.plans]
        if self.sizes is not None:
            found["estimate"] = self.sizes.as_dict()
        if self.witness is not None:
            found["witness"] = self.witness.as_dict()
        return found

    @property
    def telling(self) -> tuple[JoinGraph, ...]:
        """The graphs that say why; what windows or values bound waits for nobody, so its graph would distract."""
        return tuple(each for each in self.graphs if not self.verdict.admitted or each.relied)

    def to_text(self) -> Text:
        """Verdict, reasons, graph, estimate, fixes."""
        verdict, text = self.verdict, Text()
        text.append(f"{verdict.kind}  ", _STYLES[verdict.kind])
        text.append(f"{verdict.query}\n", style="bold")
        if not verdict.states:
            text.append("  keeps nothing\n", style="dim")
        for state in verdict.states:
            mark, style = ("✓", "green") if state.bounded else ("✗", "red")
            text.append(f"  {mark} ", style=style)
            text.append(f"{state.operator} over {state.stream}: ")
            text.append(f"{state.by}" if state.bounded else "not bounded", style=style)
            text.append(f", {state.reason}\n")
        for each in verdict.assumes if verdict.admitted else ():
            _titled(text, "if", [each.sentence, f"otherwise {each.otherwise}: watch {each.metric}"])
        for warning in verdict.warnings:
            _titled(text, "warning", [warning])
        if verdict.plan_note:
            _titled(text, "plan", [f"{verdict.plan}: {verdict.plan_note}"])
        for title, lines in promise_lines(self.plans):
            _titled(text, title, lines)
        for graph in self.telling:
            _titled(text, "graph", graph.lines())
        if self.sizes is not None:
            _titled(text, "size", self.sizes.lines())
        if self.witness is not None:
            _titled(text, "proof", self.witness.lines())
        for number, fix in enumerate(verdict.fixes, start=1):
            _titled(text, f"fix {number}", fix.edit.splitlines(), style="bold")
            for line in (fix.effect, *(f"must find no rows: {check}" for check in fix.checks)):
                text.append(f"         {line}\n", style="dim")
        if self.next:
            _titled(text, "next", [self.next])
        return text


def promise_lines(plans: Iterable[JoinPlans]) -> Iterator[tuple[str, list[str]]]:
    """What joins need of their streams' promises, and what they have no use for."""
    for each in plans:
        yield "needs", each.needs
        if each.useless:
            yield "spare", [f"{', '.join(each.useless)}: of no use here"]


def _titled(text: Text, title: str, lines: Iterable[str], style: str = "") -> None:
    for number, line in enumerate(lines):
        text.append(f"  {title if not number else '':<5}  ", style="cyan")
        text.append(f"{line}\n", style=style)


def page(checked: Sequence[CheckReport]) -> str:
    """An HTML page of its own, without scripts and without anything from elsewhere."""
    parts = [_section(each) for each in checked]
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>headgate check</title>'
        f"<style>{_STYLE}</style></head><body><h1>headgate check</h1>"
        f'<p><a href="#glossary">What the words mean</a></p>{"".join(parts)}{glossary_html()}</body></html>'
    )


def _section(checked: CheckReport) -> str:
    verdict = checked.verdict
    word, style = verdict.kind, _CLASSES[verdict.kind]
    rows = "".join(
        f'<tr><td class="{"good" if state.bounded else "bad"}">{"✓" if state.bounded else "✗"}</td>'
        f"<td>{_html(state.operator)} over {_html(state.stream)}</td>"
        f"<td>{_html(state.by if state.bounded else 'not bounded')}</td><td>{_html(state.reason)}</td></tr>"
        for state in verdict.states
    )
    parts = [f'<h2><span class="{style}">{word}</span> {_html(verdict.query)}</h2>']
    parts.append(f"<table>{rows}</table>" if rows else "<p>keeps nothing</p>")
    if verdict.admitted and verdict.assumes:
        lines = [
            f"{_html(each.sentence)}; otherwise {_html(each.otherwise)}: watch {_html(each.metric)}"
            for each in verdict.assumes
        ]
        parts.append(f"<p>If: {'<br>'.join(lines)}</p>")
    parts += [f"<p>Warning: {_html(each)}</p>" for each in verdict.warnings]
    if verdict.plan_note:
        parts.append(f"<p>Plan: {_html(verdict.plan)}: {_html(verdict.plan_note)}</p>")
    parts += [
        f"<p>{title.capitalize()}: {'<br>'.join(map(_html, lines))}</p>"
        for title, lines in promise_lines(checked.plans)
    ]
    parts += [_plan_table(each) for each in checked.plans if each.listed]
    parts += [picture([replace(checked, graphs=checked.telling)])] if checked.telling else []
    if checked.sizes is not None:
        parts.append("<p>Estimate: " + "<br>".join(map(_html, checked.sizes.lines())) + "</p>")
    if checked.witness is not None:
        parts.append("<p>Witness: " + "<br>".join(map(_html, checked.witness.lines())) + "</p>")
    for number, fix in enumerate(verdict.fixes, start=1):
        statements = ";\n\n".join(fix.statements)
        parts.append(f"<p>Fix {number}: {_html(fix.effect)}</p><pre>{escape(statements)};</pre>")
        parts += [f"<p>Must find no rows:</p><pre>{escape(check)};</pre>" for check in fix.checks]
    return "".join(parts)


def _plan_table(plans: JoinPlans) -> str:
    """Every plan of a join with its verdict."""
    rows = "".join(
        f'<tr><td class="{"good" if each.safe else "bad"}">{"✓" if each.safe else "✗"}</td>'
        f"<td>{_html(each.plan)}</td><td>{_html('; '.join(each.unsafe))}</td></tr>"
        for each in plans.listed
    )
    return f"<table>{rows}</table>"


def picture(checked: Sequence[CheckReport]) -> str:
    """The graphs of all joins as one SVG document."""
    return join_picture(
        [
            Titled(
                f"{each.verdict.query}: {each.verdict.kind}{f', join {number}' if len(each.graphs) > 1 else ''}",
                _COLOURS[each.verdict.kind],
                graph,
                refused=not each.verdict.admitted,
            )
            for each in checked
            for number, graph in enumerate(each.graphs, start=1)
        ]
    )


def _html(text: str) -> str:
    return escape(visible(text))
