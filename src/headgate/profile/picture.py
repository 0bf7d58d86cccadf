"""Pictures of a profile: bars of what each query keeps, and of the k that the rows of a constraint need.

```
shipped   before  ██████████████████████  1,076 rows, refused
          after   ██▌                       121 rows, conditional
```
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headgate.explain.describe import visible
from headgate.explain.text_layout import SIZE, SMALL, TITLE, document, text, width, wrap
from headgate.profile.constraint import Constraint
from headgate.profile.report import said
from headgate.profile.savings import Saving, Standing

_COLOURS: Mapping[str, str] = {"bounded": "#2e7d32", "conditional": "#9a6700", "refused": "#c62828"}
_PLAIN = "#00838f"
_MARGIN, _PAD, _BAR, _ROW, _TITLE, _APART = 20, 10, 14, 22, 24, 14
_LONGEST = 420
"""Pixels of the longest bar."""
_LONGEST_TITLE = 100


@dataclass(frozen=True)
class _Bar:
    label: str
    value: int | None
    said: str
    colour: str


@dataclass(frozen=True)
class _Group:
    title: str
    bars: tuple[_Bar, ...]


def states_picture(savings: Sequence[Saving]) -> str:
    """What each query keeps before and after; one scale for all of them."""
    groups = [
        _Group(
            saving.query,
            (_standing("before", saving.before),)
            + ((_standing("after", saving.after),) if saving.constraints else ()),
        )
        for saving in savings
    ]
    return _drawn(groups, "rows of state", together=True)


def spread_picture(constraints: Sequence[Constraint]) -> str:
    """For each constraint with a k, the k that is enough for some shares of the rows; each on its own scale."""
    groups = []
    for each in constraints:
        if each.spread is None or not each.spread.most.k:
            continue
        bars = [_Bar(f"{share:.0%}", k.k, str(k), _PLAIN) for share, k in each.spread.shares]
        bars.append(_Bar("all", each.spread.most.k, str(each.spread.most), _PLAIN))
        groups.append(_Group(each.shown, tuple(bars)))
    return _drawn(groups, "k by share of the rows", together=False) if groups else ""


def _standing(label: str, standing: Standing) -> _Bar:
    return _Bar(label, standing.state_rows, said(standing), _COLOURS[standing.verdict])


def _drawn(groups: Sequence[_Group], label: str, *, together: bool) -> str:
    every = [bar.value or 0 for group in groups for bar in group.bars]
    beside = max((width(bar.label, SMALL) for group in groups for bar in group.bars), default=0) + _PAD
    parts: list[str] = []
    y, right = float(_MARGIN), 0.0
    for group in groups:
        for line in wrap(visible(group.title), _LONGEST_TITLE):
            y += TITLE
            parts.append(text(line, _MARGIN, y, kind="op"))
            right = max(right, _MARGIN + width(line, SIZE))
        y += _TITLE - TITLE
        most = max(every if together else [bar.value or 0 for bar in group.bars], default=0) or 1
        for bar in group.bars:
            x, length = _MARGIN + beside, (bar.value or 0) / most * _LONGEST
            parts.append(text(bar.label, _MARGIN, y + _BAR - 3, kind="small"))
            parts.append(
                f'<rect x="{x:.0f}" y="{y:.0f}" width="{max(1.0, length):.1f}" height="{_BAR}" '
                f'style="fill:{bar.colour}"/>'
            )
            end = x + max(1.0, length) + _PAD
            parts.append(text(bar.said, end, y + _BAR - 3, kind="small"))
            right = max(right, end + width(bar.said, SMALL))
            y += _ROW
        y += _APART
    return document(parts, right + _MARGIN, y + _MARGIN - _APART, label)
