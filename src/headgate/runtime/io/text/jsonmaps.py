"""Maps in JSON: objects whose names are data, rewritten as arrays of entries, which Arrow can read.

```
before   {"m": {"a": 1, "b": 2}, "n": {}}
after    {"m": [{"key":"a","value": 1},{"key": "b","value": 2}], "n": []}
```

The brackets, colons and commas of a block are found at once, and from level to level those that belong to maps
are followed along the declared types.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Places = npt.NDArray[np.int64]

_BACKSLASH, _QUOTE = b'\\"'
_SPECIAL = np.zeros(256, np.bool_)
_SPECIAL[list(b"{}[]:,")] = True


def has_map(dtype: pa.DataType) -> bool:
    """Whether a type is a MAP or has one inside."""
    if pa.types.is_map(dtype):
        return True
    if pa.types.is_list(dtype):
        return has_map(dtype.value_type)
    return bool(pa.types.is_struct(dtype)) and any(has_map(part.type) for part in dtype)


def maps_as_entries(data: bytes, columns: Iterable[tuple[str, pa.DataType]]) -> bytes:
    """A block of JSON lines with the maps among the columns, and inside of them, as arrays of entries.

    Lines that are not JSON come out as something that is not JSON either.
    """
    tokens = _Tokens(data)
    rows = np.flatnonzero((tokens.codes == ord("{")) & (tokens.depth == 1))
    row_type = pa.struct([(name, dtype) for name, dtype in columns])
    edits = list(_edits(tokens, row_type, rows, 1))
    return _edited(tokens.letters, edits) if edits else data


class _Tokens:
    """The brackets, colons and commas of a block that are not inside of strings, in order.

    `depth` is the number of open brackets behind each.
    """

    def __init__(self, data: bytes) -> None:
        self.letters = np.frombuffer(data, np.uint8)
        places = np.flatnonzero(_SPECIAL[self.letters])
        self.places: Places = places[np.searchsorted(self.quotes, places) % 2 == 0]
        self.codes = self.letters[self.places]
        opening = (self.codes == ord("{")) | (self.codes == ord("["))
        closing = (self.codes == ord("}")) | (self.codes == ord("]"))
        self.opening, self.closing = opening, closing
        self.depth = np.cumsum(opening.astype(np.int64) - closing)

    @cached_property
    def quotes(self) -> Places:
        """Where strings begin and end."""
        quotes = np.flatnonzero(self.letters == _QUOTE)
        slashes = np.flatnonzero(self.letters == _BACKSLASH)
        if not slashes.size:
            return quotes
        edges = np.flatnonzero(np.diff(slashes) > 1)
        first, last = slashes[np.append(0, edges + 1)], slashes[np.append(edges, slashes.size - 1)]
        escaped = last[(last - first) % 2 == 0] + 1
        return quotes[~np.isin(quotes, escaped, assume_unique=True)]

    def within(self, which: npt.NDArray[np.bool_], opened: Places, level: int) -> Places:
        """Those tokens that stand directly inside of one of the opened brackets, whose inside is at `level`."""
        found = np.flatnonzero(which)
        candidates = np.flatnonzero(self.opening & (self.depth == level))
        if not candidates.size:
            return found[:0]
        around = np.searchsorted(candidates, found, side="left") - 1
        return found[(around >= 0) & np.isin(candidates[around], opened)]

    def named(self, colons: Places, name: str) -> Places:
        """Those colons whose name is the given one."""
        letters = np.frombuffer(name.encode(), np.uint8)
        closing = np.searchsorted(self.quotes, self.places[colons]) - 1
        colons, closing = colons[closing >= 1], closing[closing >= 1]
        start = self.quotes[closing - 1] + 1
        alike = self.quotes[closing] - start == letters.size
        colons, start = colons[alike], start[alike]
        if not colons.size:
            return colons
        same: npt.NDArray[np.bool_] = (self.letters[start[:, None] + np.arange(letters.size)] == letters).all(
            axis=1
        )
        named: Places = colons[same]
        return named

    def opened_by(self, colons: Places) -> Places:
        """The brackets that are the values behind some colons."""
        behind = colons[colons + 1 < self.places.size] + 1
        brackets: Places = behind[self.opening[behind]]
        return brackets


@dataclass(frozen=True)
class _Edit:
    """Text to insert at some places, or with `over` to put over what is there.

    Where two insertions meet, the one that belongs to the token in front comes first.
    """

    places: Places
    text: bytes
    behind: bool = False
    over: bool = False


def _edits(tokens: _Tokens, dtype: pa.DataType, opened: Places, level: int) -> Iterator[_Edit]:
    """The edits for values of a type whose brackets are given and have their inside at a level."""
    if not has_map(dtype) or not opened.size:
        return
    if pa.types.is_list(dtype):
        members = tokens.within(tokens.opening & (tokens.depth == level + 1), opened, level)
        yield from _edits(tokens, dtype.value_type, members, level + 1)
        return
    colons = tokens.within((tokens.codes == ord(":")) & (tokens.depth == level), opened, level)
    if pa.types.is_struct(dtype):
        for part in dtype:
            if has_map(part.type):
                yield from _edits(
                    tokens, part.type, tokens.opened_by(tokens.named(colons, part.name)), level + 1
                )
        return
    opened = opened[tokens.codes[opened] == ord("{")]
    yield from _entries(tokens, opened, colons, level)
    yield from _edits(tokens, dtype.item_type, tokens.opened_by(colons), level + 1)


def _entries(tokens: _Tokens, opened: Places, colons: Places, level: int) -> Iterator[_Edit]:
    """The edits that turn the objects at some brackets into arrays of entries."""
    closes = np.flatnonzero(tokens.closing & (tokens.depth == level - 1))
    behind = np.searchsorted(closes, opened)
    opened, behind = opened[behind < closes.size], behind[behind < closes.size]
    closed = closes[behind]
    empty = closed == opened + 1
    commas = tokens.within((tokens.codes == ord(",")) & (tokens.depth == level), opened, level)
    place = tokens.places
    yield _Edit(place[opened[empty]], b"[", over=True)
    yield _Edit(place[closed[empty]], b"]", over=True)
    yield _Edit(place[opened[~empty]], b"[")
    yield _Edit(place[opened[~empty]] + 1, b'"key":', behind=True)
    yield _Edit(place[colons], b',"value"')
    yield _Edit(place[commas], b"}")
    yield _Edit(place[commas] + 1, b'{"key":', behind=True)
    yield _Edit(place[closed[~empty]] + 1, b"]", behind=True)


def _edited(letters: npt.NDArray[np.uint8], edits: list[_Edit]) -> bytes:
    letters = letters.copy()
    for edit in edits:
        if edit.over:
            letters[edit.places] = edit.text[0]
    inserts = [edit for edit in edits if not edit.over]
    places = np.concatenate([np.repeat(edit.places, len(edit.text)) for edit in inserts])
    texts = np.concatenate(
        [np.tile(np.frombuffer(edit.text, np.uint8), edit.places.size) for edit in inserts]
    )
    ranks = np.concatenate([np.full(edit.places.size * len(edit.text), not edit.behind) for edit in inserts])
    # The sort is stable, so that the letters of a text stay in order.
    order = np.lexsort((ranks, places))
    return np.insert(letters, places[order], texts[order]).tobytes()
