"""Failures to write, in words: a full disk is the environment's failure, a folder that is not ours a wrong choice."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headgate.model.errors import InputError, SetupError

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_MACHINE = (errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ESTALE)


@contextmanager
def writing(place: Path, option: str) -> Iterator[None]:
    """Within it, that a place cannot be written to is said in our words; `option` has named the place."""
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise disk_full(place) from error
        kind = SetupError if error.errno in _MACHINE else InputError
        raise kind(
            f"cannot write to {place}: {error.strerror or error}", remedy=f"choose another {option}"
        ) from error


def is_full(error: OSError) -> bool:
    """Whether a write failed for want of room; Arrow's errors have no number, only words."""
    return error.errno in _NO_ROOM or "No space left on device" in str(error)


def disk_full(where: Path | str | None = None) -> SetupError:
    """What to say when a write found no room."""
    place = "its checkpoint, its output or Spark's scratch folder" if where is None else str(where)
    return SetupError(
        f"there is no space left for {place}",
        remedy="make room and run it again: a run with --checkpoint goes on",
    )
