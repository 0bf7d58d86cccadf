"""Covering: which tests run which lines, gathered once and kept in a folder that git ignores.

The tests of a file are run with the code so changed, while it is imported, that each statement of a function notes
its line first; the libraries run as ever. What was gathered for a file of tests holds until that file changes; lines
that have moved since are found again by comparing the texts.
"""

from __future__ import annotations

import ast
import difflib
import hashlib
import importlib.abc
import importlib.machinery
import json
import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.mutants.process import ROOT, import_libraries, run_pytest

CACHE = ROOT / ".mutants"
_NOTE = "_note_line"
EXAMPLES = 8
"""So many random examples of a test are tried; more of them seldom run a line that these do not."""

Lines = dict[str, set[int]]


class Noting(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports the modules of some folders so that they note which lines run."""

    def __init__(self, folders: Iterable[Path]) -> None:
        self.folders = tuple(folders)
        self.lines: dict[str, set[int]] = {}

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is None or spec.origin is None or Path(spec.origin).suffix != ".py":
            return None
        origin = Path(spec.origin)
        if any(origin == folder or folder in origin.parents for folder in self.folders):
            spec.loader = self
            return spec
        return None

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        assert spec is not None
        assert spec.origin is not None
        path = Path(spec.origin)
        lines = self.lines.setdefault(os.path.relpath(path, ROOT), set())
        module.__dict__[_NOTE] = lines.add
        exec(compile(noting(path.read_bytes()), str(path), "exec"), module.__dict__)

    def taken(self) -> Lines:
        """What ran since it was last asked, by path."""
        found = {path: set(lines) for path, lines in self.lines.items() if lines}
        for lines in self.lines.values():
            lines.clear()
        return found


def noting(source: bytes) -> ast.Module:
    """The code with a note of its line before each statement of a function."""
    tree = ast.parse(source)
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.stmt) and not hasattr(node, "noted"):
                    node.noted = True  # type: ignore[attr-defined]
            for holder in ast.walk(function):
                for name in ("body", "orelse", "finalbody"):
                    held = getattr(holder, name, None)
                    if isinstance(held, list):
                        setattr(holder, name, [each for node in held for each in _noted(node)])
    return ast.fix_missing_locations(tree)


def _noted(node: ast.stmt) -> Iterator[ast.stmt]:
    if getattr(node, "noted", False):
        node.noted = False  # type: ignore[attr-defined]
        call = ast.Call(ast.Name(_NOTE, ast.Load()), [ast.Constant(node.lineno)], [])
        yield ast.copy_location(ast.Expr(call), node)
    yield node


class Plugin:
    """Writes what each test of a file ran, and what it takes with all of its examples.

    Seconds are those of the processor: a busy machine does not make a test longer.
    """

    def __init__(self, noting: Noting, entry: Path, stamp: str) -> None:
        self.noting = noting
        self.entry = entry
        self.stamp = stamp
        self.tests: dict[str, dict[str, Any]] = {}
        self.failed: set[str] = set()
        """Tests that fail without a change tell nothing."""
        self._usual: dict[Any, Any] = {}
        self.left_out: dict[str, float] = {}
        """For a test with random examples, how many times as many it has as were tried here."""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Cuts how many examples random tests try."""
        from hypothesis import is_hypothesis_test, settings  # noqa: PLC0415 - pytest has to import it first

        for item in items:
            test = getattr(item, "obj", None)
            if is_hypothesis_test(test):
                test = getattr(test, "__func__", test)
                usual = self._usual.setdefault(test, test._hypothesis_internal_use_settings)
                if usual.max_examples > EXAMPLES:
                    test._hypothesis_internal_use_settings = settings(usual, max_examples=EXAMPLES)
                    self.left_out[item.nodeid] = usual.max_examples / EXAMPLES

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self.noting.taken()
        began = time.process_time()
        try:
            return (yield)
        finally:
            lines = {path: sorted(each) for path, each in self.noting.taken().items()}
            if item.nodeid not in self.failed:
                seconds = (time.process_time() - began) * self.left_out.get(item.nodeid, 1)
                self.tests[item.nodeid] = {"seconds": seconds, "lines": lines}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        paths = sorted({path for test in self.tests.values() for path in test["lines"]})
        sources = {path: (ROOT / path).read_text() for path in paths}
        self.entry.write_text(json.dumps({"stamp": self.stamp, "tests": self.tests, "sources": sources}))


@dataclass
class Covering:
    """For each line of the code the tests that run it, for line 0 of a file those that run any; their seconds."""

    tests: defaultdict[tuple[str, int], list[str]] = field(default_factory=lambda: defaultdict(list))
    seconds: dict[str, float] = field(default_factory=dict)
    breadth: Counter[str] = field(default_factory=Counter)
    """How many lines a test runs: the fewer, the more it is about each."""

    def of(self, path: str, line: int) -> list[str]:
        """The tests that run a line, first those most likely to notice a change: quick ones about little else."""
        return sorted(
            self.tests[path, line], key=lambda test: self.breadth[test] * (0.05 + self.seconds[test])
        )


def gather(files: Iterable[str], folders: Sequence[str], jobs: int, say: Callable[[str], None]) -> Covering:
    """The covering of files of tests; what is not known yet is gathered now."""
    CACHE.mkdir(exist_ok=True)
    found = Covering()
    stamps = {file: hashlib.sha256((ROOT / file).read_bytes()).hexdigest() for file in files}
    import_libraries()
    _gather(
        {file: stamp for file, stamp in stamps.items() if _known(file, stamp) is None}, folders, jobs, say
    )
    for file, stamp in stamps.items():
        if (known := _known(file, stamp)) is None:
            say(f"no test of {file} could be run")
            continue
        moved = {path: _moved(text, ROOT / path) for path, text in known["sources"].items()}
        for test, about in known["tests"].items():
            found.seconds[test] = about["seconds"]
            for path, lines in about["lines"].items():
                found.breadth[test] += len(lines)
                found.tests[path, 0].append(test)
                for line in lines:
                    if (now := moved[path].get(line)) is not None:
                        found.tests[path, now].append(test)
    return found


def _gather(stamps: dict[str, str], folders: Sequence[str], jobs: int, say: Callable[[str], None]) -> None:
    """Runs each file of tests in a process of its own, so many at once, and keeps what its tests run."""
    waiting = list(stamps)
    running: dict[int, str] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            file = waiting.pop(0)
            say(f"gathering what {file} runs")
            noting = Noting(ROOT / each for each in folders)
            pid = run_pytest(noting, [file], [Plugin(noting, _entry(file), stamps[file])])
            running[pid] = file
        ended, _ = os.wait()
        del running[ended]


def _known(file: str, stamp: str) -> dict[str, Any] | None:
    """What was gathered for a file of tests as it is now."""
    entry = _entry(file)
    known: dict[str, Any] = json.loads(entry.read_text()) if entry.exists() else {}
    return known if known.get("stamp") == stamp else None


def _entry(file: str) -> Path:
    return CACHE / f"{file.replace('/', '+')}.json"


def _moved(text: str, path: Path) -> dict[int, int]:
    """For the lines of an older text, where they are now."""
    old, new = text.splitlines(), path.read_text().splitlines() if path.exists() else []
    blocks = difflib.SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    return {a + n + 1: b + n + 1 for a, b, size in blocks for n in range(size)}
