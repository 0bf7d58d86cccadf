"""`headgate reproduce kmon`: what constraints let joins of windows forget, beside the k-Mon document's figures.

Figures 4, 6, 8, 10, 11 and 20, the example of section 1.1, and Tables 1 and 3. A run `scale` times as large has
windows, ks and rows that are so many times the document's. Figures 5, 7 and 9, where k changes in the course of a
run, are declared beside the others (`kmon.OVER_TIME`) and not run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from headgate.lab.plots import figure as drawing
from headgate.lab.reproduce import kmon
from headgate.lab.reproduce.claims import Claim
from headgate.lab.reproduce.kmon import FIGURES, SWJ, StateLine, measure_example, measure_figure
from headgate.lab.reproduce.kmon_claims import SINGLE, KMonLines, judge
from headgate.lab.reproduce.linear_road import RoadRun, measure_road

SCALE, QUICK_SCALE = 0.2, 0.02
_LOGARITHMIC = ("1.1", "6", "8")


@dataclass(frozen=True)
class KMonReproduction:
    """All lines of all figures, the queries of Linear Road, and what the document says judged by them."""

    scale: float
    batch_rows: int
    """Rows of all streams in a step."""
    lines: tuple[StateLine, ...]
    road: tuple[RoadRun, ...]
    claims: tuple[Claim, ...]

    def as_dict(self) -> dict[str, Any]:
        return {
            "reproduce": "kmon",
            "scale": self.scale,
            "batch_rows": self.batch_rows,
            "lines": [each.as_dict() for each in self.lines],
            "road": [each.as_dict() for each in self.road],
            "claims": [each.as_dict() for each in self.claims],
        }

    @property
    def rows(self) -> tuple[tuple[str, ...], ...]:
        """Each line in short: figure, way, the document's k, rows kept, of SWJ, ms per 1,000 rows, of SWJ's."""
        plain = {(each.figure, each.k): each for each in self.lines if each.way == SWJ}
        return tuple(
            (
                each.figure,
                each.way,
                "" if each.k is None else f"{round(each.k / self.scale):,}",
                f"{fmean(each.settled):,.0f}",
                f"{each.share_of(plain[each.figure, each.k]):.2%}",
                f"{1e3 * each.seconds:.1f}",
                f"{each.seconds / plain[each.figure, each.k].seconds:.2f}×",
            )
            for each in self.lines
        )


def reproduce(
    scale: float = SCALE, *, on_progress: Callable[[str], None] = lambda what: None
) -> KMonReproduction:
    """Measures everything and judges the document's claims."""
    lines: list[StateLine] = []
    for figure in FIGURES:
        lines += measure_figure(figure, scale=scale, on_progress=on_progress)
    example = measure_example(scale=scale, on_progress=on_progress)
    batch = kmon.step_rows(scale)
    road = measure_road(scale=scale, step_rows=batch, on_progress=on_progress)
    claims = tuple(judge(KMonLines(lines, scale), example, road))
    return KMonReproduction(scale, batch, (*example, *lines), road, claims)


def draw(found: KMonReproduction, path: Path) -> None:
    """State over rows read for the example and each figure; Figure 11 over k, as in the document."""
    with drawing(path, rows=2, columns=4, width=18.0, height=8.0) as axes:
        names = ("1.1", *(each.name for each in FIGURES))
        for name, panel in zip(names, axes.flat, strict=False):
            lines = [each for each in found.lines if each.figure == name]
            if name == "11":
                _draw_over_k(found, lines, panel)
            else:
                _draw_over_rows(found, lines, panel)
            if name in _LOGARITHMIC:
                panel.set_yscale("log")
            title = "section 1.1" if name == "1.1" else f"Figure {name}"
            panel.set(title=title, ylabel="rows kept")
            panel.legend(fontsize=7, frameon=False)
        _draw_times(found, axes.flat[len(names)])


def _draw_over_rows(found: KMonReproduction, lines: list[StateLine], panel: Any) -> None:
    """One line for the window join, which is the same for all k but for chance, and one for each way and k."""
    drawn = set()
    for each in lines:
        k = "" if each.k is None else f", k = {round(each.k / found.scale):,}"
        if each.way == SWJ and SWJ in drawn:
            continue
        drawn.add(each.way)
        style = "--" if each.way == SWJ else "-"
        label = SWJ if each.way == SWJ else f"{each.way}{k}"
        thousands = [rows / 1_000 for rows in each.rows]
        panel.plot(thousands, [max(1, kept) for kept in each.state_rows], style, label=label, linewidth=1)
    panel.set(xlabel="thousand rows read")


def _draw_over_k(found: KMonReproduction, lines: list[StateLine], panel: Any) -> None:
    for way in dict.fromkeys(each.way for each in lines):
        mine = [
            (each.k / found.scale, fmean(each.settled))
            for each in lines
            if each.way == way and each.k is not None
        ]
        panel.plot(*zip(*mine, strict=True), "--" if way == SWJ else "-o", label=way, markersize=3)
    panel.set(xlabel="k of RIDS")


def _draw_times(found: KMonReproduction, panel: Any) -> None:
    """Table 1: one line for each constraint."""
    seen = KMonLines(found.lines, found.scale)
    for name, way in SINGLE.items():
        ks = seen.ks(name)
        panel.plot(ks, [seen.time_ratio(name, way, k) for k in ks], "-o", label=way, markersize=3)
    panel.axhline(1, color="grey", linestyle="--", linewidth=1)
    panel.set(title="Table 1", xlabel="k", ylabel="time of a row, SWJ = 1", ylim=(0, None))
    panel.legend(fontsize=7, frameon=False)
