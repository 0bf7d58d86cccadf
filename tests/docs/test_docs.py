"""Every command and example in the documents runs, and says what the document says it says."""

from __future__ import annotations

import difflib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from headgate.cli.main import app
from headgate.language.parse import parse
from headgate.model.errors import LanguageError
from headgate.model.source import SourceText

ROOT = Path(__file__).parents[2]
DOCUMENTS = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))

PROGRAMS = {"headgate", "cat", "ls"}
"""What a document may run: enough to show Headgate, and nothing that could do harm."""

FLIGHTS = ROOT.parent / "shared" / "data" / "nycflights13" / "flights.csv.gz"
"""Data that is not part of the project; where it is not there, the tutorial is not tried."""

UNCHECKED = {"text", "json", "yaml"}
"""Languages of blocks that are only for reading."""

ENVIRONMENT = os.environ | {
    "PATH": os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]]),
    "COLUMNS": "100",
    "NO_COLOR": "1",
}


@dataclass(frozen=True)
class Block:
    """A fenced block of a document, and the line on which its text begins."""

    document: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.document.name}:{self.line}"


@dataclass(frozen=True)
class Step:
    """A command of a console block and the output that the document shows for it."""

    command: str
    expected: str


def blocks(document: Path) -> Iterator[Block]:
    """The fenced blocks of a Markdown file, in order."""
    for token in MarkdownIt().parse(document.read_text(encoding="utf-8")):
        if token.type == "fence" and token.map is not None:
            yield Block(document, token.map[0] + 2, token.info.strip(), token.content)


def steps(console: str) -> list[Step]:
    """The commands of a console block (lines after `$ `), each with the lines up to the next one."""
    before, *rest = re.split(r"^\$ ", console, flags=re.MULTILINE)
    assert not before.strip(), f"output before the first command: {before!r}"
    return [Step(command, expected) for command, _, expected in (part.partition("\n") for part in rest)]


def assert_same(expected: str, actual: str) -> None:
    """Compares line by line without trailing white space; a line `...` stands for any number of lines."""
    wanted, got = ([line.rstrip() for line in text.rstrip().splitlines()] for text in (expected, actual))
    pattern = "".join(r"(?:.*\n)*?" if line == "..." else re.escape(line) + r"\n" for line in wanted)
    if not re.fullmatch(pattern, "".join(line + "\n" for line in got)):
        raise AssertionError("\n".join(difflib.unified_diff(wanted, got, "document", "output", lineterm="")))


def make_targets() -> set[str]:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z-]+):(?!=)", makefile, flags=re.MULTILINE))


def check_console(text: str, folder: Path) -> None:
    """Runs a console block in `folder`. A command must succeed, unless the next one is `echo $?`."""
    status = 0
    todo = steps(text)
    for step, after in zip(todo, [*todo[1:], None], strict=True):
        program, *arguments = shlex.split(step.command)
        if step.command == "echo $?":
            assert_same(step.expected, str(status))
        elif program == "make":
            unknown = {word for word in arguments if "=" not in word} - make_targets()
            assert not unknown, f"the Makefile has no target {unknown}"
            assert not step.expected.strip(), "`make` is not run here, so nothing would check its output"
        else:
            assert program in PROGRAMS, f"a document may not run `{program}`, only {sorted(PROGRAMS)}"
            done = subprocess.run(
                [program, *arguments],
                cwd=folder,
                env=ENVIRONMENT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                encoding="utf-8",
                timeout=600,
                check=False,
            )
            status = done.returncode
            assert_same(step.expected, done.stdout)
            announced = after is not None and after.command == "echo $?"
            assert status == 0 or announced, f"`{step.command}` left {status}; show it with `$ echo $?`"


def check_python(text: str, folder: Path) -> None:
    """Runs a Python block as a program of its own in `folder`, warnings being errors."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", text],
        cwd=folder,
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def check(block: Block, folder: Path) -> None:
    """Raises unless what a block shows is true."""
    match block.language:
        case "console":
            check_console(block.text, folder)
        case "python":
            check_python(block.text, folder)
        case "sql":
            parse(SourceText(str(block), block.text))
        case language:
            assert language in UNCHECKED, f"{block} is {language!r}; such a block is neither run nor known"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A fresh copy of the examples, in which the documents' commands run."""
    copy = tmp_path / "examples"
    if (ROOT / "examples").is_dir():
        shutil.copytree(ROOT / "examples", copy)
    else:
        copy.mkdir()
    return copy


def needs_spark(block: Block) -> bool:
    """Whether a block starts Spark: `headgate lint`, and what runs queries unless it is told to run them here."""
    if block.language == "python":
        return "pyspark" in block.text
    return block.language == "console" and any(
        step.command.startswith("headgate lint ")
        or (
            step.command.startswith(("headgate run ", "headgate demo"))
            and "--engine local" not in step.command
        )
        for step in steps(block.text)
    )


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(block, marks=pytest.mark.spark if needs_spark(block) else (), id=str(block))
        for document in DOCUMENTS
        for block in blocks(document)
    ],
)
def test_what_a_document_shows_is_true(block: Block, folder: Path) -> None:
    if needs_spark(block) and (shutil.which("java") is None or importlib.util.find_spec("pyspark") is None):
        pytest.skip("needs PySpark and Java, and one of them is missing")
    if block.document.name == "tutorial.md" and re.search("headgate run|read_csv", block.text):
        if not FLIGHTS.exists():
            pytest.skip("needs the flights of nycflights13")
        shutil.copy(FLIGHTS, folder)
    check(block, folder)


def only_block(tmp_path: Path, text: str) -> Block:
    document = tmp_path / "page.md"
    document.write_text(text, encoding="utf-8")
    (block,) = blocks(document)
    return block


def test_a_block_knows_its_language_and_line(tmp_path: Path) -> None:
    block = only_block(tmp_path, "# Page\n\n```sql\nSELECT 1\n```\n")
    assert (block.language, block.line, block.text) == ("sql", 4, "SELECT 1\n")


def test_a_command_is_followed_by_its_output() -> None:
    assert steps("$ ls\na.cql\nb.cql\n$ cat a.cql\n") == [Step("ls", "a.cql\nb.cql\n"), Step("cat a.cql", "")]


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ("one\ntwo\n", "one  \ntwo\n\n"),
        ("one\n...\nfour\n", "one\ntwo\nthree\nfour\n"),
        ("one\n...\n", "one\n"),
        ("a.b (c)\n", "a.b (c)\n"),
        ("", ""),
    ],
)
def test_same_output(expected: str, actual: str) -> None:
    assert_same(expected, actual)


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ("one\n", "one\ntwo\n"),
        ("one\ntwo\n", "one\n"),
        ("one\n...\nfour\n", "one\ntwo\n"),
        ("  one\n", "one\n"),
        ("a.b\n", "a-b\n"),
        ("", "one\n"),
    ],
)
def test_other_output(expected: str, actual: str) -> None:
    with pytest.raises(AssertionError):
        assert_same(expected, actual)


@pytest.mark.parametrize(
    "text",
    [
        "```console\n$ cat bid.txt\nbid 7\n```",
        "```console\n$ ls\n...\n$ cat bid.txt\nbid 7\n$ make test\n```",
        "```console\n$ ls nowhere\n...\n$ echo $?\n2\n```",
        "```python\nfrom pathlib import Path\nassert Path('bid.txt').exists()\n```",
        "```text\nnothing to run\n```",
    ],
)
def test_a_true_document_passes(text: str, tmp_path: Path, folder: Path) -> None:
    (folder / "bid.txt").write_text("bid 7\n", encoding="utf-8")
    check(only_block(tmp_path, text), folder)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("```console\n$ cat bid.txt\nbid 8\n```", "bid 8"),
        ("```console\n$ cat bid.txt\n```", "bid 7"),
        ("```console\nbid 7\n$ cat bid.txt\nbid 7\n```", "before the first command"),
        ("```console\n$ ls nowhere\n...\n```", "left 2"),
        ("```console\n$ ls nowhere\n...\n$ echo $?\n0\n```", "-0"),
        ("```console\n$ rm bid.txt\n```", "may not run `rm`"),
        ("```console\n$ make tea\n```", "no target"),
        ("```console\n$ make test\nall passed\n```", "not run here"),
        ("```python\nassert 1 == 2\n```", "AssertionError"),
        ("```shell\n$ ls\n```", "neither run nor known"),
        ("```\n$ ls\n```", "neither run nor known"),
    ],
)
def test_a_wrong_document_fails(text: str, complaint: str, tmp_path: Path, folder: Path) -> None:
    (folder / "bid.txt").write_text("bid 7\n", encoding="utf-8")
    with pytest.raises(AssertionError, match=re.escape(complaint)):
        check(only_block(tmp_path, text), folder)


def test_sql_that_is_not_cql_fails(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(LanguageError):
        check(only_block(tmp_path, "```sql\nSELECT FROM FROM bids\n```"), folder)


def test_every_exit_code_is_documented() -> None:
    text = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    assert all(f"| {code} |" in text for code in (0, 1, 2, 3, 130, 143))


def test_every_command_is_in_the_readme() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = [command.callback.__name__ for command in app.registered_commands if command.callback]
    assert [command for command in commands if f"`headgate {command}`" not in text] == []
