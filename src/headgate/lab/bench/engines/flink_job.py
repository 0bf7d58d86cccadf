"""One query in Flink SQL, in a process and a Python of its own: `python flink_job.py JOB`, where JOB is a JSON file.

Flink's Python package asks for other versions of the packages that Headgate needs too, so this file uses nothing but
that package and the standard library.
"""

from __future__ import annotations

import json
import sys
from collections import deque
from pathlib import Path
from time import perf_counter


def main(job: Path) -> None:
    """Runs the job's query and writes the last version of its one row, and the seconds that this took."""
    from pyflink.table import EnvironmentSettings, TableEnvironment  # noqa: PLC0415 - not where this is checked

    spec = json.loads(job.read_text())
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in spec["settings"].items():
        tables.get_config().set(key, value)
    for statement in spec["tables"]:
        tables.execute_sql(statement)
    begun = perf_counter()
    with tables.execute_sql(spec["query"]).collect() as rows:
        last = deque(rows, maxlen=1)
    spent = perf_counter() - begun
    found = [list(row) for row in last]
    Path(spec["result"]).write_text(json.dumps({"rows": found, "seconds": spent}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
