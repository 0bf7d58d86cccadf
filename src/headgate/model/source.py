"""Source text and spans: how every message finds its way back to the user's words."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True, order=True)
class Span:
    """Half-open range of character offsets in a source text."""

    start: int
    end: int

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end:
            raise ValueError(f"a span runs forward from 0, not {self.start}..{self.end}")


@dataclass(frozen=True)
class SourceText:
    """A named text, usually a file."""

    name: str
    text: str

    @cached_property
    def _line_starts(self) -> tuple[int, ...]:
        starts = [0]
        starts.extend(i + 1 for i, char in enumerate(self.text) if char == "\n")
        return tuple(starts)

    def line_column(self, offset: int) -> tuple[int, int]:
        """Line and column of a character, both counted from 1."""
        offset = min(max(offset, 0), len(self.text))
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def line(self, number: int) -> str:
        """Line `number`, counted from 1, without its line break."""
        start = self._line_starts[number - 1]
        end = self._line_starts[number] - 1 if number < len(self._line_starts) else len(self.text)
        return self.text[start:end].rstrip("\r")

    def locate(self, offset: int) -> str:
        """`name:line:column` of a character."""
        line, column = self.line_column(offset)
        return f"{self.name}:{line}:{column}"

    def excerpt(self, span: Span, *, width: int = 100) -> list[str]:
        """The span's first line and a line of carets under it, cut to `width` around the span."""
        number, column = self.line_column(span.start)
        text = self.line(number).replace("\t", " ")
        length = max(1, min(span.end - span.start, len(text) - column + 1))
        left = max(0, min(column - 1 - width // 3, len(text) - width))
        shown = text[left : left + width]
        lead, trail = ("…" if left else ""), ("…" if left + width < len(text) else "")
        caret_at = column - 1 - left + len(lead)
        carets = "^" * max(1, min(length, width - (column - 1 - left)))
        gutter = str(number)
        pad = " " * len(gutter)
        return [f" {pad} |", f" {gutter} | {lead}{shown}{trail}", f" {pad} | {' ' * caret_at}{carets}"]
