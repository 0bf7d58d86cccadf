"""Bytes become text, or an error that points at the byte."""

from __future__ import annotations

import pytest

from headgate.language.decode import MOST_BYTES, decode
from headgate.language.parse import LONGEST_TEXT, parse
from headgate.model.errors import InputError
from headgate.model.source import SourceText


def test_utf8_with_and_without_a_byte_order_mark() -> None:
    assert decode("f.cql", "SELECT 'ß'".encode()).text == "SELECT 'ß'"
    assert decode("f.cql", b"\xef\xbb\xbfSELECT a").text == "SELECT a"


def test_a_byte_that_is_not_utf8_has_a_place() -> None:
    with pytest.raises(InputError) as caught:
        decode("f.cql", "SELECT 'ß',\n  '".encode() + b"\xff\x80' FROM s")
    assert caught.value.render() == "\n".join(
        [
            "f.cql:2:4: error[HG001]: this is not UTF-8 text: byte 16 is 0xff",
            "   |",
            " 2 |   '\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}' FROM s",
            "   |    ^",
            "  help: give a text file of CQL statements",
        ]
    )


def test_too_many_bytes() -> None:
    with pytest.raises(InputError, match="too long: at most 1,000,000 characters") as caught:
        decode("f.cql", b"-" * (MOST_BYTES + 1))
    assert caught.value.render().startswith("f.cql:1:1000001: error[HG001]: ")


def test_too_many_characters() -> None:
    with pytest.raises(InputError, match="this text has 1,000,001 characters"):
        parse(SourceText("f.cql", "-" * (LONGEST_TEXT + 1)))
