"""Explanations for a terminal: a tree, one line per operator, pattern and state on each."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from headgate.explain.describe import Description, QueryDescription, cut, visible

PATTERN_STYLES = {"MON": "green", "WKS": "cyan", "WK": "yellow", "STR": "red"}
_LONGEST_TITLE = 96


def query_text(query: QueryDescription) -> Text:
    """A query as lines of styled text."""
    restore = " RESTORE" if query.restore else ""
    window = f"{query.window}" if query.window else ""
    assumed = "  (rates assumed: give --stats)" if query.assumed else ""
    text = Text()
    text.append(visible(query.name), style="bold")
    text.append(f"  {query.output}{restore}{window}  answer ")
    text.append(query.pattern, style=PATTERN_STYLES[query.pattern])
    text.append(f"  cost {query.cost:,.0f}/s")
    text.append(assumed, style="dim")
    if query.state is not None:
        text.append(f"\n  keeps the answer: {visible(query.state.show())}", style="dim")
    text.append("\n")
    lines = list(_lines(query.plan, "", ""))
    width = max(len(prefix) + len(op) + 2 + len(title) for prefix, op, title, _ in lines)
    for prefix, op, title, node in lines:
        text.append(prefix, style="dim")
        text.append(op, style="bold")
        text.append(f"  {title}")
        text.append(" " * (width - len(prefix) - len(op) - 2 - len(title) + 2))
        text.append(node.pattern, style=PATTERN_STYLES[node.pattern])
        if node.state is not None:
            style = "red" if node.state.rows is None else "dim"
            gap = " " * (5 - len(node.pattern))
            text.append(f"{gap}{visible(node.state.show())}", style=style)
        text.append("\n")
    return text


def _lines(node: Description, first: str, rest: str) -> Iterator[tuple[str, str, str, Description]]:
    yield first, node.op, cut(node.title, _LONGEST_TITLE), node
    for index, each in enumerate(node.inputs):
        last = index == len(node.inputs) - 1
        yield from _lines(each, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "))
