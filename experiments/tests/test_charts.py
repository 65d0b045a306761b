"""The charts of the experiments: what they draw, and that everything stays on the page."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from itertools import pairwise

import pytest

from hedgerow.after.svg import text_width
from hedgerow_experiments.chart_parts import Scale, value_scale, value_ticks
from hedgerow_experiments.charts import Panel, Point, Series, bars, boxes, lines, panels

NAN, INF = math.nan, math.inf
EPSILONS = [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 1, 2, 5, 10]
TICKS = [(epsilon, f"{epsilon:g}") for epsilon in EPSILONS]
NAMES = [f"private forest number {i}" for i in range(12)] + ["random forest, not private", "majority class"]
LONG = "A title that says at length what is shown, on which data, by which protocol, and how often it was repeated " * 2


def some_series(count: int, shift: float = 0.0) -> list[Series]:
    return [
        Series(name, [Point(x, 0.6 + 0.02 * i + 0.03 * math.log10(x) + shift, 0.01) for x in EPSILONS], dashed=i >= 12)
        for i, name in enumerate(NAMES[:count])
    ]


def some_groups(groups: int, series: int) -> list[tuple[str, list[tuple[str, float, float]]]]:
    return [(f"data set {g}", [(NAMES[i], 0.5 + 0.04 * i + 0.01 * g, 0.02) for i in range(series)]) for g in range(groups)]


CHARTS = {
    "lines": lambda: lines(LONG, some_series(6), "ε", "accuracy", TICKS, log_x=True),
    "lines of 14": lambda: lines("Lines", some_series(14), "ε", "accuracy", TICKS, log_x=True),
    "lines without ticks": lambda: lines("Lines", some_series(2), "ε", "accuracy"),
    "lines of large numbers": lambda: lines("L", [Series("s", [Point(i, -1e6 * i, 1e5) for i in range(60)])], "rows", "seconds"),
    "panels": lambda: panels("Panels", [Panel(f"set {i}", some_series(14, i / 9)) for i in range(7)], "ε", "accuracy", TICKS, True),
    "panels in 5": lambda: panels("Panels", [Panel(LONG, some_series(3)) for _ in range(6)], "ε", "accuracy", None, True, 5),
    "boxes": lambda: boxes("Boxes", [(f"{n} trees", [n / 100, 0.2, 0.5]) for n in range(1, 13)], "trees", "accuracy", [("CART", 0.8)]),
    "boxes of 60": lambda: boxes("Boxes", [(f"a long name {n}", [n, 2.0]) for n in range(60)], "x", "y"),
    "boxes with long names": lambda: boxes("Boxes", [(LONG, [1.0, 2.0])] * 9, LONG, LONG, [(LONG, 3.0)]),
    "bars": lambda: bars("Bars", some_groups(10, 9), "accuracy"),
    "bars of long words": lambda: bars("Bars", [(f"{i}-unbreakable-name-of-a-data-set", [("s", 1.0, 0.1)]) for i in range(12)], "y"),
    "bars below 0": lambda: bars("Bars", [("gain", [("a", -3.0, 1.0), ("b", 2.0, 5.0)])], "gain"),
    "no lines": lambda: lines("None", [], "x", "y"),
    "no lines but ticks": lambda: lines("None", [], "x", "y", TICKS, log_x=True),
    "no panels": lambda: panels("None", [], "x", "y"),
    "an empty panel": lambda: panels("None", [Panel("a", []), Panel("b", some_series(1))], "x", "y"),
    "no boxes": lambda: boxes("None", [], "x", "y"),
    "an empty box": lambda: boxes("None", [("a", []), ("b", [NAN])], "x", "y"),
    "no bars": lambda: bars("None", [], "y"),
    "an empty group": lambda: bars("None", [("a", []), ("b", [("s", NAN, NAN)])], "y"),
    "one point": lambda: lines("One", [Series("s", [Point(1, 0.8)])], "x", "y"),
    "one point, log": lambda: lines("One", [Series("s", [Point(1, 0.8, 0.1)])], "x", "y", [(1, "1")], log_x=True),
    "equal values": lambda: lines("Equal", [Series("s", [Point(1, 0.8), Point(2, 0.8)])], "x", "y"),
    "nearly equal values": lambda: lines("Equal", [Series("s", [Point(1, 0.8), Point(2, 0.8 + 1e-16)])], "x", "y"),
    "all 0": lambda: bars("Zero", [("a", [("s", 0.0, 0.0)])], "y"),
    "one value in a box": lambda: boxes("One", [("a", [0.5])], "x", "y"),
}


@pytest.fixture(params=CHARTS)
def chart(request: pytest.FixtureRequest) -> str:
    return CHARTS[request.param]()


def named(root: ElementTree.Element, tag: str) -> list[ElementTree.Element]:
    return list(root.iter(f"{{http://www.w3.org/2000/svg}}{tag}"))


def marks(svg: str) -> list[str]:
    """The tooltips of all marks."""
    groups = [group for group in named(ElementTree.fromstring(svg), "g") if group.get("class") == "hw-mark"]
    return [str(group[0].text) for group in groups]


def texts(svg: str) -> list[str]:
    return ["".join(text.itertext()) for text in named(ElementTree.fromstring(svg), "text")]


def text_box(text: ElementTree.Element) -> tuple[float, float, float, float]:
    """About where a text stands: left, top, right, bottom."""
    size, turned = float(text.get("font-size", "0")), text.get("transform")
    wide = text_width("".join(text.itertext()), size, text.get("font-weight") == "600")
    start = {"start": 0.0, "middle": -wide / 2, "end": -wide}[text.get("text-anchor", "start")]
    x, y, angle = float(text.get("x", "0")), float(text.get("y", "0")), 0.0
    if turned:
        x, y, angle = (float(value) for value in re.findall(r"-?[\d.]+", turned))
    sine, cosine = math.sin(math.radians(angle)), math.cos(math.radians(angle))
    corners = [(x + a * cosine - b * sine, y + a * sine + b * cosine) for a in (start, start + wide) for b in (-0.8 * size, 0.25 * size)]
    return min(c[0] for c in corners), min(c[1] for c in corners), max(c[0] for c in corners), max(c[1] for c in corners)


def shape_points(root: ElementTree.Element) -> Iterator[tuple[float, float]]:
    for rect in named(root, "rect"):
        x, y, width, height = (float(rect.get(key, "0")) for key in ("x", "y", "width", "height"))
        assert width >= 0
        assert height >= 0
        yield from ((x, y), (x + width, y + height))
    for circle in named(root, "circle"):
        x, y, radius = (float(circle.get(key, "0")) for key in ("cx", "cy", "r"))
        yield from ((x - radius, y - radius), (x + radius, y + radius))
    for line in named(root, "line"):
        yield from ((float(line.get(f"x{i}", "0")), float(line.get(f"y{i}", "0"))) for i in (1, 2))
    for path in named(root, "path"):
        x = y = 0.0
        for command, first, second in re.findall(r"([MLHVZ])(-?[\d.]+)?(?: (-?[\d.]+))?", path.get("d", "")):
            if command in "ML":
                x, y = float(first), float(second)
            elif command in "HV":
                x, y = (float(first), y) if command == "H" else (x, float(first))
            yield x, y


def test_everything_is_well_formed_and_on_the_page(chart: str) -> None:
    root = ElementTree.fromstring(chart)
    _, _, width, height = (float(value) for value in root.get("viewBox", "").split())
    assert "nan" not in chart
    assert "inf" not in chart
    for x, y in shape_points(root):
        assert 0 <= x <= width
        assert 0 <= y <= height
    for text in named(root, "text"):
        left, top, right, bottom = text_box(text)
        assert left >= 0, text.text
        assert top >= 0, text.text
        assert right <= width, text.text
        assert bottom <= height, text.text


def test_upright_texts_do_not_overlap(chart: str) -> None:
    places = [text_box(text) for text in named(ElementTree.fromstring(chart), "text") if not text.get("transform") and text.text]
    for i, (left, top, right, bottom) in enumerate(places):
        for other_left, other_top, other_right, other_bottom in places[:i]:
            apart = left >= other_right or other_left >= right or top >= other_bottom or other_top >= bottom
            assert apart, (i, left, top)


def test_the_same_numbers_give_the_same_bytes() -> None:
    for make in CHARTS.values():
        assert make() == make()


def test_lines_have_a_mark_for_each_point_with_its_numbers() -> None:
    series = [Series("a", [Point(1, 0.81234, 0.012), Point(2, 0.9)]), Series("b", [Point(1, 0.7, NAN)], dashed=True)]
    svg = lines("L", series, "ε", "accuracy")
    assert marks(svg) == ["a, 1: 0.8123 ± 0.012", "a, 2: 0.9", "b, 1: 0.7"]
    assert {"a", "b", "ε", "accuracy", "L"} <= set(texts(svg))
    description = named(ElementTree.fromstring(svg), "desc")[0].text
    assert description == "Lines of accuracy by ε. Series: a; b (dashed)."
    assert svg.count("stroke-dasharray") == 1  # the legend; a line of one point has no length


def test_whiskers_are_as_long_as_the_error() -> None:
    svg = lines("L", [Series("a", [Point(1, 0.5, 0.25), Point(2, 1.0), Point(3, 0.0, INF)])], "x", "y")
    caps = re.findall(r"M[\d.]+ ([\d.]+)V([\d.]+)M", svg)
    centres = [float(y) for y in re.findall(r'<circle cx="[\d.]+" cy="([\d.]+)" r="3.8"', svg)]
    assert len(caps) == 1
    low, high = (float(y) for y in caps[0])
    assert low - high == pytest.approx((centres[2] - centres[1]) / 2, abs=0.2)
    assert (low + high) / 2 == pytest.approx(centres[0], abs=0.1)


def test_points_that_are_no_numbers_are_left_out_and_break_the_line() -> None:
    points = [Point(1, 1), Point(2, 2), Point(3, NAN), Point(4, 2), Point(5, 3), Point(NAN, 1), Point(INF, 1)]
    svg = lines("L", [Series("a", points)], "x", "y")
    assert len(marks(svg)) == 4
    (path,) = re.findall(r'<path d="(M[^"HV]*L[^"HV]*)" fill="none" stroke="#\w+" stroke-width="1.8"', svg)
    assert re.sub(r"[\d. ]", "", path) == "MLML"
    assert len(marks(lines("L", [Series("a", [Point(0, 1), Point(-1, 1), Point(1, 1)])], "x", "y", log_x=True))) == 1


def test_a_logarithmic_axis_has_equal_steps_for_equal_ratios() -> None:
    svg = lines("L", [Series("a", [Point(x, x) for x in (100, 0.1, 1, 10)])], "x", "y", [(0.1, "tenth"), (100, "hundred")], log_x=True)
    xs = [float(x) for x in re.findall(r'<circle cx="([\d.]+)" cy="[\d.]+" r="3.8"', svg)]
    assert [b - a for a, b in pairwise(xs)] == pytest.approx([(xs[-1] - xs[0]) / 3] * 3, abs=0.2)
    assert {"tenth", "hundred"} <= set(texts(svg))
    assert marks(svg) == ["a, tenth: 0.1", "a, 1: 1", "a, 10: 10", "a, hundred: 100"]


def test_fourteen_series_look_different() -> None:
    svg = lines("L", [Series(name, [Point(1, i)]) for i, name in enumerate(NAMES)], "x", "y")
    drawn = re.findall(r"</title>(<[^>]*>)</g>", svg)
    looks = {(re.sub(r'[\d.]+|"', "", shape.split("fill=")[0]), shape.split("fill=")[1]) for shape in drawn}
    assert len(drawn) == 14
    assert len(looks) == 14
    fills = {re.sub(r'[xy]="[\d.]+" y="[\d.]+" width="[\d.]+" height="[\d.]+"', "", bar) for bar in
             re.findall(r"</title>(<rect[^>]*>)", bars("B", [("g", [(name, 1.0, 0.0) for name in NAMES])], "y"))}  # fmt: skip
    assert len(fills) == 14


def test_panels_share_one_legend_and_the_looks_of_names() -> None:
    first, second = some_series(2)
    svg = panels("P", [Panel("adult", [first, second]), Panel("bank", [second])], "ε", "accuracy", TICKS, log_x=True)
    assert len(marks(svg)) == 30
    assert [texts(svg).count(name) for name in (first.name, second.name, "adult", "bank")] == [1, 1, 1, 1]
    colours = {name: set(re.findall(rf"<title>{name},[^<]*</title>.*?stroke=\"(#\w+)\"", svg)) for name in (first.name, second.name)}
    assert [len(found) for found in colours.values()] == [1, 1]
    assert colours[first.name] != colours[second.name]


def test_boxes_tell_their_five_numbers_and_levels() -> None:
    svg = boxes("B", [("5 trees", [5, 1, 2, 3, 4, NAN]), ("10 trees", [])], "trees", "score", [("CART", 4.5), ("none", NAN)])
    assert marks(svg) == ["CART: 4.5", "5 trees: median 3, quartiles 2 and 4, from 1 to 5; 5 values"]
    assert {"5 trees", "10 trees", "CART"} <= set(texts(svg))
    assert "none" not in texts(svg)


def test_bars_begin_at_0_and_keep_their_places() -> None:
    svg = bars("B", [("g", [("a", 4.0, 1.0), ("b", 2.0, NAN)]), ("h", [("b", 4.0, 0.0), ("a", NAN, 1.0)])], "y")
    assert marks(svg) == ["g, a: 4 ± 1", "g, b: 2", "h, b: 4"]
    drawn = re.findall(r'</title><rect x="([\d.]+)" y="([\d.]+)" width="[\d.]+" height="([\d.]+)"', svg)
    (_, y, height), (x_b, y_b, height_b), (x_other, _, _) = ([float(value) for value in bar] for bar in drawn)
    assert height == pytest.approx(2 * height_b, abs=0.2)
    assert y + height == pytest.approx(y_b + height_b, abs=0.1)
    middle_g, middle_h = (float(text.get("x", "0")) for text in named(ElementTree.fromstring(svg), "text") if text.text in ("g", "h"))
    assert x_other - middle_h == pytest.approx(x_b - middle_g, abs=0.2)
    assert len(re.findall('class="hw-whisker"', svg)) == 1


def test_many_bars_are_all_there() -> None:
    svg = bars("B", some_groups(10, 9), "accuracy")
    assert len(marks(svg)) == 90
    widths = [float(width) for width in re.findall(r'</title><rect [^>]*?width="([\d.]+)"', svg)]
    assert min(widths) >= 6


def test_markup_in_names_stays_text() -> None:
    bad = "<script>alert('x')</script> & \"q\"\x07"
    drawn = [
        lines(bad, [Series(bad, [Point(1, 1)])], bad, bad, [(1, bad)]),
        panels(bad, [Panel(bad, [Series(bad, [Point(1, 1)])])], bad, bad),
        boxes(bad, [(bad, [1.0])], bad, bad, [(bad, 1.0)]),
        bars(bad, [(bad, [(bad, 1.0, 0.0)])], bad),
    ]
    for svg in drawn:
        root = ElementTree.fromstring(svg)
        assert not named(root, "script")
        assert any("<script>" in told for told in marks(svg))


@pytest.mark.parametrize(("low", "high"), [(0.6, 0.9), (0, 1), (-3, 7), (0.801, 0.803), (0, 130000), (99.2, 100), (1e-9, 3e-9)])
def test_ticks_are_round_inside_and_differ(low: float, high: float) -> None:
    scale = value_scale([low, high], 0, 1)
    found = value_ticks(scale)
    assert 3 <= len(found) <= 9
    assert all(scale.low - 1e-9 <= value <= scale.high + 1e-9 for value, _ in found)
    assert len({text for _, text in found}) == len(found)


def test_ticks_have_the_decimals_they_need() -> None:
    assert [text for _, text in value_ticks(Scale(0.58, 0.93, 0, 1))] == ["0.6", "0.7", "0.8", "0.9"]
    assert [text for _, text in value_ticks(Scale(-2, 10, 0, 1))] == ["−2", "0", "2", "4", "6", "8", "10"]


def test_only_bars_are_made_to_begin_at_0() -> None:
    assert value_scale([0.8, 0.9], 0, 1).low > 0.7
    assert value_scale([0.8, 0.9], 0, 1, zero=True).low == 0
    assert value_scale([-0.8, -0.9], 0, 1, zero=True).high == 0
