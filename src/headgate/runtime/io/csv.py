"""CSV files: fields found by the header's names or by position; written with a header."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from headgate.model.errors import DataError, DeclarationError, UnsupportedError
from headgate.model.schema import Column
from headgate.model.suggest import did_you_mean
from headgate.model.types import is_nested, spark_name
from headgate.runtime.io.format import FileFormat, Piece, RowPlace, Span
from headgate.runtime.io.literals import TextForms
from headgate.runtime.io.options import IN_FULL, TEXT_FILES, Options, in_full
from headgate.runtime.io.rejects import Origin, shown
from headgate.runtime.io.text.records import CsvDialect, Records, csv_records, tidy_end, unescaped
from headgate.runtime.io.text.spans import Cut, after_records, text_spans
from headgate.runtime.io.text.textfile import BYTE_ORDER_MARK, Flaw, text_pieces


@dataclass(frozen=True)
class CsvFormat:
    """CSV files with the given columns."""

    columns: tuple[Column, ...]
    dialect: CsvDialect
    forms: TextForms

    @staticmethod
    def of(columns: tuple[Column, ...], options: Options) -> CsvFormat:
        """A reader with the options of a declaration."""
        options.only("multiLine", {"true"}, "a quoted field may always hold line breaks")
        return CsvFormat(columns, _dialect(options), options.text_forms())

    def __post_init__(self) -> None:
        for column in self.columns:
            if is_nested(column.type):
                raise UnsupportedError(
                    f"column {column.name} is {spark_name(column.type)}, which a CSV file cannot hold",
                    remedy="use json or parquet files",
                )

    def pieces(self, file: Path, span: Span | None, rows: int, *, stops: bool) -> Iterator[Piece]:
        return text_pieces(file, self.text, span, stops=stops)

    def spans(self, file: Path, batch_rows: int) -> Sequence[tuple[Span, float]]:
        return text_spans(file, self.text, self.cut, batch_rows)

    @property
    def cut(self) -> Cut:
        return partial(after_records, self.dialect)

    @property
    def text(self) -> _CsvFile:
        """How files are taken apart, before one is looked at."""
        return _CsvFile(self.columns, self.dialect, len(self.columns), ())

    def finish(self, name: str) -> None:
        """Every file has been compared with the declaration on its own."""

    def advice(self, place: RowPlace) -> str | None:
        names = {column.name.casefold() for column in self.columns}
        fields = (place.text or "").casefold().replace('"', "").split(self.dialect.separator)
        if place.row == 1 and not self.dialect.header and names & {field.strip() for field in fields}:
            return "the file seems to begin with a header: add header 'true' to its OPTIONS"
        return None


@dataclass(frozen=True)
class _CsvFile:
    """One file: how many fields its rows have, and at which of them the declared columns stand."""

    columns: tuple[Column, ...]
    dialect: CsvDialect
    width: int
    indexes: tuple[int, ...]

    @property
    def has_header(self) -> bool:
        return self.dialect.header

    def begin(self, file: Origin, data: bytes) -> tuple[_CsvFile, int]:
        if not self.dialect.header:
            return replace(self, indexes=tuple(range(self.width))), 0
        records = csv_records(data, self.dialect)
        if not len(records):
            return replace(self, indexes=tuple(range(self.width))), len(data)
        end = int(records.starts[1]) if len(records) > 1 else len(data)
        header = self._header(file, data[:end])
        return replace(self, width=len(header), indexes=_indexes(file, header, self.columns)), end

    def _header(self, file: Origin, data: bytes) -> list[str]:
        quote = self.dialect.quote
        quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE
        try:
            text = io.StringIO(self._plain(data).decode(), newline="")
            separator = self.dialect.separator
            fields = next(
                csv.reader(text, delimiter=separator, quotechar=quote, quoting=quoting, strict=True)
            )
        except (UnicodeDecodeError, csv.Error) as error:
            raise DataError(f"{file}, line 1: the header cannot be read: {error}") from error
        return [field.strip() for field in fields]

    def cut(self, data: bytes, *, final: bool) -> int:
        end = tidy_end(data, self.dialect)
        if end is not None and not final:
            return end
        records = csv_records(data, self.dialect)
        return len(data) if final and not records.open else records.complete

    def records(self, data: bytes) -> Records:
        return csv_records(data, self.dialect)

    def parse(self, data: bytes) -> Sequence[pa.Array] | None:
        names = [str(index) for index in range(self.width)]
        wanted = [names[index] for index in self.indexes]
        if not data.strip(b"\r\n"):
            return [pa.array([], pa.string()) for _ in wanted]
        if tidy_end(data, self.dialect) is None and self._torn(data):
            return None
        null = self.dialect.null
        try:
            table = arrow_csv.read_csv(
                pa.BufferReader(_unmistakable(self._plain(data))),
                read_options=arrow_csv.ReadOptions(
                    use_threads=False, block_size=len(data) + 4, column_names=names
                ),
                parse_options=arrow_csv.ParseOptions(
                    delimiter=self.dialect.separator,
                    quote_char=self.dialect.quote or False,
                    newlines_in_values=self._quotes(data),
                ),
                convert_options=arrow_csv.ConvertOptions(
                    check_utf8=False,
                    column_types=dict.fromkeys(wanted, pa.string()),
                    include_columns=wanted,
                    null_values=["", null] if null else [""],
                    strings_can_be_null=True,
                    # As in Spark: "" is NULL like nothing at all, unless another word stands for NULL.
                    quoted_strings_can_be_null=null is None,
                ),
            )
        except pa.ArrowInvalid:
            return None
        columns = [column.combine_chunks() for column in table.columns]
        return columns if null is None else [_nulls(column, null) for column in columns]

    def flaws(
        self, data: bytes, records: Records, known: Mapping[int, Flaw], *, stops: bool
    ) -> Mapping[int, Flaw]:
        assert records.fields is not None
        assert records.torn is not None
        wrong = np.flatnonzero((records.fields != self.width) | records.torn)
        return {index: self._flaw(records, index) for index in wrong.tolist() if index not in known}

    def _flaw(self, records: Records, index: int) -> Flaw:
        assert records.fields is not None
        found = int(records.fields[index])
        if found == self.width:
            return Flaw(
                "there is text behind the closing quote of a field",
                remedy="double the quotes inside of quoted fields, or name their escape: escape '\\'",
            )
        expected = f"{self.width} {'is' if self.width == 1 else 'are'} expected"
        return Flaw(f"the row has {found} field{'' if found == 1 else 's'} where {expected}")

    def _torn(self, data: bytes) -> bool:
        torn = csv_records(data, self.dialect).torn
        return torn is not None and bool(torn.any())

    def _quotes(self, data: bytes) -> bool:
        return self.dialect.quote is not None and self.dialect.quote.encode() in data

    def _plain(self, data: bytes) -> bytes:
        """A block without escapes, which Arrow would also see outside of quotes."""
        escape = self.dialect.escape
        escaping = escape is not None and escape.encode() in data and self._quotes(data)
        return unescaped(data, self.dialect) if escaping else data


def _nulls(column: pa.Array, null: str) -> pa.Array:
    """A column with NULL for the word, also where it was quoted."""
    said = pc.equal(column, null)
    return pc.if_else(said, None, column) if pc.any(said).as_py() else column


def _indexes(file: Origin, header: list[str], columns: tuple[Column, ...]) -> tuple[int, ...]:
    """Where the declared columns stand in a header."""
    folded = [name.casefold() for name in header]
    indexes: list[int] = []
    for column in columns:
        name = column.name.casefold()
        if folded.count(name) != 1:
            twice = name in folded
            raise DataError(
                f"{file}: the header has column {column.name} twice"
                if twice
                else f"{file}: there is no column {column.name} in the header",
                remedy=None
                if twice
                else did_you_mean(column.name, [shown(each, 40)[1:-1] for each in header]),
            )
        indexes.append(folded.index(name))
    return tuple(indexes)


def _unmistakable(data: bytes) -> bytes:
    """Rows from which Arrow takes no byte order mark away: that of the file is gone, and this one is text."""
    return BYTE_ORDER_MARK + data if data.startswith(BYTE_ORDER_MARK) else data


def _dialect(options: Options) -> CsvDialect:
    if options.get("sep") is not None and options.get("delimiter") is not None:
        raise DeclarationError(
            f"{options.name}: sep and delimiter are the same option", remedy="give one of them"
        )
    separator = options.letter("sep" if options.get("sep") is not None else "delimiter", ",")
    quote = options.letter("quote", '"')
    escape = options.letter("escape", quote)
    if separator is None:
        raise DeclarationError(f"{options.name}: sep is empty", remedy="give one character")
    if separator in (quote, escape):
        raise DeclarationError(f"{options.name}: sep and quote are the same character")
    return CsvDialect(
        header=options.flag("header"),
        separator=separator,
        quote=quote,
        escape=None if escape == quote else escape,
        null=options.get("nullValue"),
    )


class CsvWriter:
    """Writes a file with a header."""

    def __init__(self, file: Path, schema: pa.Schema) -> None:
        self._out = file.open("wb")
        self._out.write(pl.DataFrame(schema=schema.names).write_csv().encode())

    def write_table(self, table: pa.Table) -> None:
        in_full(pl.DataFrame(table)).write_csv(self._out, include_header=False)

    def close(self) -> None:
        self._out.close()


CSV = FileFormat(
    name="csv",
    suffix=".csv",
    options=(*TEXT_FILES, "header", "sep", "delimiter", "quote", "escape", "nullValue"),
    reader=CsvFormat.of,
    writer=CsvWriter,
    writes=lambda dtype: not is_nested(dtype) and dtype != pa.binary(),
    # Otherwise Spark writes thousandths of seconds and no more, and quotes as \".
    spark_options=IN_FULL | {"header": "true", "escape": '"'},
)
