"""Worker memory: what a worker of Spark has imported is left out of Python's garbage collection.

Spark collects garbage after each task of a worker. Nearly all that Python then looks through are modules, which stay
as long as the worker does: 50 ms of the processor for each task, more than a small micro-batch takes.
"""

from __future__ import annotations

import gc
from functools import cache


@cache
def leave_out_imports(task: str) -> None:
    """Leaves out what there is by now, once for each kind of task, since each imports modules of its own.

    Rows and states are not lost sight of: they are freed when nothing refers to them, which needs no collection.
    """
    gc.collect()
    gc.freeze()
