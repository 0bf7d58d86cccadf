"""Records: where the rows of a block of text begin and end, by one pass over its special bytes.

A line break ends a CSV record unless it stands in a quoted field, and whether it does depends on every quote before
it. The automaton below reads only separators, quotes and line breaks:

```
            quote                      separator, line break
  start ───────────► quoted             start ◄── from everywhere but quoted and escaped
    │ other            │ ▲ quote, other
    ▼            quote ▼ │             escaped: after the escape in a quoted field, back to quoted
  plain ◄─ other ── closed             plain keeps quotes as they are
```

It runs on all stretches of the block at once: first for every state a stretch may begin in, as a function from
state to state, and then, these functions applied one after the other, for the state it does begin in.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

Places = npt.NDArray[np.int64]
Codes = npt.NDArray[np.uint8]

_START, _PLAIN, _QUOTED, _CLOSED, _ESCAPED = range(5)
_STATES = 5
_SEPARATOR, _BREAK, _QUOTE, _ESCAPE = range(4)
_NEXT = {
    _SEPARATOR: (_START, _START, _QUOTED, _START, _QUOTED),
    _BREAK: (_START, _START, _QUOTED, _START, _QUOTED),
    _QUOTE: (_QUOTED, _PLAIN, _CLOSED, _QUOTED, _QUOTED),
    _ESCAPE: (_PLAIN, _PLAIN, _ESCAPED, _PLAIN, _QUOTED),
}
_AFTER_OTHER = (_PLAIN, _PLAIN, _QUOTED, _PLAIN, _QUOTED)
"""The state after bytes that are not special."""


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


@dataclass(frozen=True, eq=False)
class Records:
    """The rows of a block: the range of bytes of each without its line break. Empty lines are no rows.

    `fields` counts the fields, `torn` marks rows with text behind a closing quote; both are None for text that
    has no fields. `complete` is where the last row that ends in a line break ends; `open` says that
    the block ends inside of quotes.
    """

    starts: Places
    ends: Places
    complete: int
    fields: Places | None = None
    torn: npt.NDArray[np.bool_] | None = None
    open: bool = False

    def __len__(self) -> int:
        return self.starts.size


def lines(data: bytes) -> Records:
    """The lines of a block, a last one without a line break included."""
    breaks = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n"))
    starts, ends, _ = _between(breaks, len(data))
    return Records(starts, ends, int(breaks[-1]) + 1 if breaks.size else 0)


def tidy_end(data: bytes, dialect: CsvDialect) -> int | None:
    """Where the last complete CSV record ends; None if quotes are not used by the book and need a closer look.

    By the book, a quote stands at the beginning of a field, at its end, or doubled inside of it. Then a line break
    is inside a field if and only if an odd number of quotes is before it.
    """
    if dialect.quote is None or (quote := dialect.quote.encode()) not in data:
        return max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
    if dialect.escape is not None and dialect.escape.encode() in data:
        return None
    letters = np.frombuffer(data, np.uint8)
    quotes = np.flatnonzero(letters == quote[0])
    beside = np.zeros(256, np.bool_)
    beside[[ord(dialect.separator), ord("\n"), ord("\r"), quote[0]]] = True
    opening, closing = quotes[0::2], quotes[1::2]
    opening = opening[1:] if opening[0] == 0 else opening
    closing = closing[:-1] if closing.size and closing[-1] == letters.size - 1 else closing
    if not (beside[letters[opening - 1]].all() and beside[letters[closing + 1]].all()):
        return None
    last = len(data)
    while (last := max(data.rfind(b"\n", 0, last), data.rfind(b"\r", 0, last))) >= 0:
        before = int(np.searchsorted(quotes, last))
        if before % 2 == 0:
            break
        # All line breaks behind the quote that opened are inside of the same field.
        last = int(quotes[before - 1])
    return last + 1


def csv_records(data: bytes, dialect: CsvDialect) -> Records:
    """The CSV records of a block, a last one without a line break included."""
    scan = _Scan(data, dialect)
    outside = scan.outside_quotes
    breaks = scan.places[outside & (scan.codes == _BREAK)]
    starts, ends, kept = _between(breaks, len(data))
    separators = scan.places[outside & (scan.codes == _SEPARATOR)]
    fields = 1 + np.searchsorted(separators, ends) - np.searchsorted(separators, starts)
    torn = np.zeros(len(kept), np.bool_)
    torn[np.searchsorted(breaks, scan.torn)] = True
    complete = int(breaks[-1]) + 1 if breaks.size else 0
    return Records(starts, ends, complete, fields, torn[kept], open=scan.last in (_QUOTED, _ESCAPED))


def unescaped(data: bytes, dialect: CsvDialect) -> bytes:
    """A block in which quotes in quoted fields are doubled instead of escaped."""
    scan = _Scan(data, dialect)
    letters = np.frombuffer(data, np.uint8).copy()
    escapes = scan.places[(scan.codes == _ESCAPE) & (scan.states == _QUOTED)]
    escapes = escapes[escapes + 1 < letters.size]
    escape, behind = letters[escapes], letters[escapes + 1]
    assert dialect.quote is not None
    letters[escapes[behind == ord(dialect.quote)]] = ord(dialect.quote)
    return np.delete(letters, escapes[behind == escape]).tobytes()


def _between(breaks: Places, size: int) -> tuple[Places, Places, npt.NDArray[np.bool_]]:
    """Ranges between line breaks, without empty ones, and which of all ranges were kept."""
    starts = np.concatenate(([0], breaks + 1))
    ends = np.concatenate((breaks, [size]))
    kept = ends > starts
    return starts[kept], ends[kept], kept


class _Scan:
    """The special bytes of a block and the state of the automaton at each."""

    def __init__(self, data: bytes, dialect: CsvDialect) -> None:
        self._quoting = dialect.quote is not None and dialect.quote.encode() in data
        special = {ord(dialect.separator): _SEPARATOR, ord("\n"): _BREAK, ord("\r"): _BREAK}
        if dialect.quote is not None and self._quoting:
            special[ord(dialect.quote)] = _QUOTE
            if dialect.escape is not None:
                special[ord(dialect.escape)] = _ESCAPE
        letters = np.frombuffer(data, np.uint8)
        found = np.zeros(letters.size, np.bool_)
        codes = np.zeros(256, np.uint8)
        for letter, code in special.items():
            found |= letters == letter
            codes[letter] = code
        self.places: Places = np.flatnonzero(found)
        self.codes: Codes = codes[letters[self.places]]
        # Whether there are other bytes between this special byte and the one before.
        self._gaps = np.diff(self.places, prepend=-1) > 1
        self._size = len(data)

    @cached_property
    def _before(self) -> Codes:
        """The state before each special byte and before the other bytes in front of it."""
        if not self._quoting:
            return np.zeros(self.places.size, np.uint8)
        return _run(2 * self.codes + self._gaps)

    @cached_property
    def states(self) -> Codes:
        """The state in which each special byte is met."""
        return np.where(self._gaps, np.array(_AFTER_OTHER, np.uint8)[self._before], self._before)

    @property
    def outside_quotes(self) -> npt.NDArray[np.bool_]:
        found: npt.NDArray[np.bool_] = (self.states != _QUOTED) & (self.states != _ESCAPED)
        return found

    @property
    def last(self) -> int:
        """The state behind the last special byte."""
        return _NEXT[int(self.codes[-1])][int(self.states[-1])] if self.places.size else _START

    @property
    def torn(self) -> Places:
        """Places in rows that have text behind a closing quote."""
        found = self.places[(self._before == _CLOSED) & (self._gaps | (self.codes == _ESCAPE))]
        trailing = self.last == _CLOSED and int(self.places[-1]) + 1 < self._size
        return np.append(found, self._size) if trailing else found


@dataclass(frozen=True, eq=False)
class _Machine:
    """All functions from state to state that sequences of special bytes can be.

    The first `symbols` are those of single special bytes, each without and with other bytes in front, and the next
    one changes nothing. `then` has, for every function, the number of the function that it and a symbol are.
    """

    functions: Codes
    symbols: int
    then: Codes


@lru_cache(maxsize=1)
def _machine() -> _Machine:
    single = [
        tuple(after[state] for state in entered)
        for after in _NEXT.values()
        for entered in (range(_STATES), _AFTER_OTHER)
    ]
    functions = [*single, tuple(range(_STATES))]
    known = {function: number for number, function in reversed(list(enumerate(functions)))}
    then: list[list[int]] = []
    # The list grows while it is walked, until no composition is new.
    for function in functions:
        row = []
        for symbol in functions[: len(single) + 1]:
            both = tuple(symbol[state] for state in function)
            if both not in known:
                known[both] = len(functions)
                functions.append(both)
            row.append(known[both])
        then.append(row)
    return _Machine(np.array(functions, np.uint8), len(single), np.array(then, np.uint8))


def _run(symbols: Codes) -> Codes:
    """The state before each symbol, from the start state on."""
    machine = _machine()
    nothing, width = machine.symbols, machine.symbols + 1
    lanes = max(1, int(np.sqrt(symbols.size)))
    steps = -(-symbols.size // lanes)
    padded = np.full(lanes * steps, nothing, np.intp)
    padded[: symbols.size] = symbols
    # Stretch i is column i, so that one step of all stretches is one row.
    rows = np.ascontiguousarray(padded.reshape(lanes, steps).T)
    # Functions and states are kept as the places where their row begins in the flat table that says what comes next.
    then = machine.then.ravel().astype(np.intp) * width
    function = np.full(lanes, nothing * width, np.intp)
    for row in rows:
        function = then[function + row]
    entered = [_START]
    for number in (function[:-1] // width).tolist():
        entered.append(int(machine.functions[number, entered[-1]]))
    move = machine.functions[:width].T.astype(np.intp).ravel() * width
    state = np.array(entered, np.intp) * width
    before = np.empty((steps, lanes), np.uint8)
    for step, row in enumerate(rows):
        before[step] = state
        state = move[state + row]
    return (before // width).T.ravel()[: symbols.size]
