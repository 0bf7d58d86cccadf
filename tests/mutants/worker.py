"""Worker: a process that has collected all tests once, and then tries one change after another.

A change inside a function is made where it is: every function of the running process that was made from the changed
code gets the new code, and loses it again afterwards. What functools remembers is forgotten before and after, and no
fixture outlives a trial. So a trial costs what its tests cost, where a process of its own imports and collects first.

What is computed while tests are imported is not computed anew; a change that survives here is tried once more in a
process of its own. A test that also fails once the change is taken back says nothing: then the worker is ended, and
the change is tried in a process of its own.
"""

from __future__ import annotations

import functools
import gc
import importlib
import os
import signal
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from tests.mutants.operators import Mutant
from tests.mutants.process import ROOT, WORDS, WithoutSpark, silenced


class Answer(Enum):
    """What a worker says of a change."""

    READY = "ready"
    NOTICED = "noticed"
    SURVIVED = "survived"
    CANNOT = "cannot"
    """The change is not inside functions that exist."""
    SPOILED = "spoiled"
    """A test fails that did not fail before the change was made and taken back."""


OURS = ("headgate", "tests")
"""The packages whose functions must forget the results that they keep."""

Place = tuple[str, int]
"""A piece of code in its module: its qualified name and its first line."""


def codes(module: CodeType) -> Iterator[CodeType]:
    """The code of everything that is defined in a module, outer before inner."""
    for constant in module.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from codes(constant)


def _place(code: CodeType) -> Place:
    return code.co_qualname, code.co_firstlineno


@dataclass
class Functions:
    """The functions of this process by the file that they are defined in, and what remembers their results."""

    by_file: defaultdict[str, list[FunctionType]] = field(default_factory=lambda: defaultdict(list))
    caches: list[Any] = field(default_factory=list)

    @staticmethod
    def found(folder: Path) -> Functions:
        """Those that exist now and come from a folder."""
        gc.unfreeze()
        functions = Functions()
        for each in gc.get_objects():
            if isinstance(each, FunctionType) and each.__code__.co_filename.startswith(str(folder)):
                functions.by_file[each.__code__.co_filename].append(each)
            elif isinstance(each, functools._lru_cache_wrapper) and each.__module__.startswith(OURS):
                functions.caches.append(each)
        gc.freeze()
        return functions

    def forget(self) -> None:
        for cache in self.caches:
            cache.cache_clear()


class Change:
    """A change that is made for as long as the block lasts. `fits` says whether it could be made."""

    def __init__(self, functions: Functions, mutant: Mutant) -> None:
        self.functions = functions
        path = ROOT / mutant.path
        source = path.read_bytes()
        self.changed = self._swaps(str(path), source, mutant.applied(source))

    def _swaps(self, path: str, source: bytes, changed: bytes) -> list[tuple[FunctionType, CodeType]]:
        """The functions whose code changes, with the new code."""
        old, new = (list(codes(compile(text, path, "exec"))) for text in (source, changed))
        by_place: defaultdict[Place, list[CodeType]] = defaultdict(list)
        for code in new:
            by_place[_place(code)].append(code)
        differs = {_place(a) for a in old if a not in by_place[_place(a)]}
        found = []
        for function in self.functions.by_file[path]:
            place = _place(function.__code__)
            if place not in differs:
                continue
            candidates = by_place[place]
            fits = len(candidates) == 1 and candidates[0].co_freevars == function.__code__.co_freevars
            if not fits:
                return []
            found.append((function, candidates[0]))
        return found

    @property
    def fits(self) -> bool:
        return bool(self.changed)

    def __enter__(self) -> None:
        self.functions.forget()
        self.before = [(function, function.__code__) for function, _ in self.changed]
        for function, code in self.changed:
            function.__code__ = code

    def __exit__(self, *_: object) -> None:
        for function, code in self.before:
            function.__code__ = code
        self.functions.forget()


class WorkerPlugin:
    """Runs, of all tests that were collected, those that it is asked for, with a change made."""

    def __init__(self, pipe: Connection, modules: Sequence[str]) -> None:
        self.pipe = pipe
        self.modules = modules
        self.parent = os.getppid()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """A failing example is not made smaller: that there is one is enough."""
        from hypothesis import Phase, is_hypothesis_test, settings  # noqa: PLC0415 - pytest imports it first

        for item in items:
            test = getattr(item, "obj", None)
            if is_hypothesis_test(test):
                test = getattr(test, "__func__", test)
                usual = test._hypothesis_internal_use_settings
                kept = [phase for phase in usual.phases if phase not in (Phase.shrink, Phase.explain)]
                test._hypothesis_internal_use_settings = settings(usual, phases=kept)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        for module in self.modules:
            importlib.import_module(module)
        functions = Functions.found(ROOT / "src")
        items = {item.nodeid: item for item in session.items}
        self.pipe.send(Answer.READY)
        while True:
            while not self.pipe.poll(5):
                if os.getppid() != self.parent:
                    return True
            mutant, limits = self.pipe.recv()
            self.pipe.send(_tried(functions, items, mutant, limits))
        return True


def _tried(
    functions: Functions, items: Mapping[str, pytest.Item], mutant: Mutant, limits: Mapping[str, float]
) -> Answer:
    change = Change(functions, mutant)
    if not change.fits:
        return Answer.CANNOT
    with change:
        failing = next((test for test, limit in limits.items() if not _passes(items[test], limit)), None)
    if failing is None:
        return Answer.SURVIVED
    return Answer.NOTICED if _passes(items[failing], limits[failing]) else Answer.SPOILED


def _passes(item: pytest.Item, limit: float) -> bool:
    """Whether a test passes. If it takes more seconds of the processor, this process ends by a signal."""
    from _pytest.runner import runtestprotocol  # noqa: PLC0415 - only inside pytest

    item._initrequest()  # type: ignore[attr-defined]
    signal.setitimer(signal.ITIMER_PROF, limit)
    try:
        return not any(report.failed for report in runtestprotocol(item, log=False, nextitem=None))
    except (Exception, SystemExit):  # noqa: BLE001 - whatever comes out of changed code
        return False
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def start(modules: Sequence[str], files: Sequence[str]) -> tuple[int, Connection]:
    """A new process that collects the files and waits for changes to try: its number, and how to talk to it."""
    ours, its = Pipe()
    pid = os.fork()
    if pid:
        its.close()
        return pid, ours
    try:
        ours.close()
        silenced()
        pytest.main([*WORDS, *files], plugins=[WithoutSpark(), WorkerPlugin(its, modules)])
    finally:
        os._exit(0)
