"""The demo's picture: bids per category over time, and state beside the rows that were read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from headgate.lab.demo import DemoState
from headgate.lab.plots import figure
from headgate.model.time import MINUTE

FLAT = 0.1
"""What changes by less than this share over the second half of the data is called flat."""

_LEAST_SAMPLES = 3


@dataclass(frozen=True)
class Course:
    """Sizes over minutes of the auction, from the first row of the data to its last."""

    minutes: tuple[float, ...]
    sizes: tuple[int, ...]
    length: float
    """Minutes of the data."""

    @property
    def trend(self) -> float | None:
        """By which share of itself it grows over the second half of the data; None where too little was seen.

        It is the slope of the straight line that fits best, so that single peaks count for little.
        """
        seen = [
            (minute, size)
            for minute, size in zip(self.minutes, self.sizes, strict=True)
            if minute >= self.length / 2
        ]
        times, sizes = np.array(seen, dtype=float).reshape(-1, 2).T
        if len(seen) < _LEAST_SAMPLES or times[0] == times[-1] or not sizes.mean():
            return None
        moved = times - times.mean()
        slope = float((moved * sizes).sum() / (moved * moved).sum())
        return slope * self.length / 2 / float(sizes.mean())

    @property
    def flat(self) -> bool:
        return self.trend is not None and abs(self.trend) < FLAT


def course(state: DemoState, clocks: list[int], sizes: list[int]) -> Course:
    """What was seen while there was data: nothing of the time after it, when windows run empty."""
    seen = [
        (clock, size)
        for clock, size in zip(clocks, sizes, strict=True)
        if state.begins <= clock <= state.ends
    ]
    return Course(
        tuple((clock - state.begins) / MINUTE for clock, _ in seen),
        tuple(size for _, size in seen),
        (state.ends - state.begins) / MINUTE,
    )


def states(state: DemoState) -> dict[str, Course]:
    """How the state of each query went."""
    return {name: course(state, state.state_clocks[name], sizes) for name, sizes in state.state_rows.items()}


def headline(courses: dict[str, Course]) -> str:
    """What can be said of the states, and nothing that they do not do."""
    flat = [name for name, each in courses.items() if each.flat]
    if not flat:
        return "state and rows read"
    if len(flat) == len(courses):
        return "state stays flat while rows keep coming"
    return f"state of {' and '.join(flat)} stays flat while rows keep coming"


def label(name: str, followed: Course) -> str:
    """A query's name, with how its state goes in the second half of the data."""
    if followed.trend is None:
        return f"state of {name}"
    return f"state of {name}: {'flat' if followed.flat else f'{followed.trend:+.0%} in the second half'}"


def draw(state: DemoState, path: Path) -> None:
    """A picture of the run, from the first row of the data to its last."""
    courses = states(state)
    length = (state.ends - state.begins) / MINUTE
    with figure(path, rows=2, width=10.5, height=7.0) as (top, bottom):
        for category, line in _categories(state).items():
            top.plot(line["minutes"], line["bids"], label=category, linewidth=1.2)
        top.set(title="bids of the last ten minutes, by category", ylabel="bids")
        for name, followed in courses.items():
            bottom.plot(followed.minutes, followed.sizes, label=label(name, followed))
        read = course(state, state.clocks, state.rows_in)
        bottom.plot(read.minutes, read.sizes, label="rows read", color="black", linestyle=":")
        bottom.set(title=headline(courses), ylabel="rows")
        for axes in (top, bottom):
            axes.set(xlabel="minutes of the auction", xlim=(0, length), ylim=(0, None))
            axes.yaxis.set_major_formatter(lambda value, position: f"{value:,.0f}")
            if axes.lines:
                axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)


def _categories(state: DemoState) -> dict[str, pl.DataFrame]:
    """The bids of each category over the minutes of the data, the largest at its end first."""
    history = (
        pl.DataFrame(
            state.category_history,
            schema={"time": pl.Int64, "category": pl.String, "bids": pl.Int64},
            orient="row",
        )
        .filter(pl.col("time").is_between(state.begins, state.ends))
        .with_columns(minutes=(pl.col("time") - state.begins) / MINUTE)
        .sort("time")
    )
    found = {str(key): line for (key,), line in history.group_by("category", maintain_order=True)}
    return dict(sorted(found.items(), key=lambda each: -each[1]["bids"][-1]))
