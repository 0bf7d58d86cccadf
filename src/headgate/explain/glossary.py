"""The glossary: the words of reports in plain words, from docs/glossary.md, which the package brings along.

Every report ends with POINTER; an HTML page has the entries themselves, so that it needs nothing from elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from html import escape
from pathlib import Path
from types import MappingProxyType

POINTER = "words: headgate glossary, or docs/glossary.md"
"""The last line of every report for people."""

_PACKED = Path(__file__).with_name("glossary.md")
_SOURCE = Path(__file__).parents[3] / "docs" / "glossary.md"
"""In a checkout, where the package is used as it lies."""

_INLINE = re.compile(r"`([^`]+)`|\[([^\]]+)\]\(#([\w-]+)\)")


@cache
def entries() -> Mapping[str, str]:
    """Every word with what the page says of it, in Markdown."""
    page = (_PACKED if _PACKED.is_file() else _SOURCE).read_text(encoding="utf-8")
    _, *sections = re.split(r"^## ", page, flags=re.MULTILINE)
    parts = [section.partition("\n") for section in sections]
    return MappingProxyType({word.strip(): said.strip() for word, _, said in parts})


def plain(said: str) -> str:
    """An entry for a terminal: links without their targets."""
    return re.sub(r"\[([^\]]+)\]\(#[\w-]+\)", r"\1", said)


def glossary_html() -> str:
    """All entries as a section of a page: `#late` is where a link to `late` leads."""
    parts = [
        f'<dt id="{_anchor(word)}"><b>{escape(word)}</b></dt><dd>{_paragraphs(said)}</dd>'
        for word, said in entries().items()
    ]
    return f'<section id="glossary"><h2>What the words mean</h2><dl>{"".join(parts)}</dl></section>'


def _anchor(word: str) -> str:
    return word.replace(" ", "-")


def _paragraphs(said: str) -> str:
    return "".join(
        _list(block) if block.startswith("* ") else f"<p>{_inline(' '.join(block.splitlines()))}</p>"
        for block in said.split("\n\n")
    )


def _list(block: str) -> str:
    return f"<ul>{''.join(f'<li>{_inline(line[2:])}</li>' for line in block.splitlines())}</ul>"


def _inline(text: str) -> str:
    """Code and links within the page; everything else as it is."""
    parts, at = [], 0
    for match in _INLINE.finditer(text):
        code, link, target = match.groups()
        parts.append(escape(text[at : match.start()]))
        parts.append(f"<code>{escape(code)}</code>" if code else f'<a href="#{target}">{escape(link)}</a>')
        at = match.end()
    return "".join([*parts, escape(text[at:])])
