"""Aggregate: GROUP BY over signed lifetimes."""

from headgate.kernels.aggregate.call import AggregateCall
from headgate.kernels.aggregate.closing import ClosingAggregate
from headgate.kernels.aggregate.closing_values import ClosedArgument, ClosingValues
from headgate.kernels.aggregate.kernel import Aggregate
from headgate.kernels.aggregate.panes import PaneAggregate, by_panes
from headgate.kernels.aggregate.settling import SettlingAggregate
from headgate.kernels.aggregate.state import AggregateState
from headgate.model.aggregates import Function

__all__ = [
    "Aggregate",
    "AggregateCall",
    "AggregateState",
    "ClosedArgument",
    "ClosingAggregate",
    "ClosingValues",
    "Function",
    "PaneAggregate",
    "SettlingAggregate",
    "by_panes",
]
