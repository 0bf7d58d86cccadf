"""How hard the random tests try, by Hypothesis profile: `default`, `ci` and `long`."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Processes of xdist share the cores: threads of their own would only get into each other's way. A setting wins.
if "PYTEST_XDIST_WORKER" in os.environ:
    for _library in ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(_library, "1")

# No deadline anywhere: a busy machine is not a wrong answer.
_shared = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

settings.register_profile("default", _shared, max_examples=40)
settings.register_profile("ci", _shared, max_examples=40, derandomize=True, print_blob=True)
settings.register_profile("long", _shared, max_examples=2_000)
settings.load_profile("default")

# Tests of a process share one Spark session, whichever of them opens it: its workers run in this Python.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)

_HERE = Path(__file__).parent
_ON_SPARK = (_HERE / "spark", _HERE / "linting")


def pytest_collection_finish() -> None:
    """Lets the garbage collector leave alone what stays anyway: modules and tests are most of what there is."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


def pytest_sessionfinish() -> None:
    """What was left alone is cleared away at the end, of which libraries would complain otherwise."""
    gc.unfreeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests that start Spark."""
    for item in items:
        if any(item.path.is_relative_to(folder) for folder in _ON_SPARK):
            item.add_marker(pytest.mark.spark)
