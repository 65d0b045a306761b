"""What the charts of the experiments are put together from: scales, axes, markers, heading with legend, labels of groups."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from hedgerow.after.svg import BOLD, OTHER, PALETTE, escape, fit, label, text_width
from hedgerow.after.text import plain

MARGIN, WIDTH, TALL = 16.0, 720.0, 320.0  # of a picture, and the height of its plot
Y_NAME = 28.0  # the room of a vertical axis' name
DASHES = ' stroke-dasharray="6 4"'
COLOURS = (*PALETTE, OTHER)
_TURNED, _LONGEST = 35.0, 150.0  # labels of groups that do not fit: their angle, and the most pixels they get


def drawable(*values: float) -> bool:
    return all(math.isfinite(value) for value in values)


def whole_error(error: float) -> float:
    """Half the length of a whisker; 0 where there is none to draw."""
    return float(error) if drawable(error) and error > 0 else 0.0


def number(value: float) -> str:
    """A number for people: four digits, or whole with separators from 1000 on."""
    text = f"{value:,.0f}" if 1000 <= abs(value) < 1e15 else f"{value:.4g}"
    return "0" if text == "-0" else text.replace("-", "−")


def with_error(value: float, error: float) -> str:
    return f"{number(value)} ± {number(error)}" if whole_error(error) else number(value)


# ---------------------------------------------------------------- scales


@dataclass(frozen=True)
class Scale:
    """Where a value stands on the page, linearly or by its logarithm. A scale of one value puts it in the middle."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high, value = (math.log10(v) if self.log else v for v in (self.low, self.high, value))
        return self.start + (self.end - self.start) * ((value - low) / (high - low) if high > low else 0.5)


def value_scale(values: Iterable[float], start: float, end: float, zero: bool = False) -> Scale:
    """A scale with a little air around the values; with `zero` it begins (or ends) at 0."""
    values = [*values, *([0.0] if zero else [])]
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    if high - low <= 1e-8 * max(abs(low), abs(high), 0.1):
        air = abs(low) * 0.1 or 1.0
        return Scale(0.0 if zero else low - air, high + air, start, end)
    air = (high - low) * 0.05
    return Scale(low if zero and low == 0 else low - air, high if zero and high == 0 else high + air, start, end)


def value_ticks(scale: Scale) -> list[tuple[float, str]]:
    """Four to nine round numbers of a linear scale, with as many decimals as their steps need."""
    span = scale.high - scale.low
    smallest = 10.0 ** math.floor(math.log10(span) - 1)
    step = max(smallest * times for times in (1, 2, 5, 10, 20) if smallest * times * 3.5 <= span)
    at = [i * step for i in range(math.ceil(scale.low / step - 1e-9), math.floor(scale.high / step + 1e-9) + 1)]
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    texts = [f"{value:,.{decimals}f}" if decimals < 7 and abs(value) < 1e9 else f"{value:.3g}" for value in at]
    return [(value, "0" if float(text.replace(",", "")) == 0 else text.replace("-", "−")) for value, text in zip(at, texts, strict=True)]


def log_ticks(values: Sequence[float]) -> list[tuple[float, str]]:
    """The values themselves where they are few, otherwise the powers of ten among them."""
    distinct = sorted(set(values))
    if len(distinct) > 8:
        powers = range(math.ceil(math.log10(distinct[0])), math.floor(math.log10(distinct[-1])) + 1)
        distinct = [10.0**power for power in powers] or [distinct[0], distinct[-1]]
    return [(value, number(value)) for value in distinct]


# ---------------------------------------------------------------- marks


def marker(shape: int, x: float, y: float, radius: float, colour: str) -> str:
    """One of eight shapes, the first a disc."""
    r, fill = radius, f'fill="{colour}"'
    hollow = f'fill="none" stroke="{colour}" stroke-width="1.8"'
    match shape % 8:
        case 0 | 6 as ring:
            return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r - (0.4 if ring else 0):.1f}" {hollow if ring else fill}/>'
        case 1 | 7 as open_square:
            side = r * (0.85 if open_square == 1 else 0.8)
            where = f'x="{x - side:.1f}" y="{y - side:.1f}" width="{2 * side:.1f}" height="{2 * side:.1f}"'
            return f"<rect {where} {fill if open_square == 1 else hollow}/>"
        case 2 | 4 as triangle:
            tip = -r if triangle == 2 else r
            path = f"M{x:.1f} {y + 1.15 * tip:.1f}L{x + 1.1 * r:.1f} {y - 0.8 * tip:.1f}H{x - 1.1 * r:.1f}Z"
        case 3:
            path = f"M{x:.1f} {y - 1.25 * r:.1f}L{x + 1.25 * r:.1f} {y:.1f}L{x:.1f} {y + 1.25 * r:.1f}L{x - 1.25 * r:.1f} {y:.1f}Z"
        case _:
            a = 0.85 * r
            arms = f"M{x - a:.1f} {y - a:.1f}L{x + a:.1f} {y + a:.1f}M{x - a:.1f} {y + a:.1f}L{x + a:.1f} {y - a:.1f}"
            return f'<path d="{arms}" fill="none" stroke="{colour}" stroke-width="2.2"/>'
    return f'<path d="{path}" {fill}/>'


def upright_whisker(x: float, low: float, high: float, cap: float, colour: str = "") -> str:
    """A vertical error bar between two places; without a colour in that of the text."""
    path = f"M{x:.1f} {low:.1f}V{high:.1f}" + "".join(f"M{x - cap:.1f} {y:.1f}H{x + cap:.1f}" for y in (low, high))
    look = f'stroke="{colour}"' if colour else 'class="hw-whisker"'
    return f'<path d="{path}" fill="none" {look} stroke-width="1.2"/>'


def filled(index: int) -> str:
    """The fill of a bar. After the last colour they begin again, pale and with an outline."""
    colour = COLOURS[index % len(COLOURS)]
    pale = f' fill-opacity="0.25" stroke="{colour}" stroke-width="1.4"' if index // len(COLOURS) % 2 else ""
    return f'fill="{colour}"{pale}'


def mark(words: str, *drawn: str) -> str:
    """What is drawn for one set of numbers, and these numbers as its tooltip."""
    return f'<g class="hw-mark"><title>{escape(words)}</title>{"".join(drawn)}</g>'


# ---------------------------------------------------------------- heading


def wrapped(text: str, width: float, size: float, bold: bool = False, most: int = 3) -> list[str]:
    """The text in lines no wider than `width`; what is too long for the last of them is cut."""
    lines: list[str] = []
    for word in plain(text).split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and (text_width(longer, size, bold) <= width or len(lines) == most):
            lines[-1] = longer
        else:
            lines.append(word)
    return [fit(line, width, size, bold) for line in lines]


@dataclass(frozen=True)
class Entry:
    """One name of the legend. `sample` draws `wide` pixels, from the left end and the middle height that it is given."""

    name: str
    sample: Callable[[float, float], str]
    wide: float = 26.0


def heading(title: str, entries: Sequence[Entry], width: float) -> tuple[list[str], float]:
    """The title and below it the legend in as many rows as it needs; also where the next thing may begin."""
    room, parts, y = width - 2 * MARGIN, [], 28.0
    for line in wrapped(title, room, 15, bold=True):
        parts.append(label(MARGIN, y, line, 15, more=BOLD))
        y += 20
    y, x = y + 4, MARGIN
    for entry in entries:
        name = fit(plain(entry.name), room - entry.wide - 6, 12)
        wide = entry.wide + 6 + text_width(name, 12)
        if x > MARGIN and x + wide > width - MARGIN:
            x, y = MARGIN, y + 19
        parts += [entry.sample(x, y - 4), label(x + entry.wide + 6, y, name)]
        x += wide + 16
    return parts, y + (14 if entries else -8)


# ---------------------------------------------------------------- axes


def tick_room(scale: Scale, size: float = 11) -> float:
    """How wide the numbers beside a vertical axis are."""
    return max((text_width(text, size) for _, text in value_ticks(scale)), default=0.0)


def value_axis(scale: Scale, left: float, right: float, size: float = 11) -> list[str]:
    """The frame of a plot, with rules across it at round numbers."""
    parts = []
    for value, text in value_ticks(scale):
        y = scale(value)
        parts.append(f'<line class="hw-rule" x1="{left:.1f}" x2="{right:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(label(left - 6, y + 4, text, size, "hw-soft", "end"))
    parts.append(f'<path class="hw-axis" fill="none" d="M{left:.1f} {scale.end:.1f}V{scale.start:.1f}H{right:.1f}"/>')
    return parts


def across_axis(
    scale: Scale, marks: Sequence[tuple[float, str]], bottom: float, start: float, end: float, size: float = 11
) -> tuple[list[str], float]:
    """Ticks below a plot. A label that would touch its neighbour goes into a second row, or is left out if that is full too.

    Also where the next thing may begin.
    """
    parts, free = [], [start, start]
    for value, text in sorted(marks):
        text = fit(plain(text), end - start, size)
        x, half = scale(value), text_width(text, size) / 2
        parts.append(f'<line class="hw-axis" x1="{x:.1f}" x2="{x:.1f}" y1="{bottom:.1f}" y2="{bottom + 4:.1f}"/>')
        middle = min(max(x, start + half), end - half)
        row = next((row for row in (0, 1) if middle - half >= free[row] - 1e-9), None)
        if row is not None:
            parts.append(label(middle, bottom + 16 + 13 * row, text, size, "hw-soft", "middle"))
            free[row] = middle + half + 5
    return parts, bottom + (34 if free[1] > start else 21)


def y_name(text: str, top: float, bottom: float) -> str:
    """The name of a vertical axis, read upwards at the left edge."""
    turned = f' transform="translate({MARGIN + 8:.1f} {(top + bottom) / 2:.1f}) rotate(-90)"'
    return label(0, 0, fit(plain(text), bottom - top + 40, 12), 12, "hw-soft", "middle", turned)


def group_names(names: Sequence[str], middles: Sequence[float], slot: float, top: float) -> tuple[list[str], float]:
    """The groups' names below a plot: in lines if they fit, otherwise turned. Also where the next thing may begin."""
    size, room = 11.0, slot - 6
    names = [plain(name) for name in names]
    if all(text_width(word, size) <= room for name in names for word in name.split()):
        lines = [wrapped(name, room, size, most=9) for name in names]
        if max((len(some) for some in lines), default=0) <= 3:
            parts = [
                label(x, top + 16 + 13 * i, line, size, anchor="middle")
                for x, some in zip(middles, lines, strict=True)
                for i, line in enumerate(some)
            ]
            return parts, top + 12 + 13 * max((len(some) for some in lines), default=1)
    angle = math.radians(_TURNED if slot * math.sin(math.radians(_TURNED)) >= 13 else 90)
    parts, longest = [], 0.0
    for name, x in zip(names, middles, strict=True):
        text = fit(name, min(_LONGEST, (x - 8) / max(math.cos(angle), 0.05)), size)
        longest = max(longest, text_width(text, size))
        turned = f' transform="translate({x + 4:.1f} {top + 12:.1f}) rotate({-math.degrees(angle):.0f})"'
        parts.append(label(0, 0, text, size, anchor="end", more=turned))
    return parts, top + 20 + longest * math.sin(angle)


def nothing(left: float, right: float, top: float, bottom: float) -> str:
    return label((left + right) / 2, (top + bottom) / 2 + 4, "no results yet", 12, "hw-soft", "middle")
