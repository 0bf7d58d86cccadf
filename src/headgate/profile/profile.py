"""Profile: what the data of a session's streams promises by itself, and what its queries would save by it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from headgate.model.errors import InputError
from headgate.plan.catalog import StreamDef
from headgate.plan.nodes import StreamScan
from headgate.profile.constraint import Constraint
from headgate.profile.measure import Measured, measure
from headgate.profile.sample import Sample, aligned, read_sample
from headgate.profile.savings import Saving, Standing, find_saving
from headgate.profile.trial import Trials, in_order, read_tables
from headgate.profile.uses import Uses
from headgate.runtime.io.registry import is_file_format
from headgate.session import Query, Session

Tell = Callable[[str, str], None]
"""Is told what is done now, and how far it is."""


@dataclass(frozen=True)
class Worth:
    """A clause, and what each query that it helps would be without it: refused, or larger."""

    constraint: Constraint
    helps: tuple[tuple[str, Standing, Standing], ...]
    """By query: as it is with all of its clauses, and as it would be without this one."""

    @property
    def admits(self) -> int:
        """How many queries would be refused without it."""
        return sum(not without.admitted and after.admitted for _, after, without in self.helps)

    @property
    def saved_rows(self) -> int:
        return sum(
            max(0, without.state_rows - after.state_rows)
            for _, after, without in self.helps
            if after.state_rows is not None and without.state_rows is not None
        )


@dataclass(frozen=True)
class Together:
    """A query with all clauses of a profile, also those that are for other queries."""

    query: str
    standing: Standing
    same_answer: bool


@dataclass(frozen=True)
class Profile:
    """What was found in each stream, and what it means to each query."""

    streams: tuple[Measured, ...]
    savings: tuple[Saving, ...]
    together: tuple[Together, ...] = ()
    """Queries that stand otherwise with all clauses of the profile than with theirs alone."""
    spare: tuple[Constraint, ...] = ()
    """Clauses that no query relies on once the others are declared, whatever they would save without them."""

    @cached_property
    def clauses(self) -> tuple[Worth, ...]:
        """The clauses to paste, the most useful first."""
        found: dict[Constraint, list[tuple[str, Standing, Standing]]] = {}
        for saving in self.savings:
            for each, without in zip(saving.constraints, saving.without, strict=True):
                found.setdefault(each, []).append((saving.query, saving.after, without))
        worths = [Worth(each, tuple(helps)) for each, helps in found.items()]
        return tuple(sorted(worths, key=lambda each: (-each.admits, -each.saved_rows)))

    @property
    def idle(self) -> tuple[Constraint, ...]:
        """What holds too, and helps no query more than the clauses do."""
        used = {worth.constraint for worth in self.clauses} | set(self.refuted)
        return tuple(each for stream in self.streams for each in stream.constraints if each not in used)

    @property
    def refuted(self) -> tuple[Constraint, ...]:
        """What would change the answer of a query, though the rows obey it."""
        return tuple(dict.fromkeys(each for saving in self.savings for each in saving.refuted))


def profile(
    session: Session,
    names: Sequence[str] | None = None,
    *,
    rows: int | None = None,
    margin: float = 1.0,
    tell: Tell = lambda doing, far: None,
) -> Profile:
    """The profile of a session's streams, for the named queries or all; `rows` of each stream, or all.

    The first rows are looked at. `margin` is by how much the clauses allow more than was seen.
    """
    measured = measure_streams(session, names, rows=rows, margin=margin, tell=tell)
    samples = {name: each.sample for name, each in measured.items()}
    queries = _chosen(session, names)
    tables = read_tables(session, [query.planned for query in queries])
    trials = {
        query.name: Trials(session, query.name, samples, tables)
        for query in queries
        if all(samples[name].height for name in streams_of(query))
    }
    savings: list[Saving] = []
    for name, each in trials.items():
        # A reference has one k: which of its two units, the first query that uses it has said.
        said = {(known.kind, known.slot): known for saving in savings for known in saving.constraints}
        offered = [
            found
            for stream in streams_of(session.query(name))
            for found in (*measured[stream].constraints, *measured[stream].timed)
            if stream.casefold() in session.trees and said.get((found.kind, found.slot), found) == found
        ]
        counted = 0

        def tried(name: str = name) -> None:
            nonlocal counted
            counted += 1
            tell(f"trying {name}", f"run {counted}")

        tell(f"trying {name}", "")
        savings.append(find_saving(each, offered, tried))
    found = Profile(tuple(measured.values()), tuple(savings))
    found = replace(found, spare=_spare(found, trials))
    return replace(found, together=_together(found, trials))


def measure_streams(
    session: Session,
    names: Sequence[str] | None = None,
    *,
    rows: int | None = None,
    margin: float = 1.0,
    tell: Tell = lambda doing, far: None,
) -> dict[str, Measured]:
    """What the rows of each stream obey, on the columns that the queries use; without trying what it would save."""
    queries = _chosen(session, names)
    samples = _read(session, queries, rows, tell, every=not names)
    uses = Uses()
    for query in queries:
        uses.add(query.plan)
    tell("measuring", "")
    return measure(samples, uses, margin)


def _chosen(session: Session, names: Sequence[str] | None) -> list[Query]:
    return [session.query(name) for name in names] if names else list(session.queries)


def streams_of(query: Query) -> list[str]:
    """The streams that a query reads, each once."""
    scans = [node.stream.name for node in query.plan.walk() if isinstance(node, StreamScan)]
    return list(dict.fromkeys(scans))


def _read(
    session: Session, queries: Sequence[Query], rows: int | None, tell: Tell, *, every: bool
) -> dict[str, Sample]:
    read = {name for query in queries for name in streams_of(query)}
    # What no query reads is looked at for its keys, if that can be done.
    streams = [
        each
        for each in session.catalog.streams
        if each.name in read or (every and (has_rows(session, each) or not queries))
    ]
    samples = {}
    for stream in streams:
        given = session.local.rows.get(stream.name)
        samples[stream.name] = read_sample(
            stream, session.base, given, rows, lambda name, count: tell(f"reading {name}", f"{count:,} rows")
        )
    if not any(each.height for each in samples.values()):
        listed = ", ".join(samples) or "the file"
        raise InputError(
            f"there are no rows in {listed}, so there is nothing to find",
            remedy="check the path of the files, or whether all rows are late",
        )
    return aligned(samples, [frozenset(streams_of(query)) for query in queries])


def has_rows(session: Session, stream: StreamDef) -> bool:
    """Whether the rows of a stream are at hand: in memory, or in files."""
    source = stream.source
    return stream.name in session.local.rows or (source is not None and is_file_format(source.format))


def _together(found: Profile, trials: dict[str, Trials]) -> tuple[Together, ...]:
    """Queries that stand otherwise once all clauses are declared: a clause for one may be in the way of another."""
    declared = [worth.constraint for worth in found.clauses if worth.constraint not in found.spare]
    differing = []
    for saving in found.savings:
        trial = trials[saving.query]
        theirs = trial.about(declared)
        judged = trial.judge(theirs)
        if judged is None or theirs == frozenset(saving.constraints):
            continue
        run = trial.run(theirs)
        standing = Standing(judged.verdict, None if run is None else run.state_rows)
        if standing != saving.after or not trial.answers_alike(theirs):
            differing.append(Together(saving.query, standing, trial.answers_alike(theirs)))
    return tuple(differing)


def _spare(found: Profile, trials: dict[str, Trials]) -> tuple[Constraint, ...]:
    """Clauses without which the gate says the same of all queries, the least useful first."""
    kept, spare = [worth.constraint for worth in found.clauses], []
    for each in reversed(list(kept)):
        fewer = [other for other in kept if other is not each]
        if all(
            trial.judge(trial.about(fewer)) == trial.judge(trial.about(kept)) for trial in trials.values()
        ):
            kept = fewer
            spare.append(each)
    return tuple(spare)


def clauses_by_stream(found: Profile) -> dict[str, list[Constraint]]:
    """The clauses to write, by stream, in the order in which they are written; without those that would be spare."""
    grouped: dict[str, list[Constraint]] = {}
    wanted = [worth.constraint for worth in found.clauses if worth.constraint not in found.spare]
    for each in in_order(wanted):
        grouped.setdefault(each.stream, []).append(each)
    return grouped
