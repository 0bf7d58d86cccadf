"""Join graphs as pictures: a column for each input of a join, a row for each equality and each arrow.

    ┌───┐   ┌───┐
    │ i │   │ b │
    └─┬─┘   └─┬─┘
      ●───────●    i.itemid = b.itemid
      ●──────▶│    i waits for b: PUNCTUATED BY (itemid)
      │◀──────●    b waits for i: KEY (itemid)

Every line has a row of its own and every label stands beside the columns, so that no label can lie on a line,
however many inputs there are, and the canvas is as large as what is on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from headgate.explain.describe import visible
from headgate.explain.text_layout import SIZE, SMALL, TITLE, document, shelves, text, width, wrap
from headgate.safety.reasons.join_graph import JoinGraph

CLOSED, OPEN = "#2e7d32", "#c62828"
"""Of an arrow to an input that a promise closes, and to one that nothing closes in a query that is refused for it."""
_EQUAL, _COLUMN, _INPUT = "#777", "#ddd", "#666"
_MARGIN, _PAD, _GAP, _LINE, _ROW, _APART = 20, 10, 30, 16, 22, 10
_LONGEST_NAME, _LONGEST_LABEL = 28, 64
_WIDEST_ROW = 1200
_HEAD = 9
"""Length of an arrow's head, which is half as wide to each side."""


@dataclass(frozen=True)
class Titled:
    """A join's graph with what stands above it, and the colour of that."""

    title: str
    colour: str
    graph: JoinGraph
    refused: bool


@dataclass(frozen=True)
class _Row:
    """A line from one column to another with what is said beside it."""

    start: int
    end: int
    label: tuple[str, ...]
    colour: str
    arrow: bool = False
    dashed: bool = False
    first: bool = False
    """Whether it is the first between its two columns."""

    @property
    def height(self) -> float:
        return _ROW + _LINE * (len(self.label) - 1) + (_APART if self.first else 0)


@dataclass(frozen=True)
class _Column:
    """An input: its name in lines, and the left edge and the width of its box."""

    name: tuple[str, ...]
    x: float
    width: float
    windowed: bool

    @property
    def middle(self) -> float:
        return self.x + self.width / 2


@dataclass(frozen=True)
class _Block:
    """One graph before it has a place."""

    titled: Titled
    columns: tuple[_Column, ...]
    rows: tuple[_Row, ...]
    notes: tuple[str, ...]

    @property
    def head(self) -> float:
        """The height of the boxes."""
        return 12 + _LINE * max(len(each.name) for each in self.columns)

    @property
    def labels(self) -> float:
        """Where the labels begin."""
        return self.columns[-1].x + self.columns[-1].width + _GAP

    @property
    def width(self) -> float:
        labels = [self.labels + width(line) for row in self.rows for line in row.label]
        notes = [width(note, SMALL) for note in self.notes]
        boxes = self.columns[-1].x + self.columns[-1].width
        return max([boxes, width(self.titled.title, 1.05 * TITLE), *labels, *notes])

    @property
    def height(self) -> float:
        rows = sum(row.height for row in self.rows) + (_APART if self.rows else 0)
        return _TITLE_HEIGHT + self.head + rows + _LINE * len(self.notes) + (4 if self.notes else 0)


_TITLE_HEIGHT = 30


def join_picture(graphs: Sequence[Titled]) -> str:
    """The graphs of joins as one SVG document."""
    blocks = [_block(each) for each in graphs]
    if not blocks:
        said = "no query here joins streams"
        return document([text(said, _MARGIN, _MARGIN + SIZE)], width(said) + 2 * _MARGIN, 52, said)
    places, wide, tall = shelves(
        [(each.width, each.height) for each in blocks], _WIDEST_ROW, (2 * _GAP, 2 * _MARGIN)
    )
    parts = [
        part
        for block, (x, y) in zip(blocks, places, strict=True)
        for part in _draw(block, _MARGIN + x, _MARGIN + y)
    ]
    names = ", ".join(dict.fromkeys(visible(each.title) for each in graphs))
    return document(parts, wide + 2 * _MARGIN, tall + 2 * _MARGIN, f"join graph of {names}")


def _block(titled: Titled) -> _Block:
    graph, x = titled.graph, 0.0
    columns = []
    for name in graph.inputs:
        lines = wrap(visible(name), _LONGEST_NAME)
        wide = max(56.0, *(width(line) + 2 * _PAD for line in lines))
        columns.append(_Column(lines, x, wide, name in graph.windowed))
        x += wide + _GAP
    notes = [] if graph.equalities else ["nothing is equal: every row meets every other"]
    if graph.windowed:
        notes.append("green box: rows leave by themselves")
    rows = tuple(_rows(graph, OPEN if titled.refused else _EQUAL))
    return _Block(replace(titled, title=visible(titled.title)), tuple(columns), rows, tuple(notes))


def _rows(graph: JoinGraph, open_colour: str) -> Iterator[_Row]:
    """What is equal between two inputs, then the arrows between them; then the next two."""
    number = {name: position for position, name in enumerate(graph.inputs)}
    pairs = {tuple(sorted((number[a], number[b]))) for a, b, _ in graph.equalities}
    pairs |= {tuple(sorted((number[each.source], number[each.target]))) for each in graph.arrows}
    for pair in sorted(pairs):
        left, right = pair
        first = True
        equal = [what for a, b, what in graph.equalities if {number[a], number[b]} == {left, right}]
        if equal:
            yield _Row(left, right, _label(" and ".join(equal)), _EQUAL, first=True)
            first = False
        for each in graph.arrows:
            start, end = number[each.source], number[each.target]
            if {start, end} != {left, right}:
                continue
            said = f"{each.source} waits for {each.target}: {each.said}"
            colour = CLOSED if each.by else open_colour
            yield _Row(start, end, _label(said), colour, arrow=True, dashed=each.by is None, first=first)
            first = False


def _label(said: str) -> tuple[str, ...]:
    return wrap(visible(said), _LONGEST_LABEL)


def _draw(block: _Block, x: float, y: float) -> Iterator[str]:
    yield text(block.titled.title, x, y + TITLE, kind="title", colour=block.titled.colour)
    top = y + _TITLE_HEIGHT
    y = top + block.head
    foot = y + sum(row.height for row in block.rows) + _APART
    yield from _bands(block, x, y)
    if block.rows:
        for column in block.columns:
            at = x + column.middle
            yield f'<path d="M{at:.1f} {y:.0f} V{foot:.0f}" fill="none" stroke="{_COLUMN}"/>'
    for column in block.columns:
        yield from _draw_box(column, block.head, x, top)
    for row in block.rows:
        at = y + (_APART if row.first else 0) + _ROW / 2 + 2
        yield from _draw_line(row, x + block.columns[row.start].middle, x + block.columns[row.end].middle, at)
        for number, line in enumerate(row.label):
            yield text(line, x + block.labels, at + 4 + _LINE * number, colour=row.colour)
        y += row.height
    for number, note in enumerate(block.notes, start=1):
        yield text(note, x, (foot if block.rows else y) + 4 + _LINE * number - 3, kind="dim")


def _bands(block: _Block, x: float, y: float) -> Iterator[str]:
    """Behind every other pair of columns, so that the eye finds from a line to its label."""
    y += _APART / 2
    groups: list[float] = []
    for row in block.rows:
        if row.first:
            groups.append(0.0)
        groups[-1] += row.height
    for number, height in enumerate(groups):
        if number % 2 == 0 and len(groups) > 1:
            yield (
                f'<rect class="band" x="{x - 6:.1f}" y="{y:.1f}" width="{block.width + 12:.1f}" '
                f'height="{height:.1f}" rx="4" fill="#f6f6f6"/>'
            )
        y += height


def _draw_box(column: _Column, height: float, x: float, y: float) -> Iterator[str]:
    colour = CLOSED if column.windowed else _INPUT
    yield (
        f'<rect x="{x + column.x:.1f}" y="{y:.1f}" width="{column.width:.1f}" height="{height:.1f}" rx="6" '
        f'fill="#fafafa" stroke="{colour}" stroke-width="1.5"/>'
    )
    first = y + height / 2 - _LINE * (len(column.name) - 1) / 2 + 4
    for number, line in enumerate(column.name):
        yield text(line, x + column.middle, first + _LINE * number, kind="op", anchor="middle")


def _draw_line(row: _Row, start: float, end: float, y: float) -> Iterator[str]:
    """An arrow from one column to another, its head in its own colour; or a line with two dots: values are equal."""
    yield f'<circle cx="{start:.1f}" cy="{y:.1f}" r="3" fill="{row.colour}"/>'
    stop = end
    if row.arrow:
        stop = end - _HEAD if end > start else end + _HEAD
        yield (
            f'<path class="head" d="M{end:.1f} {y:.1f} L{stop:.1f} {y - _HEAD / 2:.1f} '
            f'L{stop:.1f} {y + _HEAD / 2:.1f} Z" fill="{row.colour}"/>'
        )
    else:
        yield f'<circle cx="{end:.1f}" cy="{y:.1f}" r="3" fill="{row.colour}"/>'
    dash = ' stroke-dasharray="5 4"' if row.dashed else ""
    kind = "arrow" if row.arrow else "equal"
    yield (
        f'<path class="{kind}" d="M{start:.1f} {y:.1f} H{stop:.1f}" fill="none" stroke="{row.colour}" '
        f'stroke-width="1.5"{dash}/>'
    )
