"""The soak's feeder writes the whole auction in order and takes old files away; its judge knows flat from growing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate.lab import soak
from headgate.lab.generators import Auction
from headgate.lab.generators.dataset import START
from headgate.lab.soak import Feeder, Flatness, Sample, Soak, cut_by_time
from headgate.model.time import SECOND
from headgate.session import Session


def test_pieces_are_the_stream_cut_where_its_clock_passes_a_span() -> None:
    auction = Auction(items=2_000, disorder=3 * SECOND, seed=7)
    for stream in auction.streams.values():
        pieces = list(cut_by_time(stream, 60 * SECOND))
        assert pa.concat_tables(pieces).combine_chunks().equals(stream.table())
        for number, piece in enumerate(pieces[:-1]):
            latest = max(piece["ts"].cast(pa.int64()).to_pylist(), default=0)
            assert latest < START + (number + 1) * 60 * SECOND


def test_files_are_taken_away_when_all_queries_have_answered_beyond_them(tmp_path: Path) -> None:
    feeder = Feeder(tmp_path, files=40, span=60)
    for number in range(40):
        feeder.write_next()
        for name in soak.NAMES:
            (tmp_path / "out" / name).mkdir(parents=True, exist_ok=True)
            clock = None if number < 15 else START + (number - 5) * 60 * SECOND
            (tmp_path / "out" / name / "metrics.json").write_text(json.dumps({"clock": clock}))
        feeder.take_away(soak.answered(tmp_path))
        if number == 10:
            assert len(list((tmp_path / "items").iterdir())) == 11
    kept = sorted((tmp_path / "items").iterdir())
    assert [kept[0].name, kept[-1].name] == ["000024.parquet", "000039.parquet"]
    assert pq.read_table(kept[-1]).num_rows > 0
    assert feeder.latest == START + 40 * 60 * SECOND
    (tmp_path / "out" / "hot" / "metrics.json").unlink()
    assert soak.answered(tmp_path) is None


def test_the_gate_admits_what_is_soaked() -> None:
    session = Session()
    session.sql(soak.QUERIES)
    assert [query.name for query in session.queries] == list(soak.NAMES)
    assert all(query.judged.admitted for query in session.queries)


def sample(seconds: float, memory: int, rows: int) -> Sample:
    return Sample(seconds, memory, memory, 3, rows, rows * 40, 1_000, 10.0, 4)


@pytest.mark.parametrize(
    ("rows", "flat"),
    [
        ([0, 100, 101, 99, 100, 102, 98], True),
        ([0, 100, 110, 120, 130, 140, 150], False),
        ([0, 100, 80, 60, 50, 40, 30], False),
        ([0, 0, 0, 0, 50, 60, 70], False),
    ],
)
def test_only_what_stays_after_the_warm_up_is_flat(rows: list[int], flat: bool) -> None:
    samples = tuple(sample(60.0 * minute, 1_000_000, each) for minute, each in enumerate(rows))
    found = Soak(6.0, 10.0, 60.0, samples)
    assert len(found.steady) == 6
    assert found.flat is flat
    assert found.as_dict()["flat"] is flat


def test_a_spike_is_in_the_range_and_not_in_the_drift() -> None:
    found = Flatness.of("state_rows", [100, 100, 150, 100, 100, 100])
    assert found.high == pytest.approx(150 / (650 / 6) - 1)
    assert found.drift == pytest.approx(0.0)


def test_the_cost_of_a_row_is_what_was_spent_after_the_warm_up() -> None:
    seen = [(0.0, 0, 40.0), (60.0, 1_000, 60.0), (120.0, 5_000, 64.0)]
    samples = [replace(sample(at, 1, 1), rows_in=rows, processor_seconds=spent) for at, rows, spent in seen]
    assert Soak(2.0, 10.0, 60.0, tuple(samples)).processor_us_per_row == pytest.approx(1_000.0)
    untold = tuple(replace(each, processor_seconds=None) for each in samples)
    assert Soak(2.0, 10.0, 60.0, untold).processor_us_per_row is None
    assert Soak(2.0, 10.0, 60.0, (samples[-1],)).processor_us_per_row is None
