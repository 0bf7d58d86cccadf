"""Workers: the Python that runs Headgate's kernels inside Spark has to have Headgate.

Spark starts `python3` as it finds it there, unless PYSPARK_PYTHON names another. Where everything runs on this
machine and nobody has chosen, it is the Python that runs now. Anywhere else one task asks the workers what they have.
A worker that runs this Python imports PySpark as it is installed here (`worker_path/sitecustomize.py`).
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

from headgate.model.errors import SetupError
from headgate.runtime.spark.failures import translate_spark_errors

_WORKER_PATH = str(Path(__file__).parent / "worker_path")
_NEEDED = ("headgate", "polars", "pyarrow")


def prepare_workers(spark: SparkSession) -> None:
    """Makes workers of a session use this Python, or raises SetupError if theirs lacks what queries need."""
    context = spark.sparkContext
    here = str(context.master).startswith("local")
    if here and "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable
    if here and _is_this(context.pythonExec):
        _import_installed(context)
        return
    remedy = "set PYSPARK_PYTHON, before the session is made, to a Python on the workers that has headgate installed"
    names = _NEEDED

    def missing(_: Iterator[int]) -> Iterator[str]:
        # It travels as code, so that a worker without Headgate can run it.
        from importlib.util import find_spec  # noqa: PLC0415

        return (name for name in names if find_spec(name) is None)

    with translate_spark_errors(f"Spark's workers cannot run {context.pythonExec}", remedy=remedy):
        lacking = context.parallelize([0], 1).mapPartitions(missing).collect()
    if lacking:
        raise SetupError(
            f"the Python of Spark's workers, {context.pythonExec}, has no {' and no '.join(lacking)}",
            remedy=remedy,
        )


def _import_installed(context: SparkContext) -> None:
    """Workers that start from now on find installed packages before Spark's archives of them."""
    before = context.environment.get("PYTHONPATH", "").split(os.pathsep)
    path = [_WORKER_PATH, *(each for each in before if each not in ("", _WORKER_PATH))]
    context.environment["PYTHONPATH"] = os.pathsep.join(path)


def _is_this(python: str) -> bool:
    found = shutil.which(python)
    return found is not None and Path(found).absolute() == Path(sys.executable).absolute()
