"""Lets a Python that Spark starts import PySpark from where it is installed, not from the archive of it.

Spark puts `pyspark.zip` first on the path of each Python that it starts, several for each query. Modules of an
archive are compiled at every start, which takes more than a second; the installed ones have bytecode. Python imports
a module of this name by itself when it starts; if there is another one behind this, it is imported too.
"""

from __future__ import annotations

import os
import sys


def _is_copy_of_installed(entry: str) -> bool:
    """Whether an entry of the path is an archive inside a PySpark that is on the path itself."""
    folder, name = os.path.split(entry)
    package = os.path.dirname(os.path.dirname(folder))  # noqa: PTH120
    return (
        name.endswith(".zip")
        and name.startswith(("pyspark", "py4j"))
        and os.path.dirname(package) in sys.path  # noqa: PTH120
        and os.path.isfile(os.path.join(package, "__init__.py"))  # noqa: PTH113, PTH118
    )


def _shorten_path() -> None:
    here = os.path.dirname(__file__)  # noqa: PTH120
    sys.path[:] = [each for each in sys.path if each != here and not _is_copy_of_installed(each)]


def _import_next() -> None:
    this = sys.modules.pop(__name__)
    try:
        __import__(__name__)
    except ModuleNotFoundError as error:
        if error.name != __name__:
            raise
    finally:
        sys.modules.setdefault(__name__, this)


if __name__ == "sitecustomize":
    _shorten_path()
    _import_next()
