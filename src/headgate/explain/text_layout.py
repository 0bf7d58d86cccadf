"""Text layout: text in pictures, measured without a font, wrapped to fit and never cut by accident.

Pictures use a monospaced font, so that the width of a text follows from its characters alone: the layout that is
computed here is the one that every viewer shows.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

FONT = "font-family:ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace"
SIZE, SMALL, TITLE = 12, 11, 14
"""Font sizes in pixels."""

_ADVANCE = 0.61
"""Width of a character in font sizes: a little more than that of any font above."""

_BREAKS = "._,)=-/ "
"""Where a word that is too long for a line is parted rather than anywhere."""


def cells(text: str) -> int:
    """How many characters wide a text is: signs of East Asia take two places, accents none."""
    return sum(
        0 if unicodedata.combining(each) else 2 if unicodedata.east_asian_width(each) in "WF" else 1
        for each in text
    )


def width(text: str, size: float = SIZE) -> float:
    """Pixels that a line of text takes, at most."""
    return cells(text) * size * _ADVANCE


def room(pixels: float, size: float = SIZE) -> int:
    """How many characters fit into so many pixels."""
    return int(pixels / (size * _ADVANCE) + 1e-6)


def wrap(text: str, longest: int, hanging: int = 0) -> tuple[str, ...]:
    """All of the text in lines of at most `longest` characters; lines after the first leave `hanging` free."""
    lines: list[str] = []
    line = ""
    for word in text.split(" "):
        free = longest - (hanging if lines else 0)
        if line and cells(line) + 1 + cells(word) <= free:
            line = f"{line} {word}"
            continue
        if line:
            lines.append(line)
        *full, line = _pieces(word, longest - hanging if lines else longest, longest - hanging)
        lines.extend(full)
    return (*lines, line)


def _pieces(word: str, first: int, longest: int) -> Iterator[str]:
    """A word in pieces that fit on a line each, parted after a full stop or the like where there is one."""
    free = first
    while cells(word) > free:
        end = free if cells(word) == len(word) else max(1, free // 2)
        good = max(word.rfind(each, 1, end) for each in _BREAKS) + 1
        end = good if good > end // 2 else end
        yield word[:end]
        word, free = word[end:], longest
    yield word


def text(
    said: str,
    x: float,
    y: float,
    *,
    kind: str = "",
    colour: str = "",
    anchor: str = "",
) -> str:
    """A line of text as SVG; `kind` is a class of the picture's style."""
    attributes = f' class="{kind}"' if kind else ""
    attributes += f' style="fill:{colour}"' if colour else ""
    attributes += f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{x:.0f}" y="{y:.0f}"{attributes}>{escape(said)}</text>'


Size = tuple[float, float]


def shelves(sizes: list[Size], longest: float, gaps: Size) -> tuple[list[Size], float, float]:
    """Where blocks stand, side by side as far as there is room and then below; the width and height of all.

    A row is as long as `longest`, or as the longest block.
    """
    longest = max([longest, *(wide for wide, _ in sizes)])
    places: list[Size] = []
    x, y, tallest, right = 0.0, 0.0, 0.0, 0.0
    for wide, tall in sizes:
        if x and x + wide > longest:
            x, y, tallest = 0.0, y + tallest + gaps[1], 0.0
        places.append((x, y))
        right = max(right, x + wide)
        x += wide + gaps[0]
        tallest = max(tallest, tall)
    return places, right, y + tallest


def document(parts: list[str], picture_width: float, picture_height: float, label: str) -> str:
    """An SVG document of its own, without scripts and without anything from elsewhere."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{picture_width:.0f}" height="{picture_height:.0f}" '
        f'viewBox="0 0 {picture_width:.0f} {picture_height:.0f}" role="img" aria-label={quoteattr(label)}>'
        f"<style>text{{{FONT};font-size:{SIZE}px;fill:#222}}.op{{font-weight:bold}}"
        f".dim{{fill:#666;font-size:{SMALL}px}}.small{{font-size:{SMALL}px}}"
        f".title{{font-size:{TITLE}px;font-weight:bold}}</style>"
        f'<rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>'
    )
