"""Compiling: planned queries to a program, or to the refusal of one of them. The only way from text to operators.

```
PlannedQuery ── admit ──→ AdmittedPlan ── lower ──→ CompiledQuery ┐
PlannedQuery ── admit ──→ AdmittedPlan ── lower ──→ CompiledQuery ┴→ Program
PlannedQuery ── admit ──→ Refusal
```
"""

from __future__ import annotations

from collections.abc import Sequence

from headgate.model.errors import RefusedError
from headgate.model.monitoring import Monitoring
from headgate.optimize.optimize import OptimizedPlan
from headgate.optimize.planned import PlannedQuery
from headgate.physical.edges import Strategy
from headgate.physical.lower import lower
from headgate.physical.program import CompiledQuery, Program, Refusal
from headgate.safety.examine import examine
from headgate.safety.gate import admit


def compile_queries(
    queries: Sequence[PlannedQuery], *, allow_unbounded: bool = False, strategy: Strategy = "UPA"
) -> Program | Refusal:
    """The program of some queries; the refusal of the first that the gate does not admit, unless that is allowed."""
    compiled = []
    for query in queries:
        try:
            compiled.append(compile_query(query, allow_unbounded=allow_unbounded, strategy=strategy))
        except RefusedError as error:
            return Refusal(error, query.verdict)
    return Program(tuple(compiled))


def compile_query(
    query: PlannedQuery,
    *,
    plan: OptimizedPlan | None = None,
    allow_unbounded: bool = False,
    strategy: Strategy = "UPA",
    monitors: Monitoring | None = None,
) -> CompiledQuery:
    """A query as operators, by its best plan or by another that it was compared with; or RefusedError.

    `monitors` says how closely constraints WITHIN AUTO are watched, if not as always.
    """
    optimized = query.optimized
    best, judgement = optimized.best, optimized.judgement
    if plan is not None and plan is not best:
        best, judgement = plan, examine(query.name, plan.plan, plan.edges)
    admitted = admit(query.bound, judgement, allow_unbounded=allow_unbounded)
    return CompiledQuery(admitted, best, lower(admitted, best, strategy, monitors))
