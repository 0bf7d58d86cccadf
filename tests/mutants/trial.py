"""Trial: one change and the tests that run its line.

A worker tries it first, which has collected the tests already. A change that is made while its module is imported,
and one that no test of the worker notices, is tried in a process that was forked for it:
the fork imports headgate with the one changed module in place of the written one. A test that fails, or cannot be
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
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType

import pytest
from tests.mutants.covering import Covering
from tests.mutants.operators import Mutant
from tests.mutants.process import ROOT, import_libraries, run_pytest
from tests.mutants.worker import Answer, start

FACTOR = 4
"""A change makes tests run for ever if they take so many times what they took while lines were noted."""
EXTRA = 20
"""Seconds that tests may take in any case: libraries are imported, or what was remembered is worked out again."""
IDLE = 20
"""A change makes tests wait for ever if the clock goes on for so many times what the processor may take."""
AGAIN = 20
"""Seconds for the tests of a change that a worker's tests did not notice, in a process of its own."""


class Outcome(Enum):
    NOTICED = "noticed"
    SURVIVED = "SURVIVED"
    TIMED_OUT = "timed out"
    UNCOVERED = "UNCOVERED"


def _module(path: str) -> str:
    """The name by which a file of code is imported."""
    parts = Path(path).relative_to("src").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


class _Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from a changed text."""

    def __init__(self, mutant: Mutant) -> None:
        self.path = ROOT / mutant.path
        self.is_package = self.path.name == "__init__.py"
        self.name = _module(mutant.path)
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
class _Trial:
    """A change that is being tried."""

    mutant: Mutant
    tests: list[str]
    ends: float
    """When the clock has gone on for so long that it waits for ever."""


@dataclass
class _Worker:
    """A process that has collected the tests, and what it is trying."""

    pid: int
    pipe: Connection
    trial: _Trial | None = None
    is_ready: bool = False


@dataclass
class _Trials:
    """Changes that wait, and what is running: workers, and processes that were forked for one change."""

    covering: Covering
    limit: float
    files: Sequence[str]
    modules: Sequence[str]
    for_workers: deque[Mutant]
    alone: deque[tuple[Mutant, float]] = field(default_factory=deque)
    """With how much its tests may take."""
    workers: list[_Worker] = field(default_factory=list)
    children: dict[int, _Trial] = field(default_factory=dict)

    def begin(self, jobs: int) -> None:
        """Gives work to whoever has none, to so many processes at once."""
        busy = len(self.children) + sum(each.trial is not None for each in self.workers)
        while busy < jobs and self.alone:
            mutant, limit = self.alone.popleft()
            tests = _chosen(self.covering, mutant, limit)
            trial = self._trial(mutant, tests)
            pid = run_pytest(_Changed(mutant), ["-x", *tests], limit=self._most(tests))
            self.children[pid] = trial
            busy += 1
        while self.for_workers and busy < jobs:
            idle = next((each for each in self.workers if each.trial is None), None)
            if idle is None:
                idle = _Worker(*start(self.modules, self.files))
                self.workers.append(idle)
            mutant = self.for_workers.popleft()
            idle.trial = self._trial(mutant, _chosen(self.covering, mutant, self.limit))
            if idle.is_ready:
                self._ask(idle)
            busy += 1

    def _ask(self, worker: _Worker) -> None:
        trial = worker.trial
        assert trial is not None
        worker.pipe.send((trial.mutant, {test: self._most([test]) for test in trial.tests}))

    def _most(self, tests: Sequence[str]) -> float:
        return EXTRA + FACTOR * sum(self.covering.seconds[test] for test in tests)

    def _trial(self, mutant: Mutant, tests: list[str]) -> _Trial:
        return _Trial(mutant, tests, time.monotonic() + IDLE * self._most(tests))

    def ended(self) -> Iterator[tuple[Mutant, Outcome]]:
        """What is known since it was last asked."""
        for pid, trial in list(self.children.items()):
            if (status := _status(pid, trial)) is not None:
                del self.children[pid]
                yield trial.mutant, _outcome(status)
        for worker in list(self.workers):
            if worker.trial is None:
                continue
            mutant = worker.trial.mutant
            # A worker that ends closes its pipe, which is then ready to be read.
            answer = self._heard(worker) if worker.pipe.poll() else None
            match answer:
                case None:
                    if (status := _status(worker.pid, worker.trial)) is not None:
                        self.workers.remove(worker)
                        if not worker.is_ready:
                            raise SystemExit("the tests cannot be collected without a change")
                        yield mutant, _outcome(status or 1)
                case Answer.READY:
                    worker.is_ready = True
                    self._ask(worker)
                case Answer.NOTICED:
                    worker.trial = None
                    yield mutant, Outcome.NOTICED
                case Answer.SURVIVED | Answer.CANNOT:
                    worker.trial = None
                    again = min(self.limit, AGAIN) if answer is Answer.SURVIVED else self.limit
                    self.alone.append((mutant, again))
                case Answer.SPOILED:
                    self.workers.remove(worker)
                    self._end(worker)
                    self.alone.append((mutant, self.limit))

    @staticmethod
    def _heard(worker: _Worker) -> Answer | None:
        try:
            answer: Answer = worker.pipe.recv()
        except EOFError:
            return None
        return answer

    @staticmethod
    def _end(worker: _Worker) -> None:
        os.kill(worker.pid, signal.SIGKILL)
        os.waitpid(worker.pid, 0)
        worker.pipe.close()

    def stop(self) -> None:
        for worker in self.workers:
            self._end(worker)


def try_all(
    changes: Sequence[Mutant], covering: Covering, files: Sequence[str], jobs: int, limit: float
) -> Iterator[tuple[Mutant, Outcome]]:
    """The outcome of each change, as they come in."""
    import_libraries()
    covered = {each: tests for each in changes if (tests := _chosen(covering, each, limit))}
    _control(covered, files)
    modules = sorted({_module(each.path) for each in changes})
    trials = _Trials(covering, limit, files, modules, deque(each for each in covered if each.statement))
    trials.alone.extend((each, limit) for each in covered if not each.statement)
    yield from ((each, Outcome.UNCOVERED) for each in changes if each not in covered)
    try:
        while trials.alone or trials.for_workers or trials.children or any(w.trial for w in trials.workers):
            trials.begin(jobs)
            yield from trials.ended()
            time.sleep(0.02)
    finally:
        trials.stop()


class _AllThere:
    """Stops a session that has not collected all of some tests."""

    def __init__(self, tests: Iterable[str]) -> None:
        self.tests = set(tests)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if missing := self.tests - {item.nodeid for item in session.items}:
            raise pytest.UsageError(f"{len(missing)} tests are not there")


def _control(chosen: Mapping[Mutant, Sequence[str]], files: Sequence[str]) -> None:
    """Raises if tests are not there or fail without a change: then their failures say nothing."""
    if not chosen:
        return
    mutant = next(iter(chosen))
    unchanged = replace(mutant, mutated=mutant.original)
    there = _AllThere(test for tests in chosen.values() for test in tests)
    for words, plugins in ((["--collect-only", *files], [there]), (chosen[mutant], [])):
        _, status = os.waitpid(run_pytest(_Changed(unchanged), words, plugins), 0)
        if status:
            said = "cannot be collected" if plugins else f"of {mutant} fail"
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


def _status(pid: int, trial: _Trial) -> int | None:
    """How a process ended, if it has; one that waits for ever is ended."""
    ended, status = os.waitpid(pid, os.WNOHANG)
    if not ended and time.monotonic() > trial.ends:
        os.kill(pid, signal.SIGKILL)
        ended, _ = os.waitpid(pid, 0)
        status = signal.SIGXCPU
    return status if ended else None


def _outcome(status: int) -> Outcome:
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGPROF):
        return Outcome.TIMED_OUT
    return Outcome.SURVIVED if status == 0 else Outcome.NOTICED
