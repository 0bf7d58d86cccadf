"""Trial: one change and the tests that run its line, in a process that was forked for it.

The fork imports headgate with the one changed module in place of the written one. A test that fails, or cannot be
collected, has noticed the change; so has one that runs into the limit where it took far less before, which is
counted apart.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import os
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from types import ModuleType

from tests.mutants.covering import Covering
from tests.mutants.operators import Mutant
from tests.mutants.process import ROOT, import_libraries, run_pytest

FACTOR = 4
"""A change makes tests run for ever if they take so many times what they took while lines were noted."""
IDLE = 20
"""A change makes tests wait for ever if the clock goes on for so many times what the processor may take."""


class Outcome(Enum):
    NOTICED = "noticed"
    SURVIVED = "SURVIVED"
    TIMED_OUT = "timed out"
    UNCOVERED = "UNCOVERED"


class _Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from a changed text."""

    def __init__(self, mutant: Mutant) -> None:
        self.path = ROOT / mutant.path
        parts = Path(mutant.path).relative_to("src").with_suffix("").parts
        self.is_package = parts[-1] == "__init__"
        self.name = ".".join(parts[:-1] if self.is_package else parts)
        self.source = mutant.applied(self.path.read_bytes())

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != self.name:
            return None
        places = [str(self.path.parent)] if self.is_package else None
        return importlib.util.spec_from_file_location(
            name, self.path, loader=self, submodule_search_locations=places
        )

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self.source, str(self.path), "exec"), module.__dict__)


@dataclass
class _Child:
    mutant: Mutant
    ends: float


def try_all(
    changes: Sequence[Mutant], covering: Covering, jobs: int, limit: float
) -> Iterator[tuple[Mutant, Outcome]]:
    """The outcome of each change, as they come in."""
    import_libraries()
    waiting = list(changes)
    running: dict[int, _Child] = {}
    _control(changes, covering, limit)
    while waiting or running:
        while waiting and len(running) < jobs:
            mutant = waiting.pop(0)
            tests = _chosen(covering, mutant, limit)
            if not tests:
                yield mutant, Outcome.UNCOVERED
                continue
            usual = sum(covering.seconds[test] for test in tests)
            most = 30 + FACTOR * usual
            pid = run_pytest(_Changed(mutant), ["-x", *tests], limit=most)
            running[pid] = _Child(mutant, time.monotonic() + IDLE * most)
        yield from _ended(running)
        time.sleep(0.02)


def _control(changes: Sequence[Mutant], covering: Covering, limit: float) -> None:
    """Raises if tests are not there or fail without a change: then their failures say nothing."""
    chosen = {each: tests for each in changes if (tests := _chosen(covering, each, limit))}
    if not chosen:
        return
    mutant = next(iter(chosen))
    unchanged = replace(mutant, mutated=mutant.original)
    everything = list(dict.fromkeys(test for tests in chosen.values() for test in tests))
    for words, tests in ((["--collect-only"], everything), ([], chosen[mutant])):
        _, status = os.waitpid(run_pytest(_Changed(unchanged), [*words, *tests]), 0)
        if status:
            said = "cannot be collected" if words else f"of {mutant} fail"
            raise SystemExit(f"the tests {said} without a change")


def _chosen(covering: Covering, mutant: Mutant, limit: float) -> list[str]:
    """The tests that run the statement of a change, as many as take so long; of its module if it runs at import."""
    chosen: list[str] = []
    seconds = 0.0
    for test in covering.of(mutant.path, mutant.statement):
        if chosen and seconds + covering.seconds[test] > limit:
            continue
        chosen.append(test)
        seconds += covering.seconds[test]
    return chosen


def _ended(running: dict[int, _Child]) -> Iterator[tuple[Mutant, Outcome]]:
    for pid, child in list(running.items()):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            del running[pid]
            yield child.mutant, _outcome(status)
        elif time.monotonic() > child.ends:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            del running[pid]
            yield child.mutant, Outcome.TIMED_OUT


def _outcome(status: int) -> Outcome:
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU:
        return Outcome.TIMED_OUT
    return Outcome.SURVIVED if status == 0 else Outcome.NOTICED
