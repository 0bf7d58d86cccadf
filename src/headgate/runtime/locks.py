"""Locks on files and folders: held while a run lives, and let go by the system however the run ends."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)
"""What file systems answer that have no locks; there runs cannot know of each other while they live."""


class Lock:
    """A lock on a file or folder that is there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def take(self, *, wait: bool = False) -> bool | None:
        """Whether the lock is ours now; without `wait`, False if another has it. None: there are no locks here."""
        descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            os.close(descriptor)
            return False
        except OSError as error:
            os.close(descriptor)
            if error.errno not in _NO_LOCKS:
                raise
            return None
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        return True

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Within it, nobody else is within it for the same file or folder."""
    lock = Lock(path)
    lock.take(wait=True)
    try:
        yield
    finally:
        lock.release()
