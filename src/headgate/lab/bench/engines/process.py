"""One engine in a process of its own: `python -m headgate.lab.bench.engines.process ENGINE WORKLOAD FOLDER SCRATCH`.

Engines do not share a JVM, so that none finds the caches, settings or garbage of another.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from importlib import import_module
from pathlib import Path

from headgate.lab.bench.engines.outcome import Outcome
from headgate.lab.bench.engines.with_flink import python_with_flink
from headgate.lab.bench.workload import WINDOWED, WORKLOADS
from headgate.lab.child import end
from headgate.lab.process_tree import tree_use
from headgate.model.errors import SetupError

ENGINES = ("headgate-spark", WINDOWED, "spark-hdfs", "spark-rocksdb", "spark-rocksdb-v4", "flink", "polars")
_MODULES = {"polars": "with_polars", "flink": "with_flink"}
# The module's own name, which is another one in the other process.
_NAME = "headgate.lab.bench.engines.process"


def available(workload: str) -> tuple[str, ...]:
    """The engines that can run a workload here; Flink is not among Headgate's own packages."""
    missing = set() if python_with_flink() is not None else {"flink"}
    if not WORKLOADS[workload].constraints:
        missing.add(WINDOWED)
    return tuple(each for each in ENGINES if each not in missing)


def measure(engine: str, workload: str, folder: Path, scratch: Path) -> Outcome:
    """Runs an engine to its end; its outcome, with the most memory that it and its children held."""
    result = scratch / f"{engine}.json"
    log = scratch / f"{engine}.log"
    command = [sys.executable, "-m", _NAME, engine, workload, str(folder), str(scratch)]
    with log.open("wb") as output:
        running = subprocess.Popen(command, stdout=output, stderr=output, cwd=scratch)
        peak = _Peak(running.pid)
        peak.start()
        try:
            code = running.wait()
        finally:
            end(running)
            peak.done.set()
            peak.join()
    if code or not result.exists():
        last = log.read_text(errors="replace").strip().splitlines()[-1:] or ["it said nothing"]
        raise SetupError(
            f"{engine} failed on {workload}: {last[0][:500]}", remedy=f"its whole output is in {log}"
        )
    outcome = Outcome.from_json(json.loads(result.read_text()))
    return Outcome(**{**vars(outcome), "memory_bytes": peak.most})


class _Peak(threading.Thread):
    """Looks twice a second at how much memory a process and its descendants hold; None where nothing tells."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid, self.done = pid, threading.Event()
        self.most: int | None = None

    def run(self) -> None:
        while not self.done.wait(0.5):
            found = tree_use(self.pid)
            if found is not None:
                self.most = max(self.most or 0, found.total)


def main(engine: str, workload: str, folder: str, scratch: str) -> None:
    """The other process."""
    chosen = import_module(f"headgate.lab.bench.engines.{_MODULES.get(engine, 'on_spark')}")
    outcome = chosen.run(engine, WORKLOADS[workload], Path(folder), Path(scratch))
    (Path(scratch) / f"{engine}.json").write_text(json.dumps(outcome.to_json()))


if __name__ == "__main__":
    main(*sys.argv[1:])
