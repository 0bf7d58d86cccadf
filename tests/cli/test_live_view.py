"""The live view: a table on a terminal, now and then a line elsewhere, and never a word when told to be quiet."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from headgate.cli.live_view import LINE_SECONDS, LiveView, bars, instant


def metrics(batches: int, rows: int, **more: Any) -> dict[str, Any]:
    return {
        "query": "hot",
        "output": "ISTREAM",
        "engine": "spark",
        "allowed_unbounded": False,
        "rows_in": rows,
        "rows_out": 5,
        "late_rows": 1,
        "steps": batches,
        "batches": batches,
        "clock": 1_735_692_899_000_000,
        "state_rows": 40 * batches,
        "state_bytes": 2_000_000,
        "operators": {
            "4:join": {"state_rows": 30 * batches, "state_bytes": 1_500_000},
            "6:istream": {"state_rows": 0, "state_bytes": 0},
        },
        **more,
    }


class Time:
    """A clock that goes when told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def view_on(terminal: bool, **options: Any) -> tuple[LiveView, io.StringIO, Time]:
    out, time = io.StringIO(), Time()
    console = Console(file=out, force_terminal=terminal, width=160, highlight=False)
    return LiveView(console, clock=time, **options), out, time


def test_a_terminal_shows_a_table() -> None:
    view, out, time = view_on(terminal=True, title="following")
    with view:
        view.registry.put(metrics(1, 1_000))
        time.now = 10.0
        view.registry.put(metrics(2, 3_000))
        shown = view._render()
        out.truncate(0)
        view._console.print(shown)
        text = out.getvalue()
    assert "following  0:00:10" in text
    assert "200 │" in text, "rows per second"
    assert "80 rows, 2.0 MB" in text
    assert "4:join 60" in text
    assert "6:istream" not in text
    assert "2025-01-01 00:54:59" in text


def test_a_monitored_constraint_is_shown_with_the_k_in_use() -> None:
    known = {"constraint": "s ORDERED BY (a) WITHIN AUTO", "k": 12}
    unknown = {"constraint": "s CLUSTERED BY (a) WITHIN AUTO", "k": None}
    view, out, _ = view_on(terminal=True)
    with view:
        view.registry.put(metrics(3, 1000, constraints={"3:punctuations": known, "4:punctuations": unknown}))
    assert "k 12: s ORDERED BY (a) WITHIN AUTO" in out.getvalue()
    assert "k –: s CLUSTERED BY (a) WITHIN AUTO" in out.getvalue()


def test_elsewhere_there_is_a_line_now_and_then() -> None:
    view, out, time = view_on(terminal=False, first_line=60.0)
    with view:
        for second in (0.0, 59.0, 61.0, 62.0, 61.0 + LINE_SECONDS):
            time.now = second
            view.registry.put(metrics(1 + int(second), 1_000))
    lines = out.getvalue().splitlines()
    assert len(lines) == 2
    assert lines[0].startswith(
        "    61 s  hot: batch 62, 1,000 rows in, 5 out, 1 late, state 2,480 rows, 2.0 MB"
    )


def test_quiet_is_quiet() -> None:
    for terminal in (True, False):
        view, out, time = view_on(terminal=terminal, quiet=True, first_line=0.0)
        with view:
            time.now = 100.0
            view.registry.put(metrics(1, 1_000))
        assert out.getvalue() == ""


def test_names_are_not_markup() -> None:
    view, out, _ = view_on(terminal=False, first_line=0.0)
    view.registry.put(metrics(1, 1, query="[red]hot"))
    assert "[red]hot: batch 1" in out.getvalue()


def test_instants_beyond_the_calendar() -> None:
    assert instant(None) == "–"
    assert instant(2**62) == f"{2**62} µs"


def test_bars() -> None:
    assert bars([0, 4, 8]) == "▁▄█"
    assert bars([]) == ""
