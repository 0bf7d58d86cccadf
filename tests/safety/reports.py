"""What the gate says of some queries, in full, kept in a file: a change of the gate shows as changed lines of it.

    python -m tests.safety.reports

writes `reports.yaml` anew from its queries; what differs then is to be read before it is committed. The queries were
chosen among hundreds, written and random, so that they run each line of the gate that any of those does, up to three
times.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from headgate.explain.check_report import CheckReport
from headgate.safety.reasons.group_closing import GroupClosing
from headgate.safety.reasons.join_graph import join_graphs
from headgate.safety.reasons.purge_analysis import Closing, JoinPurge
from headgate.safety.state_plan import StatePlan
from headgate.safety.witness.find import find_adversaries
from headgate.session import Query, Session

FILE = Path(__file__).parent / "reports.yaml"
NAME = "answer"
ROWS = 2
"""Rows of a witness that are written out."""


@dataclass(frozen=True)
class Recorded:
    """A query over declared streams, and what was said of it; `advised` if with fixes, which take long to find."""

    declared: str
    query: str
    said: str
    advised: bool = False

    @property
    def says(self) -> str:
        """What is said of it now."""
        session = Session()
        session.sql(f"{self.declared}CREATE QUERY {NAME} AS {self.query};")
        return "".join(f"{line}\n" for line in _lines(session.query(NAME), self.advised))


def _lines(query: Query, advised: bool) -> Iterator[str]:
    whole = advised or query.judged.admitted
    report = query.checked if whole else CheckReport(query.judged, join_graphs(query.plan))
    yield from (line.rstrip() for line in report.to_text().plain.splitlines())
    yield from _told(query.optimized.judgement.state_plan)
    for each in find_adversaries(query.plan, ROWS) if not query.judged.admitted else ():
        yield f"claimed: {each.reason}; {each.bits(ROWS)} bits for {ROWS} rows"
        shown = [("rows", [(each.stream, row) for row in each.rows]), ("setting", each.setting)]
        for title, rows in (*shown, *(("probe", probe) for probe in each.probes)):
            said = [f"{stream}({', '.join(f'{k}={v}' for k, v in row.items())})" for stream, row in rows]
            yield f"  {title}: {' '.join(said)}".rstrip()


def _told(plan: StatePlan) -> Iterator[str]:
    """What operators are told and the sentences leave out: numbers that they round, and the steps of purges."""
    for kept in plan.retained.values():
        yield from (f"kept: input {number} for {each.length:,} µs" for number, each in kept.items())
    for clock in plan.clocks.values():
        unit = f"{clock.unit.kind.value} of {clock.unit.scale} µs"
        yield f"by time: {clock.key}, {unit}, {clock.lag:,} µs later, {clock.wait:,} µs after a first row"
    for purge in (*plan.joins.values(), *(each.purge for each in plan.existence.values())):
        yield from _purged(purge)
    closed = [*plan.groups.values(), *(closing for _, closing in plan.settled.values())]
    for group in (*closed, *(closing for each in plan.counted.values() for closing in each.values())):
        yield from _closed(group)
    for method in plan.values.values():
        sizes = [f"{method.size(number):,}" for number in range(len(method.synopses))]
        yield f"rows: {method.form}, {' and '.join(sizes)}"
        extremes = [f"{'greatest' if e.greatest else 'least'} {e.attribute}" for e in method.extremes]
        summed = [f"{each.scalar.show()} of input {each.member}" for each in method.summed]
        if extremes or summed:
            yield f"  with {', '.join((*extremes, *summed))}"
    if plan.checks:
        yield f"checks: {', '.join(sorted(plan.checks))}"


def _purged(purge: JoinPurge) -> Iterator[str]:
    for chain in purge.chains.values():
        yield f"chain: rows of input {chain.member}{'' if chain.closes_all else ', up to a window'}"
        for step in chain.steps:
            at = ", ".join(f"{name} of input {member}" for member, name in step.values)
            aged = "" if step.aged is None else f", by age as {_brought(purge.closings[step.aged])}"
            yield f"  {_brought(purge.closings[step.closing])} at {at}{aged}"
    for rule in purge.punctuation_purges:
        partners = [f"{column} = {name} of input {member}" for member, name, column in rule.partners]
        by = [f"{_brought(purge.closings[number])} at {places}" for number, places in rule.by]
        said = ", ".join((*partners, *by, *(() if rule.lifespan is None else (f"{rule.lifespan:,} others",))))
        yield f"forgotten: {_brought(purge.closings[rule.closing])} by {said or 'nothing'}"


def _closed(closing: GroupClosing) -> Iterator[str]:
    yield f"closed: {', '.join(closing.keys)}"
    yield from (f"  {_brought(each)}" for each in closing.closings)
    yield from (f"  only {each.when.show()}" for each in closing.filled if each.when is not None)


def _brought(closing: Closing) -> str:
    slide = "" if closing.slide is None else f", each {closing.slide:,} µs"
    columns = ", ".join(f"{a}: {b}" for a, b in zip(closing.columns, closing.sources, strict=False))
    return f"{columns or 'ages'} of input {closing.member} ({closing.promise.kind.value}{slide})"


def recorded() -> list[Recorded]:
    """The queries of the file."""
    return [
        Recorded(group["declared"], each["query"], each["said"], each.get("advised", False))
        for group in yaml.safe_load_all(FILE.read_text(encoding="utf-8"))
        for each in group["queries"]
    ]


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as such."""


def _written(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _written)


def write(entries: list[Recorded]) -> None:
    """Writes the file, with what is said of the queries now."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for each in entries:
        entry: dict[str, Any] = {"query": each.query, "said": each.says}
        groups.setdefault(each.declared, []).append({**entry, "advised": True} if each.advised else entry)
    documents = [{"declared": declared, "queries": queries} for declared, queries in groups.items()]
    text = yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000)
    FILE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(recorded())
