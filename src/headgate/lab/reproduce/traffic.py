"""Traffic for the window experiments: three links, generated or taken from Zeek's logs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from headgate.lab.generators import Network, read_zeek
from headgate.lab.generators.network import LINK
from headgate.model.errors import InputError
from headgate.model.time import SECOND

LINKS = ("link1", "link2", "link3")
_LOGS = ("dns", "ssl", "weird")
_FILL_STEPS = 20


@dataclass(frozen=True, eq=False)
class Traffic:
    """Connections on three links, in time order, and how they are cut into steps."""

    name: str
    tables: Mapping[str, pa.Table]

    @staticmethod
    def generated(rows: int, seed: int = 7) -> Traffic:
        """So many rows on each link, one a second on average."""
        network = Network(rows=rows, links=len(LINKS), seed=seed)
        return Traffic("generated", {name: network[name].table() for name in LINKS})

    @staticmethod
    def zeek(folder: Path) -> Traffic:
        """The logs of name look-ups, encrypted sessions and oddities as three links.

        They know no protocols: what goes to the most usual port of a log plays telnet, the rest plays ftp.
        """
        return Traffic(
            f"Zeek logs in {folder.name}",
            {link: _as_link(_log(folder, name)) for link, name in zip(LINKS, _LOGS, strict=True)},
        )

    @cached_property
    def times(self) -> Mapping[str, npt.NDArray[np.int64]]:
        """The instants of each link's rows."""
        return {name: table["ts"].cast(pa.int64()).to_numpy() for name, table in self.tables.items()}

    @cached_property
    def start(self) -> int:
        return min(int(times[0]) for times in self.times.values())

    @cached_property
    def seconds_per_row(self) -> float:
        """The time between two rows of the first link, on average."""
        times = self.times[LINKS[0]]
        return float(times[-1] - times[0]) / SECOND / len(times)

    def cuts(self, window: float, step_rows: int, steps: int) -> npt.NDArray[np.int64]:
        """Where steps end: a few large ones that fill a window of so many seconds, then those that are measured."""
        fill = np.linspace(0, window, _FILL_STEPS + 1)[1:]
        measured = window + self.seconds_per_row * step_rows * np.arange(1, steps + 1)
        return self.start + (np.concatenate([fill, measured]) * SECOND).astype(np.int64)


def slices(
    frame: pl.DataFrame, times: Sequence[int] | npt.NDArray[np.int64], cuts: npt.NDArray[np.int64]
) -> Iterator[pl.DataFrame]:
    """The rows between one cut and the next; what comes after the last cut is left out."""
    ends = np.searchsorted(np.asarray(times), cuts, side="right").tolist()
    for begin, end in zip([0, *ends], ends, strict=False):
        if end > begin:
            yield frame[begin:end]


def _log(folder: Path, name: str) -> pa.Table:
    for path in (folder / f"{name}.log", folder / f"{name}.log.gz"):
        if path.is_file():
            return read_zeek(path)
    raise InputError(
        f"{folder} has no {name}.log", remedy="name a folder with dns.log, ssl.log and weird.log"
    )


def _as_link(log: pa.Table) -> pa.Table:
    log = log.sort_by("ts")
    ports = log["id_resp_p"]
    usual = pc.mode(ports)[0].as_py()["mode"]
    return pa.table(
        [
            log["ts"],
            pa.nulls(log.num_rows, pa.float64()),
            pc.if_else(pc.equal(ports, usual), "telnet", "ftp"),
            pa.nulls(log.num_rows, pa.int64()),
            log["id_orig_h"],
            log["id_resp_h"],
        ],
        schema=LINK,
    )
