"""Options of files: what a declaration says about them, by the names that Spark has for them, checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl
import polars.selectors as cs

from headgate.model.errors import DeclarationError, UnsupportedError
from headgate.model.suggest import did_you_mean
from headgate.runtime.io.datepattern import strftime_patterns
from headgate.runtime.io.literals import TextForms

PACING = ("maxFilesPerTrigger", "maxBytesPerTrigger")
"""How fast Spark takes up new files; here all files are there from the start."""

ALL_FILES = ("path", "recursiveFileLookup", *PACING)
EPOCH_FORMATS = {"epoch_seconds": 1_000_000, "epoch_millis": 1_000, "epoch_micros": 1}
"""What timestampFormat may say besides a pattern: instants are numbers, each so many microseconds since 1970."""

TEXT_FILES = ("timestampFormat", "dateFormat", "encoding", "charset", "mode", "multiLine")
"""Options of all formats, and of those that are text; docs/sources.md says what they mean."""

IN_FULL = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS][XXX]",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS]",
    "timeZone": "UTC",
}
"""With these, Spark writes instants as text without loss."""


def in_full(frame: pl.DataFrame) -> pl.DataFrame:
    """Rows with instants as Spark then writes them."""
    pattern = "%Y-%m-%dT%H:%M:%S%.6f"
    return frame.with_columns(
        cs.datetime(time_zone="*").dt.strftime(f"{pattern}Z"),
        cs.datetime(time_zone=None).dt.strftime(pattern),
    )


def text_forms(timestamp: str | None, date: str | None = None, *, base64: bool = False) -> TextForms:
    """How values are written, by the options timestampFormat and dateFormat."""
    epoch = EPOCH_FORMATS.get((timestamp or "").casefold())
    by_pattern = timestamp is not None and epoch is None
    return TextForms(
        timestamp=strftime_patterns(timestamp or "", of_date=False) if by_pattern else None,
        epoch=epoch,
        date=None if date is None else strftime_patterns(date, of_date=True),
        base64=base64,
    )


@dataclass(frozen=True)
class Options:
    """What a declaration says of its files, by the spelling that Spark documents."""

    name: str
    """The stream or table."""
    format: str
    values: Mapping[str, str]

    @staticmethod
    def of(name: str, format: str, given: Iterable[tuple[str, str]], known: Sequence[str]) -> Options:
        """The options of a declaration; raises on one that is unknown or comes twice."""
        spellings = {each.casefold(): each for each in known}
        options: dict[str, str] = {}
        for key, value in given:
            spelling = spellings.get(key.casefold())
            if spelling is None:
                raise DeclarationError(
                    f"{name}: {format} files have no option {key}", remedy=did_you_mean(key, known)
                )
            if spelling in options:
                raise DeclarationError(f"{name}: option {spelling} is given twice")
            options[spelling] = value
        found = Options(name, format, options)
        found.only("recursiveFileLookup", {"true"}, "all files below a folder are read")
        return found

    @property
    def path(self) -> str:
        path = self.get("path")
        if path is None:
            raise DeclarationError(f"{self.name} has no path", remedy="add path '…' to its OPTIONS")
        return path

    def get(self, key: str) -> str | None:
        return self.values.get(key)

    def only(self, key: str, allowed: set[str], remedy: str) -> None:
        """Raises unless an option, if given, says what is done anyway."""
        value = self.get(key)
        if value is not None and value.casefold() not in allowed:
            raise UnsupportedError(
                f"{self.name}: {key} '{value}' is not supported for {self.format} files",
                remedy=remedy,
            )

    def text_forms(self, *, base64: bool = False) -> TextForms:
        """How the values of a text file are written."""
        self.only("mode", {"failfast"}, "bad rows stop the run, or go to --rejects FOLDER")
        for key in ("encoding", "charset"):
            self.only(key, {"utf-8", "utf8"}, "convert the files to UTF-8")
        return text_forms(self.get("timestampFormat"), self.get("dateFormat"), base64=base64)

    def flag(self, key: str) -> bool:
        """An option that is true or false, which it is if it is not given."""
        value = (self.get(key) or "false").casefold()
        if value not in ("true", "false"):
            raise DeclarationError(f"{self.name}: {key} is '{value}'", remedy=f"{key} is true or false")
        return value == "true"

    def letter(self, key: str, default: str | None) -> str | None:
        """One ASCII character, None for the empty text."""
        value = self.get(key)
        if value is None:
            return default
        value = {"\\t": "\t", "\\\\": "\\"}.get(value, value)
        if value == "":
            return None
        if len(value) > 1 or not value.isascii() or value in "\r\n\0":
            raise UnsupportedError(f"{self.name}: {key} '{value}' is not one plain character")
        return value
