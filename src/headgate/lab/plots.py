"""Plots: one plain style for every picture of the lab."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headgate.model.errors import SetupError

HOW_TO_DRAW = "pip install 'headgate[lab]'"


def can_draw() -> bool:
    """Whether pictures can be drawn here."""
    return importlib.util.find_spec("matplotlib") is not None


def require_drawing(picture: Path | None) -> None:
    """Raises SetupError if a picture is asked for and cannot be drawn; before the work, not after it."""
    if picture is not None and not can_draw():
        raise SetupError("pictures need matplotlib", remedy=HOW_TO_DRAW)


@contextmanager
def figure(
    path: Path, *, rows: int = 1, columns: int = 1, width: float = 9.0, height: float = 5.0
) -> Iterator[Any]:
    """A figure to draw on, one axes or several; saved to `path` when the block ends well."""
    require_drawing(path)
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(
        {"axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.alpha": 0.3}
    ):
        whole = Figure(figsize=(width, height), layout="constrained")
        axes = whole.subplots(rows, columns)
        yield axes
        path.parent.mkdir(parents=True, exist_ok=True)
        whole.savefig(path, dpi=120)
