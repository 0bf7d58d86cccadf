"""Bad rows: what is said about a row that cannot be read, and whether it stops the run or is set aside."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from headgate.model.errors import DataError, HeadgateError, InputError
from headgate.runtime.disk import disk_full, is_full
from headgate.runtime.ownership import MARK

LONGEST_SHOWN = 80
"""How many characters of a value a message shows."""

LONGEST_KEPT = 65_536
"""How many characters of a bad row the rejects keep."""

_REMEDY = "correct the data, or set bad rows aside with headgate run --rejects FOLDER"


Origin = Path | str
"""What a row comes from: a file, or in words a place elsewhere."""


@dataclass(frozen=True)
class BadRow:
    """A row that cannot be read: where it stands, why, and its text as far as there is one.

    `row` counts the rows of the file from 1 without a header; `line`, for text, counts all lines. A file that
    cannot be read at all has neither.
    """

    file: Origin
    reason: str
    row: int | None = None
    line: int | None = None
    column: str | None = None
    text: str | None = None
    remedy: str | None = None

    @property
    def cause(self) -> str:
        """Place and reason in one sentence: `bids.csv, row 17 (line 18), column price: 'abc' is not a DOUBLE`."""
        where = str(self.file)
        if self.row is not None:
            where += f", row {self.row}"
        if self.line is not None:
            where += f" (line {self.line})"
        if self.column is not None:
            where += f", column {self.column}"
        return f"{where}: {self.reason}"

    def as_json(self) -> str:
        """The line that stands for the row in the rejects."""
        return json.dumps(
            {
                "file": str(self.file),
                "row": self.row,
                "line": self.line,
                "column": self.column,
                "reason": self.reason,
                "text": None if self.text is None else self.text[:LONGEST_KEPT],
            },
            ensure_ascii=False,
        )


@dataclass(frozen=True)
class RejectPolicy:
    """What a bad row does: it stops the run, or it goes to a folder and the run goes on."""

    folder: Path | None

    @staticmethod
    def stop() -> RejectPolicy:
        """The first bad row raises DataError."""
        return RejectPolicy(None)

    @staticmethod
    def rejects(folder: Path | str) -> RejectPolicy:
        """Bad rows are written as JSON lines to a sub-folder for each stream or table."""
        return RejectPolicy(Path(folder))

    @property
    def stops(self) -> bool:
        return self.folder is None


@dataclass
class RejectState:
    """The bad rows and files of one stream or table so far."""

    policy: RejectPolicy
    name: str
    rows: int = 0
    files: int = 0
    first_file_error: HeadgateError | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        target = self._folder
        if target is None:
            return
        try:
            used = target.exists() and (
                not target.is_dir() or any(each.name != MARK for each in target.iterdir())
            )
        except OSError as error:
            raise unwritable(target, error) from error
        if used:
            raise InputError(
                f"{target} has rejects of an earlier run",
                remedy="name another folder for rejects, or empty this one",
            )

    @property
    def _folder(self) -> Path | None:
        return None if self.policy.folder is None else self.policy.folder / folder_name(self.name)

    def refuse(self, rows: Sequence[BadRow]) -> None:
        """Sets bad rows aside, or raises for the first of them."""
        if not rows:
            return
        if self.policy.stops:
            first = rows[0]
            raise DataError(first.cause, remedy=first.remedy or _REMEDY)
        self._keep(rows)
        self.rows += len(rows)

    def refuse_file(self, file: Path, error: HeadgateError) -> None:
        """Sets the unread rest of a file aside, or raises its error."""
        if self.policy.stops:
            raise error
        self.first_file_error = self.first_file_error or error
        self._keep([BadRow(file, error.cause)])
        self.files += 1

    def _keep(self, rows: Sequence[BadRow]) -> None:
        folder = self._folder
        assert folder is not None
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with (folder / "rejects.json").open("a", encoding="utf-8", errors="backslashreplace") as out:
                out.writelines(row.as_json() + "\n" for row in rows)
        except OSError as error:
            raise unwritable(folder, error) from error


def unwritable(folder: Path | str, error: OSError) -> HeadgateError:
    """What to say when bad rows cannot be set aside."""
    if is_full(error):
        return disk_full(folder)
    return InputError(
        f"cannot write rejects to {folder}: {error.strerror or error}",
        remedy="check the folder's permissions",
    )


def folder_name(name: str) -> str:
    """A stream's name as one folder: no separators, and nothing that means another folder or is hidden."""
    safe = quote(name, safe=" ")
    return f"%{ord(safe[0]):02X}{safe[1:]}" if safe[0] in "._" else safe


def shown(text: str | bytes, longest: int = LONGEST_SHOWN) -> str:
    """Text in quotes as a message can show it: shortened, and every character that does not print escaped."""
    if isinstance(text, bytes):
        text = text[: 4 * longest + 4].decode("utf-8", errors="backslashreplace")
    cut = text[:longest]
    printable = "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii") for letter in cut
    )
    return f"'{printable}{'…' if len(text) > longest else ''}'"
