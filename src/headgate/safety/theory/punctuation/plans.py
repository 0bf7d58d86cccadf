"""Plans: trees of joins over the streams of a query, which of them are safe, and the cheapest safe one.

Punctuation document, sections 4.1.2 and 5.2. A plan is safe if each of its joins can purge all its inputs.
An input that is itself a join is closed at a value once its own stream is punctuated there and its stored
rows with that value are purged, which happens because it is safe; so an operator is judged like a query
whose streams are its inputs. Not every tree over a safe query is safe, but every subset of streams that has
a safe tree is safe as one join: these are the blocks that plans are built from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from math import prod

from headgate.safety.theory.punctuation.graph import Purge, is_safe, unpurgeable
from headgate.safety.theory.punctuation.query import Column, JoinPredicate, JoinQuery, Scheme


@dataclass(frozen=True)
class Leaf:
    """A stream as it arrives."""

    stream: str

    @property
    def streams(self) -> frozenset[str]:
        return frozenset((self.stream,))

    def __str__(self) -> str:
        return self.stream


@dataclass(frozen=True)
class Join:
    """A join of two or more inputs."""

    inputs: tuple[Plan, ...]

    def __post_init__(self) -> None:
        if len(self.inputs) < 2:
            raise ValueError("a join has at least two inputs")
        if len(self.streams) < sum(len(plan.streams) for plan in self.inputs):
            raise ValueError(f"a stream enters {self} twice")

    @cached_property
    def streams(self) -> frozenset[str]:
        return frozenset().union(*(plan.streams for plan in self.inputs))

    def __str__(self) -> str:
        return f"({' ⋈ '.join(map(str, self.inputs))})"


Plan = Leaf | Join
Inputs = tuple[frozenset[str], ...]
Cost = Callable[[Inputs], float]
"""What one join costs, by the streams behind each of its inputs; a plan costs the sum of its joins."""


@dataclass(frozen=True)
class UnsafeJoin:
    """A join of a plan that cannot purge all its inputs."""

    join: Join
    stuck: tuple[Purge, ...]


def operator_query(query: JoinQuery, inputs: Inputs) -> JoinQuery:
    """A join operator as a query of its own: an input has the columns and schemes of all streams behind it."""
    behind = {stream: _name(block) for block in inputs for stream in block}

    def column(original: Column) -> Column:
        return behind[original[0]], ".".join(original)

    part = query.among(behind.keys())
    return JoinQuery(
        tuple(_name(block) for block in inputs),
        tuple(
            JoinPredicate(column(p.left), column(p.right))
            for p in part.predicates
            if behind[p.left[0]] != behind[p.right[0]]
        ),
        tuple(
            Scheme(behind[s.stream], frozenset(column((s.stream, name))[1] for name in s.attributes))
            for s in part.schemes
        ),
    )


def _name(block: frozenset[str]) -> str:
    return "⋈".join(sorted(block))


def unsafe_joins(query: JoinQuery, plan: Plan) -> tuple[UnsafeJoin, ...]:
    """The joins of a plan that cannot purge their inputs, lowest first; the plan is safe if there are none."""
    if isinstance(plan, Leaf):
        return ()
    below = tuple(found for child in plan.inputs for found in unsafe_joins(query, child))
    stuck = unpurgeable(operator_query(query, tuple(child.streams for child in plan.inputs)))
    return (*below, UnsafeJoin(plan, stuck)) if stuck else below


@dataclass(frozen=True)
class PricedPlan:
    """A safe plan and the sum of the costs of its joins."""

    plan: Plan
    cost: float


@dataclass(frozen=True)
class Survey:
    """All safe plans of a query at a glance: the cheapest, None if there is none, and how many there are."""

    cheapest: PricedPlan | None
    count: int


def survey(query: JoinQuery, cost: Cost, *, max_inputs: int | None = None) -> Survey:
    """The safe plans whose joins have at most `max_inputs` inputs.

    Dynamic programming from small safe blocks to large ones. Without a limit every partition of every block is
    tried, which is meant for about nine streams; with `max_inputs=2` for about fourteen.
    """
    blocks = _Blocks(query, max_inputs)
    best: dict[int, PricedPlan] = {}
    count: dict[int, int] = {}
    for block in blocks.ascending():
        if block.bit_count() == 1:
            best[block] = PricedPlan(Leaf(query.streams[block.bit_length() - 1]), 0.0)
            count[block] = 1
            continue
        for partition in blocks.partitions(block, best.keys()):
            inputs = tuple(blocks.names(part) for part in partition)
            if is_safe(operator_query(query, inputs)):
                total = sum(best[part].cost for part in partition) + cost(inputs)
                count[block] = count.get(block, 0) + prod(count[part] for part in partition)
                if block not in best or total < best[block].cost:
                    best[block] = PricedPlan(Join(tuple(best[part].plan for part in partition)), total)
    return Survey(best.get(blocks.all), count.get(blocks.all, 0))


def cheapest_plan(query: JoinQuery, cost: Cost, *, max_inputs: int | None = None) -> PricedPlan | None:
    """The cheapest safe plan whose joins have at most `max_inputs` inputs; None if there is none."""
    return survey(query, cost, max_inputs=max_inputs).cheapest


def every_plan(streams: tuple[str, ...], *, max_inputs: int | None = None) -> Iterator[Plan]:
    """Every plan over some streams, safe or not, each once: very many, unless there are few streams."""
    if len(streams) == 1:
        yield Leaf(streams[0])
        return
    for parts in _partitions(streams):
        if 1 < len(parts) <= (max_inputs or len(streams)):
            for chosen in product(*(every_plan(part, max_inputs=max_inputs) for part in parts)):
                yield Join(chosen)


def _partitions(streams: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], ...]]:
    if not streams:
        yield ()
        return
    first, rest = streams[0], streams[1:]
    for size in range(len(rest) + 1):
        for chosen in combinations(rest, size):
            others = tuple(stream for stream in rest if stream not in chosen)
            for parts in _partitions(others):
                yield ((first, *chosen), *parts)


def safe_plans(query: JoinQuery, *, max_inputs: int | None = None) -> Iterator[Plan]:
    """Every safe plan, each once: very many, unless the query is small."""
    blocks = _Blocks(query, max_inputs)
    plans: dict[int, list[Plan]] = {}
    for block in blocks.ascending():
        found: list[Plan] = []
        if block.bit_count() == 1:
            found.append(Leaf(query.streams[block.bit_length() - 1]))
        for partition in blocks.partitions(block, plans.keys()):
            if is_safe(operator_query(query, tuple(blocks.names(part) for part in partition))):
                choices: list[tuple[Plan, ...]] = [()]
                for part in partition:
                    choices = [(*chosen, plan) for chosen in choices for plan in plans[part]]
                found += [Join(chosen) for chosen in choices]
        if found:
            plans[block] = found
    yield from plans.get(blocks.all, ())


@dataclass(frozen=True)
class _Blocks:
    """Subsets of the streams as bit masks, and partitions of them into subsets that have a plan."""

    query: JoinQuery
    max_inputs: int | None

    @property
    def all(self) -> int:
        return (1 << len(self.query.streams)) - 1

    def names(self, block: int) -> frozenset[str]:
        return frozenset(stream for bit, stream in enumerate(self.query.streams) if block >> bit & 1)

    def ascending(self) -> Iterator[int]:
        """The safe blocks, smaller ones first."""
        for block in sorted(range(1, self.all + 1), key=int.bit_count):
            if is_safe(self.query.among(self.names(block))):
                yield block

    def partitions(self, block: int, usable: Iterable[int]) -> Iterator[tuple[int, ...]]:
        """The ways to divide a block into two or more usable ones, each once."""
        parts = frozenset(usable)
        limit = self.max_inputs or block.bit_count()
        for partition in self._split(block, parts, limit):
            if len(partition) > 1:
                yield partition

    def _split(self, block: int, usable: frozenset[int], limit: int) -> Iterator[tuple[int, ...]]:
        if block == 0:
            yield ()
            return
        if limit == 0:
            return
        lowest = block & -block
        rest = block ^ lowest
        chosen = rest
        while True:
            part = lowest | chosen
            if part in usable:
                for others in self._split(rest ^ chosen, usable, limit - 1):
                    yield (part, *others)
            if chosen == 0:
                return
            chosen = (chosen - 1) & rest
