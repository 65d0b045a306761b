"""Charts of the experiments as whole SVG documents: lines, small multiples of lines, box plots, grouped bars.

Series are told apart by colour and marker; a non-private yardstick is dashed. Every mark has its numbers as a tooltip.
What is not a finite number is left out, and a line is broken there. Only bars begin at 0. The same numbers give the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from hedgerow.after.svg import BOLD, document, fit, label
from hedgerow.after.text import plain
from hedgerow_experiments.chart_columns import bars, boxes
from hedgerow_experiments.chart_parts import (
    COLOURS,
    DASHES,
    MARGIN,
    TALL,
    WIDTH,
    Y_NAME,
    Entry,
    Scale,
    across_axis,
    drawable,
    heading,
    log_ticks,
    mark,
    marker,
    nothing,
    number,
    tick_room,
    upright_whisker,
    value_axis,
    value_scale,
    value_ticks,
    whole_error,
    with_error,
    y_name,
)

__all__ = ["Panel", "Point", "Series", "bars", "boxes", "lines", "panels"]

_PANEL_WIDTHS, _PANEL_TALL = {1: 680.0, 2: 400.0, 3: 300.0}, 190.0


@dataclass(frozen=True)
class Point:
    """One mark. `error` is half the length of its whisker; 0 or nan draws none."""

    x: float
    y: float
    error: float = 0.0


@dataclass(frozen=True)
class Series:
    """A line. `dashed` is for non-private yardsticks."""

    name: str
    points: Sequence[Point]
    dashed: bool = False


@dataclass(frozen=True)
class Panel:
    """One of several small plots."""

    title: str
    series: Sequence[Series]


Ticks = Sequence[tuple[float, str]] | None

# ---------------------------------------------------------------- lines


def lines(title: str, series: Sequence[Series], x_label: str, y_label: str, x_ticks: Ticks = None, log_x: bool = False) -> str:
    """Lines with markers and whiskers."""
    looks = _looks(series)
    parts, top = heading(title, _line_entries(series, looks), WIDTH)
    bottom = top + TALL
    across = _across(series, x_ticks, log_x)
    scale = value_scale(_extent(series, log_x), bottom, top)
    left, right = MARGIN + Y_NAME + tick_room(scale), WIDTH - MARGIN - 8
    drawn, below = _plot(series, looks, scale, across, x_ticks, log_x, left, right, (MARGIN, WIDTH - MARGIN))
    parts += [
        *drawn,
        y_name(y_label, top, bottom),
        label((left + right) / 2, below + 14, fit(plain(x_label), right - left, 12), 12, "hw-soft", "middle"),
    ]
    return document(WIDTH, below + 28, title, _told(series, x_label, y_label), parts)


def panels(
    title: str, panels: Sequence[Panel], x_label: str, y_label: str, x_ticks: Ticks = None, log_x: bool = False, columns: int = 3
) -> str:
    """Small plots side by side, with one legend and one horizontal scale; each has its own vertical scale."""
    panels = panels or [Panel("", ())]
    together = [series for panel in panels for series in panel.series]
    looks, columns = _looks(together), max(1, min(columns, len(panels)))
    wide = _PANEL_WIDTHS.get(columns, 250.0)
    width = 2 * MARGIN + Y_NAME - 8 + wide * columns
    parts, top = heading(title, _line_entries(together, looks), width)
    across, first = _across(together, x_ticks, log_x), top
    scales = [value_scale(_extent(panel.series, log_x), 0.0, 1.0) for panel in panels]
    beside = max(tick_room(scale, 10.5) for scale in scales)
    for i, panel in enumerate(panels):
        above = first + (_PANEL_TALL + 64) * (i // columns) + 20
        start = MARGIN + Y_NAME - 8 + wide * (i % columns)
        scale = replace(scales[i], start=above + _PANEL_TALL, end=above)
        left, right = start + 6 + beside, start + wide - 14
        parts.append(label(left, above - 7, fit(plain(panel.title), right - left, 12.5, bold=True), 12.5, more=BOLD))
        drawn, below = _plot(panel.series, looks, scale, across, x_ticks, log_x, left, right, (start, start + wide - 4), 10.5)
        parts += drawn
        top = max(top, below)
    parts += [
        y_name(y_label, first, top),
        label(width / 2, top + 16, fit(plain(x_label), width - 2 * MARGIN, 12), 12, "hw-soft", "middle"),
    ]
    if len(panels) > 1:
        top += 20
        parts.append(label(MARGIN, top + 16, "Each plot has its own vertical scale.", 11, "hw-soft"))
    told = f"{len(panels)} plots: {', '.join(plain(panel.title) for panel in panels)}. {_told(together, x_label, y_label)}"
    return document(width, top + 28, title, told, parts)


def _looks(series: Sequence[Series]) -> dict[str, int]:
    """For each name the number that says its colour and marker: the order in which names come."""
    return {name: i for i, name in enumerate(dict.fromkeys(one.name for one in series))}


def _line_entries(series: Sequence[Series], looks: dict[str, int]) -> list[Entry]:
    dashed = {one.name: one.dashed for one in reversed(series)}

    def entry(name: str, look: int) -> Entry:
        colour, dashes = COLOURS[look % len(COLOURS)], DASHES if dashed[name] else ""
        line = f'fill="none" stroke="{colour}" stroke-width="2"{dashes}'
        return Entry(name, lambda x, y: f'<path d="M{x:.1f} {y:.1f}H{x + 26:.1f}" {line}/>{marker(look, x + 13, y, 4, colour)}')

    return [entry(name, look) for name, look in looks.items()]


def _shown(point: Point, log_x: bool) -> bool:
    return drawable(point.x, point.y) and (point.x > 0 or not log_x)


def _extent(series: Sequence[Series], log_x: bool) -> list[float]:
    """Both ends of every whisker."""
    shown = [point for one in series for point in one.points if _shown(point, log_x)]
    return [end for point in shown for end in (point.y - whole_error(point.error), point.y + whole_error(point.error))]


def _across(series: Sequence[Series], x_ticks: Ticks, log_x: bool) -> list[float]:
    """Every place on the horizontal axis that has to be on the picture."""
    places = {point.x for one in series for point in one.points if _shown(point, log_x)}
    return sorted(places | {value for value, _ in x_ticks or () if drawable(value) and (value > 0 or not log_x)})


def _plot(
    series: Sequence[Series], looks: dict[str, int], scale: Scale, across: list[float], x_ticks: Ticks, log_x: bool,
    left: float, right: float, room: tuple[float, float], size: float = 11,
) -> tuple[list[str], float]:  # fmt: skip
    """Axes and lines of one plot; `room` is where its horizontal ticks may write. Also where the next thing may begin."""
    place = Scale(across[0] if across else 1.0, across[-1] if across else 1.0, left + 16, right - 16, log_x)
    parts = value_axis(scale, left, right, size)
    if x_ticks is not None:
        at = [(value, text) for value, text in x_ticks if value in across]
    elif not across:
        at = []
    else:
        at = log_ticks(across) if log_x or across[0] == across[-1] else value_ticks(place)
    below_axis, below = across_axis(place, at, scale.start, *room, size)
    parts += below_axis
    written = dict(x_ticks or ())
    shown = [(one, [point if _shown(point, log_x) else None for point in _in_order(one.points)]) for one in series]
    beside = _beside([[point for point in points if point] for _, points in shown], place)
    for k, (one, points) in enumerate(shown):
        look = looks[one.name]
        colour, shift = COLOURS[look % len(COLOURS)], beside * (k - (len(series) - 1) / 2)
        radius = (3.8 if size >= 11 else 3.3) if len(points) <= 25 else 2.4
        path, pen, marks = "", "M", []
        for point in points:
            if point is None:
                pen = "M"
                continue
            x, y, error = place(point.x) + shift, scale(point.y), whole_error(point.error)
            path, pen = f"{path}{pen}{x:.1f} {y:.1f}", "L"
            whisker = upright_whisker(x, scale(point.y - error), scale(point.y + error), 2.5, colour) if error else ""
            words = f"{plain(one.name)}, {plain(written.get(point.x, number(point.x)))}: {with_error(point.y, error)}"
            marks.append(mark(words, whisker, marker(look, x, y, radius, colour)))
        if "L" in path:
            parts.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.8"{DASHES if one.dashed else ""}/>')
        parts += marks
    if not any(point for _, points in shown for point in points):
        parts.append(nothing(left, right, scale.end, scale.start))
    return parts, below


def _in_order(points: Sequence[Point]) -> list[Point]:
    return sorted((point for point in points if not math.isnan(point.x)), key=lambda point: point.x)


def _beside(series: Sequence[Sequence[Point]], place: Scale) -> float:
    """How many pixels the next series stands to the right, so that whiskers at the same place do not hide each other."""
    if len(series) < 2 or not any(whole_error(point.error) for points in series for point in points):
        return 0.0
    places = sorted({place(point.x) for points in series for point in points})
    nearest = min((b - a for a, b in pairwise(places)), default=60.0)
    return min(2.4, 22 / (len(series) - 1), 0.35 * nearest / len(series))


def _told(series: Sequence[Series], x_label: str, y_label: str) -> str:
    named = {one.name: f"{plain(one.name)}{' (dashed)' if one.dashed else ''}" for one in reversed(series)}
    names = [named[one] for one in _looks(series)]
    return f"Lines of {plain(y_label)} by {plain(x_label)}. Series: {'; '.join(names) or 'none'}."
