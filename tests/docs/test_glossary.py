"""The glossary explains what reports say, and every report leads to it."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from tests.cli_runner import headgate

from headgate.explain.glossary import POINTER, entries, glossary_html

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "examples" / "quickstart.cql"
WORDS = (
    "slack, drain, promise, birth and death, late, pattern, watermark, tick, closing, conditional, bounded, refused, "
    "assumption, state, structure, clock, event time, window, punctuation, reject"
)


@pytest.mark.parametrize("word", WORDS.split(", "))
def test_a_word_of_the_reports_is_explained(word: str) -> None:
    assert word in entries()


def test_words_are_in_order_and_each_has_an_example() -> None:
    assert list(entries()) == sorted(entries())
    for word, said in entries().items():
        before, example, after = said.partition("Example: ")
        assert before.strip(), word
        assert example, word
        assert after.strip(), word
        assert len(re.findall(r"\.(?=\s|$)", before)) <= 4, f"{word} should have a few sentences only"


def test_links_within_the_page_lead_somewhere() -> None:
    known = {word.replace(" ", "-") for word in entries()}
    assert set(re.findall(r"\]\(#([\w-]+)\)", PAGE)) <= known


@pytest.mark.parametrize("document", ["README.md", "docs/check.md", "docs/explain.md", "docs/run.md"])
def test_a_document_links_to_it(document: str) -> None:
    assert re.search(r"\]\((docs/)?glossary\.md\)", (ROOT / document).read_text(encoding="utf-8"))


def test_the_words_for_states_and_patterns_are_all_there() -> None:
    for structure in ("runs", "fifo", "calendar", "hash", "groups", "values", "table", "buckets", "sums"):
        assert f"`{structure}" in entries()["structure"]
    for pattern in ("MON", "WKS", "WK", "STR"):
        assert f"* {pattern}," in entries()["pattern"]


def test_text_reports_end_with_where_it_is(tmp_path: Path) -> None:
    for command in ("check", "explain"):
        assert headgate(command, EXAMPLE).out.splitlines()[-1] == POINTER
    ran = headgate("run", EXAMPLE, "--engine", "local", "--output", tmp_path / "out")
    assert ran.err.splitlines()[-1].strip() == POINTER
    assert POINTER not in headgate("check", EXAMPLE, "--format", "json").out


def test_an_html_report_has_it_within() -> None:
    page = headgate("check", EXAMPLE, "--format", "html").out
    assert 'href="#glossary"' in page
    section = ET.fromstring(glossary_html())
    assert glossary_html() in page
    targets = {each.get("id") for each in section.iter()} - {None}
    assert {"glossary", "late", "birth-and-death"} <= targets
    assert {str(each.get("href"))[1:] for each in section.iter("a")} <= targets


def test_the_command_prints_one_word_or_all() -> None:
    one = headgate("glossary", "late")
    assert one.out.startswith("late\n  A row is late if")
    assert "](#" not in one.out
    assert headgate("glossary", "Death").out.startswith("birth and death\n")
    everything = headgate("glossary").out
    assert all(f"\n{word}\n" in f"\n{everything}" for word in entries())


def test_a_word_that_it_does_not_have() -> None:
    done = headgate("glossary", "slak")
    assert done.code == 2
    assert "did you mean slack?" in done.err
