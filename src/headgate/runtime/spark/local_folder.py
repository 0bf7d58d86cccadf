"""Folders of this machine, with what `Folder` does at any address."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from uuid import uuid4


class Files(Protocol):
    """A folder, of this machine or elsewhere."""

    def __truediv__(self, name: str) -> Files: ...

    def read(self, name: str) -> bytes | None: ...

    def write(self, name: str, content: bytes) -> None: ...

    def names(self) -> list[str]: ...

    def exists(self, name: str) -> bool: ...

    def delete(self, name: str) -> None: ...


@dataclass(frozen=True)
class LocalFolder:
    """A folder, which may not be there yet. What goes wrong in it is an OSError."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)

    def __truediv__(self, name: str) -> LocalFolder:
        return LocalFolder(self.path / name)

    def read(self, name: str) -> bytes | None:
        """The content of a file; None if there is none."""
        try:
            return (self.path / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write(self, name: str, content: bytes) -> None:
        """Puts a file in place, or in place of another, so that nobody ever reads a part of it."""
        self.path.mkdir(parents=True, exist_ok=True)
        beside = self.path / f".{name}.{uuid4().hex}"
        beside.write_bytes(content)
        beside.replace(self.path / name)

    def names(self) -> list[str]:
        """The names of what is in the folder."""
        return sorted(each.name for each in self.path.iterdir()) if self.path.is_dir() else []

    def exists(self, name: str) -> bool:
        """Whether there is a file or folder of that name."""
        return (self.path / name).exists()

    def delete(self, name: str) -> None:
        """Removes a file, or a folder with all that is in it, if it is there."""
        place = self.path / name
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)
