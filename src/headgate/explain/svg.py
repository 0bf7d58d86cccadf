"""Explanations as pictures: an SVG of the plan, drawn without any tool or network."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from xml.sax.saxutils import escape

from headgate.explain.describe import Description, QueryDescription, cut, visible

PATTERN_COLOURS = {"MON": "#2e7d32", "WKS": "#00838f", "WK": "#b26a00", "STR": "#c62828"}
_MEANINGS = {"MON": "never dies", "WKS": "dies after a constant", "WK": "death known", "STR": "ends any time"}
_BOX_WIDTH, _GAP_X, _GAP_Y, _MARGIN, _HEADER, _LINE = 280, 30, 44, 20, 56, 16
_MOST_LINES = 3
_CHARACTER = 7.25
"""Width of a character of the font below, in pixels; the small font is narrower."""

_STYLE = (
    "<style>text{font-family:ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;font-size:12px;fill:#222}"
    ".op{font-weight:bold}.dim{fill:#666;font-size:11px}.title{font-size:14px;font-weight:bold}</style>"
)


@dataclass(frozen=True)
class _Placed:
    """An operator with its place: the left upper corner of its box, and the lines of text in it."""

    node: Description
    x: float
    y: float
    lines: tuple[str, ...]
    inputs: tuple[_Placed, ...]

    @property
    def middle(self) -> float:
        return self.x + _BOX_WIDTH / 2

    @property
    def bottom(self) -> float:
        return self.y + _height(self.node)


def query_svg(queries: list[QueryDescription]) -> str:
    """One SVG document with the plan of every query, one below the other."""
    parts: list[str] = []
    top, widest = float(_MARGIN), 0.0
    for query in queries:
        placed, right = _layout(query.plan, top + _HEADER)
        parts.append(_header(query, placed, top))
        parts.extend(_draw(placed))
        header_width = _CHARACTER * 1.25 * len(_headline(query))
        widest = max(widest, right, header_width)
        top = max(each.bottom for each in _walk(placed)) + 2 * _MARGIN
    legend, legend_width = _legend(top)
    width, height = max(widest, legend_width) + 2 * _MARGIN, top + 2 * _MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img">'
        f'{_STYLE}<rect width="100%" height="100%" fill="white"/>{"".join(parts)}{legend}</svg>'
    )


def _lines(node: Description) -> tuple[str, ...]:
    """The title in a few lines that fit into the box."""
    longest = int((_BOX_WIDTH - 20) / _CHARACTER)
    lines = textwrap.wrap(node.title, longest, break_on_hyphens=False) or [""]
    rest = " ".join(lines[_MOST_LINES - 1 :])
    return (*lines[: _MOST_LINES - 1], cut(rest, longest)) if rest else tuple(lines)


def _height(node: Description) -> float:
    return 14 + _LINE * (1 + len(_lines(node)) + (node.state is not None))


def _walk(placed: _Placed) -> Iterator[_Placed]:
    yield placed
    for each in placed.inputs:
        yield from _walk(each)


def _layout(plan: Description, top: float) -> tuple[_Placed, float]:
    """Leaves side by side, every parent centred over what it reads; and where the picture ends on the right."""
    next_x = [float(_MARGIN)]

    def place(node: Description, y: float) -> _Placed:
        below = y + _height(node) + _GAP_Y
        inputs = tuple(place(each, below) for each in node.inputs)
        if inputs:
            x = (inputs[0].x + inputs[-1].x) / 2
        else:
            x = next_x[0]
            next_x[0] += _BOX_WIDTH + _GAP_X
        return _Placed(node, x, y, _lines(node), inputs)

    placed = place(plan, top)
    return placed, next_x[0] - _GAP_X - _MARGIN


def _headline(query: QueryDescription) -> str:
    restore = " RESTORE" if query.restore else ""
    return visible(f"{query.name}: {query.output}{restore}{query.window or ''}, answer {query.pattern}")


def _header(query: QueryDescription, placed: _Placed, y: float) -> str:
    """The query's name, and the edge that leaves its plan."""
    title = f'<text class="title" x="{_MARGIN}" y="{y + 14:.0f}">{escape(_headline(query))}</text>'
    colour = PATTERN_COLOURS[placed.node.pattern]
    start = placed.y - _GAP_Y / 2
    return (
        f'{title}<path d="M{placed.middle:.0f} {placed.y:.0f} V{start:.0f}" fill="none" stroke="{colour}" '
        f'stroke-width="2"/>{_pattern(placed.node.pattern, placed.middle, placed.y, left=False)}'
    )


def _pattern(pattern: str, x: float, y: float, *, left: bool) -> str:
    """An edge's label, just above the box that the edge leaves, on the side to which it does not bend."""
    anchor, at = ("end", x - 6) if left else ("start", x + 6)
    return (
        f'<text x="{at:.0f}" y="{y - 7:.0f}" text-anchor="{anchor}" style="fill:{PATTERN_COLOURS[pattern]}">'
        f"{pattern}</text>"
    )


def _draw(placed: _Placed) -> list[str]:
    parts = []
    for each in placed.inputs:
        colour = PATTERN_COLOURS[each.node.pattern]
        bend = (each.y + placed.bottom) / 2
        parts.append(
            f'<path d="M{each.middle:.0f} {each.y:.0f} C{each.middle:.0f} {bend:.0f} {placed.middle:.0f} '
            f'{bend:.0f} {placed.middle:.0f} {placed.bottom:.0f}" fill="none" stroke="{colour}" '
            f'stroke-width="2"/>{_pattern(each.node.pattern, each.middle, each.y, left=each.x < placed.x)}'
        )
        parts.extend(_draw(each))
    return [*parts, _box(placed)]


def _box(placed: _Placed) -> str:
    node, x, y = placed.node, placed.x + 10, placed.y + 17
    texts = [f'<text class="op" x="{x:.0f}" y="{y:.0f}">{escape(node.op)}</text>']
    for line in placed.lines:
        y += _LINE
        texts.append(f'<text x="{x:.0f}" y="{y:.0f}">{escape(line)}</text>')
    if node.state is not None:
        state = cut(visible(node.state.show()), int((_BOX_WIDTH - 20) / (_CHARACTER * 11 / 12)))
        texts.append(f'<text class="dim" x="{x:.0f}" y="{y + _LINE:.0f}">{escape(state)}</text>')
    return (
        f'<rect x="{placed.x:.0f}" y="{placed.y:.0f}" width="{_BOX_WIDTH}" height="{_height(node):.0f}" rx="6" '
        f'fill="#fafafa" stroke="{PATTERN_COLOURS[node.pattern]}" stroke-width="1.5">'
        f"<title>{escape(node.title)}</title></rect>{''.join(texts)}"
    )


def _legend(y: float) -> tuple[str, float]:
    parts, x = [], float(_MARGIN)
    for pattern, meaning in _MEANINGS.items():
        label = f"{pattern} {meaning}"
        parts.append(
            f'<text class="dim" x="{x:.0f}" y="{y + 10:.0f}" style="fill:{PATTERN_COLOURS[pattern]}">{label}</text>'
        )
        x += _CHARACTER * (len(label) + 2)
    return "".join(parts), x - _MARGIN
