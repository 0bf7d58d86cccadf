"""Explanations as pictures: an SVG of the plan, drawn without any tool or network.

What an operator keeps is what a reader looks for, so the texts of its state are shown whole, a line or more for
each input. Titles are whole up to a number of lines; the rest is in the box's tooltip.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from xml.sax.saxutils import escape

from headgate.explain.describe import Description, QueryDescription, cut, visible
from headgate.explain.text_layout import SIZE, SMALL, TITLE, document, room, shelves, text, width, wrap
from headgate.optimize.state import StateChoice

PATTERN_COLOURS = {"MON": "#2e7d32", "WKS": "#00838f", "WK": "#b26a00", "STR": "#c62828"}
_MEANINGS = {"MON": "never dies", "WKS": "dies after a constant", "WK": "death known", "STR": "ends any time"}
_GAP_X, _GAP_Y, _MARGIN, _PAD, _LINE, _RULE = 30, 44, 20, 10, 16, 7
_NARROWEST, _WIDEST, _WIDEST_STATE, _WIDEST_JOIN = 130, 280, 380, 620
"""Widths of boxes: of most, of those that keep something, and of those below which many inputs stand."""
_WIDEST_ROW = 1200
"""Queries stand side by side up to this width."""
_MOST_LINES = 8
_HANGING = 2
_UNBOUNDED = "#c62828"


@dataclass(frozen=True)
class _Line:
    """A line of text in a box, in the style of a class of the document."""

    text: str
    kind: str = ""
    indent: int = 0
    colour: str = ""

    @property
    def width(self) -> float:
        size = SMALL if self.kind in ("dim", "small") else 1.05 * TITLE if self.kind == "title" else SIZE
        return width(" " * self.indent + self.text, size)


@dataclass(frozen=True)
class _Box:
    """An operator before it has a place: how wide it is, and it with all that it reads."""

    node: Description
    lines: tuple[_Line, ...]
    state: tuple[_Line, ...]
    width: float
    inputs: tuple[_Box, ...]

    @property
    def height(self) -> float:
        return 14 + _LINE * (len(self.lines) + len(self.state)) + (_RULE if self.state else 0)

    @property
    def below(self) -> float:
        """The width of all inputs side by side."""
        return sum(each.span for each in self.inputs) + _GAP_X * max(0, len(self.inputs) - 1)

    @property
    def span(self) -> float:
        return max(self.width, self.below)


@dataclass(frozen=True)
class _Placed:
    """A box with its place: the left upper corner."""

    box: _Box
    x: float
    y: float
    inputs: tuple[_Placed, ...]

    @property
    def middle(self) -> float:
        return self.x + self.box.width / 2

    @property
    def bottom(self) -> float:
        return self.y + self.box.height

    @property
    def pattern(self) -> str:
        return self.box.node.pattern

    def walk(self) -> Iterator[_Placed]:
        yield self
        for each in self.inputs:
            yield from each.walk()


@dataclass(frozen=True)
class _Block:
    """A query's picture before it has a place: its head, its plan, and how much room they take."""

    head: tuple[_Line, ...]
    plan: _Box
    width: float
    height: float


def query_svg(queries: list[tuple[QueryDescription, str]]) -> str:
    """One SVG document with plans and a note on each: side by side as far as there is room, then below."""
    blocks = [_block(query, note) for query, note in queries]
    places, right, bottom = shelves(
        [(each.width, each.height) for each in blocks], _WIDEST_ROW, (2 * _GAP_X, 2 * _MARGIN)
    )
    parts = [
        part
        for block, (x, y) in zip(blocks, places, strict=True)
        for part in _draw_block(block, _MARGIN + x, _MARGIN + y)
    ]
    bottom += 2.5 * _MARGIN
    legend, legend_width = _legend(bottom)
    names = ", ".join(dict.fromkeys(visible(query.name) for query, _ in queries))
    return document(
        [*parts, legend],
        max(right, legend_width) + 2 * _MARGIN,
        bottom + 1.5 * _MARGIN,
        f"plan of {names}",
    )


def _block(query: QueryDescription, note: str) -> _Block:
    plan = _measure(query.plan)
    head = tuple(_head(query, note, max(plan.span, _WIDEST_STATE)))
    wide = max(plan.span, *(line.width for line in head))
    tall = max(placed.bottom for placed in _place(plan, 0, _head_height(head)).walk())
    return _Block(head, plan, wide, tall)


def _head(query: QueryDescription, note: str, longest: float) -> Iterator[_Line]:
    restore = " RESTORE" if query.restore else ""
    said = visible(f"{query.name}: {query.output}{restore}{query.window or ''}, answer {query.pattern}")
    yield from (_Line(each, "title") for each in wrap(said, room(longest, 1.05 * TITLE)))
    if note:
        yield _Line(note, "dim")
    assumed = " (rates assumed: give --stats)" if query.assumed else ""
    cost = f"cost {query.cost:,.0f}/s{assumed}"
    yield from (_Line(each, "dim") for each in wrap(cost, room(longest, SMALL)))
    if query.state is not None:
        kept = f"keeps the answer: {visible(query.state.show())}"
        yield from (_Line(each, "dim") for each in wrap(kept, room(longest, SMALL)))


def _head_height(head: tuple[_Line, ...]) -> float:
    return _LINE * len(head) + _GAP_Y - 10


def _measure(node: Description, least: float = 0) -> _Box:
    """A box wide enough for its texts; operators in a chain are equally wide."""
    if len(node.inputs) == 1:
        longest = _chain_width(node)
        inputs: tuple[_Box, ...] = (_measure(node.inputs[0], max(least, longest)),)
        return _box(node, max(least, longest), inputs)
    inputs = tuple(_measure(each) for each in node.inputs)
    together = sum(each.span for each in inputs) + _GAP_X * max(0, len(inputs) - 1)
    limit = max(_limit(node), min(together, _WIDEST_JOIN))
    return _box(node, max(least if not inputs else 0, _natural(node, limit)), inputs)


def _chain_width(node: Description) -> float:
    """The widest of the boxes from here down to where several inputs meet."""
    widest = 0.0
    while len(node.inputs) == 1:
        widest = max(widest, _natural(node, _limit(node)))
        node = node.inputs[0]
    return widest if node.inputs else max(widest, _natural(node, _limit(node)))


def _limit(node: Description) -> float:
    return _WIDEST if node.state is None else _WIDEST_STATE


def _natural(node: Description, limit: float) -> float:
    lines = [*_title_lines(node, limit), *_state_lines(node.state, limit)]
    return max(_NARROWEST, *(line.width + 2 * _PAD for line in lines))


def _box(node: Description, wide: float, inputs: tuple[_Box, ...]) -> _Box:
    return _Box(node, tuple(_title_lines(node, wide)), tuple(_state_lines(node.state, wide)), wide, inputs)


def _title_lines(node: Description, wide: float) -> Iterator[_Line]:
    yield _Line(node.op, "op")
    longest = room(wide - 2 * _PAD)
    for phrase in node.phrases:
        lines = wrap(phrase, longest)
        if len(lines) > _MOST_LINES:
            lines = (*lines[: _MOST_LINES - 1], cut(" ".join(lines[_MOST_LINES - 1 :]), longest))
        yield from (_Line(line) for line in lines if line)


def _state_lines(state: StateChoice | None, wide: float) -> Iterator[_Line]:
    """What is kept of each input, whole."""
    for stored in state.stored if state is not None else ():
        several = state is not None and len(state.stored) > 1
        said = visible(f"{stored.input}: {stored.show()}" if several else stored.show())
        colour = _UNBOUNDED if stored.rows is None else ""
        for number, line in enumerate(wrap(said, room(wide - 2 * _PAD, SMALL), _HANGING)):
            yield _Line(line, "small", _HANGING if number else 0, colour)


def _place(box: _Box, x: float, y: float) -> _Placed:
    """A box in the middle of the room from `x` on that it and its inputs take, with these below it."""
    left = x + (box.span - box.below) / 2
    placed = []
    for each in box.inputs:
        placed.append(_place(each, left, y + box.height + _GAP_Y))
        left += each.span + _GAP_X
    middle = (placed[0].middle + placed[-1].middle) / 2 if placed else x + box.span / 2
    # Inputs of unequal widths would pull a box beyond its room.
    start = min(max(middle - box.width / 2, x), x + box.span - box.width)
    return _Placed(box, start, y, tuple(placed))


def _draw_block(block: _Block, x: float, y: float) -> Iterator[str]:
    for number, line in enumerate(block.head):
        yield text(line.text, x, y + 14 + _LINE * number, kind=line.kind)
    placed = _place(block.plan, x, y + _head_height(block.head))
    colour = PATTERN_COLOURS[placed.pattern]
    yield (
        f'<path d="M{placed.middle:.0f} {placed.y:.0f} V{placed.y - _GAP_Y / 2:.0f}" fill="none" '
        f'stroke="{colour}" stroke-width="2"/>{_label(placed, left=False)}'
    )
    yield from _draw(placed)


def _label(placed: _Placed, *, left: bool) -> str:
    """An edge's pattern, just above the box that the edge leaves, on the side to which it does not bend."""
    anchor, at = ("end", placed.middle - 6) if left else ("start", placed.middle + 6)
    return text(placed.pattern, at, placed.y - 7, colour=PATTERN_COLOURS[placed.pattern], anchor=anchor)


def _draw(placed: _Placed) -> Iterator[str]:
    for each in placed.inputs:
        bend = (each.y + placed.bottom) / 2
        yield (
            f'<path d="M{each.middle:.0f} {each.y:.0f} C{each.middle:.0f} {bend:.0f} {placed.middle:.0f} '
            f'{bend:.0f} {placed.middle:.0f} {placed.bottom:.0f}" fill="none" '
            f'stroke="{PATTERN_COLOURS[each.pattern]}" stroke-width="2"/>'
            f"{_label(each, left=each.middle < placed.middle - 1)}"
        )
        yield from _draw(each)
    yield _draw_box(placed)


def _draw_box(placed: _Placed) -> str:
    box, x, y = placed.box, placed.x + _PAD, placed.y + 1
    parts = []
    for line in box.lines:
        y += _LINE
        parts.append(text(line.text, x, y, kind=line.kind))
    if box.state:
        y += _RULE
        parts.append(
            f'<path d="M{placed.x + 1:.0f} {y:.0f} H{placed.x + box.width - 1:.0f}" fill="none" stroke="#ddd"/>'
        )
    for line in box.state:
        y += _LINE
        parts.append(
            text(line.text, x + width(" " * line.indent, SMALL), y, kind="small", colour=line.colour)
        )
    return (
        f'<rect x="{placed.x:.0f}" y="{placed.y:.0f}" width="{box.width:.0f}" height="{box.height:.0f}" rx="6" '
        f'fill="#fafafa" stroke="{PATTERN_COLOURS[placed.pattern]}" stroke-width="1.5">'
        f"<title>{escape('  '.join(box.node.phrases))}</title></rect>{''.join(parts)}"
    )


def _legend(y: float) -> tuple[str, float]:
    parts, x = [], float(_MARGIN)
    for pattern, meaning in _MEANINGS.items():
        label = f"{pattern} {meaning}"
        parts.append(text(label, x, y, kind="dim", colour=PATTERN_COLOURS[pattern]))
        x += width(label + "  ", SMALL)
    return "".join(parts), x - _MARGIN
