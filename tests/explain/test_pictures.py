"""What can be said of pictures without looking: nothing is cut, nothing overlaps, and the canvas fits."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.explain.check_report import picture
from headgate.explain.join_picture import Titled, join_picture
from headgate.explain.text_layout import cells, shelves, width, wrap
from headgate.safety.reasons.join_graph import Arrow, JoinGraph
from headgate.session import Session

EXAMPLES = Path(__file__).parents[2] / "examples"
DECLARED = """
CREATE STREAM r1 (ts TIMESTAMP, a BIGINT, b BIGINT, last BOOLEAN) TIMESTAMP BY ts PUNCTUATED BY (a) WHEN last;
CREATE STREAM r2 (ts TIMESTAMP, a BIGINT, b BIGINT, last BOOLEAN) TIMESTAMP BY ts PUNCTUATED BY (a) WHEN last;
CREATE STREAM r3 (ts TIMESTAMP, a BIGINT, b BIGINT, last BOOLEAN) TIMESTAMP BY ts PUNCTUATED BY (b) WHEN last;
CREATE STREAM r4 (ts TIMESTAMP, a BIGINT, b BIGINT) TIMESTAMP BY ts KEY (a);
CREATE STREAM a_long_name_of_a_stream (ts TIMESTAMP, a BIGINT, b BIGINT) TIMESTAMP BY ts;
"""
QUERIES = {
    "two streams": "SELECT ISTREAM(v.a, w.b) FROM r1 v, r2 w WHERE v.a = w.a AND v.b = w.b",
    "every pair": "SELECT ISTREAM(v.a, w.b) FROM r1 [RANGE 1 HOUR] v, r2 [RANGE 1 HOUR] w",
    "five streams": (
        "SELECT ISTREAM(v.a, w.b, x.a AS xa, y.b AS yb, z.b AS zb) "
        "FROM r1 v, r2 w, r3 x, r4 y, a_long_name_of_a_stream z "
        "WHERE v.a = w.a AND w.b = x.b AND x.a = y.a AND y.b = z.b AND v.b = y.b AND v.b + w.b < z.a"
    ),
    "long names": (
        "SELECT a_long_name_of_a_stream.a FROM a_long_name_of_a_stream, r4 AS another_name_that_does_not_end_soon "
        "WHERE a_long_name_of_a_stream.a = another_name_that_does_not_end_soon.a"
    ),
    "not exists": "SELECT v.a FROM r1 v WHERE NOT EXISTS (SELECT * FROM r2 w WHERE w.a = v.a AND w.b > v.b)",
    "aggregate over a sub-query": (
        "SELECT MAX(n) AS most, MIN(n) AS least FROM (SELECT a, COUNT(*) AS n FROM r1 GROUP BY a) x"
    ),
    "many columns": "SELECT " + ", ".join(f"a + {n} AS sum_{n}" for n in range(60)) + " FROM r1 [ROWS 5]",
}


@dataclass(frozen=True)
class Area:
    """A rectangle of a picture."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Area) -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )

    def within(self, other: Area) -> bool:
        return (
            other.left <= self.left
            and self.right <= other.right
            and other.top <= self.top
            and self.bottom <= other.bottom
        )


def canvas(drawn: ET.Element) -> Area:
    return Area(0, 0, float(drawn.attrib["width"]), float(drawn.attrib["height"]))


def boxes(drawn: ET.Element) -> list[Area]:
    """All rectangles but the background and the bands that lead from lines to labels."""
    found = [
        each.attrib
        for each in drawn.findall(".//{*}rect")
        if "x" in each.attrib and each.get("class") != "band"
    ]
    corners = [tuple(float(each[name]) for name in ("x", "y", "width", "height")) for each in found]
    return [Area(x, y, x + w, y + h) for x, y, w, h in corners]


def texts(drawn: ET.Element) -> list[tuple[str, Area]]:
    """Every line of text with the room it takes; what hangs below the line is left out."""
    found = []
    for each in drawn.findall(".//{*}text"):
        said = each.text or ""
        size = {"title": 14 * 1.05, "dim": 11, "small": 11}.get(each.get("class", ""), 12)
        x, y, wide = float(each.attrib["x"]), float(each.attrib["y"]), width(said, size)
        left = {"middle": x - wide / 2, "end": x - wide}.get(each.get("text-anchor", ""), x)
        found.append((said, Area(left, y - 0.75 * size, left + wide, y)))
    return found


def lines(drawn: ET.Element) -> list[Area]:
    """The straight lines of a picture, with the room that their strokes take."""
    found = []
    for each in drawn.findall(".//{*}path"):
        if across := re.fullmatch(r"M(\S+) (\S+) H(\S+)", each.attrib["d"]):
            x, y, end = map(float, across.groups())
            found.append(Area(min(x, end), y - 1, max(x, end), y + 1))
        if down := re.fullmatch(r"M(\S+) (\S+) V(\S+)", each.attrib["d"]):
            x, y, end = map(float, down.groups())
            found.append(Area(x - 1, min(y, end), x + 1, max(y, end)))
    return found


def assert_tidy(drawn: ET.Element) -> None:
    """Everything is on the canvas, which is no larger than it must be; boxes, texts and lines keep apart."""
    whole = canvas(drawn)
    said = [area for _, area in texts(drawn)]
    for area in (*boxes(drawn), *said, *lines(drawn)):
        assert area.within(whole)
    everything = [*boxes(drawn), *said]
    assert whole.right - max(area.right for area in everything) <= 45
    assert whole.bottom - max(area.bottom for area in everything) <= 45
    for one, other in combinations(boxes(drawn), 2):
        assert not one.meets(other)
    for one, other in combinations(said, 2):
        assert not one.meets(other)
    for area in said:
        assert not any(area.meets(line) for line in lines(drawn))
        for box in boxes(drawn):
            assert area.within(box) or not area.meets(box)


def session(text: str) -> Session:
    found = Session()
    found.sql(DECLARED)
    query = found.sql(text)
    assert query is not None
    return found


def squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)


@pytest.mark.parametrize("name", QUERIES)
def test_the_plan_shows_every_state_whole(name: str) -> None:
    (query,) = session(QUERIES[name]).queries
    explanation = query.explain()
    drawn = ET.fromstring(explanation.to_svg())
    assert_tidy(drawn)
    shown = squeezed("".join(said for said, _ in texts(drawn)))
    waiting = [explanation.queries[0].plan]
    for node in waiting:
        waiting.extend(node.inputs)
        for stored in node.state.stored if node.state is not None else ():
            assert squeezed(stored.show()) in shown
        if len("".join(node.phrases)) < 200:
            assert all(squeezed(phrase) in shown for phrase in node.phrases)


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.cql")), ids=lambda file: file.stem)
def test_pictures_of_every_example_are_tidy(file: Path) -> None:
    read = Session.from_file(file)
    for query in read.queries:
        assert_tidy(ET.fromstring(query.explain(alternatives=True).to_svg()))
    assert_tidy(ET.fromstring(picture([query.checked for query in read.queries])))


@pytest.mark.parametrize("name", QUERIES)
def test_the_graph_of_a_join_is_tidy(name: str) -> None:
    (query,) = session(QUERIES[name]).queries
    assert_tidy(ET.fromstring(picture([query.checked])))


def test_what_a_long_title_leaves_out_is_in_the_tooltip() -> None:
    (query,) = session(QUERIES["many columns"]).queries
    drawn = ET.fromstring(query.explain().to_svg())
    assert any(said.endswith("…") for said, _ in texts(drawn))
    assert any("r1.a + 59 as sum_59" in (each.text or "") for each in drawn.findall(".//{*}title"))


def test_alternatives_are_told_apart() -> None:
    read = Session.from_file(EXAMPLES / "network.cql")
    (query,) = (each for each in read.queries if each.name == "query4")
    said = [each for each, _ in texts(ET.fromstring(query.explain(alternatives=True).to_svg()))]
    assert [each for each in said if each.startswith("alternative")] == [
        "alternative 1 of 3",
        "alternative 2 of 3",
        "alternative 3 of 3",
    ]


def graph(count: int) -> JoinGraph:
    """Every input joined with the next two; every third arrow is open."""
    names = tuple(f"input_{n}" for n in range(count))
    pairs = [(a, b) for a in range(count) for b in range(a + 1, min(count, a + 3))]
    return JoinGraph(
        names,
        frozenset(names[::4]),
        tuple((names[a], names[b], f"{names[a]}.k = {names[b]}.k") for a, b in pairs),
        tuple(
            Arrow(names[a], names[b], None if (a + b) % 3 == 0 else "KEY (k)", (f"{names[b]}.k",))
            for x, y in pairs
            for a, b in ((x, y), (y, x))
        ),
    )


@pytest.mark.parametrize("count", [2, 3, 5, 12])
def test_an_arrow_has_the_colour_of_its_line_and_ends_at_its_input(count: int) -> None:
    joined = graph(count)
    drawn = ET.fromstring(join_picture([Titled("many", "#c62828", joined, refused=True)]))
    assert_tidy(drawn)
    shafts = [each.attrib for each in drawn.findall(".//{*}path") if each.get("class") == "arrow"]
    heads = [each.attrib for each in drawn.findall(".//{*}path") if each.get("class") == "head"]
    assert len(shafts) == len(heads) == len(joined.arrows)
    middles = [(box.left + box.right) / 2 for box in boxes(drawn)]
    found = set()
    for shaft, head in zip(shafts, heads, strict=True):
        assert head["fill"] == shaft["stroke"]
        start = float(shaft["d"].split()[0][1:])
        end = float(head["d"].split()[0][1:])
        (source,) = (n for n in range(count) if abs(middles[n] - start) < 0.2)
        (target,) = (n for n in range(count) if abs(middles[n] - end) < 0.2)
        assert "stroke-dasharray" in shaft or head["fill"] == "#2e7d32"
        found.add((f"input_{source}", f"input_{target}", "stroke-dasharray" not in shaft))
    assert found == {(each.source, each.target, each.by is not None) for each in joined.arrows}


def test_any_name_can_be_drawn() -> None:
    (query,) = session('CREATE QUERY `a "b" <c> & d` AS ' + QUERIES["two streams"]).queries
    for drawn in (query.explain().to_svg(), picture([query.checked])):
        assert any('a "b" <c> & d' in said for said, _ in texts(ET.fromstring(drawn)))
    wide = JoinGraph(("注文" * 20, "b"), frozenset(), (("注文" * 20, "b", "x = y"),), ())
    assert_tidy(ET.fromstring(join_picture([Titled("注文", "#222", wide, refused=False)])))


def test_red_is_for_what_is_refused() -> None:
    admitted = join_picture([Titled("fine", "#2e7d32", graph(5), refused=False)])
    assert "stroke-dasharray" in admitted
    assert "#c62828" not in admitted


def test_no_join_no_graph() -> None:
    drawn = ET.fromstring(join_picture([]))
    assert [said for said, _ in texts(drawn)] == ["no query here joins streams"]
    assert_tidy(drawn)


def test_a_promise_that_is_not_enough_is_no_open_arrow() -> None:
    (query,) = session(QUERIES["five streams"]).queries
    assert not query.check().admitted
    (joined,) = query.checked.graphs
    said = {(each.source, each.target): each.said for each in joined.arrows}
    assert said["v", "w"] == "PUNCTUATED BY (a)"
    assert said["x", "w"] == "nothing closes w.b"
    assert said["x", "y"] == "KEY (a)"


@given(st.text(st.characters(codec="utf-8"), max_size=200), st.integers(4, 60), st.integers(0, 2))
def test_wrapping_keeps_every_character_and_the_width(text: str, longest: int, hanging: int) -> None:
    wrapped = wrap(text, longest, hanging)
    assert "".join(wrapped).replace(" ", "") == text.replace(" ", "")
    assert cells(wrapped[0]) <= longest
    assert all(cells(line) <= longest - hanging for line in wrapped[1:])


@given(st.lists(st.tuples(st.integers(1, 900), st.integers(1, 900)), max_size=12))
def test_shelves_keep_blocks_apart(sizes: list[tuple[int, int]]) -> None:
    places, wide, tall = shelves([(float(w), float(h)) for w, h in sizes], 1000, (10, 10))
    areas = [Area(x, y, x + w, y + h) for (x, y), (w, h) in zip(places, sizes, strict=True)]
    assert all(area.within(Area(0, 0, max(1000, wide), tall)) for area in areas)
    assert not any(one.meets(other) for one, other in combinations(areas, 2))
