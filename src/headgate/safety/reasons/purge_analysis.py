"""Purge analysis: which rows a join may forget once streams have said what will not come again.

Each input of a join is a stream of the Punctuation document's join query; a promise of the stream behind it
is a scheme. A row t of an unwindowed input can be dropped at instant u if no result with t is born after u.

Why a chain of closings is enough (section 4, chained purge, with windows added). Let the chain close inputs
W1 … Wk one after the other, Wi at the values found in t and in the live stored rows of W1 … Wi-1 that agree
with t so far. A result born after u has a row of each input, all alive at its birth. Let Wi be the first of
the chain whose row in it comes after u. The rows of W1 … Wi-1 in it came before, are alive, and agree with
t, so Wi is closed at their values: that row cannot come. So all rows of the chain's inputs came before u.

* If the chain closes all inputs, the youngest row of the result came before u, so the result was born before.
* If a combination with no row of some Wi is all there is, there is no such result at all. In particular, if a
  closed Wi has a time window, its rows that agree with t die, and then t can go although other inputs are open.

Dropped rows do not disturb other chains: they are in no later result, so a combination without them is as good.
The steps of a row of S1 whose FOREIGN KEY refers to a key of Wi may also be sure by age: once k rows of Wi have come
that are younger than it, its one partner has come or never will (k-Mon document, section 4.1). Where k is a time, it
is sure once the clock has gone so far beyond its birth, whatever has come of Wi.

Rows that can end early (row windows, negation) would disturb: an ending looks for the rows that it met. So no
input is purged while another one can end rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from headgate.model.adherence import Adherence, Auto, WithinRows, WithinTime
from headgate.plan.nodes import Join, StreamScan
from headgate.plan.patterns import Edges, Pattern
from headgate.safety.assumption import Assumption, closes_values, comes_in_time
from headgate.safety.cause import Cause, of_promises
from headgate.safety.lineage import Lineage, lineage, shown_name
from headgate.safety.promise import Promise, PromiseKind, promises_of, reference, unused_constraints
from headgate.safety.theory.punctuation.graph import Purge, closed_in_turn, purge
from headgate.safety.theory.punctuation.punctuations import counter_punctuations
from headgate.safety.theory.punctuation.query import JoinPredicate, JoinQuery, Scheme, close

AGED = "_aged"
"""The column in which a stream's rows say how old a row must be for a FOREIGN KEY to be sure."""

LIFESPAN = 65_536
"""How many punctuations of a scheme are remembered that nothing counters and no stored row needs."""

MOST_NAMED = 4
"""So many inputs that keep a row are named in a reason; of more, the number is said."""


@dataclass(frozen=True)
class Closing:
    """A promise in use: punctuations of one input, the stream's `sources` as `columns` of the input's edge.

    Those of a `below` promise close all lesser values.
    """

    member: int
    columns: tuple[str, ...]
    sources: tuple[str, ...]
    promise: Promise
    scan: StreamScan
    slide: int | None
    referring: tuple[StreamScan, tuple[str, ...]] | None = None
    """Where it is observed how late the rows of `sources` come that others refer to: these, and by which columns."""

    @property
    def constraint(self) -> str:
        """The constraint as its stream declares it, where it is observed."""
        if self.referring is None:
            return f"{self.promise.stream} {self.promise}"
        scan, columns = self.referring
        own, theirs = ", ".join(columns), ", ".join(self.sources)
        to = f"{self.promise.stream} ({theirs}) {self.promise.within}"
        return f"{scan.stream.name} {self.promise.kind} ({own}) REFERENCES {to}"

    @property
    def below(self) -> bool:
        return self.promise.kind in (PromiseKind.ORDER, PromiseKind.REFERENCE)


@dataclass(frozen=True)
class ChainStep:
    """One link: the closing, and for each of its columns the (member, column) whose value must be closed."""

    closing: int
    values: tuple[tuple[int, str], ...]
    aged: int | None = None
    """The closing that says how old a row of the chain's member must be for this step to be sure by age."""


@dataclass(frozen=True)
class Chain:
    """How rows of `member` are dropped; unless `closes_all`, only once the last closed input has no live partner."""

    member: int
    steps: tuple[ChainStep, ...]
    closes_all: bool
    cause: Cause
    reason: str
    assumes: tuple[Assumption, ...] = ()


@dataclass(frozen=True)
class PunctuationPurge:
    """When a punctuation of a closing can be forgotten.

    No stored row of `partners` (member, column, column of the closing) has its values, and every closing of `by`
    (closing, positions of its values among this one's) has said that none comes any more; without `by`, after a
    lifespan.
    """

    closing: int
    partners: tuple[tuple[int, str, str], ...]
    by: tuple[tuple[int, tuple[int, ...]], ...]
    reason: str
    lifespan: int | None = None
    """So many are remembered that nothing counters and no stored row needs."""
    assumes: tuple[Assumption, ...] = ()


@dataclass(frozen=True)
class JoinPurge:
    """All that is known of purging one join: chains by member, and why the others have none."""

    closings: tuple[Closing, ...]
    chains: Mapping[int, Chain]
    punctuation_purges: tuple[PunctuationPurge, ...]
    stuck: Mapping[int, str]
    query: JoinQuery
    """The join as the Punctuation document sees it; streams are numbers of inputs."""

    def only(self, members: Collection[int]) -> JoinPurge:
        """The purge of these inputs alone: others are let go by something else."""
        return replace(self, chains={n: each for n, each in self.chains.items() if n in members})


def analyze_purge(join: Join, edges: Edges) -> JoinPurge:
    """How the unwindowed inputs of a join can be purged."""
    return PurgeAnalysis(join, edges).result


class PurgeAnalysis:
    """A join as the Punctuation document's join query, and what follows from it."""

    def __init__(self, join: Join, edges: Edges) -> None:
        self.join, self.edges = join, edges
        self.lineages = [lineage(member) for member in join.members]
        self.unused: list[str] = []
        self.names = [str(number) for number in range(len(join.members))]
        self.owner = {
            name: str(number) for number, member in enumerate(join.members) for name in member.names
        }

    def shown(self, number: int) -> str:
        return self._shown[number]

    @cached_property
    def _shown(self) -> list[str]:
        return [shown_name(member, number) for number, member in enumerate(self.join.members)]

    @cached_property
    def joined(self) -> frozenset[str]:
        """The columns of the inputs that the join sets equal to others."""
        return frozenset(name for group in self.join.equalities for name in group)

    @cached_property
    def promises(self) -> dict[Scheme, tuple[Promise, Lineage]]:
        """The schemes of the join query and what they come from."""
        joined = self.joined
        found: dict[Scheme, tuple[Promise, Lineage]] = {}
        for number, behind in enumerate(self.lineages):
            for promise in promises_of(behind.scan.stream) if behind is not None else ():
                assert behind is not None
                # Of several names for one column, the one that is joined on.
                columns = [
                    next((n for n, c in behind.columns.items() if c == name and n in joined), None)
                    for name in promise.columns
                ]
                held = {c: name for c, name in zip(columns, promise.columns, strict=True) if c is not None}
                if len(held) < len(columns):
                    continue
                clustered = promise.kind is PromiseKind.CLUSTER
                if clustered and not self._all_refer(number, behind, held):
                    self.unused.append(
                        f"{promise} closes only values that have come, and no FOREIGN KEY says that every value comes"
                    )
                    continue
                found.setdefault(Scheme(str(number), frozenset(held)), (promise, behind))
        return found

    def _all_refer(self, number: int, behind: Lineage, held: Mapping[str, str]) -> bool:
        """Whether every input joined on these columns of a stream refers to it by them."""
        for other, theirs in enumerate(self.lineages):
            names = self.join.members[other].names
            pairs = {
                name: held[column]
                for group in self.join.equalities
                for column in group
                if column in held
                for name in group
                if name in names
            }
            if other == number or not pairs:
                continue
            own = {} if theirs is None else {theirs.columns.get(n, ""): c for n, c in pairs.items()}
            if theirs is None or reference(theirs.scan.stream, behind.scan.stream, own) is None:
                return False
        return True

    @cached_property
    def query(self) -> JoinQuery:
        predicates = [
            JoinPredicate((self.owner[a], a), (self.owner[b], b))
            for group in self.join.equalities
            for position, a in enumerate(group)
            for b in group[position + 1 :]
            if self.owner[a] != self.owner[b]
        ]
        return JoinQuery(tuple(self.names), close(predicates), tuple(self.promises))

    @cached_property
    def result(self) -> JoinPurge:
        ending = [n for n, member in enumerate(self.join.members) if self._ends_rows(n)]
        chains: dict[int, tuple[Purge, int | None]] = {}
        stuck: dict[int, str] = {}
        for number, member in enumerate(self.join.members):
            edge = self.edges[member]
            if max(edge.pattern, edge.expiry) != Pattern.MON:
                continue
            others = [self.shown(each) for each in ending if each != number]
            if others:
                stuck[number] = (
                    f"rows of {', '.join(others)} can leave early and must then find the rows they were joined with, "
                    "so none of those is dropped [strict]"
                )
                continue
            found = purge(self.query, str(number))
            last = self._passing(found)
            if found.possible or last is not None:
                chains[number] = (found, None if found.possible else last)
            else:
                stuck[number] = self._why_stuck(found)
        used: dict[Scheme, None] = {}
        for found, last in chains.values():
            used.update(dict.fromkeys(step.scheme for step in found.steps[:last]))
        waiting = list(used)
        while waiting:
            counter = counter_punctuations(self.query, waiting.pop())
            new = [each for each in counter.by if each not in used] if counter.possible else []
            used.update(dict.fromkeys(new))
            waiting += new
        closings = [self._closing(scheme) for scheme in used]
        numbers = {scheme: number for number, scheme in enumerate(used)}
        punctuation_purges = [self._forgetting(scheme, closings, numbers) for scheme in used]
        linked = {
            number: self._chain(number, found, last, closings, numbers)
            for number, (found, last) in chains.items()
        }
        punctuation_purges += [
            PunctuationPurge(number, (), (), _remembered(each.promise))
            for number, each in enumerate(closings)
            if each.promise.kind is PromiseKind.REFERENCE
        ]
        return JoinPurge(tuple(closings), linked, tuple(punctuation_purges), stuck, self.query)

    def _ends_rows(self, number: int) -> bool:
        edge = self.edges[self.join.members[number]]
        return max(edge.pattern, edge.expiry) == Pattern.STR

    def _passing(self, found: Purge) -> int | None:
        """After how many steps a closed input has a time window; None if none has."""
        for count, step in enumerate(found.steps, start=1):
            if step.stream in self._leaving:
                return count
        return None

    @cached_property
    def _leaving(self) -> frozenset[str]:
        """The inputs with a time window."""
        edges = [self.edges[member] for member in self.join.members]
        return frozenset(
            name
            for name, edge in zip(self.names, edges, strict=True)
            if max(edge.pattern, edge.expiry) in (Pattern.WKS, Pattern.WK)
        )

    @cached_property
    def open_inputs(self) -> tuple[str, ...]:
        """The inputs whose rows do not leave by themselves."""
        return tuple(
            str(number)
            for number, member in enumerate(self.join.members)
            if max(self.edges[member].pattern, self.edges[member].expiry) == Pattern.MON
        )

    def suffices(self, schemes: Iterable[Scheme]) -> bool:
        """Whether these schemes are enough to drop the rows of all inputs that do not leave by themselves."""
        tried, enough = tuple(schemes), set(self._leaving)
        for name in self.open_inputs:
            reached = {name}
            for other in closed_in_turn(self.query, tried, name):
                reached.add(other)
                if other in enough:
                    # Whatever that one reaches, this one reaches through it.
                    break
            else:
                if len(reached) < len(self.names):
                    return False
            enough.add(name)
        return True

    def _closing(self, scheme: Scheme) -> Closing:
        promise, behind = self.promises[scheme]
        slide = None if behind.window is None else behind.window.slide
        columns = tuple(sorted(scheme.attributes))
        sources = tuple(behind.columns[name] for name in columns)
        return Closing(int(scheme.stream), columns, sources, promise, behind.scan, slide)

    def _chain(
        self,
        number: int,
        found: Purge,
        last: int | None,
        closings: list[Closing],
        numbers: Mapping[Scheme, int],
    ) -> Chain:
        steps, words, causes = [], [], []
        assumes: list[Assumption] = []
        for step in found.steps[:last]:
            closing = closings[numbers[step.scheme]]
            values = dict(step.values)
            at = tuple((int(values[name][0]), values[name][1]) for name in closing.columns)
            aged = self._aged(number, closing, at, closings)
            steps.append(ChainStep(numbers[step.scheme], at, aged))
            causes.append(closing.promise.cause if aged is None else Cause.CONSTRAINT)
            relied = closing if aged is None else closings[aged]
            assumes += closes_values(self.shown(relied.member), relied.promise)
            words.append(self._said(closing, [name for _, name in at], aged, closings))
        reason = f"a row of {self.shown(number)} is dropped when " + ", and then ".join(words)
        if last is not None:
            reason += " and has none left in its window"
        cause = of_promises(causes)
        return Chain(number, tuple(steps), last is None, cause, reason, tuple(dict.fromkeys(assumes)))

    def _aged(
        self, number: int, closing: Closing, at: tuple[tuple[int, str], ...], closings: list[Closing]
    ) -> int | None:
        """The closing by which a row's age tells that its one partner has come or never will; added if need be."""
        behind = self.lineages[number]
        if (
            closing.promise.kind is not PromiseKind.KEY
            or behind is None
            or any(member != number for member, _ in at)
        ):
            return None
        if not all(name in behind.columns for _, name in at):
            return None
        pairs = dict(zip((behind.columns[name] for _, name in at), closing.sources, strict=True))
        found = reference(behind.scan.stream, closing.scan.stream, pairs)
        if found is None:
            return None
        assert not isinstance(found.within, Auto)
        promise = Promise(closing.scan.stream.name, (), None, PromiseKind.REFERENCE, found.within)
        aged = Closing(closing.member, (AGED,), (), promise, closing.scan, closing.slide)
        if aged not in closings:
            closings.append(aged)
        return closings.index(aged)

    def _said(self, closing: Closing, values: list[str], aged: int | None, closings: list[Closing]) -> str:
        pairs = " and ".join(f"{a} = {b}" for a, b in zip(closing.columns, values, strict=True))
        name = self.shown(closing.member)
        if closing.promise.kind is PromiseKind.KEY:
            said = f"its one row of {name} with {pairs} has come ({closing.promise})"
            if aged is None:
                return f"{said}; one whose row never comes stays"
            within = closings[aged].promise.within
            late = within.words if isinstance(within, WithinTime) else f"{_rows(within)} rows of {name}"
            return f"{said} or can come no more, {late} after it (FOREIGN KEY)"
        if closing.promise.kind is PromiseKind.ORDER:
            return f"{name} has gone beyond {pairs} ({closing.promise})"
        return f"{name} is closed at {pairs} ({closing.promise})"

    def _forgetting(
        self,
        scheme: Scheme,
        closings: list[Closing],
        numbers: Mapping[Scheme, int],
    ) -> PunctuationPurge:
        number = numbers[scheme]
        closing = closings[number]
        if closing.below:
            return PunctuationPurge(number, (), (), _remembered(closing.promise))
        counter = counter_punctuations(self.query, scheme)
        attributes = closing.columns if counter.attribute is None else (counter.attribute,)
        partners = tuple(
            (int(other[0]), other[1], name)
            for name in attributes
            for other in self.query.partners.get((scheme.stream, name), ())
        )
        name = self.shown(closing.member)
        if not counter.possible:
            open_names = ", ".join(self.shown(int(each)) for each in counter.open) or "the other inputs"
            reason = (
                f"nothing says when {open_names} brings no more rows that need them, so those that no "
                f"stored row needs are forgotten when {LIFESPAN:,} others have come; a row that needs one later "
                "than that stays"
            )
            assumes = tuple(
                comes_in_time(self.shown(int(each)), name, LIFESPAN) for each in dict.fromkeys(counter.open)
            )
            return PunctuationPurge(number, partners, (), reason, LIFESPAN, assumes)
        by = []
        for other in counter.by:
            theirs = closings[numbers[other]]
            places = tuple(
                next(
                    place
                    for place, mine in enumerate(closing.columns)
                    if (other.stream, column) in self.query.partners.get((scheme.stream, mine), ())
                )
                for column in theirs.columns
            )
            by.append((numbers[other], places))
        others = ", ".join(dict.fromkeys(self.shown(closings[each].member) for each, _ in by))
        reason = f"a value closed on {name} is forgotten when {others} is closed at it too"
        counters = [closings[each] for each, _ in by]
        assumes = tuple(
            assumed for each in counters for assumed in closes_values(self.shown(each.member), each.promise)
        )
        return PunctuationPurge(number, partners, tuple(by), reason, assumes=assumes)

    def _why_stuck(self, found: Purge) -> str:
        words = []
        for other in found.open[:MOST_NAMED]:
            number = int(other)
            pairs = [
                f"{column}"
                for (stream, column), partners in self.query.partners.items()
                if stream == other and any(partner[0] not in found.open for partner in partners)
            ]
            where = f" with the same {' or '.join(pairs)}" if pairs else ""
            words.append(f"{self.shown(number)} may always bring another row{where}")
        if len(found.open) > MOST_NAMED:
            words.append(f"so may {len(found.open) - MOST_NAMED} others")
        reason = f"a row of {self.shown(int(found.stream))} is never dropped: " + ", and ".join(words)
        hints = [
            hint
            for other in found.open
            if (behind := self.lineages[int(other)]) is not None
            for hint in unused_constraints(behind.scan.stream)
        ]
        return "; ".join([reason, *dict.fromkeys([*self.unused, *hints])])


def _remembered(promise: Promise) -> str:
    """What is kept of a stream to know how far it has come."""
    match promise.kind, promise.within:
        case PromiseKind.REFERENCE, WithinTime():
            return "up to when its rows have come is remembered"
        case PromiseKind.REFERENCE, within:
            return f"when its last {_rows(within)} rows came is remembered"
        case _, WithinTime() as within:
            return f"its values of the last {within.words} are remembered, and the greatest before them"
        case _, within:
            return f"its last {_rows(within)} values are remembered, and the greatest before them"


def _rows(within: Adherence | None) -> int:
    assert isinstance(within, WithinRows)
    return within.rows
