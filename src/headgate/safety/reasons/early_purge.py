"""Early purge analysis: which rows a join of windows may drop before they die, by what its streams promise.

The bound of such a state is its windows; dropping rows sooner only makes it smaller (k-Mon document, sections 3 to
6). It rests on the argument of chained purges (`purge_analysis`): a result that is born after an instant u has a row
of each input, all alive at its birth. For a stored row t of S:

* Let another input W be closed at the values that t has. Then the row of W in such a result has come already, so it
  is stored and alive. If none is, there is no such result, and t may go, whatever the other inputs still bring.
* Let all other inputs be closed, one after the other, for t and for each combination of its stored partners. Then all
  rows of such a result have come, so it was born before u, and t may go too.

What closes W at values (the document's words in brackets): its KEY, when the row with them is stored, or was refused
by W's filter, or had no partners itself [many-one joins; Yes, Unknown and No]; that the row of S refers to it by a
FOREIGN KEY, and so much has come since [RIDS]; that W has gone beyond the value [OAC if S refers to W, OAP if it is
the other way round]; and that W has closed the values, by CLUSTERED BY [CA] or a punctuation.

Dropped rows do not disturb others: they are in no later result. What is said of keys is remembered for as long as the
rows live that ask for it, and nothing rests on its being remembered longer. No input may end rows early: an ending
looks for the rows that it met.

A constraint WITHIN AUTO is used in the same way with the k that monitoring has found, and is not used while it has
found none. It proves nothing: if rows stray further than they did, results are missing until that is seen. So a bound
never rests on it, only a verdict's assumptions name it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from headgate.model.adherence import WithinRows
from headgate.model.scalar import Scalar, conjunction
from headgate.plan.nodes import Filter, Join, Node, Project, StreamScan, Window
from headgate.plan.patterns import Edges, Pattern
from headgate.safety.assumption import Assumption, kept_as_observed
from headgate.safety.lineage import Lineage, lineage, shown_name
from headgate.safety.promise import Promise, PromiseKind, closing_promises, observed_promises, reference
from headgate.safety.reasons.purge_analysis import AGED, Closing

NOTHING = WithinRows(0)
"""A row that refers to another has to wait for nothing."""


@dataclass(frozen=True)
class RefusedKeys:
    """Keys of an input's rows that are in no result: those that its filter refuses, and those that the join drops.

    `filter` is over the columns of `scan`, of which `sources` are the key; None if every row comes through. Each
    input that asks has its place in `until`, with what closes it at a key: once all are closed, the key is forgotten.
    """

    member: int
    columns: tuple[str, ...]
    sources: tuple[str, ...]
    scan: StreamScan
    filter: Scalar | None
    lifetime: int
    until: tuple[tuple[Closed, ...], ...] = ()
    chosen: bool = False
    """Whether rows that ask are let go by their age too: while running it is decided which way keeps less."""


@dataclass(frozen=True)
class ClosedKeys:
    """Values that an input closes one by one, remembered for a time, and no longer than somebody asks for them.

    Stored rows of `holders` ask, inputs with the columns to compare, and keys of `refused`, their numbers. Where rows
    ask by columns of several inputs at once, nobody can say who asks: None.
    """

    closing: Closing
    lifetime: int
    holders: tuple[tuple[int, tuple[str, ...]], ...] | None = ()
    refused: tuple[int, ...] = ()


@dataclass(frozen=True)
class KeyClosed:
    """By a KEY: the row has come, or its key is among the refused keys with this number."""

    values: tuple[str, ...]
    promise: Promise
    refused: int | None = None


@dataclass(frozen=True)
class ValuesClosed:
    """By closed values, whose number this is."""

    keys: int
    values: tuple[str, ...]


@dataclass(frozen=True)
class BelowClosed:
    """By a bound, whose number this is: on a column, or on the birth of a row of `member`."""

    bound: int
    column: str | None = None
    member: int | None = None


Closed = KeyClosed | ValuesClosed | BelowClosed


@dataclass(frozen=True)
class EarlyStep:
    """Another input, where a row's values must be closed; its columns that equal others', key first, in pairs."""

    member: int
    probe: tuple[tuple[str, str], ...]
    alike: tuple[tuple[str, str], ...]
    closed: tuple[Closed, ...]

    @property
    def only_when_there(self) -> bool:
        """Whether it can be closed only by a row that is there."""
        return all(isinstance(each, KeyClosed) and each.refused is None for each in self.closed)


@dataclass(frozen=True)
class EarlyChain:
    """How rows of an input are dropped before they die, in words too."""

    member: int
    own: tuple[EarlyStep, ...]
    further: tuple[EarlyStep, ...]
    closes_all: bool
    reason: str
    refuses: int | None = None
    observed: tuple[Assumption, ...] = ()
    """What it takes for granted of constraints that are only observed."""


@dataclass(frozen=True)
class JoinEarlyPurge:
    """All that is known of dropping rows of one join early, children first."""

    chains: tuple[EarlyChain, ...]
    keys: tuple[RefusedKeys | ClosedKeys, ...]
    bounds: tuple[Closing, ...]

    @property
    def promises(self) -> tuple[Promise, ...]:
        """What it relies on of what streams have promised; rows that break it are late."""
        found = [each.closing.promise for each in self.keys if isinstance(each, ClosedKeys)]
        found += [each.promise for each in self.bounds]
        for chain in self.chains:
            for step in (*chain.own, *chain.further):
                found += [each.promise for each in step.closed if isinstance(each, KeyClosed)]
        return tuple(dict.fromkeys(each for each in found if not each.is_observed))


def analyze_early_purge(join: Join, edges: Edges) -> JoinEarlyPurge | None:
    """How the windowed inputs of a join can be purged before their rows die; None if they cannot."""
    if len(join.members) < 2:
        return None
    patterns = [max(edges[member].pattern, edges[member].expiry) for member in join.members]
    if Pattern.STR in patterns or all(each is Pattern.MON for each in patterns):
        return None
    # What streams promise is read beside their rows, so it has to be there where the join is.
    if any(lineage(member) is None for member in join.members):
        return None
    return _Analysis(join, [each is not Pattern.MON for each in patterns]).result


@dataclass
class _Analysis:
    join: Join
    leaves: Sequence[bool]
    """Which inputs' rows die, so that dropping them sooner is all that is asked."""
    keys: list[RefusedKeys | ClosedKeys] = field(default_factory=list)
    bounds: list[Closing] = field(default_factory=list)
    refusing: set[int] = field(default_factory=set)
    """The inputs whose chains drop rows that have no partners."""

    @property
    def result(self) -> JoinEarlyPurge | None:
        chains = [
            chain
            for member in self._children_first()
            if self.leaves[member] and (chain := self._chain(member)) is not None
        ]
        if not chains:
            return None
        refused = {each.member: n for n, each in enumerate(self.keys) if isinstance(each, RefusedKeys)}
        named = tuple(replace(chain, refuses=refused.get(chain.member)) for chain in chains)
        return JoinEarlyPurge(named, tuple(self.keys), tuple(self.bounds))

    # -- the join graph ---------------------------------------------------------------------------

    @cached_property
    def lineages(self) -> list[Lineage | None]:
        return [lineage(member) for member in self.join.members]

    @cached_property
    def owner(self) -> dict[str, int]:
        return {name: n for n, member in enumerate(self.join.members) for name in member.names}

    def _pairs(self, member: int, known: Collection[int]) -> dict[str, str]:
        """The columns of an input that equal columns of others, each with one of those; the earlier known first."""
        found: dict[str, str] = {}
        order = {number: place for place, number in enumerate(known)}
        for group in self.join.equalities:
            theirs = sorted(
                (name for name in group if self.owner[name] in order), key=lambda n: order[self.owner[n]]
            )
            for name in group:
                if self.owner[name] == member and theirs:
                    found.setdefault(name, theirs[0])
        return found

    def _promised(self, member: int, pairs: Mapping[str, str], *kinds: PromiseKind) -> Iterator[Closing]:
        """What an input's stream promises of these columns of it."""
        behind = self.lineages[member]
        if behind is None:
            return
        names = {behind.columns[name]: name for name in reversed(list(pairs)) if name in behind.columns}
        slide = None if behind.window is None else behind.window.slide
        # What is only observed comes last, and not where rows are seen at ticks: the monitor sees them before.
        observed = observed_promises(behind.scan.stream) if slide is None else ()
        for promise in (*closing_promises(behind.scan.stream), *observed):
            if promise.kind in kinds and names.keys() >= set(promise.columns):
                columns = tuple(names[column] for column in promise.columns)
                yield Closing(member, columns, promise.columns, promise, behind.scan, slide)

    def _children_first(self) -> list[int]:
        """The inputs; those that others refer to by a key stand before these, where no cycle forbids it."""
        order: list[int] = []
        seen: set[int] = set()

        def visit(member: int) -> None:
            seen.add(member)
            for other in range(len(self.join.members)):
                refers = any(self._promised(other, self._pairs(other, [member]), PromiseKind.KEY))
                if other not in seen and refers:
                    visit(other)
            order.append(member)

        for member in range(len(self.join.members)):
            if member not in seen:
                visit(member)
        return order

    def _length(self, member: int) -> int | None:
        """How long a row of an input lives at most, if its window says so."""
        behind = self.lineages[member]
        window = None if behind is None else behind.window
        if window is None or not window.is_time_based:
            return None
        return (
            1
            if window.kind == "NOW"
            else None
            if window.length is None
            else window.length + (window.slide or 0)
        )

    # -- chains -----------------------------------------------------------------------------------

    def _chain(self, member: int) -> EarlyChain | None:
        known, own, further = [member], [], []
        others = [number for number in range(len(self.join.members)) if number != member]
        for other in others:
            step = self._step(member, other, [member])
            if step is not None:
                own.append(step)
        known += [step.member for step in own]
        asked = list(self.keys), list(self.bounds)
        while True:
            found = next((s for o in others if o not in known and (s := self._step(member, o, known))), None)
            if found is None:
                break
            further.append(found)
            known.append(found.member)
        closes_all = len(known) == len(self.join.members)
        if not closes_all:
            # What can be closed only by a row that is there lets nothing go by itself.
            own, further = [step for step in own if not step.only_when_there], []
            self.keys, self.bounds = asked
        if not own:
            return None
        if any(not step.only_when_there for step in (*own, *further)):
            self.refusing.add(member)
        reason = self._said(own, further, closes_all)
        observed = tuple(dict.fromkeys(each for step in (*own, *further) for each in self._observed(step)))
        return EarlyChain(member, tuple(own), tuple(further), closes_all, reason, observed=observed)

    def _step(self, asking: int, member: int, known: Sequence[int]) -> EarlyStep | None:
        """How an input is closed for rows of `asking`, given the columns of those known; None if it is not."""
        pairs = self._pairs(member, known)
        if not pairs:
            return None
        closed: list[Closed] = list(self._bounded(member, pairs, known))
        key = next(self._promised(member, pairs, PromiseKind.KEY), None)
        if key is not None:
            learnt = list(known) == [asking] and self._learnt_from_another(asking, key)
            refused = None if learnt else self._refused(asking, key, closed)
            closed.append(KeyClosed(tuple(pairs[name] for name in key.columns), key.promise, refused))
        told = None if closed else self._told(member, pairs, self._length(asking))
        if told is not None:
            closed.append(self._held(told))
        if not closed:
            return None
        ordered = [name for name in pairs if key is None or name in key.columns]
        return EarlyStep(
            member,
            tuple((name, pairs[name]) for name in ordered),
            tuple((pairs[name], name) for name in pairs if name not in ordered),
            tuple(closed),
        )

    def _bounded(self, member: int, pairs: Mapping[str, str], known: Sequence[int]) -> Iterator[Closed]:
        """By a value that an input has gone beyond, or by the age of rows that refer to it."""
        for closing in self._promised(member, pairs, PromiseKind.ORDER):
            (name,) = closing.columns
            yield BelowClosed(self._bound(closing), column=pairs[name])
        for key in self._promised(member, pairs, PromiseKind.KEY):
            for number in known:
                aged = self._aged(number, key)
                if aged is not None:
                    yield BelowClosed(self._bound(aged), member=number)

    def _aged(self, number: int, key: Closing) -> Closing | None:
        """That so much has come since a row of an input that its one partner has, or never will."""
        behind = self.lineages[number]
        own = self._pairs(key.member, [number])
        if behind is None or not all(own.get(name, "") in behind.columns for name in key.columns):
            return None
        theirs = tuple(behind.columns[own[name]] for name in key.columns)
        pairs = dict(zip(theirs, key.sources, strict=True))
        stream, parent = behind.scan.stream, key.scan.stream
        found = reference(stream, parent, pairs)
        if found is not None:
            promise = Promise(parent.name, (), None, PromiseKind.REFERENCE, found.within)
            return replace(key, columns=(AGED,), sources=(), promise=promise)
        found = reference(stream, parent, pairs, observed=True)
        if found is None or key.slide is not None:
            return None
        promise = Promise(parent.name, (), None, PromiseKind.REFERENCE, found.within)
        return replace(key, columns=(AGED,), promise=promise, referring=(behind.scan, theirs))

    def _learnt_from_another(self, asking: int, key: Closing) -> bool:
        """Whether rows go without a word of a refused key, because rows of a third input go that stand between.

        O refers to B and B to C, all by one column: where C has no row, B's goes, and then O's.
        """
        groups = [group for name in key.columns for group in self.join.equalities if name in group]
        for between in range(len(self.join.members)):
            if between in (asking, key.member) or not self.leaves[between]:
                continue
            to_it, from_it = {}, {}
            for name, group in zip(key.columns, groups, strict=True):
                owned = {self.owner[each]: each for each in group}
                if between in owned and asking in owned:
                    to_it[owned[between]], from_it[name] = owned[asking], owned[between]
            if (
                len(from_it) == len(key.columns)
                and any(self._bounded(between, to_it, [asking]))
                and any(self._bounded(key.member, from_it, [between]))
            ):
                return True
        return False

    def _refused(self, asking: int, key: Closing, closed: Sequence[Closed]) -> int | None:
        """The keys of an input's rows that are in no result; None if there are none, or for no known time.

        What closes the input otherwise lets rows go later. If it is their age, either may keep less.
        """
        lifetime, filters = self._length(asking), _filters(self.join.members[key.member])
        if lifetime is None or (not filters and key.member not in self.refusing):
            return None
        aged = [each for each in closed if isinstance(each, BelowClosed) and each.member == asking]
        if len(aged) < len(closed) or any(self.bounds[each.bound].promise.within == NOTHING for each in aged):
            return None
        numbers = (
            n for n, e in enumerate(self.keys) if isinstance(e, RefusedKeys) and e.member == key.member
        )
        number = next(numbers, None)
        if number is None:
            refuses = conjunction(filters) if filters else None
            self.keys.append(RefusedKeys(key.member, key.columns, key.sources, key.scan, refuses, lifetime))
            number = len(self.keys) - 1
        found = self.keys[number]
        assert isinstance(found, RefusedKeys)
        if found.columns != key.columns:
            return None
        until = (*found.until, tuple(self._until(asking, found, number, lifetime)))
        # Where one who asks has nothing else, they are always remembered.
        chosen = bool(aged) and (found.chosen or not found.until)
        self.keys[number] = replace(found, lifetime=max(found.lifetime, lifetime), until=until, chosen=chosen)
        return number

    def _until(self, asking: int, keys: RefusedKeys, number: int, lifetime: int) -> Iterator[Closed]:
        """What says that no row of an input comes any more that asks for one of these keys."""
        pairs = {mine: its for mine, its in self._pairs(asking, [keys.member]).items() if its in keys.columns}
        closings = list(self._promised(asking, pairs, PromiseKind.ORDER))
        for closing in closings:
            yield BelowClosed(self._bound(closing), column=pairs[closing.columns[0]])
        told = None if closings else self._told(asking, pairs, lifetime)
        if told is not None and told.values == keys.columns:
            known = self.keys[told.keys]
            assert isinstance(known, ClosedKeys)
            self.keys[told.keys] = replace(known, refused=tuple(dict.fromkeys((*known.refused, number))))
            yield told

    def _told(self, member: int, pairs: Mapping[str, str], lifetime: int | None) -> ValuesClosed | None:
        """By values that an input closes one by one, for rows that live so long."""
        closing = next(self._promised(member, pairs, PromiseKind.CLUSTER, PromiseKind.PUNCTUATION), None)
        if closing is None or lifetime is None:
            return None
        numbers = (n for n, e in enumerate(self.keys) if isinstance(e, ClosedKeys) and e.closing == closing)
        number = next(numbers, None)
        if number is None:
            self.keys.append(ClosedKeys(closing, lifetime))
            number = len(self.keys) - 1
        found = self.keys[number]
        self.keys[number] = replace(found, lifetime=max(found.lifetime, lifetime))
        return ValuesClosed(number, tuple(pairs[name] for name in closing.columns))

    def _held(self, told: ValuesClosed) -> ValuesClosed:
        """Closed values that stored rows with these columns ask for."""
        found, owners = self.keys[told.keys], {self.owner[name] for name in told.values}
        assert isinstance(found, ClosedKeys)
        holders = None
        if found.holders is not None and len(owners) == 1:
            holders = tuple(dict.fromkeys((*found.holders, (owners.pop(), told.values))))
        self.keys[told.keys] = replace(found, holders=holders)
        return told

    def _bound(self, closing: Closing) -> int:
        if closing not in self.bounds:
            self.bounds.append(closing)
        return self.bounds.index(closing)

    # -- words ------------------------------------------------------------------------------------

    def _said(self, own: Sequence[EarlyStep], further: Sequence[EarlyStep], closes_all: bool) -> str:
        never = [self._name(step.member) for step in own if not step.only_when_there]
        none = f"none can come in {' or '.join(never)}" if never else ""
        what = (
            "its partners have come" + (f", or {none}" if none else "")
            if closes_all
            else f"it has no partner and {none}"
        )
        by = dict.fromkeys(word for step in (*own, *further) for word in self._promises(step))
        return f"dropped sooner when {what}: {', '.join(by)}"

    def _promises(self, step: EarlyStep) -> Iterator[str]:
        name = self._name(step.member)
        for each in step.closed:
            match each:
                case KeyClosed():
                    yield f"{name} {each.promise}"
                case ValuesClosed():
                    keys = self.keys[each.keys]
                    assert isinstance(keys, ClosedKeys)
                    yield f"{name} {keys.closing.promise}"
                case BelowClosed(member=None):
                    yield f"{name} {self.bounds[each.bound].promise}"
                case BelowClosed():
                    assert each.member is not None
                    yield f"{self._name(each.member)} {self.bounds[each.bound].promise} of {name}"

    def _observed(self, step: EarlyStep) -> Iterator[Assumption]:
        """What a step takes for granted of what is only observed."""
        for each in step.closed:
            closing = None
            if isinstance(each, ValuesClosed):
                keys = self.keys[each.keys]
                assert isinstance(keys, ClosedKeys)
                closing = keys.closing
            elif isinstance(each, BelowClosed):
                closing = self.bounds[each.bound]
            if closing is not None and closing.promise.is_observed:
                yield kept_as_observed(closing.constraint)

    def _name(self, member: int) -> str:
        return shown_name(self.join.members[member], member)


def _filters(node: Node) -> list[Scalar]:
    """The filters that decide which rows of a stream come to an edge, over its columns; none if more decides."""
    while isinstance(node, (Window, Project)):
        node = node.input
    parts = []
    while isinstance(node, (Window, Filter)):
        if isinstance(node, Filter):
            parts.append(node.predicate)
        node = node.input
    return parts if isinstance(node, StreamScan) else []
