"""What holds of a folder at any address; asked of this machine's disk and, in a cluster, of a store."""

from __future__ import annotations

from headgate.runtime.spark.filesystem import Folder


def require_contract(folder: Folder) -> None:
    """Raises AssertionError unless a folder that is not there yet keeps what it is given."""
    assert folder.names() == []
    assert folder.read("a") is None
    assert not folder.exists("a")
    folder.delete("a")

    whole = bytes(range(256)) * 1000
    folder.write("a", whole)
    assert folder.read("a") == whole
    folder.write("a", b"other")
    assert folder.read("a") == b"other"
    folder.write("nothing", b"")
    assert folder.read("nothing") == b""

    inner = folder / "in" / "side"
    inner.write("é {x} %41", b"1")
    assert inner.names() == ["é {x} %41"]
    assert folder.exists("in")
    # Nothing is left of what was written beside its place.
    assert folder.names() == ["a", "in", "nothing"]

    folder.delete("in")
    assert inner.read("é {x} %41") is None
    assert inner.names() == []
    assert folder.names() == ["a", "nothing"]
