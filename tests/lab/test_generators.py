"""Generated streams: the same rows however they are read, and the properties that experiments rely on."""

from __future__ import annotations

import gzip
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.lab.generators import (
    TABLE_5_3,
    TABLE_5_5,
    TABLE_5_6,
    Arrival,
    Auction,
    Backbone,
    Dataset,
    GeneratedStream,
    KMon,
    LinearRoad,
    Network,
    StreamShape,
    Synthetic,
    Triangle,
    read_zeek,
)
from headgate.lab.generators.draw import Choice, zipf
from headgate.lab.generators.merge import in_order, stable_order
from headgate.model.errors import DataError, InputError
from headgate.model.time import MINUTE, SECOND

PROJECT = Path(__file__).parents[2]

SMALL: list[Dataset] = [
    Auction(items=50),
    Auction(items=50, disorder=5 * SECOND),
    Network(rows=500),
    Backbone(seconds=0.1),
    LinearRoad(cars=50),
    Synthetic(steps=500),
    Triangle(rows=500),
    KMon(cycles=100, arrivals=(Arrival(join=20),)),
    KMon(graph="b", cycles=50, arrivals=(Arrival(clustered=20),)),
]
DISORDERED = Auction(items=60_000, items_per_second=100, disorder=30 * SECOND)
SEVERAL_BLOCKS: list[Dataset] = [
    Auction(items=60_000, items_per_second=100),
    DISORDERED,
    Network(rows=600_000, links=1),
    Backbone(seconds=60),
    LinearRoad(cars=30_000),
    Synthetic(steps=600_000),
    Triangle(rows=300_000),
]
ENDLESS: list[Dataset] = [
    Auction(items=10**12),
    Network(rows=10**12),
    Backbone(seconds=1e9),
    LinearRoad(cars=10**12),
    Synthetic(steps=10**12),
]


def each_stream(datasets: list[Dataset]) -> list[object]:
    return [
        pytest.param(stream, id=f"{type(dataset).__name__}{place}-{name}")
        for place, dataset in enumerate(datasets)
        for name, stream in dataset.streams.items()
    ]


def frame(stream: GeneratedStream) -> pl.DataFrame:
    """A stream with its times as whole microseconds."""
    table = pl.from_arrow(stream.table())
    assert isinstance(table, pl.DataFrame)
    return table.with_columns(pl.col("ts").dt.epoch("us"))


# -- any stream -----------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", each_stream(SMALL + SEVERAL_BLOCKS))
def test_rows_have_the_declared_types_and_are_as_many_as_announced(stream: GeneratedStream) -> None:
    table = stream.table()
    table.validate(full=True)
    assert table.schema == stream.schema
    assert table.schema.field("ts").type == pa.timestamp("us", tz="UTC")
    assert table.num_rows == stream.count() > 0
    assert all(column.null_count == 0 for column in table.columns)


@pytest.mark.parametrize("stream", each_stream(SMALL))
def test_a_stream_can_be_made_again(stream: GeneratedStream) -> None:
    assert stream.table() == stream.table()


@pytest.mark.parametrize("dataset", SMALL, ids=lambda dataset: type(dataset).__name__)
def test_another_seed_gives_other_rows(dataset: Dataset) -> None:
    other = replace(dataset, seed=1)  # type: ignore[type-var]
    for name in dataset.streams:
        assert dataset[name].table() != other[name].table()


@pytest.mark.parametrize("stream", each_stream(SEVERAL_BLOCKS))
@pytest.mark.parametrize("rows_per_chunk", [77_777, 10**9])
def test_the_chunk_size_does_not_matter(stream: GeneratedStream, rows_per_chunk: int) -> None:
    chunks = list(stream.chunks(rows_per_chunk))
    assert all(chunk.num_rows == rows_per_chunk for chunk in chunks[:-1])
    assert pa.concat_tables(chunks) == stream.table()


@pytest.mark.parametrize("stream", each_stream([each for each in SEVERAL_BLOCKS if each != DISORDERED]))
def test_rows_of_several_blocks_are_in_time_order(stream: GeneratedStream) -> None:
    assert frame(stream)["ts"].is_sorted()


@given(rows_per_chunk=st.integers(1, 600))
@settings(max_examples=20)
def test_chunks_of_a_small_stream(rows_per_chunk: int) -> None:
    stream = Network(rows=500)["link1"]
    chunks = list(stream.chunks(rows_per_chunk))
    assert len(chunks) == -(-500 // rows_per_chunk)
    assert pa.concat_tables(chunks) == stream.table()


@pytest.mark.parametrize("stream", each_stream(ENDLESS))
def test_a_stream_without_end_begins_at_once(stream: GeneratedStream) -> None:
    assert next(stream.chunks(10)).num_rows == 10


@pytest.mark.parametrize(
    "dataset",
    [Auction(items=0), Network(rows=0), Backbone(seconds=0), LinearRoad(cars=0), Synthetic(steps=0)],
    ids=lambda dataset: type(dataset).__name__,
)
def test_a_stream_may_be_empty(dataset: Dataset, tmp_path: Path) -> None:
    for name, paths in dataset.write(tmp_path).items():
        assert dataset[name].table() == dataset[name].schema.empty_table()
        assert list(dataset[name].chunks(10)) == []
        assert pyarrow.parquet.read_table(paths[0]).schema == dataset[name].schema


@pytest.mark.parametrize("files", [1, 4])
@pytest.mark.parametrize("dataset", SMALL, ids=lambda dataset: type(dataset).__name__)
def test_parquet_files_hold_the_stream_in_order(dataset: Dataset, files: int, tmp_path: Path) -> None:
    for name, paths in dataset.write(tmp_path, "parquet", files).items():
        parts = [pyarrow.parquet.read_table(path) for path in paths]
        assert sorted((tmp_path / name).iterdir()) == list(paths)
        assert pa.concat_tables(parts) == dataset[name].table()
        assert max(part.num_rows for part in parts) - min(part.num_rows for part in parts) <= 1


@pytest.mark.parametrize("dataset", SMALL, ids=lambda dataset: type(dataset).__name__)
def test_csv_files_hold_the_stream_in_order(dataset: Dataset, tmp_path: Path) -> None:
    for name, paths in dataset.write(tmp_path, "csv", files=3).items():
        types = pyarrow.csv.ConvertOptions(column_types=dataset[name].schema)
        parts = [pyarrow.csv.read_csv(path, convert_options=types) for path in paths]
        assert len(parts) == 3
        assert pa.concat_tables(parts) == dataset[name].table()


def test_a_file_of_several_blocks(tmp_path: Path) -> None:
    stream = SEVERAL_BLOCKS[0]["bids"]
    paths = stream.write(tmp_path, files=2)
    assert pa.concat_tables([pyarrow.parquet.read_table(path) for path in paths]) == stream.table()


def test_writing_does_not_mix_with_what_is_there(tmp_path: Path) -> None:
    Network(rows=10, links=1).write(tmp_path)
    with pytest.raises(InputError, match="link1 is not empty"):
        Network(rows=10, links=1).write(tmp_path)


def test_impossible_requests_are_refused(tmp_path: Path) -> None:
    stream = Network(rows=10)["link1"]
    with pytest.raises(ValueError, match="at least one row"):
        stream.chunks(0)
    with pytest.raises(ValueError, match="at least one file"):
        stream.write(tmp_path, files=0)
    with pytest.raises(ValueError, match="parquet, csv"):
        stream.write(tmp_path, "orc")  # type: ignore[arg-type]


# -- draws and merges -----------------------------------------------------------------------------


@given(
    weights=st.lists(st.floats(0, 100), min_size=1, max_size=40).filter(lambda weights: sum(weights) > 0.1),
    seed=st.integers(0, 1000),
)
def test_a_choice_follows_its_weights(weights: list[float], seed: int) -> None:
    draws = 20_000
    drawn = Choice(np.array(weights)).draw(np.random.default_rng(seed), draws)
    seen, wanted = np.bincount(drawn, minlength=len(weights)) / draws, np.array(weights) / sum(weights)
    assert len(seen) == len(weights)
    assert (seen[wanted == 0] == 0).all()
    # Six standard deviations of a share.
    assert (np.abs(seen - wanted) <= 6 * np.sqrt(wanted * (1 - wanted) / draws) + 1e-3).all()


def test_zipf_weights_fall_with_the_rank() -> None:
    assert zipf(4, 1.0).tolist() == [1, 1 / 2, 1 / 3, 1 / 4]
    assert zipf(3, 0.0).tolist() == [1, 1, 1]


@given(st.lists(st.one_of(st.integers(0, 5), st.integers(-(2**62), 2**62 - 1)), max_size=60))
def test_stable_order_sorts_and_keeps_ties_in_place(keys: list[int]) -> None:
    order = stable_order(np.array(keys, dtype=np.int64))
    assert order.tolist() == sorted(range(len(keys)), key=keys.__getitem__)


def test_stable_order_keeps_many_ties_in_place_when_the_keys_are_far_apart() -> None:
    keys = np.random.default_rng(0).choice(np.array([-(2**62), 0, 2**62]), 5_000)
    assert stable_order(keys).tolist() == sorted(range(5_000), key=keys.tolist().__getitem__)


@given(st.lists(st.lists(st.integers(0, 30), max_size=8), max_size=8))
def test_merged_blocks_are_sorted_and_ties_keep_their_order(later: list[list[int]]) -> None:
    # Block b starts at 5 b, and the next one's start is its floor.
    blocks = [np.array([5 * b + late for late in lates], dtype=np.int64) for b, lates in enumerate(later)]
    numbers = np.split(np.arange(sum(map(len, later))), np.cumsum([len(lates) for lates in later]))
    floors = [5 * (b + 1) for b in range(len(later))]
    rows = [({"t": t, "n": n}, floor) for t, n, floor in zip(blocks, numbers, floors, strict=False)]

    merged = list(in_order(rows, by="t"))

    everything = [row for columns, _ in rows for row in zip(columns["t"], columns["n"], strict=True)]
    assert [row for columns, _ in merged for row in zip(columns["t"], columns["n"], strict=True)] == sorted(
        everything
    )
    for (columns, floor), (following, _) in pairwise(merged):
        assert (columns["t"] < floor).all()
        assert (following["t"] >= floor).all()


# -- auction --------------------------------------------------------------------------------------

auctions = st.builds(
    Auction,
    items=st.integers(1, 200),
    mean_bids=st.floats(0, 30),
    mean_duration=st.integers(SECOND, 30 * MINUTE),
    items_per_second=st.floats(0.01, 1e6),
    disorder=st.integers(0, 5 * MINUTE),
    seed=st.integers(0, 2**32),
)


def check_auction(auction: Auction) -> None:
    items, bids = frame(auction["items"]), frame(auction["bids"]).with_row_index("arrival")
    assert items["itemid"].to_list() == list(range(1, auction.items + 1))
    assert items["ts"].is_sorted()

    closings = bids.filter("closing")
    assert sorted(closings["itemid"]) == items["itemid"].to_list()
    assert set(closings["increase"]) == {0.0}

    of_item = bids.join(items, on="itemid", suffix="_opened").join(closings, on="itemid", suffix="_closed")
    assert of_item.height == bids.height
    assert of_item.filter(pl.col("ts") <= pl.col("ts_opened")).is_empty()
    ordinary = of_item.filter(~pl.col("closing"))
    assert (ordinary["increase"] > 0).all()
    assert ordinary.filter(pl.col("ts") >= pl.col("ts_closed")).is_empty()
    assert ordinary.filter(pl.col("arrival") >= pl.col("arrival_closed")).is_empty()

    late = (bids["ts"].cum_max() - bids["ts"]).max()
    assert isinstance(late, int)
    assert late <= auction.disorder


@given(auctions)
def test_an_item_is_closed_once_and_last_and_no_bid_is_later_than_the_disorder_allows(
    auction: Auction,
) -> None:
    check_auction(auction)


def test_the_same_holds_across_blocks() -> None:
    check_auction(DISORDERED)


def test_disorder_changes_the_order_and_nothing_else() -> None:
    ordered = Auction(items=5_000)["bids"].table()
    disordered = Auction(items=5_000, disorder=5 * SECOND)["bids"].table()
    assert ordered.column("bidid").to_pylist() == list(range(1, ordered.num_rows + 1))
    assert disordered != ordered
    assert disordered.sort_by("bidid") == ordered


def test_bids_are_as_many_as_wanted_and_few_items_get_many_of_them() -> None:
    bids = frame(Auction(items=20_000, mean_bids=8)["bids"]).filter(~pl.col("closing"))
    per_item = bids.group_by("itemid").len().sort("len", descending=True)["len"]
    assert bids.height / 20_000 == pytest.approx(8, rel=0.1)
    assert per_item.head(2_000).sum() > 0.4 * bids.height
    assert per_item.len() < 19_000, "some items get no bid at all"


def test_auctions_last_as_long_as_wanted_and_overlap() -> None:
    auction = Auction(items=20_000, mean_duration=10 * MINUTE, items_per_second=5)
    items, closings = frame(auction["items"]), frame(auction["bids"]).filter("closing")
    lasting = items.join(closings, on="itemid", suffix="_closed").select(pl.col("ts_closed") - pl.col("ts"))
    assert lasting.to_series().mean() == pytest.approx(10 * MINUTE, rel=0.05)
    noon = auction.start + 2_000 * SECOND
    is_open = items.filter(pl.col("ts") <= noon).height - closings.filter(pl.col("ts") <= noon).height
    assert is_open == pytest.approx(5 * 600, rel=0.1)


# -- network --------------------------------------------------------------------------------------


def test_links_bring_a_row_a_second() -> None:
    for stream in Network(rows=20_000).streams.values():
        ts = frame(stream)["ts"]
        assert ts.is_sorted()
        assert (ts[-1] - ts[0]) / SECOND == pytest.approx(20_000, rel=0.01)


def test_a_join_on_the_source_has_ten_times_as_many_rows_for_telnet_as_for_ftp() -> None:
    network = Network(rows=100_000)
    link1, link2 = frame(network["link1"]), frame(network["link2"])

    def results(protocol: str) -> int:
        left, right = (
            link.filter(pl.col("protocol") == protocol).group_by("source").len() for link in (link1, link2)
        )
        joined = left.join(right, on="source").select(pl.col("len").cast(pl.Int64) * pl.col("len_right"))
        return int(joined.to_series().sum())

    assert results("telnet") / results("ftp") == pytest.approx(10, rel=0.1)


def test_a_link_has_most_sources_of_the_one_before_and_no_others() -> None:
    network = Network(rows=200_000)
    sources = [set(frame(stream)["source"]) for stream in network.streams.values()]
    assert [len(each) for each in sources] == pytest.approx([2000, 1840, 1693], abs=5)
    assert sources[0] > sources[1] > sources[2]


def test_links_have_destinations_of_their_own_and_a_source_has_few() -> None:
    network = Network(rows=50_000, fan_out=4)
    link1, link2 = frame(network["link1"]), frame(network["link2"])
    assert not set(link1["destination"]) & set(link2["destination"])
    assert link1.group_by("source").agg(pl.col("destination").n_unique())["destination"].max() == 4


def test_few_sources_send_much() -> None:
    per_source = (
        frame(Network(rows=100_000, skew=1.0)["link1"]).group_by("source").len()["len"].sort(descending=True)
    )
    harmonic = sum(1 / rank for rank in range(1, 2001))
    assert per_source[0] / 100_000 == pytest.approx(1 / harmonic, rel=0.05)
    assert per_source[9] / 100_000 == pytest.approx(0.1 / harmonic, rel=0.15)


@pytest.mark.parametrize("seconds", [2_000, 4_000, 8_000])
def test_two_rows_in_five_leave_a_negation_before_their_window_ends(seconds: int) -> None:
    network, window = Network(rows=200_000), seconds * SECOND
    sources = pl.Enum(sorted(set(frame(network["link1"])["source"])))
    # Source and time in one number, sorted: rows of a source within a window are a range of places.
    stride = 4 * 200_000 * SECOND
    first, second = (
        np.sort(
            (
                rows["source"].cast(sources).to_physical().cast(pl.Int64) * stride
                + (rows["ts"] - network.start)
                + 200_000 * SECOND
            ).to_numpy()
        )
        for rows in (frame(network["link1"]), frame(network["link2"]))
    )
    unmatched = np.diff(second, prepend=-stride) > window
    begins = second[unmatched]
    ended_early = (np.searchsorted(first, begins) - np.searchsorted(first, begins - window)).sum()
    lived_out = (np.searchsorted(second, first + window) == np.searchsorted(second, first)).sum()
    assert ended_early / (ended_early + lived_out) == pytest.approx(0.4, abs=0.07)


# -- backbone -------------------------------------------------------------------------------------


def test_a_packet_is_seen_on_one_link_after_the_other_within_the_delay() -> None:
    backbone = Backbone(seconds=20, delays=(300_000, 50_000))
    c, b, o = (frame(backbone[name]) for name in "CBO")
    for rows, rate in ((c, 1_000), (b, 10_000), (o, 1_000)):
        assert rows["ts"].is_sorted()
        assert rows["pid"].is_unique().all()
        assert rows.height == pytest.approx(20 * rate, rel=0.05)
    for earlier, later, delay in ((c, b, 300_000), (b, o, 50_000)):
        both = earlier.join(later, on="pid", suffix="_later")
        took = both["ts_later"] - both["ts"]
        assert both.height == pytest.approx(0.1 * earlier.height, rel=0.1)
        assert took.is_between(1, delay).all()
        assert took.mean() == pytest.approx(delay / 2, rel=0.05)
        assert (both["size"] == both["size_later"]).all()


def test_packets_go_on_whatever_their_way_so_far() -> None:
    backbone = Backbone(seconds=20, forwarded=(0.5, 0.1))
    c, b, o = (frame(backbone[name]) for name in "CBO")
    from_c = b.join(c, on="pid", how="semi")
    assert from_c.join(o, on="pid", how="semi").height == pytest.approx(0.1 * from_c.height, rel=0.1)
    # With these rates O carries nothing but what B forwards.
    assert o.join(b, on="pid", how="anti").is_empty()


def test_a_link_cannot_be_slower_than_what_is_forwarded_to_it() -> None:
    with pytest.raises(ValueError, match="forwarded"):
        Backbone(rates=(1_000, 10_000, 500))


# -- linear road ----------------------------------------------------------------------------------


def test_cars_report_every_30_seconds_from_entry_ramp_to_exit_ramp() -> None:
    reports = frame(LinearRoad(cars=2_000)["CarStr"])
    assert reports["ts"].is_sorted()
    assert reports.group_by("cid").len().height == 2_000
    by_car = pl.col("ts").diff().over("cid").drop_nulls()
    assert reports.select(by_car).to_series().unique().to_list() == [30 * SECOND]
    lanes = reports.group_by("cid", maintain_order=True).agg("lane")["lane"].to_list()
    assert all(lane[0] == 0 and lane[-1] == 4 and set(lane[1:-1]) <= {1, 2, 3} for lane in lanes)


def test_cars_move_with_their_speed_along_their_direction() -> None:
    reports = frame(LinearRoad(cars=2_000, stopping=0.1, xways=3)["CarStr"])
    forward = pl.when(pl.col("dir") == 0).then(1).otherwise(-1)
    moved = (pl.col("xpos").diff().over("cid") * forward == pl.col("speed") * 44).drop_nulls()
    assert reports.select(moved.all()).item()
    assert reports.select((pl.col("sid") == pl.col("xpos") // 5280).all()).item()
    assert reports["sid"].is_between(0, 99).all()
    assert set(reports["xway"]) == {0, 1, 2}
    assert reports.group_by("cid").agg(pl.col("dir").n_unique(), pl.col("xway").n_unique())["dir"].max() == 1


@pytest.mark.parametrize("stopping", [0.0, 0.2])
def test_some_cars_stop_for_several_reports(stopping: float) -> None:
    reports = frame(LinearRoad(cars=5_000, stopping=stopping, stops=(4, 6))["CarStr"])
    stops = reports.filter(pl.col("speed") == 0).group_by("cid").agg(pl.len(), pl.col("xpos").n_unique())
    assert stops.height / 5_000 == pytest.approx(stopping, abs=0.03)
    assert set(stops["len"]) == ({4, 5, 6} if stopping else set())
    assert set(stops["xpos"]) <= {1}


# -- synthetic ------------------------------------------------------------------------------------


def test_each_step_brings_one_row_to_one_stream() -> None:
    synthetic = Synthetic(TABLE_5_3, steps=30_000)
    streams = [frame(stream) for stream in synthetic.streams.values()]
    assert sorted(pl.concat(streams)["id"]) == list(range(30_000))
    for shape, rows in zip(TABLE_5_3, streams, strict=True):
        assert rows["ts"].is_sorted()
        assert rows.height / 30_000 == pytest.approx(shape.rate / 15, rel=0.1)
        assert set(rows["a"]) == set(range(1, shape.distinct + 1))
        seconds = 30_000 / 15
        assert rows.filter(pl.col("ts") < synthetic.start + seconds * SECOND).height == rows.height
        assert rows.height / seconds == pytest.approx(shape.rate, rel=0.1)


def test_time_may_count_the_steps() -> None:
    synthetic = Synthetic((StreamShape("R", 1, 5), StreamShape("S", 2, 5)), steps=100, step=SECOND)
    for stream in synthetic.streams.values():
        rows = frame(stream)
        assert (rows["ts"] == synthetic.start + rows["id"] * SECOND).all()


@pytest.mark.parametrize(
    ("table", "shapes"),
    [("5_3", TABLE_5_3), ("5_5", TABLE_5_5), ("5_6", TABLE_5_6)],
    ids=["5.3", "5.5", "5.6"],
)
def test_the_examples_give_the_statistics_that_the_generator_follows(
    table: str, shapes: tuple[StreamShape, ...]
) -> None:
    statistics = yaml.safe_load((PROJECT / "examples" / f"join_order_{table}.yaml").read_text())
    assert statistics["streams"] == {
        shape.name: {"rate": shape.rate, "distinct": {"a": shape.distinct}} for shape in shapes
    }


# -- Zeek -----------------------------------------------------------------------------------------

LOG = """\
#separator \\x09
#set_separator\t,
#empty_field\t(empty)
#unset_field\t-
#path\tdns
#open\t2024-04-12-19-29-12
#fields\tts\tuid\tid.orig_h\tid.orig_p\trtt\tquery\tcount\tAA\tanswers\tTTLs
#types\ttime\tstring\taddr\tport\tinterval\tstring\tcount\tbool\tvector[string]\tset[interval]
1521911720.865716\tCqK\t10.47.1.100\t41772\t0.000870\t"quoted\t7\tT\ta.org,b.org\t2230.000000,41830.500000
1521911719.000001\tCqL\t10.0.0.1\t53\t-\t-\t-\tF\t(empty)\t-
0.000249\tCqM\t::1\t0\t-\t(empty)\t0\t-\t-,c\t(empty)
#close\t2024-04-12-19-30-00
"""


def test_each_value_of_a_triangle_is_closed_once_by_the_last_row_that_has_it() -> None:
    triangle = Triangle(rows=3_000, open=20, uses=5)
    for name, columns in {"S1": "ab", "S2": "bc", "S3": "ca"}.items():
        rows = frame(triangle[name]).with_row_index()
        for column in columns:
            closed = rows.group_by(column).agg(
                pl.col("last").sum().alias("times"),
                pl.col("index").filter(pl.col("last")).max().alias("closing"),
                pl.col("index").max().alias("end"),
            )
            done = closed.filter(pl.col(column) < rows.height // 6)
            assert (done["times"] == 1).all()
            assert done["closing"].equals(done["end"])


def zeek(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "dns.log"
    path.write_text(text)
    return path


def test_a_zeek_log_is_read_with_its_types(tmp_path: Path) -> None:
    table = read_zeek(zeek(tmp_path, LOG))
    assert table.schema == pa.schema(
        [
            ("ts", pa.timestamp("us", tz="UTC")),
            ("uid", pa.string()),
            ("id_orig_h", pa.string()),
            ("id_orig_p", pa.int32()),
            ("rtt", pa.float64()),
            ("query", pa.string()),
            ("count", pa.int64()),
            ("AA", pa.bool_()),
            ("answers", pa.list_(pa.string())),
            ("TTLs", pa.list_(pa.float64())),
        ]
    )
    columns = table.set_column(0, "ts", table["ts"].cast(pa.int64())).to_pydict()
    assert columns == {
        "ts": [1521911720_865716, 1521911719_000001, 249],
        "uid": ["CqK", "CqL", "CqM"],
        "id_orig_h": ["10.47.1.100", "10.0.0.1", "::1"],
        "id_orig_p": [41772, 53, 0],
        "rtt": [0.00087, None, None],
        "query": ['"quoted', None, ""],
        "count": [7, None, 0],
        "AA": [True, False, None],
        "answers": [["a.org", "b.org"], [], [None, "c"]],
        "TTLs": [[2230.0, 41830.5], None, []],
    }


def test_a_zeek_log_may_be_compressed(tmp_path: Path) -> None:
    packed = tmp_path / "any_name"
    packed.write_bytes(gzip.compress(LOG.encode()))
    assert read_zeek(packed) == read_zeek(zeek(tmp_path, LOG))


def test_a_zeek_log_chooses_its_separator(tmp_path: Path) -> None:
    text = "#separator \\x7c\n#fields|a|b\n#types|count|set[count]\n#unset_field|nil\n1|2,3\nnil|nil\n"
    assert read_zeek(zeek(tmp_path, text)).to_pydict() == {"a": [1, None], "b": [[2, 3], None]}


def test_a_zeek_log_without_rows_is_an_empty_table(tmp_path: Path) -> None:
    header = LOG[: LOG.index("1521911720")]
    assert read_zeek(zeek(tmp_path, header)) == read_zeek(zeek(tmp_path, LOG)).slice(0, 0)
    assert read_zeek(zeek(tmp_path, header + "#close\t2024\n")).num_rows == 0


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", "no #fields and no #types"),
        ('{"ts": 1}\n', "no #fields and no #types"),
        ("#fields\ta\tb\n", "no #types"),
        ("#fields\ta\tb\n#types\tcount\n", "2 #fields but 1 #types"),
        ("#fields\ta\tb\n#types\tcount\tcount\n1\n", "does not fit"),
        ("#fields\ta\n#types\tcount\nmany\n", "does not fit"),
        ("#fields\ta\n#types\tset[count]\n1,many\n", "does not fit"),
    ],
)
def test_what_is_no_zeek_log_is_refused_by_name(text: str, cause: str, tmp_path: Path) -> None:
    path = zeek(tmp_path, text)
    with pytest.raises(DataError, match=cause) as caught:
        read_zeek(path)
    assert str(path) in caught.value.cause


def test_a_zeek_log_that_cannot_be_read_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="absent"):
        read_zeek(tmp_path / "absent")
    broken = tmp_path / "broken.gz"
    broken.write_bytes(gzip.compress(LOG.encode())[:-20])
    with pytest.raises(InputError, match="broken"):
        read_zeek(broken)


def test_real_zeek_logs() -> None:
    logs = PROJECT.parent / "shared" / "data" / "zeek-wrccdc-2018"
    if not logs.is_dir():
        pytest.skip(f"the folder {logs} is absent")
    dns, ssl, weird = (read_zeek(logs / f"{name}.log.gz") for name in ("dns", "ssl", "weird"))
    assert [log.num_rows for log in (dns, ssl, weird)] == [53_615, 49_474, 24_202]
    assert all(log["ts"].null_count == 0 for log in (dns, ssl, weird))
    assert ssl["uid"].null_count == 0
