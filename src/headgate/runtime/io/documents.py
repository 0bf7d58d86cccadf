"""Documents: JSON objects that come one by one, such as the values of messages, as rows in declared types.

They are read by the code that reads JSON files, many at once: each is made one line of a block.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from headgate.kernels.expressions.dtypes import polars_type
from headgate.plan.catalog import StreamDef, TableDef
from headgate.runtime.io.fitting import fit
from headgate.runtime.io.json import JsonFormat
from headgate.runtime.io.literals import JSON_FORMS, Mask, TextForms
from headgate.runtime.io.rejects import LONGEST_KEPT, BadRow, shown
from headgate.runtime.io.text.textfile import BLOCK, BYTE_ORDER_MARK

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Read:
    """The documents that are rows, with their places among all, and the others, `row` counting from 0."""

    rows: pl.DataFrame
    places: Indices
    bad: Sequence[BadRow]


@dataclass(frozen=True)
class Documents:
    """A reader of documents with the columns of a definition.

    A field that is missing is NULL; with `complete`, it makes the document a bad one.
    """

    definition: StreamDef | TableDef
    forms: TextForms = JSON_FORMS
    complete: bool = False

    def read(self, values: pa.Array, *, stops: bool) -> Read:
        """Reads binary values; with `stops`, nothing behind the first bad one is looked at."""
        found: list[Read] = []
        for start, block in _blocks(_unmarked(values)):
            part = self._read(block, stops=stops)
            moved = [replace(each, row=start + (each.row or 0)) for each in part.bad]
            found.append(Read(part.rows, part.places + start, moved))
            if moved and stops:
                break
        empty = Read(self._nothing(), np.array([], np.int64), ())
        if not found:
            return empty
        return Read(
            pl.concat([each.rows for each in found]),
            np.concatenate([each.places for each in found]),
            [bad for each in found for bad in each.bad],
        )

    def _read(self, values: pa.Array, *, stops: bool) -> Read:
        blank = pc.fill_null(pc.equal(pc.binary_length(pc.ascii_trim_whitespace(_as_text(values))), 0), True)
        filled = np.flatnonzero(~blank.to_numpy(zero_copy_only=False))
        bad = [
            BadRow("", "there is no value" if not values[index].is_valid else "the value is empty", index)
            for index in np.flatnonzero(blank.to_numpy(zero_copy_only=False)).tolist()
        ]
        rows, places = self._nothing(), filled
        if filled.size:
            chosen = values.take(pa.array(filled))
            format = JsonFormat.with_forms(self.definition.columns, self.forms)
            piece = format.piece(_lines(chosen), stops=stops)
            rows, refused = fit(self.definition, format, "", piece, stops=stops)
            # Rows of the block count from 1.
            wrong = [int(filled[(each.row or 1) - 1]) for each in refused]
            bad += [replace(each, row=place, line=None) for each, place in zip(refused, wrong, strict=True)]
            if stops and refused:
                return Read(rows.clear(), filled[:0], sorted(bad, key=lambda each: each.row or 0))
            places = np.setdiff1d(filled, np.array(wrong, np.int64), assume_unique=True)
        if self.complete:
            rows, places, missing = self._without_missing(values, rows, places)
            bad += missing
        return Read(rows, places, sorted(bad, key=lambda each: each.row or 0))

    def _without_missing(
        self, values: pa.Array, rows: pl.DataFrame, places: Indices
    ) -> tuple[pl.DataFrame, Indices, list[BadRow]]:
        """The rows in whose documents all columns are named, and the others; only a NULL makes one be asked."""
        names = [column.name for column in self.definition.columns]
        absent = rows.select(pl.col(names).is_null()).to_numpy()
        lacking = np.zeros(rows.height, np.bool_)
        bad: list[BadRow] = []
        asked = np.flatnonzero(absent.any(axis=1))
        plain = _says_null(values.take(pa.array(places[asked])), absent[asked], names)
        # Left are documents in which fields are missing, nested, or spelled in other ways.
        for index in asked[~plain].tolist():
            place = int(places[index])
            document = bytes(values[place].as_buffer())
            found = _missing(document, [names[each] for each in np.flatnonzero(absent[index]).tolist()])
            if found is not None:
                lacking[index] = True
                name, reason = found
                bad.append(BadRow("", reason, place, None, name, _shown(document)))
        return rows.filter(pl.Series(~lacking)), places[~lacking], bad

    def _nothing(self) -> pl.DataFrame:
        return pl.DataFrame(schema={each.name: polars_type(each.type) for each in self.definition.columns})


def _blocks(values: pa.Array) -> Iterator[tuple[int, pa.Array]]:
    """Values in pieces of a few megabytes, each with its place among all."""
    lengths = pc.fill_null(pc.binary_length(values), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    pieces = np.cumsum(lengths + 1) // BLOCK
    starts = np.flatnonzero(np.diff(pieces, prepend=-1)).tolist()
    for start, end in zip(starts, [*starts, len(values)][1:], strict=True):
        yield start, values.slice(start, end - start)


def _lines(values: pa.Array) -> bytes:
    """Each value as one line. In JSON, a line break stands between tokens only, where a blank does as well."""
    flat = pc.replace_substring(pc.replace_substring(values, b"\n", b" "), b"\r", b" ")
    ended = pc.binary_join_element_wise(flat, b"", b"\n").cast(pa.large_binary())
    _, offsets, letters = ended.buffers()
    bounds = np.frombuffer(offsets, np.int64)[ended.offset : ended.offset + len(ended) + 1]
    return bytes(letters[int(bounds[0]) : int(bounds[-1])])


def _says_null(documents: pa.Array, absent: Mask, names: Sequence[str]) -> Mask:
    """Which documents, flat and without escapes, have `null` for each of their absent columns by its very name."""
    text = _as_text(documents)
    said = ~_matching(text, r"(?s)\\|\[|\{.*\{")
    for column, name in enumerate(names):
        wanted = absent[:, column]
        if wanted.any():
            said &= ~wanted | _matching(text, rf'"{re.escape(name)}"\s*:\s*null')
    return said


def _matching(text: pa.Array, pattern: str) -> Mask:
    found: Mask = pc.match_substring_regex(text, pattern).to_numpy(zero_copy_only=False)
    return found


def _missing(document: bytes, names: Sequence[str]) -> tuple[str, str] | None:
    """The first of these columns, NULL in a document's row, for which the document does not say so; and why."""
    try:
        fields = json.loads(document)
    except (ValueError, RecursionError):
        fields = {}
    spelled = {field.casefold(): field for field, value in fields.items() if value is not None}
    said = {field.casefold() for field, value in fields.items() if value is None}
    for name in names:
        if name.casefold() not in said:
            other = spelled.get(name.casefold())
            return (
                name,
                "the field is missing" if other is None else f"the field is named {shown(other)[1:-1]}",
            )
    return None


def _unmarked(values: pa.Array) -> pa.Array:
    """Values without the byte order mark that a text may begin with, as a file may."""
    marked = pc.starts_with(values, BYTE_ORDER_MARK)
    if not pc.any(marked).as_py():
        return values
    return pc.if_else(marked, pc.binary_replace_slice(values, 0, len(BYTE_ORDER_MARK), b""), values)


def _as_text(values: pa.Array) -> pa.Array:
    """Bytes taken for text as they are, for questions about single letters."""
    return values.cast(pa.large_binary()).view(pa.large_string())


def _shown(document: bytes) -> str:
    return document[:LONGEST_KEPT].decode("utf-8", errors="backslashreplace")
