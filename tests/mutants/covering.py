"""Covering: which tests run which lines, gathered once and kept in a folder that git ignores.

The tests of a file are run with a tracer that looks at the packages that are changed, and only at the first calls of
a function within a test: by then its lines are known. What was gathered for a file of tests holds until that file
changes; lines that have moved since are found again by comparing the texts.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".mutants"
CALLS_LOOKED_AT = 20
_ENDS_AT = "HEADGATE_COVERING_FILE"

Lines = dict[str, set[int]]


class Tracer:
    """The lines of some files that run while it is on."""

    def __init__(self, folders: Iterable[str]) -> None:
        self.folders = tuple(folders)
        self.calls: Counter[CodeType] = Counter()
        self.lines: defaultdict[CodeType, set[int]] = defaultdict(set)
        self.known: dict[CodeType, bool] = {}

    def __call__(self, frame: FrameType, event: str, argument: object) -> Callable[..., Any] | None:
        code = frame.f_code
        looked_at = self.known.get(code)
        if looked_at is None:
            looked_at = self.known[code] = code.co_filename.startswith(self.folders)
        if not looked_at or self.calls[code] >= CALLS_LOOKED_AT:
            return None
        self.calls[code] += 1
        add = self.lines[code].add
        add(frame.f_lineno)

        def line(frame: FrameType, event: str, argument: object) -> Callable[..., Any]:
            add(frame.f_lineno)
            return line

        return line

    def taken(self) -> Lines:
        """What ran since it was last asked, by path."""
        found: Lines = {}
        for code, lines in self.lines.items():
            found.setdefault(os.path.relpath(code.co_filename, ROOT), set()).update(lines)
        self.calls.clear()
        self.lines.clear()
        return found


class Plugin:
    """Writes what each test ran, and how long it took, to the file that the environment names."""

    def __init__(self, folders: Iterable[str]) -> None:
        self.tracer = Tracer(folders)
        self.tests: dict[str, dict[str, Any]] = {}
        self.failed: set[str] = set()
        """Tests that fail without a change tell nothing."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self.tracer.taken()
        began = time.perf_counter()
        sys.settrace(self.tracer)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            lines = {path: sorted(each) for path, each in self.tracer.taken().items()}
            if item.nodeid not in self.failed:
                self.tests[item.nodeid] = {"seconds": time.perf_counter() - began, "lines": lines}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        Path(os.environ[_ENDS_AT]).write_text(json.dumps(self.tests))


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


def gather(files: Iterable[str], folders: Iterable[str], say: Callable[[str], None]) -> Covering:
    """The covering of files of tests; what is not known yet is gathered now."""
    CACHE.mkdir(exist_ok=True)
    found = Covering()
    for file in files:
        entry = CACHE / f"{file.replace('/', '+')}.json"
        stamp = hashlib.sha256((ROOT / file).read_bytes()).hexdigest()
        known = json.loads(entry.read_text()) if entry.exists() else {}
        if known.get("stamp") != stamp:
            say(f"gathering what {file} runs")
            known = {"stamp": stamp, "tests": _run(file, folders)}
            paths = {path for test in known["tests"].values() for path in test["lines"]}
            known["sources"] = {path: (ROOT / path).read_text() for path in sorted(paths)}
            entry.write_text(json.dumps(known))
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


def _run(file: str, folders: Iterable[str]) -> dict[str, Any]:
    into = CACHE / f"latest-{os.getpid()}.tmp"
    into.unlink(missing_ok=True)
    environment = {**os.environ, _ENDS_AT: str(into)}
    subprocess.run(
        [sys.executable, "-m", "tests.mutants.covering", file, *folders],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        check=False,
    )
    tests: dict[str, Any] = json.loads(into.read_text()) if into.exists() else {}
    into.unlink(missing_ok=True)
    return tests


def _moved(text: str, path: Path) -> dict[int, int]:
    """For the lines of an older text, where they are now."""
    old, new = text.splitlines(), path.read_text().splitlines() if path.exists() else []
    blocks = difflib.SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    return {a + n + 1: b + n + 1 for a, b, size in blocks for n in range(size)}


def main(file: str, *folders: str) -> None:
    """Runs the tests of one file with the tracer."""
    code = pytest.main(
        [file, "-q", "-p", "no:cacheprovider", "--hypothesis-profile=ci"],
        plugins=[Plugin(str(ROOT / each) for each in folders)],
    )
    raise SystemExit(code)


if __name__ == "__main__":
    main(*sys.argv[1:])
