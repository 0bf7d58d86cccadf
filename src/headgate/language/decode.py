"""Bytes to source text."""

from __future__ import annotations

from headgate.language.parse import LONGEST_TEXT
from headgate.model.errors import InputError, Place
from headgate.model.source import SourceText, Span

MOST_BYTES = 4 * LONGEST_TEXT
"""What the longest text can take in UTF-8; nobody needs to read more of a file to know that it is too long."""


def decode(name: str, data: bytes) -> SourceText:
    """The text that the bytes of a file hold; InputError, at the place, if they are too many or not UTF-8."""
    if len(data) > MOST_BYTES:
        source = SourceText(name, data[:MOST_BYTES].decode("utf-8", errors="replace"))
        raise InputError(
            f"this file is too long: at most {LONGEST_TEXT:,} characters are read",
            remedy="split it into several files",
            place=Place(source, Span(LONGEST_TEXT, LONGEST_TEXT)),
        )
    try:
        return SourceText(name, data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        source = SourceText(name, data.decode("utf-8", errors="replace"))
        raise InputError(
            f"this is not UTF-8 text: byte {error.start} is 0x{data[error.start]:02x}",
            remedy="give a text file of CQL statements",
            place=Place(source, Span(len(before), len(before) + 1)),
        ) from error
