"""The gate: only an AdmittedPlan runs, and only this module makes one."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.model.errors import Place, RefusedError
from headgate.plan.bind import BoundQuery
from headgate.plan.nodes import Emit
from headgate.safety.examine import Judgement
from headgate.safety.state_plan import StatePlan
from headgate.safety.verdict import Verdict

_SEAL = object()


@dataclass(frozen=True)
class AdmittedPlan:
    """A plan that may run, with the verdict that admitted it.

    `allowed_unbounded` says that the user asked for it although some state is not bounded.
    """

    name: str
    plan: Emit
    verdict: Verdict
    state_plan: StatePlan
    allowed_unbounded: bool
    seal: object

    def __post_init__(self) -> None:
        if self.seal is not _SEAL:
            raise TypeError("only the gate admits plans")


def admit(query: BoundQuery, judgement: Judgement, *, allow_unbounded: bool = False) -> AdmittedPlan:
    """The plan that was judged, admitted; or RefusedError naming the operator, the reason and what to do."""
    verdict = judgement.verdict
    if not verdict.admitted and not allow_unbounded:
        first = verdict.unbounded[0]
        raise RefusedError(
            f"query {query.name} is refused: the state of {first.operator} over {first.stream} is not bounded: "
            f"{first.reason}",
            query=query.name,
            remedy="put a window on the stream, for example [RANGE 10 MINUTES]; "
            "or run it with --allow-unbounded",
            place=Place(query.statement.source, query.statement.span),
        )
    return AdmittedPlan(
        query.name,
        judgement.plan,
        verdict,
        judgement.state_plan,
        allowed_unbounded=not verdict.admitted,
        seal=_SEAL,
    )
