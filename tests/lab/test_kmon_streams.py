"""The k-Mon document's synthetic streams keep to their constraints, and would not with a smaller k."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.lab.generators import Arrival, KMon, Varying
from headgate.lab.generators.kmon import EDGES, FILTERS, RISES_AND_DROPS, Edge, Graph
from headgate.model.time import MILLISECOND, SECOND

CYCLES = 400
GRAPHS: list[Graph] = ["a", "b", "c"]


def rows_of(data: KMon, stream: str) -> pl.DataFrame:
    found = pl.from_arrow(data[stream].table())
    assert isinstance(found, pl.DataFrame)
    return found


def join_distances(data: KMon, edge: Edge) -> pl.DataFrame:
    """The parents that have a child, with the number of child rows that come after them and up to it."""
    parent, child = rows_of(data, edge.parent), rows_of(data, edge.child)
    pairs = parent.join(child, on=edge.column, suffix="_child")
    came = child["id"].to_numpy()
    up_to = [np.searchsorted(came, pairs[name].to_numpy(), side="right") for name in ("id_child", "id")]
    return pairs.with_columns(pl.Series("distance", np.maximum(0, up_to[0] - up_to[1])))


def clustering_distance(values: list[int], value: int) -> int:
    """The most rows with other values between two rows with this one."""
    places = [place for place, each in enumerate(values) if each == value]
    return places[-1] - places[0] + 1 - len(places)


def scrambling_distances(values: pl.Series) -> list[int]:
    """For each row, the number of rows up to it from the first that was greater."""
    all_values = values.to_numpy()
    greater = [np.flatnonzero(all_values[:place] > value) for place, value in enumerate(all_values)]
    return [place - int(found[0]) if found.size else 0 for place, found in enumerate(greater)]


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("k", [0, 1, 30])
def test_children_come_within_k_rows_at_distances_that_are_spread_evenly(graph: Graph, k: int) -> None:
    data = KMon(graph, CYCLES, (Arrival(join=k),))
    for edge in EDGES[graph]:
        distance = join_distances(data, edge)["distance"]
        assert distance.max() == k
        assert set(distance) == set(range(k + 1))
        assert distance.mean() == pytest.approx(k / 2, abs=0.7)


@pytest.mark.parametrize("k", [0, 1, 3, 40])
def test_equal_values_of_parents_have_at_most_k_others_between_them(k: int) -> None:
    data = KMon("b", CYCLES, (Arrival(clustered=k),))
    for parent in ("S1", "S2"):
        values = rows_of(data, parent)["a"].to_list()
        # Values whose rows reach beyond the end are shorter.
        distances = [clustering_distance(values, value) for value in values[: -10 * (k + 1)]]
        assert max(distances) == k
        assert np.mean(distances) == pytest.approx(k / 2, rel=0.3)


@pytest.mark.parametrize("k", [0, 1, 3, 40])
def test_values_of_parents_are_in_order_up_to_k_rows(k: int) -> None:
    data = KMon("b", CYCLES, (Arrival(ordered=k),))
    for parent in ("S1", "S2"):
        distances = scrambling_distances(rows_of(data, parent)["a"])
        assert 0.9 * k <= max(distances) <= k


@pytest.mark.parametrize("arrival", [Arrival(clustered=40), Arrival(ordered=40)])
def test_where_parents_are_arranged_their_child_has_come_before_them(arrival: Arrival) -> None:
    data = KMon("b", CYCLES, (arrival,))
    for edge in EDGES["b"]:
        pairs = join_distances(data, edge)
        assert pairs.height == rows_of(data, edge.parent).height
        assert pairs["distance"].max() == 0


@pytest.mark.parametrize("k", [0, 1, 3, 40])
def test_values_of_children_are_in_order_up_to_k_rows_and_parents_come_before_and_after_them(k: int) -> None:
    data = KMon("c", CYCLES, (Arrival(child_ordered=k),))
    distances = scrambling_distances(rows_of(data, "S2")["a"])
    assert 0.9 * k <= max(distances) <= k
    late = join_distances(data, EDGES["c"][0])["distance"]
    assert late.max() == k
    if k > 1:
        assert 0.3 < (late == 0).mean() < 0.8


def test_clusters_and_referential_integrity_hold_together() -> None:
    """The streams of the document's Figure 11."""
    data = KMon("c", CYCLES, (Arrival(join=25, clustered=60),), multiplicity=2)
    values = rows_of(data, "S1")["a"].to_list()
    assert max(clustering_distance(values, value) for value in values) == 60
    first = join_distances(data, EDGES["c"][0]).sort("id").unique("a", keep="first")
    assert first["distance"].max() == 25
    assert 8 < first["distance"].mean() < 17


def test_joins_of_one_query_may_arrive_in_different_ways() -> None:
    """The streams of the document's Figure 10."""
    data = KMon("a", CYCLES, (Arrival(clustered=0), Arrival(child_ordered=30, dangling=0.25)))
    parents = rows_of(data, "S1")
    values = parents["a"].to_list()
    assert max(clustering_distance(values, value) for value in values) == 0
    assert 27 <= max(scrambling_distances(rows_of(data, "S3")["b"])) <= 30
    with_child = parents.join(rows_of(data, "S3"), on="b", how="semi").height
    # Beside those that dangle, those whose child would come after the end.
    assert with_child / parents.height == pytest.approx(0.75, abs=0.05)


ks = st.integers(0, 25)
dangling = st.sampled_from([0.0, 0.3])
some_arrivals = st.one_of(
    st.builds(Arrival, join=ks, dangling=dangling),
    st.builds(Arrival, join=ks, clustered=ks, dangling=dangling),
    st.builds(Arrival, join=ks, ordered=ks, dangling=dangling),
    st.builds(Arrival, child_ordered=ks, dangling=dangling),
)


@given(st.tuples(some_arrivals, some_arrivals), st.integers(1, 6), st.integers(0, 60), st.integers(0, 99))
def test_no_row_breaks_a_constraint(
    arrivals: tuple[Arrival, Arrival], multiplicity: int, cycles: int, seed: int
) -> None:
    data = KMon("a", cycles, arrivals, multiplicity, seed=seed)
    for edge, arrival in zip(EDGES["a"], arrivals, strict=True):
        parents, children = rows_of(data, edge.parent)[edge.column], rows_of(data, edge.child)[edge.column]
        assert children.is_unique().all()
        if arrival.clustered is not None:
            values = parents.to_list()
            assert max((clustering_distance(values, each) for each in values), default=0) <= arrival.clustered
        if arrival.ordered is not None:
            assert max(scrambling_distances(parents), default=0) <= arrival.ordered
        if arrival.child_ordered is not None:
            assert max(scrambling_distances(children), default=0) <= arrival.child_ordered
        else:
            distance = join_distances(data, edge)["distance"]
            assert distance.is_empty() or distance.max() <= arrival.join


@pytest.mark.parametrize("arrival", [Arrival(join=30), Arrival(clustered=20), Arrival(child_ordered=20)])
def test_a_quarter_of_the_parents_may_dangle(arrival: Arrival) -> None:
    data = KMon("c", 2_000, (replace(arrival, dangling=0.25),))
    parents = rows_of(data, "S1")
    # Before those whose child comes after the end.
    early = parents.head(parents.height - 5 * 100)
    without = early.join(rows_of(data, "S2"), on="a", how="anti")
    assert without.height / early.height == pytest.approx(0.25, abs=0.03)


@pytest.mark.parametrize(
    "arrival", [Arrival(clustered=40), Arrival(ordered=40), Arrival(clustered=9, join=7)]
)
@pytest.mark.parametrize("multiplicity", [1, 2, 5])
def test_where_parents_are_arranged_each_child_has_as_many_as_wanted(
    arrival: Arrival, multiplicity: int
) -> None:
    data = KMon("c", CYCLES, (arrival,), multiplicity=multiplicity)
    parents, children = rows_of(data, "S1"), rows_of(data, "S2")
    counts = Counter(parents["a"])
    # The last values are cut off where one of the streams begins later.
    whole = children["a"].head(children.height - 60)
    assert {counts[value] for value in whole} <= {multiplicity, 0}
    assert np.mean([counts[value] for value in whole]) == pytest.approx(multiplicity, rel=0.1)
    assert children["a"].is_unique().all()


@pytest.mark.parametrize("arrival", [Arrival(join=30), Arrival(child_ordered=30)])
def test_parents_that_choose_a_child_are_as_many_on_average(arrival: Arrival) -> None:
    data = KMon("c", CYCLES, (arrival,))
    counts = Counter(rows_of(data, "S1")["a"])
    children = rows_of(data, "S2")["a"][60:-60]
    assert np.mean([counts[value] for value in children]) == pytest.approx(5, rel=0.05)


@pytest.mark.parametrize("graph", GRAPHS)
def test_half_of_the_children_pass_a_filter_at_fifty(graph: Graph) -> None:
    data = KMon(graph, 5_000)
    for stream, column in FILTERS[graph].items():
        values = rows_of(data, stream)[column]
        assert (values.min(), values.max()) == (0, 99)
        assert (values < 50).mean() == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("arrival", [Arrival(), Arrival(clustered=30)])
def test_a_range_holds_so_many_rows_of_a_stream(graph: Graph, arrival: Arrival) -> None:
    data = KMon(graph, CYCLES, (arrival,), step=3 * MILLISECOND)
    for stream, rows in {"S1": 200, "S2": 200 if graph == "b" else 40}.items():
        window = data.window(stream, rows)
        instants = rows_of(data, stream)["ts"].cast(pl.Int64).to_numpy()
        for last in range(rows, instants.size, 7):
            inside = (instants > instants[last] - window) & (instants <= instants[last])
            assert inside.sum() == rows


def test_every_step_brings_one_row() -> None:
    data = KMon("a", CYCLES, (Arrival(join=9),))
    ids = np.concatenate([rows_of(data, stream)["id"].to_numpy() for stream in data.streams])
    assert np.array_equal(np.sort(ids), np.arange(CYCLES * data.per_cycle))
    first = rows_of(data, "S1")
    assert (first["ts"].cast(pl.Int64) - data.start == first["id"] * MILLISECOND).all()


def distances_over_time(
    arrival: Arrival, graph: Graph
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The distances of rows, and the k of the run at the time of each."""
    data = KMon(graph, 2_000, (arrival,))
    if arrival.join:
        pairs = join_distances(data, EDGES[graph][0])
        return pairs["distance"].to_numpy(), pairs["id"].to_numpy() // data.per_cycle
    rows = rows_of(data, "S1")
    return np.array(scrambling_distances(rows["a"])), rows["id"].to_numpy() // data.per_cycle


@pytest.mark.parametrize("constraint", ["join", "ordered"])
def test_k_may_change_in_the_course_of_a_run(constraint: str) -> None:
    k = Varying(((0.0, 20), (0.4, 20), (0.5, 120), (0.7, 120), (0.72, 40), (1.0, 40)))
    arrival = Arrival(join=k) if constraint == "join" else Arrival(ordered=k)
    distances, cycle = distances_over_time(arrival, "c" if constraint == "join" else "b")
    steady, high, low = (
        (cycle > begin) & (cycle < end) for begin, end in ((60, 790), (1_060, 1_390), (1_520, 1_990))
    )
    assert 18 <= distances[steady].max() <= 20
    assert 110 <= distances[high].max() <= 120
    assert 36 <= distances[low].max() <= 40


def test_the_documents_variation_is_steady_gradual_and_quick() -> None:
    parts, values = zip(*RISES_AND_DROPS.points, strict=True)
    steps = [(b - a, w - v) for a, b, v, w in zip(parts, parts[1:], values, values[1:], strict=False)]
    assert {np.sign(change) for over, change in steps if over < 0.05} == {1, -1}
    assert {np.sign(change) for over, change in steps if over >= 0.05} == {0, 1, -1}


def test_impossible_streams_are_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        Arrival(join=-1)
    with pytest.raises(ValueError, match="one way"):
        Arrival(clustered=1, ordered=1)
    with pytest.raises(ValueError, match="arrival for each"):
        KMon("a", arrivals=(Arrival(), Arrival(), Arrival()))
    with pytest.raises(ValueError, match="alike"):
        KMon("b", arrivals=(Arrival(), Arrival(join=3)))
    with pytest.raises(ValueError, match="in order"):
        Varying(((0.5, 1), (0.2, 1)))
    with pytest.raises(ValueError, match="whole number"):
        KMon("c").window("S1", 7)
    assert KMon("c", step=SECOND).window("S1", 10) == 12 * SECOND
