"""Charts as SVG, drawn by matplotlib. The same numbers give the same bytes, with the same version of matplotlib.

Series are told apart by colour and marker; a non-private yardstick is dashed, with hollow markers. In a single plot each line has its
name at its end; small plots share a legend. What is not a finite number is left out.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from math import ceil, inf, isfinite, log10, nan
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator
from matplotlib.transforms import ScaledTranslation

from hedgerow.plots.svg import OTHER, PALETTE
from hedgerow_experiments.charts import Boxes, Chart, Lines, Panel, Point

COLOURS = (*PALETTE, OTHER)
MARKERS = ("o", "s", "^", "D", "v", "X", "P", "p")
DASHES = (0, (4, 2.5))
INK, SOFT, RULE = "#1c2430", "#566171", "#dfe4ea"
WIDE, TALL = 7.5, 3.8  # inches of a single plot
PANEL = {1: (7.5, 2.5), 2: (4.2, 2.6), 3: (3.2, 2.4), 4: (2.75, 2.3)}  # of one of several, by how many stand side by side
LETTER = 4.8  # about as many points is a letter wide
Look = dict[str, Any]  # settings of matplotlib by name
LOOK: Any = {
    "svg.hashsalt": "hedgerow",  # with metadata without a date: the same bytes every time
    "svg.fonttype": "none",  # text stays text; it is measured in the face that comes with matplotlib, one of the widest
    "font.sans-serif": ["DejaVu Sans", "Verdana", "sans-serif"],
    "font.size": 8.5,
    "text.parse_math": False,
    "text.color": INK,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelcolor": SOFT,
    "axes.edgecolor": "#8a95a5",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": RULE,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "ytick.left": False,  # the rules across the plot say it
    "lines.linewidth": 1.4,
    "lines.markersize": 4.8,
    "lines.solid_capstyle": "butt",
    "legend.frameon": False,
}


def draw(chart: Chart) -> str:
    """The chart as a whole SVG document, which can also stand inside an HTML page."""
    with rc_context(LOOK):
        text = io.StringIO()
        figure_of(chart).savefig(text, format="svg", metadata={"Title": chart.title, "Date": None})
    return _shortened(text.getvalue())


def figure_of(chart: Chart) -> Figure:
    """The chart as matplotlib has it."""
    return _boxes(chart) if isinstance(chart, Boxes) else _lines(chart)


def _shortened(svg: str) -> str:
    """Without what changes nothing: the lines before <svg>, indentation, names that nothing refers to, parts of a hundredth of a point."""
    svg = re.sub(r"\s*\n\s*", "\n", svg[svg.index("<svg") :].strip())
    svg = re.sub(r'<g id="[^"]*">', "<g>", re.sub(r' transform="rotate\(-0 [^"]*"', "", svg))
    return re.sub(r"<[^>]*>", lambda tag: re.sub(r"(\.\d\d)\d+", r"\1", tag[0].replace("\n", "")), svg)


# ---------------------------------------------------------------- lines


def _lines(chart: Lines) -> Figure:
    names = dict.fromkeys(series.name for panel in chart.panels for series in panel.series)
    dashed = {series.name for panel in chart.panels for series in panel.series if series.dashed}
    looks = {name: _look(number, name in dashed) for number, name in enumerate(names)}
    return _one_plot(chart, looks) if len(chart.panels) == 1 else _small_plots(chart, looks)


def _look(number: int, dashed: bool) -> Look:
    look: Look = {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)]}
    return look | ({"linestyle": DASHES, "markerfacecolor": "white"} if dashed else {"markeredgewidth": 0})


def _one_plot(chart: Lines, looks: Mapping[str, Look]) -> Figure:
    figure = Figure((WIDE, TALL), layout="constrained")
    axes, (panel,) = figure.add_subplot(), chart.panels
    _plot(axes, chart, panel, looks, 0.65 * WIDE)
    axes.set(title=chart.title, xlabel=chart.x_label, ylabel=chart.y_label)
    ends = [(series.name, points[-1]) for series in panel.series if (points := _drawable(series.points))]
    _name_lines(axes, [(name, last.y, looks[name]["color"]) for name, last in ends], max((last.x for _, last in ends), default=0.0))
    return figure


def _small_plots(chart: Lines, looks: Mapping[str, Look]) -> Figure:
    """The title is that of the legend, which stands above the plots."""
    columns = min(chart.columns, max(len(chart.panels), 1))
    rows, (wide, tall) = ceil(len(chart.panels) / columns), PANEL[columns]
    beside = _side_by_side(list(looks), 72 * wide * columns)
    figure = Figure((wide * columns, tall * rows + 0.7 + 0.18 * ceil(len(looks) / beside)), layout="constrained")
    for place, panel in enumerate(chart.panels, 1):
        axes = figure.add_subplot(rows, columns, place)
        _plot(axes, chart, panel, looks, wide - 0.6)
        axes.set_title(panel.title)
    samples = [Line2D([], [], label=name, **look) for name, look in looks.items()]
    legend: Look = {"loc": "outside upper left", "ncols": beside, "alignment": "left", "columnspacing": 1.4, "handlelength": 2.8}
    figure.legend(handles=samples, title=chart.title, title_fontproperties={"weight": "bold", "size": 10}, **legend)
    figure.supylabel(chart.y_label, fontsize="medium", color=SOFT)
    figure.supxlabel(f"{chart.x_label}\nEach plot has its own vertical scale.", fontsize="medium", color=SOFT)
    return figure


def _side_by_side(names: Sequence[str], room: float) -> int:
    """How many columns a legend may have in as many points."""
    for columns in range(len(names), 1, -1):
        if sum(LETTER * max(map(len, some)) + 44 for some in np.array_split(names, columns)) <= room:
            return columns
    return 1


def _plot(axes: Axes, chart: Lines, panel: Panel, looks: Mapping[str, Look], wide: float) -> None:
    """Lines and whiskers. Each series stands a little to the right of the one before: whiskers at one place do not hide each other."""
    shown = {series.name: _drawable(series.points) for series in panel.series}
    everything = [point for points in shown.values() for point in points]
    _set_scales(axes, chart, [point.y + end for point in everything for end in (-_error(point), _error(point))], wide)
    step = min(1.8, 5.4 / len(shown)) if any(map(_error, everything)) else 0.0
    for number, series in enumerate(panel.series):
        points, look = shown[series.name], looks[series.name]
        aside = ScaledTranslation(step * (number - (len(shown) - 1) / 2) / 72, 0, axes.figure.dpi_scale_trans)
        where: Look = {"transform": axes.transData + aside, "clip_on": False}
        whiskers = [(point.x, point.y + end) for point in points if _error(point) for end in (-point.error, point.error, nan)]
        if whiskers:
            axes.plot(*zip(*whiskers, strict=True), color=look["color"], linewidth=1, **where)
        if points:
            axes.plot([point.x for point in points], [point.y for point in points], **look, **where)
    if not everything:
        axes.text(0.5, 0.5, "no results yet", transform=axes.transAxes, ha="center", color=SOFT)


def _drawable(points: Sequence[Point]) -> list[Point]:
    """In their order from left to right."""
    return sorted((point for point in points if isfinite(point.x) and isfinite(point.y)), key=lambda point: point.x)


def _error(point: Point) -> float:
    """Half the length of its whisker; 0 where there is none to draw."""
    return point.error if 0 < point.error < inf else 0.0


def _set_scales(axes: Axes, chart: Lines, values: Sequence[float], wide: float) -> None:
    """The horizontal scale of all plots of the chart, and a vertical one around the values; wide: inches for the ticks."""
    places = [point.x for panel in chart.panels for series in panel.series for point in _drawable(series.points)]
    places = sorted({*places, *(place for place, _ in chart.x_ticks)})
    if chart.log_x:
        axes.set_xscale("log")
        places = [log10(place) for place in places]
    air = 0.04 * (places[-1] - places[0]) or 0.5
    low, high = places[0] - air, places[-1] + air
    axes.set_xlim(*((10**low, 10**high) if chart.log_x else (low, high)))
    axes.xaxis.set_minor_locator(NullLocator())
    per_unit, free = 72 * wide / (high - low), [-inf, -inf]
    texts = []
    for place, text in chart.x_ticks:
        middle, half = per_unit * (log10(place) if chart.log_x else place), 0.55 * LETTER * len(text)
        row = next((row for row in (0, 1) if middle - half >= free[row]), None)  # in a second row, where it would touch the one before
        texts.append("" if row is None else "\n" * row + text)
        if row is not None:
            free[row] = middle + half + 2
    axes.set_xticks([place for place, _ in chart.x_ticks], labels=texts)
    _set_height(axes, values)


def _set_height(axes: Axes, values: Sequence[float]) -> None:
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    nearly_equal = high - low <= 1e-8 * max(abs(low), abs(high))
    air = (0.1 * abs(high) or 1.0) if nearly_equal else 0.05 * (high - low)
    axes.set_ylim(low - air, high + air)


# ---------------------------------------------------------------- boxes


def _boxes(chart: Boxes) -> Figure:
    figure = Figure((WIDE, TALL), layout="constrained")
    axes = figure.add_subplot()
    groups = [(name, [value for value in values if isfinite(value)]) for name, values in chart.groups]
    levels = [(name, value) for name, value in chart.levels if isfinite(value)]
    _set_height(axes, [*(value for _, values in groups for value in values), *(value for _, value in levels)])
    for number, (_, value) in enumerate(levels, 1):
        axes.axhline(value, color=COLOURS[number], linestyle=DASHES)
    light, dark = {"facecolor": f"{PALETTE[4]}59", "edgecolor": PALETTE[4]}, {"color": INK}
    axes.boxplot(
        [values for _, values in groups], tick_labels=[name for name, _ in groups], whis=(0, 100), widths=0.55, patch_artist=True,
        boxprops=light, medianprops=dark | {"linewidth": 1.6}, whiskerprops=dark, capprops=dark,
    )  # fmt: skip
    if not any(values for _, values in groups):
        axes.text(0.5, 0.5, "no results yet", transform=axes.transAxes, ha="center", color=SOFT)
    axes.set(title=chart.title, xlabel=chart.x_label, ylabel=chart.y_label)
    _name_lines(axes, [(name, value, COLOURS[number]) for number, (name, value) in enumerate(levels, 1)], axes.get_xlim()[1])
    return figure


# ---------------------------------------------------------------- names beside lines


def _name_lines(axes: Axes, ends: Sequence[tuple[str, float, str]], right: float) -> None:
    """Each name to the right of the end of its line; those that would touch are moved apart, and a thin line leads to each."""
    low, high = axes.get_ylim()
    ends, gap = sorted(ends, key=lambda end: end[1]), 0.06
    heights = [(height - low) / (high - low) for _, height, _ in ends]
    for _ in range(100):  # two that are too near go up and down by the same
        for i in range(1, len(heights)):
            more = max(0.0, gap - (heights[i] - heights[i - 1])) / 2
            heights[i - 1], heights[i] = heights[i - 1] - more, heights[i] + more
    how: Look = {"textcoords": "axes fraction", "va": "center", "annotation_clip": False}
    for (name, height, colour), beside in zip(ends, heights, strict=True):
        lead = {"arrowstyle": "-", "color": colour, "linewidth": 0.8, "relpos": (0, 0.5), "shrinkA": 1, "shrinkB": 4}
        axes.annotate(name, (right, height), (1.05, beside), arrowprops=lead, **how)
