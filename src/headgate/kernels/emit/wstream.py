"""WSTREAM: the births of a relation, seen through a window on the output (Windows, section 3.3.3).

```
births             a at 1    b at 4    c at 9
[ROWS 2]           +a at 1   +b at 4   -a +c at 9
[RANGE 6]          +a at 1   +b at 4   -a at 7   +c at 9   -b at 10   ...
```
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import polars as pl

from headgate.kernels.emit.emit import ChangeLog, Emit, Istream
from headgate.kernels.emit.lazy_rows import LazyRows
from headgate.kernels.kernel import State
from headgate.kernels.state.composite import States, of_part
from headgate.kernels.window.time_window import Range, Unbounded, Window, WindowSpec
from headgate.model.batch import Batch
from headgate.model.time import Clock


@dataclass(frozen=True)
class Wstream(Emit):
    """The births, those of one instant in the order of the emission, through the window `spec`, as a change log.

    Inside a plan it is that window's contents.
    """

    spec: WindowSpec = field(default_factory=Unbounded)

    def __post_init__(self) -> None:
        if isinstance(self.spec, Range) and self.spec.slide is not None:
            raise ValueError("an output window does not slide by ticks")

    @cached_property
    def _births(self) -> Istream:
        return Istream(self.schema, self.arrival, ticking=self.ticking)

    @cached_property
    def _window(self) -> Window:
        return Window(self.spec, self.schema)

    @cached_property
    def _log(self) -> ChangeLog:
        return ChangeLog(self.schema, self.arrival)

    @property
    def _stages(self) -> Mapping[str, Emit | Window]:
        return {"births": self._births, "window": self._window, "log": self._log}

    def initial(self) -> States[State]:
        return States({name: stage.initial() for name, stage in self._stages.items()})

    def restore(self, chunks: Mapping[str, pl.DataFrame]) -> States[State]:
        return States({name: stage.restore(of_part(chunks, name)) for name, stage in self._stages.items()})

    def emit(self, state: State, batch: Batch, clock: Clock) -> tuple[States[State], LazyRows]:
        parts, windowed = self._windowed(state, batch, clock)
        log, rows = self._log.emit(parts["log"], windowed, clock)
        return States({**parts, "log": log}), rows

    def stream(
        self, state: State, inputs: Sequence[Batch], clock: Clock
    ) -> tuple[States[State], Iterator[Batch]]:
        [batch] = inputs
        parts, windowed = self._windowed(state, batch, clock)
        return States(parts), iter((windowed,))

    def _windowed(self, state: State, batch: Batch, clock: Clock) -> tuple[dict[str, State], Batch]:
        assert isinstance(state, States)
        births, stream = self._births.advance(state.named["births"], [batch], clock)
        window, output = self._window.advance(state.named["window"], [stream], clock)
        return {**state.named, "births": births, "window": window}, output
