"""PartialMatch: combinations of rows of some inputs of a join, and the step from some inputs to one more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from headgate.kernels.join.probe_plan import ProbeStep
from headgate.kernels.state.store import ENDS, Instants, Probes, Store, payload_of, rows_where
from headgate.model.batch import BORN, DIES
from headgate.model.time import NEVER


@dataclass(frozen=True, eq=False)
class PartialMatch:
    """Rows that agree so far, side by side, and what their lifetimes have in common."""

    frame: pl.DataFrame
    """The payload of all inputs so far."""
    born: Instants
    """The latest birth."""
    ends: Instants
    """The earliest end, that of internal inputs included."""
    dies: Instants
    """The earliest death that was announced, that of internal inputs left out: the death of the result."""

    @property
    def height(self) -> int:
        return len(self.born)

    @staticmethod
    def of(rows: pl.DataFrame, *, internal: bool) -> PartialMatch:
        """The rows of one input."""
        born, dies, ends = (rows[name].to_numpy() for name in (BORN, DIES, ENDS))
        if internal:
            dies = np.full(len(dies), NEVER, dtype=np.int64)
        return PartialMatch(payload_of(rows), born, ends, dies)

    def just_before(self) -> PartialMatch:
        """The rows as they are at the last instant before they end."""
        return PartialMatch(self.frame, self.ends - 1, self.ends, self.dies)

    def with_partners(
        self,
        step: ProbeStep,
        stores: Sequence[Store],
        *,
        internal: bool,
        outlive: bool,
        residual: pl.Expr | None,
    ) -> PartialMatch | None:
        """Every combination with every row of one more input that agrees and is alive together with it.

        `outlive`: the new row must live beyond the end of the combination. `residual` must hold for what
        comes out; it is asked of each piece, because a product may be much larger than what remains of it.
        """
        probes = Probes(self.frame, step.columns, self.ends if outlive else self.born, self.ends)
        pieces = []
        for store in stores:
            for match in store.probe(step.key, probes):
                born = np.maximum(self.born.take(match.probe), match.born)
                ends = np.minimum(self.ends.take(match.probe), match.ends)
                dies = self.dies.take(match.probe)
                if not internal:
                    dies = np.minimum(dies, match.dies)
                piece = PartialMatch(match.left.hstack(match.right), born, ends, dies)
                pieces.append(piece if residual is None else piece.where(residual))
        pieces = [piece for piece in pieces if piece.height]
        if len(pieces) < 2:
            return pieces[0] if pieces else None
        frame = pl.concat([piece.frame for piece in pieces], rechunk=True)
        born, ends, dies = (
            np.concatenate([getattr(piece, name) for piece in pieces]) for name in ("born", "ends", "dies")
        )
        return PartialMatch(frame, born, ends, dies)

    def where(self, condition: pl.Expr) -> PartialMatch:
        """The combinations for which a condition over the payload is true."""
        true = self.frame.select(condition.alias("true")).to_series().fill_null(False)
        keep = true.to_numpy()
        return PartialMatch(rows_where(self.frame, keep), self.born[keep], self.ends[keep], self.dies[keep])
