"""Explanations as pictures: an SVG of the plan, drawn without any tool or network."""

from __future__ import annotations

from dataclasses import dataclass
from xml.sax.saxutils import escape

from headgate.explain.describe import Description, QueryDescription

PATTERN_COLOURS = {"MON": "#2e7d32", "WKS": "#00838f", "WK": "#b26a00", "STR": "#c62828"}
_BOX_WIDTH, _BOX_HEIGHT, _GAP_X, _GAP_Y, _MARGIN, _HEADER = 250, 58, 26, 46, 20, 44
_LONGEST = 38


@dataclass(frozen=True)
class _Placed:
    node: Description
    x: float
    y: float
    inputs: tuple[_Placed, ...]


def query_svg(queries: list[QueryDescription]) -> str:
    """One SVG document with the plan of every query, one below the other."""
    parts: list[str] = []
    top, widest = float(_MARGIN), 0.0
    for query in queries:
        placed, width, height = _layout(query.plan, top + _HEADER)
        parts.append(_header(query, top))
        parts.extend(_draw(placed))
        widest = max(widest, width, 560.0)
        top += _HEADER + height + _MARGIN
    legend = _legend(top)
    width, height = widest + 2 * _MARGIN, top + 34
    style = (
        "<style>text{font-family:ui-monospace,Menlo,Consolas,monospace;font-size:12px;fill:#222}"
        ".op{font-weight:bold}.dim{fill:#666;font-size:11px}.title{font-size:14px;font-weight:bold}</style>"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img">'
        f'{style}<rect width="100%" height="100%" fill="white"/>{"".join(parts)}{legend}</svg>'
    )


def _layout(plan: Description, top: float) -> tuple[_Placed, float, float]:
    """Leaves side by side, every parent centred over what it reads."""
    next_x = [float(_MARGIN)]
    depth = [0]

    def place(node: Description, level: int) -> _Placed:
        depth[0] = max(depth[0], level)
        y = top + level * (_BOX_HEIGHT + _GAP_Y)
        inputs = tuple(place(each, level + 1) for each in node.inputs)
        if inputs:
            x = (inputs[0].x + inputs[-1].x) / 2
        else:
            x = next_x[0]
            next_x[0] += _BOX_WIDTH + _GAP_X
        return _Placed(node, x, y, inputs)

    placed = place(plan, 0)
    return placed, next_x[0] - _GAP_X, (depth[0] + 1) * (_BOX_HEIGHT + _GAP_Y)


def _header(query: QueryDescription, y: float) -> str:
    text = f"{query.name}: {query.output}{query.window or ''}, answer {query.pattern}"
    return f'<text class="title" x="{_MARGIN}" y="{y + 18:.0f}">{escape(text)}</text>'


def _draw(placed: _Placed) -> list[str]:
    node, x, y = placed.node, placed.x, placed.y
    colour = PATTERN_COLOURS[node.pattern]
    middle = x + _BOX_WIDTH / 2
    parts = []
    for each in placed.inputs:
        below = PATTERN_COLOURS[each.node.pattern]
        start_x, end_y = each.x + _BOX_WIDTH / 2, y + _BOX_HEIGHT
        bend = (each.y + end_y) / 2
        parts.append(
            f'<path d="M{start_x:.0f} {each.y:.0f} C{start_x:.0f} {bend:.0f} {middle:.0f} {bend:.0f} '
            f'{middle:.0f} {end_y:.0f}" fill="none" stroke="{below}" stroke-width="2"/>'
            f'<text x="{start_x + 6:.0f}" y="{each.y - 8:.0f}" style="fill:{below}">{each.node.pattern}</text>'
        )
        parts.extend(_draw(each))
    parts.append(
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{_BOX_WIDTH}" height="{_BOX_HEIGHT}" rx="6" fill="#fafafa" '
        f'stroke="{colour}" stroke-width="1.5"><title>{escape(node.title)}</title></rect>'
        f'<text class="op" x="{x + 10:.0f}" y="{y + 17:.0f}">{escape(node.op)}</text>'
        f'<text x="{x + 10:.0f}" y="{y + 33:.0f}">{escape(_cut(node.title, _LONGEST - 6))}</text>'
    )
    if node.state is not None:
        state = _cut(node.state.show(), _LONGEST)
        parts.append(f'<text class="dim" x="{x + 10:.0f}" y="{y + 49:.0f}">{escape(state)}</text>')
    return parts


def _legend(y: float) -> str:
    words = {"MON": "never dies", "WKS": "dies after a constant", "WK": "death known", "STR": "ends any time"}
    parts, x = [], float(_MARGIN)
    for pattern, meaning in words.items():
        colour = PATTERN_COLOURS[pattern]
        label = f"{pattern} {meaning}"
        parts.append(f'<text class="dim" x="{x:.0f}" y="{y + 10:.0f}" style="fill:{colour}">{label}</text>')
        x += 8 * len(label)
    return "".join(parts)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
