"""States near by: found only under their own token, whole, and never more than two generations."""

from __future__ import annotations

from pathlib import Path

from headgate.runtime.spark.local_state_cache import LocalStateCache


def test_a_state_is_found_under_its_token(tmp_path: Path) -> None:
    nearby = LocalStateCache(tmp_path)
    nearby.keep("shard", "one", ["6/0/run.1", "x"], {"6/0/run.1": b"rows", "x": b""}, None)
    assert nearby.find("shard", "one") == {"6/0/run.1": b"rows", "x": b""}
    assert nearby.find("shard", "two") is None
    assert nearby.find("other", "one") is None


def test_chunks_of_the_state_before_are_taken_over(tmp_path: Path) -> None:
    nearby = LocalStateCache(tmp_path)
    nearby.keep("shard", "one", ["a", "b"], {"a": b"1", "b": b"2"}, None)
    nearby.keep("shard", "two", ["b", "c"], {"c": b"3"}, "one")
    assert nearby.find("shard", "two") == {"b": b"2", "c": b"3"}
    # A failed attempt goes on from the state before.
    assert nearby.find("shard", "one") == {"a": b"1", "b": b"2"}
    nearby.keep("shard", "three", ["c"], {}, "two")
    assert nearby.find("shard", "one") is None
    assert nearby.find("shard", "three") == {"c": b"3"}


def test_a_state_that_cannot_be_whole_is_not_there(tmp_path: Path) -> None:
    nearby = LocalStateCache(tmp_path)
    nearby.keep("shard", "two", ["a", "b"], {"b": b"2"}, "one")
    assert nearby.find("shard", "two") is None
    assert not list((tmp_path / "headgate-states" / "shard").iterdir())


def test_no_place_to_write_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "headgate-states").write_text("in the way")
    nearby = LocalStateCache(tmp_path)
    nearby.keep("shard", "one", ["a"], {"a": b"1"}, None)
    assert nearby.find("shard", "one") is None


def test_files_that_a_worker_knows_are_not_read_again(tmp_path: Path) -> None:
    nearby = LocalStateCache(tmp_path)
    known = nearby.keep("shard", "one", ["a", "b"], {"a": b"1", "b": b"2"}, None)
    nearby.keep("shard", "two", ["b", "c"], {"c": b"3"}, "one")
    assert nearby.find("shard", "two", known) == {"b": None, "c": b"3"}


def test_a_file_of_the_same_name_that_another_attempt_wrote_is_read(tmp_path: Path) -> None:
    nearby = LocalStateCache(tmp_path)
    known = nearby.keep("shard", "failed", ["a"], {"a": b"1"}, None)
    nearby.keep("shard", "again", ["a"], {"a": b"2"}, None)
    assert nearby.find("shard", "again", known) == {"a": b"2"}


def test_a_state_that_could_not_be_kept_has_no_stamps(tmp_path: Path) -> None:
    (tmp_path / "headgate-states").write_text("in the way")
    assert LocalStateCache(tmp_path).keep("shard", "one", ["a"], {"a": b"1"}, None) == {}
