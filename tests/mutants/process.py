"""Process: pytest in a process that was forked for it, with the code imported in a way of its own.

The parent has imported the libraries and nothing of headgate, so a fork imports headgate alone, through a finder.
"""

from __future__ import annotations

import importlib
import importlib.abc
import os
import resource
import sys
from collections.abc import Sequence
from math import ceil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIBRARIES = ("duckdb", "networkx", "numpy", "polars", "pyarrow", "sqlglot", "yaml")
WORDS = (
    *("-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-profile=ci"),
    *("-m", "not long and not faults and not services and not cluster"),
)
"""How pytest is called here."""


class WithoutSpark:
    """Leaves out the tests that start Spark; others of its folder run shards in this process."""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [each for each in items if "spark" not in getattr(each, "fixturenames", ())]


def import_libraries() -> None:
    """Imports what every fork would import for itself."""
    for library in LIBRARIES:
        importlib.import_module(library)
    if any(name.split(".")[0] == "headgate" for name in sys.modules):
        raise AssertionError("headgate was imported before it could be changed")


def silenced() -> None:
    """Lets this process say nothing from now on, and puts it where tests expect to be."""
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    os.chdir(ROOT)


def run_pytest(
    finder: importlib.abc.MetaPathFinder,
    words: Sequence[str],
    plugins: Sequence[object] = (),
    limit: float | None = None,
) -> int:
    """The number of a new process that runs pytest without a sound; its exit code is that of pytest.

    A signal ends it when it has used so many seconds of the processor.
    """
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        silenced()
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (ceil(limit), ceil(limit) + 5))
        sys.meta_path.insert(0, finder)
        code = int(pytest.main([*WORDS, *words], plugins=[WithoutSpark(), *plugins]))
    finally:
        os._exit(code)
