"""What a query's shards report, as observed metrics of Spark's own progress: for dashboards that read those.

`handle.lastProgress["observedMetrics"]["headgate"]` then has the state rows of the query and of each operator, the
clock, late rows and cache hits, when the answer goes to a folder.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from headgate.kernels.stateless import EmptyState
from headgate.physical.graph import KernelStep
from headgate.runtime.spark.stage import Stage

NAME = "headgate"


def observed(answer: DataFrame, stage: Stage) -> DataFrame:
    """The answer of shards, unchanged, with its metrics observed on the way."""
    kind = f.col("kind")
    report = f.when(kind == "metrics", f.col("blob").cast("string"))

    def number(path: str) -> Column:
        return f.get_json_object(report, path).cast("long")

    sums = {
        "rows_out": number("$.rows_out"),
        "late_rows": number("$.late_rows"),
        "waiting_rows": number("$.waiting_rows"),
        "state_rows": number("$.state_rows"),
        "state_bytes": number("$.state_bytes"),
        "cache_hits": (f.get_json_object(report, "$.batch.cached") == "true").cast("long"),
    }
    for operator in (name for each in stage.chain for name in stateful_operators(each)):
        for what in ("state_rows", "state_bytes"):
            sums[f"{what}.{operator}"] = number(f"$.operators['{operator}'].{what}")
    columns = [f.sum(value).alias(name) for name, value in sums.items()]
    return answer.observe(NAME, f.min(number("$.clock")).alias("clock"), *columns)


def stateful_operators(stage: Stage) -> list[str]:
    """The operators of a stage that may remember rows, named as in `metrics.json`."""
    graph = stage.graph
    names = [
        f"{number}:{step.operator}"
        for number, step in enumerate(graph.steps)
        if isinstance(step, KernelStep) and not isinstance(step.kernel.initial(), EmptyState)
    ]
    if stage.onward is None and not isinstance(graph.emit.initial(), EmptyState):
        names.append(f"{len(graph.steps)}:{graph.output.lower()}")
    return [f"{stage.number}.{name}" for name in names] if stage.number > 1 else names
