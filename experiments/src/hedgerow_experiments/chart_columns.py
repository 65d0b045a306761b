"""Charts with a column for each group: box plots and grouped bars."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hedgerow.after.svg import PALETTE, document, fit, label
from hedgerow.after.text import plain
from hedgerow_experiments.chart_parts import (
    COLOURS,
    DASHES,
    MARGIN,
    TALL,
    WIDTH,
    Y_NAME,
    Entry,
    Scale,
    drawable,
    filled,
    group_names,
    heading,
    mark,
    nothing,
    number,
    tick_room,
    upright_whisker,
    value_axis,
    value_scale,
    whole_error,
    with_error,
    y_name,
)

# ---------------------------------------------------------------- boxes


def boxes(
    title: str, groups: Sequence[tuple[str, Sequence[float]]], x_label: str, y_label: str, levels: Sequence[tuple[str, float]] = ()
) -> str:
    """Box plots: whiskers to the least and the greatest value, a box between the quartiles, a line at the median."""
    levels = [(name, float(value)) for name, value in levels if drawable(value)]
    columns = [(plain(name), [float(value) for value in values if drawable(value)]) for name, values in groups]
    width = max(WIDTH, 110 + 15.0 * len(columns))
    parts, top = heading(title, [_level_entry(name, 1 + i) for i, (name, _) in enumerate(levels)], width)
    bottom = top + TALL
    scale = value_scale([*(value for _, values in columns for value in values), *(value for _, value in levels)], bottom, top)
    left, right = MARGIN + Y_NAME + tick_room(scale), width - MARGIN - 8
    slot = (right - left) / max(len(columns), 1)
    middles = [left + slot * (i + 0.5) for i in range(len(columns))]
    parts += value_axis(scale, left, right)
    for i, (name, value) in enumerate(levels):
        y, colour = scale(value), COLOURS[(1 + i) % len(COLOURS)]
        line = f'<path d="M{left:.1f} {y:.1f}H{right:.1f}" fill="none" stroke="{colour}" stroke-width="2"{DASHES}/>'
        parts.append(mark(f"{plain(name)}: {number(value)}", line))
    for (name, values), x in zip(columns, middles, strict=True):
        if values:
            parts.append(_box(name, values, x, min(23.0, slot * 0.3), scale))
    if not any(values for _, values in columns):
        parts.append(nothing(left, right, top, bottom))
    named, below = group_names([name for name, _ in columns], middles, slot, bottom)
    parts += [
        *named,
        y_name(y_label, top, bottom),
        label((left + right) / 2, below + 20, fit(plain(x_label), right - left, 12), 12, "hw-soft", "middle"),
    ]
    told = f"Box plots of {plain(y_label)} by {plain(x_label)}: {'; '.join(name for name, _ in columns) or 'none'}."
    told += "".join(f" Level {plain(name)}: {number(value)}." for name, value in levels)
    return document(width, below + 34, title, told, parts)


def _level_entry(name: str, look: int) -> Entry:
    line = f'fill="none" stroke="{COLOURS[look % len(COLOURS)]}" stroke-width="2"{DASHES}'
    return Entry(name, lambda x, y: f'<path d="M{x:.1f} {y:.1f}H{x + 26:.1f}" {line}/>')


def _box(name: str, values: Sequence[float], x: float, half: float, scale: Scale) -> str:
    least, lower, median, upper, most = (float(value) for value in np.percentile(values, [0, 25, 50, 75, 100]))
    numbers = f"median {number(median)}, quartiles {number(lower)} and {number(upper)}, from {number(least)} to {number(most)}"
    where = f'x="{x - half:.1f}" y="{scale(upper):.1f}" width="{2 * half:.1f}" height="{scale(lower) - scale(upper):.1f}"'
    return mark(
        f"{name}: {numbers}; {len(values)} {'value' if len(values) == 1 else 'values'}",
        upright_whisker(x, scale(least), scale(lower), half / 2),
        upright_whisker(x, scale(upper), scale(most), half / 2),
        f'<rect {where} fill="{PALETTE[4]}" fill-opacity="0.35" stroke="{PALETTE[4]}" stroke-width="1.2"/>',
        f'<path class="hw-whisker" d="M{x - half:.1f} {scale(median):.1f}H{x + half:.1f}" fill="none" stroke-width="2"/>',
    )


# ---------------------------------------------------------------- bars


def bars(title: str, groups: Sequence[tuple[str, Sequence[tuple[str, float, float]]]], y_label: str) -> str:
    """Bars in groups, with whiskers. In every group a series has the same place, also if another one is missing there."""
    looks = {name: i for i, name in enumerate(dict.fromkeys(name for _, some in groups for name, _, _ in some))}
    width = max(WIDTH, min(110 + 8.0 * len(groups) * (len(looks) + 1.5), 1400.0))
    entries = [_bar_entry(name, look) for name, look in looks.items()]
    parts, top = heading(title, entries, width)
    bottom = top + TALL
    shown = [(value, whole_error(error)) for _, some in groups for _, value, error in some if drawable(value)]
    scale = value_scale([end for value, error in shown for end in (value, value - error, value + error)], bottom, top, zero=True)
    left, right = MARGIN + Y_NAME + tick_room(scale), width - MARGIN - 8
    slot = (right - left) / max(len(groups), 1)
    thick = min(slot / (len(looks) + 1.5), 40.0)
    middles = [left + slot * (i + 0.5) for i in range(len(groups))]
    parts += value_axis(scale, left, right)
    for (group, some), middle in zip(groups, middles, strict=True):
        for name, value, error in some:
            if drawable(value):
                x = middle + thick * (looks[name] - (len(looks) - 1) / 2)
                words = f"{plain(group)}, {plain(name)}: {with_error(value, error)}"
                parts.append(_bar(words, x, thick, value, whole_error(error), scale, looks[name]))
    if shown:
        parts.append(f'<line class="hw-axis" x1="{left:.1f}" x2="{right:.1f}" y1="{scale(0):.1f}" y2="{scale(0):.1f}"/>')
    else:
        parts.append(nothing(left, right, top, bottom))
    named, below = group_names([name for name, _ in groups], middles, slot, bottom)
    parts += [*named, y_name(y_label, top, bottom)]
    told = f"Bars of {plain(y_label)} for {'; '.join(plain(name) for name, _ in groups) or 'nothing'}."
    return document(width, below + 14, title, f"{told} Series: {'; '.join(plain(name) for name in looks) or 'none'}.", parts)


def _bar_entry(name: str, look: int) -> Entry:
    return Entry(name, lambda x, y: f'<rect x="{x + 1:.1f}" y="{y - 6:.1f}" width="12.0" height="12.0" rx="2" {filled(look)}/>', 14)


def _bar(words: str, x: float, thick: float, value: float, error: float, scale: Scale, look: int) -> str:
    high, low = sorted((scale(0), scale(value)))
    half = max(thick - 1.2, 0.8 * thick) / 2
    where = f'x="{x - half:.1f}" y="{high:.1f}" width="{2 * half:.1f}" height="{low - high:.1f}"'
    whisker = upright_whisker(x, scale(value - error), scale(value + error), min(3.0, half * 0.8)) if error else ""
    return mark(words, f"<rect {where} {filled(look)}/>", whisker)
