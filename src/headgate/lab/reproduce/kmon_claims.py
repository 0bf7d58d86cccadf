"""What the k-Mon document says of its figures and tables, judged by what was measured here.

Each k is written as the document's, whatever the scale of the run. Where the document prints a curve and no number,
the bar is this project's own: at k = 0 at most 2 % of what windows alone keep, at k = 20,000 still less than they do.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, pstdev

from headgate.lab.reproduce.claims import Claim
from headgate.lab.reproduce.kmon import FIGURES, SWJ, StateLine
from headgate.lab.reproduce.linear_road import RoadRun

SINGLE = {"4": "RIDS", "6": "CA", "8": "OAP", "20": "OAC"}
"""The figures of one constraint each."""
TABLE_1: Mapping[str, Mapping[int, float]] = {
    "RIDS": {0: 20 / 24, 1_000: 40 / 26, 5_000: 43 / 28, 10_000: 45 / 28, 20_000: 46 / 28},
    "CA": {0: 22 / 20, 1_000: 24 / 21, 5_000: 25 / 23, 10_000: 27 / 23, 20_000: 28 / 24},
    "OAP": {0: 21 / 21, 1_000: 23 / 21, 5_000: 24 / 22, 10_000: 25 / 23, 20_000: 27 / 25},
    "OAC": {0: 20 / 18, 1_000: 20 / 18, 5_000: 20 / 18, 10_000: 21 / 18, 20_000: 22 / 18},
}
"""The document's time of a row over the window join's, by k."""
TABLE_3 = {
    "CurCarSeg": (0.09, 0.65),
    "AccSeg": (0.13, 0.99),
    "CarExitStr": (0.10, 0.49),
    "NegTollStr": (0.13, 0.62),
}
"""The document's memory and time with constraints over those without."""
_LEAST_SHARE = 0.02
_FULL = 350_000
"""When all windows of Figure 4 are full, in rows of all streams."""
_CROSSING = 2_000
"""The k past which two constraints keep more than one, in Figure 11."""
_PLAIN_MB, _CONSTRAINED_MB, _BYTES_PER_ROW = 72.0, 0.18, 10


@dataclass(frozen=True)
class KMonLines:
    """The measured lines, to be found by figure, way and the document's k."""

    lines: Sequence[StateLine]
    scale: float

    def ks(self, figure: str) -> tuple[int, ...]:
        """All k of a figure that were measured."""
        measured = {each.k for each in self.lines if each.figure == figure}
        (known,) = (each.ks for each in FIGURES if each.name == figure)
        return tuple(k for k in known if isinstance(k, int) and round(k * self.scale) in measured)

    def line(self, figure: str, way: str, k: int) -> StateLine:
        wanted = (figure, way, round(k * self.scale))
        return next(each for each in self.lines if (each.figure, each.way, each.k) == wanted)

    def share(self, figure: str, way: str, k: int) -> float:
        """What a way keeps over what windows alone keep."""
        return self.line(figure, way, k).share_of(self.line(figure, SWJ, k))

    def time_ratio(self, figure: str, way: str, k: int) -> float:
        """What a row costs over what it costs where windows alone are known."""
        return self.line(figure, way, k).seconds / self.line(figure, SWJ, k).seconds


def judge(found: KMonLines, example: tuple[StateLine, StateLine], road: Sequence[RoadRun]) -> Iterator[Claim]:
    """All claims, in the order of the document."""
    yield _example(example, found.scale)
    for figure, way in SINGLE.items():
        yield from _curve(found, figure, way)
        if figure == "4":
            yield _filled(found)
        if way == "OAP":
            yield _varies(found, figure, way)
    for figure, way in SINGLE.items():
        yield from _times(found, figure, way)
    yield _together(found)
    yield _crossing(found)
    for each in road:
        yield from _on_the_road(each)


def _example(lines: tuple[StateLine, StateLine], scale: float) -> Claim:
    by_windows, constrained = lines
    kept = [max(each.settled) for each in lines]
    plain, rest = (rows * _BYTES_PER_ROW / scale / 1e6 for rows in kept)
    ratio = constrained.share_of(by_windows)
    return Claim(
        "Section 1.1: three links, windows of 10 minutes",
        f"{_PLAIN_MB:.0f} MB → {_CONSTRAINED_MB} MB, ratio {_CONSTRAINED_MB / _PLAIN_MB:.4f}",
        f"{plain:.0f} MB → {rest:.2f} MB at the document's rates and size of a row, ratio {ratio:.4f}; "
        f"{kept[0]:,} → {kept[1]:,} rows kept",
        ratio <= _CONSTRAINED_MB / _PLAIN_MB,
    )


def _curve(found: KMonLines, figure: str, way: str) -> Iterator[Claim]:
    ks = found.ks(figure)
    shares = [found.share(figure, way, k) for k in ks]
    listed = ", ".join(f"{share:.1%}" for share in shares)
    yield Claim(
        f"Figure {figure}, {way}: the smaller k, the less is kept",
        "rising with k",
        f"{listed} of SWJ for k = {_numbers(ks)}",
        shares == sorted(shares),
    )
    yield Claim(
        f"Figure {figure}, {way}: almost nothing is kept at k = 0",
        f"at most {_LEAST_SHARE:.0%} of SWJ",
        f"{shares[0]:.2%}",
        ks[0] == 0 and shares[0] <= _LEAST_SHARE,
    )
    yield Claim(
        f"Figure {figure}, {way}: less than SWJ even at k = {ks[-1]:,}",
        "less",
        f"{shares[-1]:.1%}",
        shares[-1] < 1,
    )


def _filled(found: KMonLines) -> Claim:
    """What is kept shortly before windows are full, then, and later; on average, since dead rows go in bulk."""
    line = found.line("4", SWJ, found.ks("4")[0])
    span = _FULL // 3
    ends = [bisect_left(line.rows, (_FULL + each * span) * found.scale) for each in (-1, 0, 1, 2)]
    before, then, later = (fmean(line.state_rows[begin:end]) for begin, end in pairwise(ends))
    return Claim(
        "Figure 4: SWJ keeps no more once all windows are full",
        f"after {_FULL:,} rows",
        f"{before:,.0f} rows on average before, {then:,.0f} then, {later:,.0f} later",
        before < 0.95 * later and abs(then / later - 1) < 0.05,
    )


def _varies(found: KMonLines, figure: str, way: str) -> Claim:
    ks = found.ks(figure)
    spreads = [pstdev(found.line(figure, way, k).settled) for k in ks]
    return Claim(
        f"Figure {figure}, {way}: what is kept varies about a level, the more so the larger k",
        "rising with k",
        f"by {', '.join(f'{each:.0f}' for each in spreads)} rows for k = {_numbers(ks)}",
        spreads == sorted(spreads),
    )


def _times(found: KMonLines, figure: str, way: str) -> Iterator[Claim]:
    ks = found.ks(figure)
    ratios = [found.time_ratio(figure, way, k) for k in ks]
    theirs = [TABLE_1[way][k] for k in ks]
    document = f"{', '.join(f'{each:.2f}' for each in theirs)} of SWJ"
    here = f"{', '.join(f'{each:.2f}' for each in ratios)} for k = {_numbers(ks)}"
    yield Claim(
        f"Table 1, {way}: time of a row, no more than the document's part of SWJ's",
        document,
        here,
        all(mine <= its for mine, its in zip(ratios, theirs, strict=True)),
    )
    yield Claim(
        f"Table 1, {way}: time of a row, no more than SWJ's",
        "at most 1.00",
        f"at most {max(ratios):.2f}",
        max(ratios) <= 1,
    )


def _together(found: KMonLines) -> Claim:
    (k,) = found.ks("10")
    both, *alone = (found.share("10", way, k) for way in ("CA and OAC", "CA", "OAC"))
    return Claim(
        "Figure 10: CA and OAC together keep less than either alone",
        "less",
        f"{both:.1%} of SWJ against {alone[0]:.1%} and {alone[1]:.1%}",
        both < min(alone),
    )


def _crossing(found: KMonLines) -> Claim:
    ks = found.ks("11")
    both, alone = ([found.share("11", way, k) for k in ks] for way in ("CA and RIDS", "CA"))
    pairs = [f"{two:.1%} against {one:.1%}" for two, one in zip(both, alone, strict=True)]
    return Claim(
        f"Figure 11: CA and RIDS keep more than CA alone once k is more than about {_CROSSING:,}",
        f"less at first, more beyond {_CROSSING:,}",
        f"{', '.join(pairs)} of SWJ for k = {_numbers(ks)}",
        all(
            two > one if k > _CROSSING else two < one
            for k, two, one in zip(ks, both, alone, strict=True)
            if k != _CROSSING
        ),
    )


def _on_the_road(run: RoadRun) -> Iterator[Claim]:
    memory, time = TABLE_3[run.query]
    nothing = ", they change nothing" if run.memory_ratio == 1 else ""
    yield Claim(
        f"Table 3, {run.query}: memory with constraints",
        f"{memory:.2f} of that without",
        f"{run.memory_ratio:.2f}: {run.rows[1]:,.0f} of {run.rows[0]:,.0f} rows{nothing}",
        run.memory_ratio <= memory,
    )
    yield Claim(
        f"Table 3, {run.query}: time of a row with constraints",
        f"{time:.2f} of that without",
        f"{run.time_ratio:.2f}: {1e3 * run.seconds[1]:.1f} of {1e3 * run.seconds[0]:.1f} ms per 1,000 rows",
        # Where constraints change nothing, times differ by chance.
        run.time_ratio <= time and not nothing,
    )


def _numbers(ks: Sequence[int]) -> str:
    return ", ".join(f"{k:,}" for k in ks)
