"""`headgate reproduce punctuation`: what punctuations let a join forget, when it looks, and what they cost to keep.

The auction of section 1 of the Punctuation document, and the triangle S1(A, B), S2(B, C), S3(C, A) of section 4, with
and without their punctuations; eager and lazy purge and the choice of schemes (section 5.2); and what becomes of the
punctuations themselves (section 5.1). The document measures none of it: what it says in words is judged here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from headgate.kernels.join.join import Join, JoinState
from headgate.kernels.join.purge import PunctuationPurge, Purge
from headgate.lab.generators import Auction, Dataset, Triangle
from headgate.lab.plots import figure
from headgate.lab.reproduce.claims import Claim, require_same
from headgate.lab.reproduce.watched_run import growth, watch
from headgate.model.time import MINUTE
from headgate.physical.compile import compile_query
from headgate.physical.graph import KernelStep, OperatorGraph
from headgate.runtime.query import QueryState
from headgate.session import Query, Session

STEP_ROWS = 500
"""Rows of all streams in a step, about."""
_GROWN = 1.5
"""What is larger by more than this in the last quarter of a run than in the second has grown with it."""
_FOR_EVER = 2**62
_CLOSED = {"S1": "b", "S2": "c", "S3": "a"}
"""The fewest columns of the triangle that make it safe."""
_ALSO_CLOSED = {"S1": "a", "S2": "b", "S3": "c"}


@dataclass(frozen=True)
class Workload:
    """Streams with the promises that they keep, and a query that joins them."""

    name: str
    data: Dataset
    columns: Mapping[str, str]
    fewest: Mapping[str, str]
    """Promises by stream, none of which can be left out."""
    more: Mapping[str, str]
    """Promises that the streams keep as well."""
    query: str

    def asked(self, promises: str) -> Query:
        """The query over streams that promise nothing, the fewest, or all."""
        session = Session()
        for stream, columns in self.columns.items():
            words = [] if promises == "none" else [self.fewest[stream]]
            words += [self.more[stream]] if promises == "all" else []
            session.sql(f"CREATE STREAM {stream} ({columns}) TIMESTAMP BY ts {' '.join(words)}")
        query = session.sql(self.query)
        assert query is not None
        return query


@dataclass(frozen=True)
class Variant:
    """A way to run a workload: what its streams promise, and how its join forgets by it."""

    name: str
    promises: str = "fewest"
    changed: Callable[[Purge], Purge] = lambda purge: purge


@dataclass(frozen=True)
class StateGrowth:
    """What is kept while rows come: those of the whole query, of the join's inputs, and closed values."""

    workload: str
    variant: str
    rows: tuple[int, ...]
    state_rows: tuple[int, ...]
    joined_rows: tuple[int, ...]
    closed_values: tuple[int, ...]
    seconds: float
    """Of the processor, per 1,000 rows of the second half."""
    results: int

    def as_dict(self) -> dict[str, Any]:
        return {
            "workload": self.workload,
            "variant": self.variant,
            "rows": list(self.rows),
            "state_rows": list(self.state_rows),
            "joined_rows": list(self.joined_rows),
            "closed_values": list(self.closed_values),
            "seconds_per_1000_rows": self.seconds,
            "results": self.results,
        }


@dataclass(frozen=True)
class PunctuationReproduction:
    """All runs, and what the document says judged by them."""

    runs: tuple[StateGrowth, ...]
    claims: tuple[Claim, ...]

    def as_dict(self) -> dict[str, Any]:
        return {
            "reproduce": "punctuation",
            "runs": [each.as_dict() for each in self.runs],
            "claims": [each.as_dict() for each in self.claims],
        }


def workloads(scale: int = 1) -> tuple[Workload, Workload]:
    """The auction and the triangle; `scale` times as many rows."""
    auction = Auction(items=4_000 * scale, mean_bids=5.0, mean_duration=3 * MINUTE)
    triangle = Triangle(rows=6_000 * scale)
    return (
        Workload(
            "auction",
            auction,
            {
                "items": "ts TIMESTAMP, itemid BIGINT",
                "bids": "ts TIMESTAMP, itemid BIGINT, increase DOUBLE, closing BOOLEAN",
            },
            {"items": "KEY (itemid)", "bids": "PUNCTUATED BY (itemid) WHEN closing"},
            {},
            "SELECT ISTREAM(i.itemid, SUM(b.increase) AS gain) FROM items i, bids b "
            "WHERE i.itemid = b.itemid GROUP BY i.itemid",
        ),
        Workload(
            "triangle",
            triangle,
            {
                "S1": "ts TIMESTAMP, a BIGINT, b BIGINT, last BOOLEAN",
                "S2": "ts TIMESTAMP, b BIGINT, c BIGINT, last BOOLEAN",
                "S3": "ts TIMESTAMP, c BIGINT, a BIGINT, last BOOLEAN",
            },
            {name: f"PUNCTUATED BY ({column}) WHEN last" for name, column in _CLOSED.items()},
            {name: f"PUNCTUATED BY ({column}) WHEN last" for name, column in _ALSO_CLOSED.items()},
            "SELECT ISTREAM(S1.a, S2.b, S3.c) FROM S1, S2, S3 WHERE S1.b = S2.b AND S2.c = S3.c AND S3.a = S1.a",
        ),
    )


def variants(workload: Workload) -> tuple[Variant, ...]:
    """The ways to run a workload: the triangle also with more schemes, the auction with other lifespans."""
    shared = (
        Variant("no punctuations", "none"),
        Variant("lazy"),
        Variant("eager", changed=lambda purge: replace(purge, sweeps="eager")),
    )
    if workload.more:
        return (
            *shared,
            Variant("all schemes, lazy", "all"),
            Variant("all schemes, eager", "all", lambda purge: replace(purge, sweeps="eager")),
        )
    lifespan = workload.data["items"].count() // 4
    return (
        *shared,
        Variant("punctuations dropped at once", changed=lambda purge: _lasting(purge, 0)),
        Variant(f"lifespan of {lifespan:,}", changed=lambda purge: _lasting(purge, lifespan)),
        Variant("punctuations kept for ever", changed=lambda purge: _lasting(purge, _FOR_EVER)),
    )


def _lasting(purge: Purge, lifespan: int) -> Purge:
    """A purge whose punctuations nothing counters: so many are kept that no stored row needs."""
    alone = tuple(PunctuationPurge(each.partners, ()) for each in purge.punctuation_purges)
    return replace(purge, punctuation_purges=alone, lifespan=lifespan)


def reproduce(
    scale: int = 5, *, on_progress: Callable[[str], None] = lambda what: None
) -> PunctuationReproduction:
    """Runs both workloads in every way and judges the document's sentences."""
    runs = []
    trees = ""
    for workload in workloads(scale):
        tables = {name: stream.table() for name, stream in workload.data.streams.items()}
        for variant in variants(workload):
            on_progress(f"{workload.name}, {variant.name}")
            runs.append(measure(workload, variant, tables))
        require_same([each.results for each in runs if each.workload == workload.name], workload.name)
        if workload.name == "triangle":
            trees = _safe_trees(workload.asked("fewest"))
    return PunctuationReproduction(tuple(runs), tuple(_claims(runs, trees)))


def _safe_trees(query: Query) -> str:
    """How the gate judges a query, and how many trees of two-way joins could forget as its one join does."""
    (plans,) = query.join_plans
    assert plans.trees is not None
    return f"{query.judged.kind}, {plans.trees[0]} of {plans.trees[1]} trees are safe"


def measure(workload: Workload, variant: Variant, tables: Mapping[str, pa.Table]) -> StateGrowth:
    """One run, looked at after every step."""
    compiled = compile_query(workload.asked(variant.promises).planned, allow_unbounded=True)
    compiled = replace(compiled, graph=_with(compiled.graph, variant.changed))
    run = watch(compiled, tables, STEP_ROWS, _look)
    return StateGrowth(
        workload.name,
        variant.name,
        run.rows,
        run.sizes["state"],
        run.sizes["joined"],
        run.sizes["closed"],
        run.seconds,
        run.results[-1],
    )


def _look(state: QueryState) -> Mapping[str, int]:
    (join,) = (each for each in state.states.values() if isinstance(each, JoinState))
    return {
        "state": state.metrics.state_rows,
        "joined": sum(store.rows for store in join.stores),
        "closed": 0 if join.closings is None else join.closings.rows,
    }


def _with(graph: OperatorGraph, changed: Callable[[Purge], Purge]) -> OperatorGraph:
    """The graph with its join forgetting in another way."""
    steps = tuple(
        replace(step, kernel=replace(step.kernel, purge=changed(step.kernel.purge)))
        if isinstance(step, KernelStep) and isinstance(step.kernel, Join) and step.kernel.purge
        else step
        for step in graph.steps
    )
    return replace(graph, steps=steps)


def _claims(runs: Sequence[StateGrowth], trees: str) -> Iterator[Claim]:
    found = {(each.workload, each.variant): each for each in runs}
    for section, workload in (("1", "auction"), ("3.2", "triangle")):
        without, purged = (found[workload, name].joined_rows for name in ("no punctuations", "eager"))
        grows, stays = growth(without), growth(purged)
        yield Claim(
            f"Section {section}, {workload}: without punctuations all rows stay for ever, with them they do not",
            "unbounded, bounded",
            f"{grows:.1f}× and {stays:.1f}×; at most {max(without):,} and {max(purged):,} rows",
            grows > _GROWN > stays,
        )
    yield Claim(
        "Section 4, triangle: safe as one join, unsafe as any tree of two-way joins",
        "safe, no tree",
        trees,
        trees.startswith(("bounded", "conditional")) and ", 0 of " in trees,
    )
    for workload in ("auction", "triangle"):
        lazy, eager = found[workload, "lazy"], found[workload, "eager"]
        more = (max(lazy.joined_rows) + max(lazy.closed_values)) / (
            max(eager.joined_rows) + max(eager.closed_values)
        )
        yield Claim(
            f"Section 5.2, {workload}: eager purge needs less memory than lazy",
            "less",
            f"lazy keeps {more:.1f}× at its peak",
            more > 1,
        )
        slower = eager.seconds / lazy.seconds
        yield Claim(
            f"Section 5.2, {workload}: lazy purge has the higher throughput",
            "higher",
            f"{1e3 * lazy.seconds:.1f} against {1e3 * eager.seconds:.1f} ms, {slower:.2f}×",
            slower > 1,
        )
    yield from _choices(found["triangle", "eager"], found["triangle", "all schemes, eager"])
    yield from _lifespans({each.variant: each for each in runs if each.workload == "auction"})


def _choices(fewest: StateGrowth, every: StateGrowth) -> Iterator[Claim]:
    yield Claim(
        "Section 5.2: with all schemes less data is kept than with the fewest",
        "less data",
        f"{max(every.joined_rows):,} against {max(fewest.joined_rows):,} rows",
        max(every.joined_rows) < max(fewest.joined_rows),
    )
    yield Claim(
        "Section 5.2: with all schemes more punctuations are kept, and looked at",
        "more punctuations, more time",
        f"{max(every.closed_values):,} against {max(fewest.closed_values):,} values, "
        f"{1e3 * every.seconds:.1f} against {1e3 * fewest.seconds:.1f} ms",
        max(every.closed_values) > max(fewest.closed_values) and every.seconds > fewest.seconds,
    )

    yield Claim(
        "Section 5.1: to purge punctuations as well as data takes more schemes",
        "more schemes",
        f"punctuations {growth(fewest.closed_values):.1f}× with the fewest, "
        f"{growth(every.closed_values):.1f}× with all",
        growth(fewest.closed_values) > _GROWN > growth(every.closed_values),
    )


def _lifespans(auction: Mapping[str, StateGrowth]) -> Iterator[Claim]:
    countered, dropped = auction["lazy"], auction["punctuations dropped at once"]
    for_ever = auction["punctuations kept for ever"]
    (lasting,) = (each for name, each in auction.items() if name.startswith("lifespan"))
    yield Claim(
        "Section 5.1: a punctuation dropped after its use leaves later rows for ever",
        "not acceptable",
        f"{growth(dropped.joined_rows):.1f}×, at most {max(dropped.joined_rows):,} rows, "
        f"{max(countered.joined_rows):,} if it stays",
        growth(dropped.joined_rows) > _GROWN,
    )
    yield Claim(
        "Section 5.1: punctuations kept for ever need memory without end",
        "unbounded",
        f"{growth(for_ever.closed_values):.1f}×, {for_ever.closed_values[-1]:,} at the end",
        growth(for_ever.closed_values) > _GROWN,
    )
    yield Claim(
        "Section 5.1: punctuations of the other stream purge them",
        "bounded",
        f"{growth(countered.closed_values):.1f}×, at most {max(countered.closed_values):,}",
        growth(countered.closed_values) < _GROWN,
    )
    yield Claim(
        "Section 5.1: a lifespan does where nothing counters them",
        "bounded",
        f"{growth(lasting.closed_values):.1f}×, at most {max(lasting.closed_values):,} beside "
        f"{max(lasting.joined_rows):,} rows",
        max(growth(lasting.closed_values), growth(lasting.joined_rows)) < _GROWN,
    )


def draw(found: PunctuationReproduction, path: Path) -> None:
    """State over rows read: both workloads, then their joins under eager and lazy purge, then closed values."""
    with figure(path, rows=2, columns=3, width=15.0, height=8.0) as axes:
        for across, workload in enumerate(("auction", "triangle")):
            runs = [each for each in found.runs if each.workload == workload]
            whole, near = axes[0][across], axes[1][across]
            for each in runs[:2]:
                whole.plot(each.rows, each.state_rows, label=each.variant)
            for each in runs[1:]:
                if "punctuations" not in each.variant and "lifespan" not in each.variant:
                    near.plot(each.rows, each.joined_rows, label=each.variant, linewidth=1)
            whole.set(title=f"{workload}: state", xlabel="rows read", ylabel="rows kept")
            near.set(title=f"{workload}: rows of the join's inputs", xlabel="rows read", ylim=(0, None))
        kept = [each for each in found.runs if each.workload == "auction"][1:]
        for each in kept:
            if each.variant != "eager":
                axes[0][2].plot(each.rows, each.closed_values, label=each.variant)
                axes[1][2].plot(each.rows, each.joined_rows, label=each.variant)
        axes[0][2].set(title="auction: punctuations kept", xlabel="rows read")
        axes[1][2].set(title="auction: rows kept by what becomes of punctuations", xlabel="rows read")
        for panel in axes.flat:
            panel.legend(fontsize=7, frameon=False)
