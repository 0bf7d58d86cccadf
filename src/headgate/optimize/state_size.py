"""State size: what operators keep that purge by time or promise or keep buckets of values, and how much it is.

| bounded by | rows |
|---|---|
| time | rows per second × the time until no partner comes, or no row of the group |
| punctuation, key | rows per second × the time until the values that a row waits for are closed (`closes`) |
| constraint | rows per second × the time that the constraint's k rows take on the other stream, or the time k |
| values | at most as many as there are buckets, groups or values |
| closed values | those that others have not closed yet, or as many as have a lifespan |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from headgate.model.adherence import WithinRows, WithinTime
from headgate.model.time import SECOND, format_duration
from headgate.optimize.estimate import Estimates, estimate, input_name
from headgate.optimize.optimize import OptimizedPlan
from headgate.optimize.state import StateChoice, StoredInput, choose_state, row_bytes
from headgate.optimize.statistics import DEFAULT_CLOSES, Statistics
from headgate.plan.nodes import Aggregate, Distinct, Emit, Join, Node
from headgate.plan.patterns import Pattern
from headgate.safety.promise import Promise, PromiseKind
from headgate.safety.reasons.deaths import announces_deaths, is_aggregate
from headgate.safety.reasons.early_purge import RefusedKeys
from headgate.safety.reasons.finite_memory import FiniteMemoryPlan
from headgate.safety.reasons.group_closing import GroupClosing
from headgate.safety.reasons.purge_analysis import Chain, Closing, JoinPurge
from headgate.safety.reasons.time.closing import ClockClosing
from headgate.safety.reasons.value_limit import value_limit
from headgate.safety.state_plan import StatePlan

_NUMBER_BYTES = 8
_STRUCTURES = {"counted": "buckets", "summed": "sums", "representatives": "representatives"}


def estimate_state(optimized: OptimizedPlan, state_plan: StatePlan, statistics: Statistics) -> OptimizedPlan:
    """The plan with the states that it has because of the gate's state plan; its order and its cost stay."""
    return _Keeping(optimized, state_plan, statistics).result


@dataclass(frozen=True)
class _Wait:
    """How long rows wait, in seconds, and in words."""

    seconds: float
    said: str


@dataclass(frozen=True)
class _Keeping:
    optimized: OptimizedPlan
    state_plan: StatePlan
    statistics: Statistics

    @property
    def result(self) -> OptimizedPlan:
        plan, edges = self.optimized.plan, self.optimized.edges
        held: dict[Node, tuple[float | None, bool]] = {}
        for node, purge in self._purges.items():
            for number, chain in purge.chains.items():
                member = node.inputs[number]
                rate = self.optimized.estimates.edges[member].rate
                held[member] = (rate * self._chain(purge, chain).seconds, True)
        for reader, retained in self.state_plan.retained.items():
            for number, each in retained.items():
                member = reader.inputs[number]
                held[member] = (self.optimized.estimates.edges[member].rate * each.length / SECOND, True)
        for reader in (*self._purges, *self.state_plan.retained):
            if max(edges[reader].pattern, edges[reader].expiry) == Pattern.MON:
                # What is stored is bounded; the results are never taken back.
                held[reader] = (None, False)
        estimates = estimate(plan, self.statistics, held, self.optimized.estimates.orders)
        states = choose_state(plan, edges, estimates)
        found = {node: tuple(self._stored(node, choice, estimates)) for node, choice in states.items()}
        kept = {node: StateChoice(stored) for node, stored in found.items() if stored}
        return replace(self.optimized, estimates=estimates, states=kept)

    @property
    def _purges(self) -> dict[Node, JoinPurge]:
        """The operators over several inputs that forget rows of them, and how."""
        found: dict[Node, JoinPurge] = dict(self.state_plan.joins.items())
        return found | {node: each.purge for node, each in self.state_plan.existence.items()}

    def _stored(self, node: Node, choice: StateChoice, estimates: Estimates) -> Iterator[StoredInput]:
        if isinstance(node, Join) and node in self.state_plan.values:
            yield from self._buckets(node, self.state_plan.values[node])
        elif node in self._purges or node in self.state_plan.retained:
            yield from self._forgotten(node, choice, estimates)
        elif isinstance(node, Join) and node in self.state_plan.early:
            yield from self._dropped_early(node, choice.stored, estimates)
        elif node in self.state_plan.clocks:
            yield from self._passed_groups(node, choice, self.state_plan.clocks[node], estimates)
        elif node in self.state_plan.groups:
            yield from self._closed_groups(node, choice, self.state_plan.groups[node], estimates)
        elif node in self.state_plan.settled or node in self.state_plan.counted:
            yield from self._open_values(node, choice)
        elif isinstance(node, (Aggregate, Distinct)) and choice.rows is None:
            yield from self._few(node, choice)
        elif isinstance(node, Emit) and self._keeps_no_answer(node, choice):
            return
        else:
            yield from choice.stored

    def _keeps_no_answer(self, node: Emit, choice: StateChoice) -> bool:
        if is_aggregate(node.input):
            # A value of an aggregate ends when the next one comes, and then both are at hand.
            return choice.rows is None
        return node.kind != "RSTREAM" and not announces_deaths(node.input, self.optimized.edges)

    # -- values -----------------------------------------------------------------------------------

    def _buckets(self, node: Join, method: FiniteMemoryPlan) -> Iterator[StoredInput]:
        for number, member in enumerate(node.members):
            rows = float(method.size(number))
            synopsis = method.synopses[number]
            numbers = 0 if method.form == "representatives" else 1
            numbers += 2 * sum(each.member == number for each in method.summed)
            cells = " × ".join(
                f"{len(cells):,} of {cut.attribute}"
                for cut, cells in zip(synopsis.cuts, synopsis.cells, strict=True)
            )
            size = rows * (row_bytes(member) + numbers * _NUMBER_BYTES)
            formula = f"buckets by {cells}" if cells else "one bucket"
            yield StoredInput(
                input_name(member), _STRUCTURES[method.form], rows, size, formula=formula, at_most=True
            )

    def _few(self, node: Aggregate | Distinct, choice: StateChoice) -> Iterator[StoredInput]:
        """Groups and values that are bounded because columns have few values."""
        keys = node.keys if isinstance(node, Aggregate) else tuple(column.name for column in node.schema)
        things = "group" if isinstance(node, Aggregate) else "value"
        for place, stored in enumerate(choice.stored):
            asked = keys
            if place and isinstance(node, Aggregate):
                counted = (name for call in node.calls if call.needs_values for name in call.arguments)
                asked = tuple(dict.fromkeys((*keys, *counted)))
                things = "value that is counted"
            few = None if stored.rows is not None else value_limit(node.input, asked)
            if few is None:
                yield stored
            elif few.tables:
                formula = f"a row for each {things}, {few}"
                yield replace(stored, formula=formula)
            else:
                rows = float(few.count)
                size = rows * row_bytes(node if not place else node.input)
                formula = f"a row for each {things} that there can be"
                yield replace(stored, rows=rows, bytes=size, formula=formula, at_most=True)

    # -- promises ---------------------------------------------------------------------------------

    def _forgotten(self, node: Node, choice: StateChoice, estimates: Estimates) -> Iterator[StoredInput]:
        """The inputs of an operator that forgets rows by time or by promises, and the closed values."""
        purge = self._purges.get(node)
        retained = self.state_plan.retained.get(node, {})
        for number, stored in enumerate(choice.stored):
            rate = estimates.edges[node.inputs[number]].rate
            chain = None if purge is None else purge.chains.get(number)
            if number in retained:
                wait = _Wait(retained[number].length / SECOND, "until no partner comes")
                yield replace(stored, structure="fifo", forgets="dropped by time", formula=_rated(rate, wait))
            elif purge is not None and chain is not None:
                by = ", ".join(str(purge.closings[step.closing].promise) for step in chain.steps)
                formula = _rated(rate, self._chain(purge, chain))
                yield replace(stored, forgets=f"dropped by {by}", formula=formula)
            else:
                yield stored
        for number, closing in enumerate(() if purge is None else purge.closings):
            assert purge is not None
            yield self._heard(purge, number, closing)
        if isinstance(node, Join) and node in self.state_plan.early:
            yield from self._dropped_early(node, (), estimates)

    def _dropped_early(
        self, node: Join, stored: Sequence[StoredInput], estimates: Estimates
    ) -> Iterator[StoredInput]:
        """The inputs of a join of windows, which may drop rows before they die, and the keys that this takes."""
        early = self.state_plan.early[node]
        members = {chain.member for chain in early.chains}
        for number, each in enumerate(stored):
            yield replace(each, forgets="or fewer, dropped sooner") if number in members else each
        for keys in early.keys:
            if isinstance(keys, RefusedKeys):
                known = self.statistics.of(keys.scan.stream.name)
                name, columns = f"refused {keys.scan.name}", keys.columns
                rate = max(0.0, known.rate - estimates.edges[node.members[keys.member]].rate)
            else:
                known = self.statistics.of(keys.closing.scan.stream.name)
                name, columns, rate = f"closed {keys.closing.scan.name}", keys.closing.columns, known.rate
            wait = _Wait(keys.lifetime / SECOND, "while rows live that may ask for it")
            rows, width = rate * wait.seconds, float(_NUMBER_BYTES * (len(columns) + 2))
            chosen = isinstance(keys, RefusedKeys) and keys.chosen
            forgets = "or few, whichever keeps less" if chosen else "or fewer"
            yield StoredInput(name, "keys", rows, rows * width, forgets=forgets, formula=_rated(rate, wait))

    def _passed_groups(
        self, node: Node, choice: StateChoice, clock: ClockClosing, estimates: Estimates
    ) -> Iterator[StoredInput]:
        """Groups, or values of DISTINCT, until event time has passed them."""
        below = node.inputs[0]
        rate, wait = (
            estimates.edges[below].rate,
            _Wait(max(0, clock.wait) / SECOND, "until time has passed it"),
        )
        for stored, kept in zip(choice.stored, (node, below), strict=False):
            rows = stored.rows if stored.rows is not None else rate * wait.seconds
            yield replace(
                stored,
                rows=rows,
                bytes=rows * row_bytes(kept),
                forgets="forgotten by time",
                formula=_rated(rate, wait),
            )

    def _heard(self, purge: JoinPurge, number: int, closing: Closing) -> StoredInput:
        """The closed values of one promise."""
        known = self.statistics.of(closing.scan.stream.name)
        punctuation_purges = next(each for each in purge.punctuation_purges if each.closing == number)
        width = float(_NUMBER_BYTES * (len(closing.columns) + 1))
        name = f"closed {closing.scan.name}"
        if closing.below:
            rows, formula = _remembered(closing.promise, known.rate)
            return StoredInput(name, "values", rows, rows * width, formula=formula, at_most=True)
        if punctuation_purges.lifespan is not None:
            rows = float(punctuation_purges.lifespan)
            return StoredInput(
                name, "values", rows, rows * width, formula="the newest that nothing needs", at_most=True
            )
        waits = [self._closing(purge.closings[other]) for other, _ in punctuation_purges.by]
        wait = max(waits, key=lambda each: each.seconds, default=_Wait(0.0, ""))
        rows = known.rate * wait.seconds
        return StoredInput(
            name, "values", rows, rows * width, forgets="until countered", formula=_rated(known.rate, wait)
        )

    def _closed_groups(
        self, node: Node, choice: StateChoice, closing: GroupClosing, estimates: Estimates
    ) -> Iterator[StoredInput]:
        waits = [self._closing(each) for each in closing.closings]
        wait = max(waits, key=lambda each: each.seconds)
        below = node.inputs[0]
        by = ", ".join(dict.fromkeys(str(each.promise) for each in closing.closings))
        # A group has rows of every input, so there are no more of them than of the slowest.
        rate = min(self.statistics.of(each.scan.stream.name).rate for each in closing.closings)
        for stored, kept in zip(choice.stored, (node, below), strict=False):
            rows = stored.rows if stored.rows is not None else rate * wait.seconds
            size = rows * row_bytes(kept)
            yield replace(
                stored, rows=rows, bytes=size, forgets=f"forgotten by {by}", formula=_rated(rate, wait)
            )

    def _open_values(self, node: Node, choice: StateChoice) -> Iterator[StoredInput]:
        """Few groups, and the values of an aggregate that are not closed yet."""
        assert isinstance(node, Aggregate)
        groups, *values = self._few(node, choice)
        yield groups
        if node in self.state_plan.settled:
            closings = self.state_plan.settled[node][1].closings
        else:
            counted = self.state_plan.counted[node].values()
            closings = tuple(each for closing in counted for each in closing.closings)
        wait = max((self._closing(each) for each in closings), key=lambda each: each.seconds)
        by = ", ".join(dict.fromkeys(str(each.promise) for each in closings))
        rate = max(self.statistics.of(each.scan.stream.name).rate for each in closings)
        for stored in values:
            rows = rate * wait.seconds
            size = rows * row_bytes(node.input)
            said = f"forgotten by {by}"
            yield replace(
                stored, rows=rows, bytes=size, forgets=said, formula=_rated(rate, wait), at_most=False
            )

    def _chain(self, purge: JoinPurge, chain: Chain) -> _Wait:
        waits = []
        for step in chain.steps:
            wait = self._closing(purge.closings[step.closing])
            if step.aged is not None:
                wait = min(wait, self._closing(purge.closings[step.aged]), key=lambda each: each.seconds)
            waits.append(wait)
        return _Wait(sum(each.seconds for each in waits), " and ".join(each.said for each in waits))

    def _closing(self, closing: Closing) -> _Wait:
        """How long a row waits for one closing."""
        known = self.statistics.of(closing.scan.stream.name)
        given = [known.closes[name.casefold()] for name in closing.sources if name.casefold() in known.closes]
        name = closing.scan.name
        said = f"until {name} is closed"
        if given:
            return _Wait(max(given), said)
        match closing.promise.within:
            case WithinTime() as within:
                return _Wait(within.length / SECOND, f"by which {name} may be off")
            case WithinRows(rows) if known.rate > 0:
                return _Wait((rows + 1) / known.rate, f"for {rows + 1:,} rows of {name}")
        return _Wait(DEFAULT_CLOSES, f"{said} (assumed)")


def _remembered(promise: Promise, rate: float) -> tuple[float, str]:
    """How many values of a stream are kept to know how far it has come, and of which rows."""
    match promise.kind, promise.within:
        case PromiseKind.REFERENCE, WithinTime():
            return 1.0, "up to when rows have come"
        case _, WithinTime() as within:
            rows = rate * within.length / SECOND + 1
            return rows, f"{rate:,.6g} rows/s × {format_duration(within.length)}, and one row before them"
        case _, WithinRows(rows):
            return float(rows + 1), f"the last {rows:,} rows and one before them"
        case _:
            raise AssertionError(f"{promise} is not kept by rows or time")


def _rated(rate: float, wait: _Wait) -> str:
    return f"{rate:,.6g} rows/s × {format_duration(round(wait.seconds * SECOND))} {wait.said}"
