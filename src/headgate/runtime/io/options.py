"""Options of a file source: what a declaration says about its files, checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headgate.model.errors import DeclarationError, UnsupportedError
from headgate.model.suggest import did_you_mean
from headgate.plan.catalog import StreamDef, TableDef
from headgate.runtime.io.datepattern import strftime_patterns
from headgate.runtime.io.literals import TextForms

PACING = ("maxFilesPerTrigger", "maxBytesPerTrigger")
"""How fast Spark takes up new files; here all files are there from the start."""

_EVERYWHERE = ("path", "recursiveFileLookup", *PACING)
_IN_TEXT = ("timestampFormat", "dateFormat", "encoding", "charset", "mode", "multiLine")
KNOWN_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "parquet": _EVERYWHERE,
    "json": (*_EVERYWHERE, *_IN_TEXT),
    "csv": (*_EVERYWHERE, *_IN_TEXT, "header", "sep", "delimiter", "quote", "escape", "nullValue"),
}
"""The options of each format of files, as Spark spells them; docs/sources.md says what they mean."""

FILE_FORMATS = tuple(KNOWN_OPTIONS)
_SPARK_ONLY = "the local engine reads files (parquet, csv, json); run other sources on Spark"


@dataclass(frozen=True)
class CsvDialect:
    """How the fields of a CSV file are written.

    Without `escape`, a quote inside a quoted field is doubled; with it, it may also follow the escape. `null` is the
    word for NULL besides the empty field.
    """

    header: bool = False
    separator: str = ","
    quote: str | None = '"'
    escape: str | None = None
    null: str | None = None


@dataclass(frozen=True)
class FileOptions:
    """A checked file source: format, path, and how text is to be understood."""

    format: str
    path: str
    forms: TextForms
    dialect: CsvDialect


def read_options(definition: StreamDef | TableDef) -> FileOptions:
    """The options of a stream's or table's source; raises on what is not known or cannot be done."""
    source = definition.source
    if source is None:
        raise DeclarationError(
            f"{definition.name} has no source to read rows from",
            remedy="add USING parquet OPTIONS (path '…') to its declaration, or hand its rows over in memory",
        )
    if source.format not in KNOWN_OPTIONS:
        raise UnsupportedError(f"{definition.name} reads from {source.format}", remedy=_SPARK_ONLY)
    options = _Options(
        definition.name, source.format, _spelled(definition.name, source.format, source.options)
    )
    path = options.get("path")
    if path is None:
        raise DeclarationError(f"{definition.name} has no path", remedy="add path '…' to its OPTIONS")
    options.only("recursiveFileLookup", {"true"}, "all files below a folder are read")
    options.only("mode", {"failfast"}, "bad rows stop the run, or go to --rejects FOLDER")
    options.only("encoding", {"utf-8", "utf8"}, "convert the files to UTF-8")
    options.only("charset", {"utf-8", "utf8"}, "convert the files to UTF-8")
    if source.format == "json":
        options.only("multiLine", {"false"}, "write one JSON object to a line")
    else:
        options.only("multiLine", {"true"}, "a quoted field may always hold line breaks")
    timestamp, date = options.get("timestampFormat"), options.get("dateFormat")
    forms = TextForms(
        timestamp=None if timestamp is None else strftime_patterns(timestamp, of_date=False),
        date=None if date is None else strftime_patterns(date, of_date=True),
        base64=source.format == "json",
    )
    return FileOptions(source.format, path, forms, options.dialect())


def _spelled(name: str, format: str, given: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Options by the spelling that Spark documents; raises on one that is unknown or comes twice."""
    known = {each.casefold(): each for each in KNOWN_OPTIONS[format]}
    options: dict[str, str] = {}
    for key, value in given:
        spelling = known.get(key.casefold())
        if spelling is None:
            raise DeclarationError(
                f"{name}: {format} files have no option {key}",
                remedy=did_you_mean(key, known.values()),
            )
        if spelling in options:
            raise DeclarationError(f"{name}: option {spelling} is given twice")
        options[spelling] = value
    return options


@dataclass(frozen=True)
class _Options:
    name: str
    format: str
    values: Mapping[str, str]

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

    def dialect(self) -> CsvDialect:
        if self.get("sep") is not None and self.get("delimiter") is not None:
            raise DeclarationError(
                f"{self.name}: sep and delimiter are the same option", remedy="give one of them"
            )
        separator = self._letter("sep" if self.get("sep") is not None else "delimiter", ",")
        quote = self._letter("quote", '"')
        escape = self._letter("escape", quote)
        if separator is None:
            raise DeclarationError(f"{self.name}: sep is empty", remedy="give one character")
        if separator in (quote, escape):
            raise DeclarationError(f"{self.name}: sep and quote are the same character")
        return CsvDialect(
            header=self._flag("header"),
            separator=separator,
            quote=quote,
            escape=None if escape == quote else escape,
            null=self.get("nullValue"),
        )

    def _flag(self, key: str) -> bool:
        value = (self.get(key) or "false").casefold()
        if value not in ("true", "false"):
            raise DeclarationError(f"{self.name}: {key} is '{value}'", remedy=f"{key} is true or false")
        return value == "true"

    def _letter(self, key: str, default: str | None) -> str | None:
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
