"""Byte streams: the bytes of a text file from start to end, decompressed, and how far they have been read."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType

import pyarrow as pa

from headgate.model.errors import InputError
from headgate.runtime.io.format import Span

_MAGIC = {
    "gzip": b"\x1f\x8b",
    "zstd": b"\x28\xb5\x2f\xfd",
    "bz2": b"BZh",
}
_BZIP2_BLOCKS = (b"\x31\x41\x59\x26\x53\x59", b"\x17\x72\x45\x38\x50\x90")
"""What follows the magic of bzip2 and the block size: a first block, or the end of an empty file."""
_SUFFIX = {".gz": "gzip", ".gzip": "gzip", ".zst": "zstd", ".zstd": "zstd", ".bz2": "bz2"}
_PROBE = 10


class ByteStream:
    """An open file, or a span of it.

    What it is compressed with is told by its first bytes, and must agree with its name.
    """

    def __init__(self, file: Path, span: Span | None = None) -> None:
        self._file = file
        self._end = None if span is None else span.end
        try:
            self._raw = pa.OSFile(str(file), "rb")
            codec = _codec(self._raw.read(_PROBE))
            self._raw.seek(0)
            named = _SUFFIX.get(file.suffix.lower())
            if named is not None and codec != named and self._raw.size():
                raise InputError(
                    f"{file} is named as {named} but is not compressed so", remedy="rename the file"
                )
            self._stream = self._raw if codec is None else pa.CompressedInputStream(self._raw, codec)
            if span is not None:
                self._to(span, codec)
        except (OSError, pa.ArrowException) as error:
            raise unreadable(file, error) from error

    def _to(self, span: Span, codec: str | None) -> None:
        needed = span.start if span.end is None else span.end
        if codec is not None or self._raw.size() < needed:
            raise InputError(
                f"{self._file} has changed while it was read in parts",
                remedy="write files under a hidden name, and rename them when they are complete",
            )
        self._raw.seek(span.start)

    def read(self, size: int) -> bytes:
        """The next bytes, at most `size`; none at the end."""
        if self._end is not None:
            size = min(size, self._end - self.position)
        try:
            data: bytes = self._stream.read(size)
        except (OSError, pa.ArrowException) as error:
            raise unreadable(self._file, error) from error
        return data

    @property
    def position(self) -> int:
        """How many bytes of the file itself have been read."""
        return int(self._raw.tell())

    def __enter__(self) -> ByteStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._raw.close()


def unreadable(file: Path, error: Exception) -> InputError:
    """The error for a file that cannot be opened, or whose bytes do not make sense."""
    number = error.errno if isinstance(error, OSError) else None
    reason = str(error).partition("\n")[0] if number is None else os.strerror(number)
    return InputError(
        f"cannot read {file}: {reason}", remedy="check that the file is complete and may be read"
    )


def is_compressed(file: Path) -> bool:
    """Whether a file has to be read from its beginning; OSError if it cannot be read."""
    with file.open("rb") as opened:
        return file.suffix.lower() in _SUFFIX or _codec(opened.read(_PROBE)) is not None


def _codec(first: bytes) -> str | None:
    for codec, magic in _MAGIC.items():
        if first.startswith(magic) and (codec != "bz2" or first[4:].startswith(_BZIP2_BLOCKS)):
            return codec
    return None
