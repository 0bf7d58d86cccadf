"""Reading Zeek's tab-separated logs into Arrow tables.

A log describes itself in lines that begin with `#`:

```
#separator \\x09
#set_separator	,
#empty_field	(empty)
#unset_field	-
#fields	ts	uid	id.orig_h	answers
#types	time	string	addr	vector[string]
1521911720.865716	CqKst53	10.47.1.100	a.example,b.example
#close	2024-04-12-19-29-12
```
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from headgate.model import types
from headgate.model.errors import DataError, InputError

_GZIP_MAGIC = b"\x1f\x8b"
_SCALARS: Mapping[str, pa.DataType] = {
    "time": types.TIMESTAMP,
    "interval": types.DOUBLE,
    "bool": types.BOOLEAN,
    "count": types.BIGINT,
    "int": types.BIGINT,
    "port": types.INT,
    "double": types.DOUBLE,
}


def read_zeek(path: Path | str) -> pa.Table:
    """Reads a log, plain or gzipped, and returns its rows in the order of the file.

    Times become timestamps, intervals seconds, sets and vectors lists, everything without a better type text.
    Dots in field names become underscores (`id.orig_h` is `id_orig_h`): a dot means something else in SQL.
    What Zeek wrote as `\\xNN` stays as written.
    """
    path = Path(path)
    try:
        raw = path.read_bytes()
        data = gzip.decompress(raw) if raw.startswith(_GZIP_MAGIC) else raw
    except (OSError, EOFError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    log = _Header.read(path, data)
    body = _without_comments(data[log.length :])
    if not body:
        return log.schema.empty_table()
    try:
        texts = pyarrow.csv.read_csv(
            pa.BufferReader(body),
            read_options=pyarrow.csv.ReadOptions(column_names=log.schema.names),
            parse_options=pyarrow.csv.ParseOptions(delimiter=log.separator, quote_char=False),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types={field.name: _as_read(field.type) for field in log.schema},
                null_values=[log.unset],
                strings_can_be_null=True,
                true_values=["T"],
                false_values=["F"],
            ),
        )
        columns = [log.typed(texts.column(field.name), field.type) for field in log.schema]
    except pa.ArrowInvalid as error:
        raise DataError(f"{path} does not fit its own #fields and #types lines: {error}") from error
    return pa.table(columns, schema=log.schema)


@dataclass(frozen=True)
class _Header:
    """What the first lines of a log say about the rest; `length` is theirs in bytes."""

    length: int
    separator: str
    set_separator: str
    empty: str
    unset: str
    schema: pa.Schema

    @staticmethod
    def read(path: Path, data: bytes) -> _Header:
        """Reads the lines that begin with # at the top of the log at `path`."""
        length, separator, lines = 0, "\t", dict[str, str]()
        while data[length : length + 1] == b"#":
            end = data.find(b"\n", length)
            end = len(data) if end < 0 else end
            line = data[length + 1 : end].decode("utf-8", errors="replace").rstrip("\r")
            length = min(end + 1, len(data))
            if line.startswith("separator "):
                # The one line that cannot use the separator; it spells it as an escape.
                separator = _unescape(line.removeprefix("separator "))
            else:
                name, _, rest = line.partition(separator)
                lines[name] = rest
        missing = [f"#{name}" for name in ("fields", "types") if name not in lines]
        if missing:
            raise DataError(
                f"{path} is no Zeek log: there is no {' and no '.join(missing)} line at its top",
                remedy="give a log in Zeek's tab-separated form, not JSON",
            )
        names, kinds = (lines[key].split(separator) for key in ("fields", "types"))
        if len(names) != len(kinds):
            raise DataError(f"{path} names {len(names)} #fields but {len(kinds)} #types")
        fields = [(name.replace(".", "_"), _type(kind)) for name, kind in zip(names, kinds, strict=True)]
        return _Header(
            length=length,
            separator=separator,
            set_separator=_unescape(lines.get("set_separator", ",")),
            empty=lines.get("empty_field", "(empty)"),
            unset=lines.get("unset_field", "-"),
            schema=pa.schema(fields),
        )

    def typed(self, column: pa.ChunkedArray, dtype: pa.DataType) -> pa.ChunkedArray | pa.Array:
        """A column as CSV reading leaves it, turned into its type."""
        if dtype == types.STRING:
            return pc.if_else(pc.equal(column, self.empty), "", column)
        if dtype == types.TIMESTAMP:
            return _timestamps(column)
        if pa.types.is_list(dtype):
            return self._lists(column.combine_chunks(), dtype)
        return column

    def _lists(self, column: pa.Array, dtype: pa.DataType) -> pa.Array:
        """Texts such as `a,b` as lists; the word for an empty field as the list without elements."""
        full = pc.if_else(pc.equal(column, self.empty), pa.scalar(None, types.STRING), column)
        lists = pc.split_pattern(full, self.set_separator)
        lengths = pc.fill_null(pc.list_value_length(lists), 0)
        offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])
        elements = self._elements(pc.list_flatten(lists), dtype.value_type)
        return pa.ListArray.from_arrays(offsets, elements, type=dtype, mask=pc.is_null(column))

    def _elements(self, texts: pa.Array, dtype: pa.DataType) -> pa.Array:
        texts = pc.if_else(pc.equal(texts, self.unset), pa.scalar(None, types.STRING), texts)
        if dtype == types.TIMESTAMP:
            return _timestamps(texts.cast(pa.float64()))
        if dtype == types.BOOLEAN:
            return pc.equal(texts, "T")
        return texts.cast(dtype)


def _timestamps(seconds: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """Seconds since the epoch as instants; a double, rounded, is exact to the microsecond for centuries."""
    return pc.round(pc.multiply(seconds, 1e6)).cast(pa.int64()).cast(types.TIMESTAMP)


def _type(kind: str) -> pa.DataType:
    """The Arrow type for one of Zeek's: `time`, `addr`, `set[addr]`, …"""
    container, bracket, element = kind.partition("[")
    if bracket:
        return pa.list_(_SCALARS.get(element.removesuffix("]"), types.STRING))
    return _SCALARS.get(container, types.STRING)


def _as_read(dtype: pa.DataType) -> pa.DataType:
    """What a column is read as before `typed` finishes it."""
    if dtype == types.TIMESTAMP:
        return pa.float64()
    return types.STRING if pa.types.is_list(dtype) else dtype


def _unescape(text: str) -> str:
    """`\\x09` as the character that it stands for."""
    return re.sub(r"\\x([0-9a-fA-F]{2})", lambda match: chr(int(match[1], 16)), text)


def _without_comments(body: bytes) -> bytes:
    """The rows without the lines that begin with # after them."""
    while body:
        last = body.rstrip(b"\r\n").rfind(b"\n") + 1
        if body[last : last + 1] != b"#":
            return body
        body = body[:last]
    return body
