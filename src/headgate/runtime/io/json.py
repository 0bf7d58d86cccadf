"""JSON files: one object to a line, fields found by name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import polars.selectors as cs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as arrow_json

from headgate.model import types
from headgate.model.errors import DataError
from headgate.model.schema import Column
from headgate.model.suggest import did_you_mean
from headgate.runtime.io.format import FileFormat, Piece, RowPlace, Span
from headgate.runtime.io.literals import EPOCH, TextForms, wide_decimal
from headgate.runtime.io.options import IN_FULL, TEXT_FILES, Options, in_full
from headgate.runtime.io.rejects import Origin
from headgate.runtime.io.text.bytestream import ByteStream
from headgate.runtime.io.text.jsondiagnosis import diagnosis
from headgate.runtime.io.text.jsonmaps import has_map, maps_as_entries
from headgate.runtime.io.text.records import Records, lines
from headgate.runtime.io.text.spans import after_lines, text_spans
from headgate.runtime.io.text.textfile import BLOCK, HEAD, Flaw, block_piece, text_pieces
from headgate.runtime.io.text.utf8 import texts

_TRIED_AT_ONCE = 1_024
_KEY = re.compile(rb'"([^"\\]{1,200})"\s*:')
_ROW = re.compile(r"in row (\d+)")
_OPENING, _CLOSING, _RETURN = b"{}\r"


@dataclass
class KeysState:
    """The fields that were seen in the files read so far, and the columns that no row has had yet."""

    unseen: set[str]
    known: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class JsonFormat:
    """JSON lines with the given columns. A field that is missing is NULL; one that no row has is a mistake."""

    columns: tuple[Column, ...]
    forms: TextForms
    keys: KeysState

    @staticmethod
    def of(columns: tuple[Column, ...], options: Options) -> JsonFormat:
        """A reader with the options of a declaration."""
        options.only("multiLine", {"false"}, "write one JSON object to a line")
        return JsonFormat.with_forms(columns, options.text_forms(base64=True))

    @staticmethod
    def with_forms(columns: tuple[Column, ...], forms: TextForms) -> JsonFormat:
        return JsonFormat(columns, forms, KeysState({column.name for column in columns}))

    def pieces(self, file: Path, span: Span | None, rows: int, *, stops: bool) -> Iterator[Piece]:
        yield from text_pieces(file, self.text, span, stops=stops)
        if span is not None and self.keys.unseen:
            self.keys.unseen -= _mentioned(file, self.keys.unseen)

    def spans(self, file: Path, batch_rows: int) -> Sequence[tuple[Span, float]]:
        return text_spans(file, self.text, self.cut, batch_rows)

    cut = staticmethod(after_lines)

    def piece(self, data: bytes, *, stops: bool) -> Piece:
        """The rows of a block of whole lines that is not from a file."""
        return block_piece(data, self.text, stops=stops)

    @property
    def text(self) -> _JsonFile:
        """How files are taken apart, before one is looked at."""
        names = tuple(column.name for column in self.columns)
        return _JsonFile(self.columns, names, self.keys, counts_time=self.forms.epoch is not None)

    def finish(self, name: str) -> None:
        for column in self.columns:
            if column.name in self.keys.unseen:
                raise DataError(
                    f"no row of {name} has a field {column.name}",
                    remedy=did_you_mean(column.name, self.keys.known),
                )

    def advice(self, place: RowPlace) -> str | None:
        return None


@dataclass(frozen=True)
class _JsonFile:
    """One file: the names that the declared columns have in it."""

    columns: tuple[Column, ...]
    names: tuple[str, ...]
    keys: KeysState
    counts_time: bool
    """Whether instants are numbers."""

    @property
    def has_header(self) -> bool:
        return False

    def begin(self, file: Origin, data: bytes) -> tuple[_JsonFile, int]:
        found = {key.decode("utf-8", "replace") for key in _KEY.findall(data[:HEAD])}
        self.keys.known |= found
        return replace(self, names=tuple(_spelling(file, column.name, found) for column in self.columns)), 0

    def cut(self, data: bytes, *, final: bool) -> int:
        return len(data) if final else data.rfind(b"\n") + 1

    def records(self, data: bytes) -> Records:
        found = lines(data)
        kept = pc.binary_length(_trimmed(data, found)).to_numpy() > 0
        return Records(found.starts[kept], found.ends[kept], found.complete)

    def parse(self, data: bytes) -> Sequence[pa.Array] | None:
        rows = self._rows(data)
        if rows is None:
            return None
        table = self._table(data) if rows else self._schema.empty_table()
        if isinstance(table, str) or table.num_rows != rows:
            return None
        columns = [column.combine_chunks() for column in table.columns]
        self._see(columns, data)
        return columns

    def flaws(
        self, data: bytes, records: Records, known: Mapping[int, Flaw], *, stops: bool
    ) -> Mapping[int, Flaw]:
        objects = _are_objects(_trimmed(data, records))
        found = {
            index: self._flaw(data, records, index)
            for index in np.flatnonzero(~objects).tolist()
            if index not in known
        }
        pending = list(_stretches(sorted({*known, *found}), len(records)))[::-1]
        while pending and not (stops and min(found, default=len(records)) <= pending[-1][0]):
            start, end = pending.pop()
            table = self._table(data[records.starts[start] : records.ends[end - 1]])
            if not isinstance(table, str) and table.num_rows == end - start:
                continue
            if end - start == 1:
                found[start] = self._flaw(data, records, start)
                continue
            # Arrow mostly names the row; it is believed if the row is seen to be bad.
            hint = _ROW.search(table) if isinstance(table, str) else None
            named = start + int(hint[1]) if hint else end
            flaw = self._diagnosis(data, records, named) if named < end else None
            if flaw is not None:
                found[named] = flaw
                pending += [(named + 1, end), (start, named)]
            else:
                pending += [((start + end) // 2, end), (start, (start + end) // 2)]
            pending = [stretch for stretch in pending if stretch[0] < stretch[1]]
        return found

    @cached_property
    def _has_maps(self) -> bool:
        return any(has_map(column.type) for column in self.columns)

    @cached_property
    def _schema(self) -> pa.Schema:
        return pa.schema(
            [
                (name, _wire(column.type, EPOCH if self.counts_time else types.STRING))
                for name, column in zip(self.names, self.columns, strict=True)
            ]
        )

    def _table(self, data: bytes) -> pa.Table | str:
        """The rows of a block, or what Arrow says against it."""
        if self._has_maps:
            data = maps_as_entries(data, [(n, c.type) for n, c in zip(self.names, self.columns, strict=True)])
        try:
            return arrow_json.read_json(
                pa.BufferReader(data),
                read_options=arrow_json.ReadOptions(use_threads=False, block_size=len(data) + 1),
                parse_options=arrow_json.ParseOptions(
                    explicit_schema=self._schema, unexpected_field_behavior="ignore", newlines_in_values=False
                ),
            )
        except pa.ArrowInvalid as error:
            return str(error)

    def _rows(self, data: bytes) -> int | None:
        """How many rows a block has; None unless each of its lines begins and ends as an object does.

        No object can be broken between such lines, so that as many objects as lines means one on each.
        """
        found = lines(data)
        letters = np.frombuffer(data, np.uint8)
        ends = found.ends - (letters[found.ends - 1] == _RETURN)
        if (letters[found.starts] == _OPENING).all() and (letters[ends - 1] == _CLOSING).all():
            return len(found)
        trimmed = _trimmed(data, found)
        filled = trimmed.filter(pc.greater(pc.binary_length(trimmed), 0))
        return len(filled) if _are_objects(filled).all() else None

    def _see(self, columns: Sequence[pa.Array], data: bytes) -> None:
        for column, name, array in zip(self.columns, self.names, columns, strict=True):
            if column.name not in self.keys.unseen:
                continue
            # Where all are NULL, that may have been said, or the field left out.
            if array.null_count < len(array) or f'"{name}"'.encode() in data:
                self.keys.unseen.discard(column.name)

    def _flaw(self, data: bytes, records: Records, index: int) -> Flaw:
        found = self._diagnosis(data, records, index)
        if found is not None:
            return found
        message = self._table(data[records.starts[index] : records.ends[index]])
        if not isinstance(message, str):
            return Flaw("the row is not one object")
        return Flaw(f"the row cannot be read: {_ROW.sub('', message).strip()}")

    def _diagnosis(self, data: bytes, records: Records, index: int) -> Flaw | None:
        line = data[records.starts[index] : records.ends[index]]
        columns = dict(zip(self.names, self.columns, strict=True))
        return diagnosis(line, columns, counts_time=self.counts_time)


def _mentioned(file: Path, names: set[str]) -> set[str]:
    """Those names that stand in quotes anywhere in a file, of which only a part was read."""
    pending = {each: re.compile(re.escape(f'"{each}"').encode(), re.IGNORECASE) for each in names}
    found: set[str] = set()
    with ByteStream(file) as stream:
        rest = b""
        while pending and (chunk := stream.read(BLOCK)):
            data = rest + chunk
            found |= {each for each, pattern in pending.items() if pattern.search(data)}
            pending = {each: pattern for each, pattern in pending.items() if each not in found}
            rest = data[-max((len(each.encode()) + 2 for each in pending), default=1) :]
    return found


def _spelling(file: Origin, name: str, found: set[str]) -> str:
    """The name that a column has in a file; its own where there is none."""
    alike = sorted(key for key in found if key.casefold() == name.casefold())
    if name in found or not alike:
        return name
    if len(alike) > 1:
        raise DataError(f"{file}: column {name} could be {' or '.join(alike)}")
    return alike[0]


def _stretches(flawed: Sequence[int], rows: int) -> Iterator[tuple[int, int]]:
    """The rows between flawed ones, few enough at a time to be tried again and again."""
    for start, end in zip([0, *(index + 1 for index in flawed)], [*flawed, rows], strict=True):
        yield from ((each, min(each + _TRIED_AT_ONCE, end)) for each in range(start, end, _TRIED_AT_ONCE))


def _trimmed(data: bytes, records: Records) -> pa.Array:
    return pc.ascii_trim_whitespace(texts(data, records.starts))


def _are_objects(trimmed: pa.Array) -> Any:
    shaped = pc.and_(pc.starts_with(trimmed, "{"), pc.ends_with(trimmed, "}"))
    return shaped.to_numpy(zero_copy_only=False)


def _wire(declared: pa.DataType, instant: pa.DataType) -> pa.DataType:
    """The type in which Arrow reads values that become the declared type later; `instant` is that of instants."""
    if pa.types.is_list(declared):
        return pa.list_(_wire(declared.value_type, instant))
    if pa.types.is_struct(declared):
        return pa.struct([(part.name, _wire(part.type, instant)) for part in declared])
    if pa.types.is_map(declared):
        return pa.list_(pa.struct([("key", types.STRING), ("value", _wire(declared.item_type, instant))]))
    if pa.types.is_decimal(declared):
        return wide_decimal(declared)
    if types.is_timestamp(declared):
        return instant
    return types.STRING if declared in (types.DATE, pa.binary()) else declared


class JsonWriter:
    """Writes a file. JSON has no word for a DOUBLE that is no number, or infinite: null stands for it."""

    def __init__(self, file: Path, schema: pa.Schema) -> None:
        self._out = file.open("wb")

    def write_table(self, table: pa.Table) -> None:
        frame = in_full(pl.DataFrame(table))
        frame.with_columns(cs.binary().bin.encode("base64")).write_ndjson(self._out)

    def close(self) -> None:
        self._out.close()


def _has_binary(dtype: pa.DataType) -> bool:
    return dtype == pa.binary() or any(
        _has_binary(dtype.field(number).type) for number in range(dtype.num_fields)
    )


JSON = FileFormat(
    name="json",
    suffix=".jsonl",
    options=TEXT_FILES,
    reader=JsonFormat.of,
    writer=JsonWriter,
    writes=lambda dtype: dtype == pa.binary() or not _has_binary(dtype),
    spark_options=IN_FULL | {"ignoreNullFields": "false"},
)
