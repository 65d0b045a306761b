"""The charts of the experiments: what is drawn of the numbers, what is written, and that the same numbers give the same bytes."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex

from hedgerow_experiments.charts import Boxes, Chart, Lines, Panel, Point, Series
from hedgerow_experiments.drawing import draw, figure_of

NAN, INF = math.nan, math.inf
EPSILONS = [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 1, 2, 5, 10]
TICKS = [(epsilon, f"{epsilon:g}") for epsilon in EPSILONS]
NAMES = [f"private forest number {i}" for i in range(12)] + ["random forest, not private", "majority class"]
BAD = "<script>alert('x')</script> & $x$ \"q\""


def some_series(count: int, shift: float = 0.0) -> list[Series]:
    return [
        Series(name, [Point(x, 0.6 + 0.02 * i + 0.03 * math.log10(x) + shift, 0.01) for x in EPSILONS], dashed=i >= 12)
        for i, name in enumerate(NAMES[:count])
    ]


def one(*series: Series, ticks: list[tuple[float, str]] = TICKS, log_x: bool = True) -> Lines:
    return Lines("One plot", [Panel("", series)], "ε", "accuracy", ticks, log_x)


CHARTS: dict[str, Chart] = {
    "lines": one(*some_series(6)),
    "lines of 14": one(*some_series(14)),
    "panels": Lines("Panels", [Panel(f"set {i}", some_series(14, i / 9)) for i in range(7)], "ε", "accuracy", TICKS, True),
    "two panels": Lines("Panels", [Panel(f"set {i}", some_series(2)) for i in range(2)], "ε", "accuracy", TICKS, columns=4),
    "boxes": Boxes("Boxes", [(f"{n}", [n / 100, 0.2, 0.5]) for n in range(1, 13)], "trees", "accuracy", [("CART", 0.8)]),
    "no lines": one(),
    "an empty panel": Lines("None", [Panel("a", []), Panel("b", some_series(1))], "x", "y", TICKS),
    "no numbers": one(Series("s", [Point(1, NAN), Point(NAN, 1), Point(INF, 1)])),
    "an empty box": Boxes("None", [("a", []), ("b", [NAN])], "x", "y", [("none", NAN)]),
    "one point": one(Series("s", [Point(1, 0.8)]), ticks=[(1, "1")], log_x=False),
    "equal values": one(Series("s", [Point(1, 0.0), Point(2, 0.0)])),
    "nearly equal values": one(Series("s", [Point(1, 0.8), Point(2, 0.8 + 1e-16)])),
    "markup": Lines(BAD, [Panel(BAD, [Series(BAD, [Point(1, 1)])])] * 2, BAD, BAD, [(1, BAD)]),
    "markup in boxes": Boxes(BAD, [(BAD, [1.0])], BAD, BAD, [(BAD, 1.0)]),
}


def named(svg: str, tag: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(svg).iter(f"{{http://www.w3.org/2000/svg}}{tag}"))


def texts(svg: str) -> list[str]:
    return [str(text.text) for text in named(svg, "text")]


def drawn(axes: Axes, colour: str) -> list[list[tuple[float, float]]]:
    """The lines of a colour as their points."""
    found = [np.asarray(line.get_xydata()) for line in axes.get_lines() if to_hex(line.get_color()) == colour]
    return [[(float(x), float(y)) for x, y in points] for points in found]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("chart", CHARTS.values(), ids=CHARTS)
def test_every_chart_is_well_formed_and_inside_its_page(chart: Chart) -> None:
    svg = draw(chart)
    _, _, width, height = (float(value) for value in ElementTree.fromstring(svg).get("viewBox", "").split())
    assert not re.search(r"\b(nan|inf)\b", svg)
    assert not named(svg, "script")
    assert named(svg, "title")[0].text == chart.title
    for mark in [*named(svg, "use"), *named(svg, "text")]:
        if mark.get("x"):
            assert 0 <= float(mark.get("x", "")) <= width
            assert 0 <= float(mark.get("y", "")) <= height


def test_the_same_numbers_give_the_same_bytes() -> None:
    for name in ("panels", "boxes"):
        assert draw(CHARTS[name]) == draw(CHARTS[name])


def test_what_is_written() -> None:
    found = texts(draw(one(*some_series(3))))
    assert {"One plot", "ε", "accuracy", *NAMES[:3], "0.01", "10"} <= set(found)
    found = texts(draw(CHARTS["two panels"]))
    assert [found.count(name) for name in (*NAMES[:2], "set 0", "set 1", "Panels")] == [1, 1, 1, 1, 1]
    assert "Each plot has its own vertical scale." in found
    assert "no results yet" in texts(draw(CHARTS["an empty panel"]))
    assert BAD in texts(draw(CHARTS["markup"]))  # as it is: neither markup nor mathematics


def test_lines_have_their_points_and_whiskers() -> None:
    points = [Point(2, 0.9), Point(1, 0.8, 0.1), Point(3, 0.7, NAN), Point(4, 0.7, INF), Point(5, NAN)]
    (axes,) = figure_of(one(Series("a", points), Series("b", [Point(1, 0.7)], dashed=True))).axes
    whiskers, line = drawn(axes, "#0072b2")
    assert line == [(1, 0.8), (2, 0.9), (3, 0.7), (4, 0.7)]
    assert whiskers[:2] == [(1, pytest.approx(0.7)), (1, pytest.approx(0.9))]
    assert len(whiskers) == 3  # and a break
    assert [str(each.get_linestyle()) for each in axes.get_lines() if each.get_marker() != "None"] == ["-", "--"]


def test_fourteen_series_look_different() -> None:
    (axes,) = figure_of(CHARTS["lines of 14"]).axes
    looks = {(line.get_color(), line.get_marker()) for line in axes.get_lines() if line.get_marker() != "None"}
    assert len(looks) == 14


def test_panels_share_the_looks_of_names_and_the_horizontal_scale() -> None:
    first, second = some_series(2)
    figure = figure_of(Lines("P", [Panel("adult", [first, second]), Panel("bank", [second])], "ε", "accuracy", TICKS, log_x=True))
    one, other = figure.axes
    assert drawn(one, "#e69f00")[-1] == drawn(other, "#e69f00")[-1] == [(point.x, point.y) for point in second.points]
    assert not drawn(other, "#0072b2")
    assert one.get_xlim() == other.get_xlim()
    assert one.get_xscale() == "log"


def test_names_beside_lines_do_not_touch() -> None:
    (axes,) = figure_of(one(*(Series(name, [Point(1, 0.5), Point(2, 0.5 + i / 1e6)]) for i, name in enumerate(NAMES)))).axes
    heights = sorted(text.get_position()[1] for text in axes.texts)
    assert len(heights) == len(NAMES)
    assert all(b - a > 0.055 for a, b in pairwise(heights))


def test_ticks_that_would_touch_go_into_a_second_row() -> None:
    crowded = [(0.2, "0.2"), (0.22, "0.22"), (0.23, "0.23"), (100.0, "100")]
    (axes,) = figure_of(one(Series("s", [Point(1, 1)]), ticks=crowded)).axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0.2", "\n0.22", "", "100"]


def test_boxes_show_their_five_numbers_and_levels() -> None:
    chart = Boxes("B", [("5 trees", [5, 1, 2, 3, 4, NAN]), ("10 trees", [])], "trees", "score", [("CART", 4.5), ("none", NAN)])
    (axes,) = figure_of(chart).axes
    heights = {float(y) for line in axes.get_lines() for y in np.asarray(line.get_ydata()) if math.isfinite(y)}
    assert heights == {1, 2, 3, 4, 5, 4.5}
    assert [text.get_text() for text in axes.texts] == ["CART"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["5 trees", "10 trees"]
