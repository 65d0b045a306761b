"""SVG by hand: escaped text, a palette that colour-blind people can tell apart, bar charts and a confusion heat map.

Every picture is a whole SVG document without links, scripts or fonts of its own, that can also stand inside an HTML
page. It follows the reader's light or dark setting; class names start with `hw-` so that they do not touch the page
around them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any
from xml.sax.saxutils import escape as _escape
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import NDArray

from hedgerow.inference.text import count_text, count_with_error, error_text, plain

# Okabe and Ito's colours, without black (unreadable on dark) and yellow (unreadable on light).
PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
OTHER = "#8a8f98"

STYLE = """
.hw-page{fill:#fff}.hw-text{fill:#1c2430}.hw-soft{fill:#566171}.hw-strong{fill:#fff}
.hw-ask{fill:#e8eef6;stroke:#9db2cc}.hw-leaf{fill:#fff;stroke:#b9c2cf}.hw-more{fill:none;stroke:#b9c2cf}
.hw-line{fill:none;stroke:#9aa5b4}.hw-axis{stroke:#8a95a5}.hw-whisker{stroke:#1c2430}.hw-rule{stroke:#dfe4ea}
.hw-empty{fill:#f0f3f7}
.hw-svg text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
@media (prefers-color-scheme:dark){
.hw-page{fill:#171c24}.hw-text{fill:#e8ecf2}.hw-soft{fill:#a9b4c2}
.hw-ask{fill:#243247;stroke:#4c6485}.hw-leaf{fill:#1d242e;stroke:#465262}.hw-more{stroke:#465262}
.hw-line{stroke:#66748a}.hw-axis{stroke:#7c899b}.hw-whisker{stroke:#f2f5f9}.hw-rule{stroke:#2c3542}
.hw-empty{fill:#222a35}
}
"""


def escape(value: object) -> str:
    """Text for XML or HTML content: nothing that does not print, nothing that could be markup."""
    return _escape(plain(value), {'"': "&quot;", "'": "&#39;"})


BOLD = ' font-weight="600"'


def text_width(text: str, size: float, bold: bool = False) -> float:
    """About how wide a text is in a sans-serif face; on the safe side, since fonts differ."""
    return sum(_character_width(character) for character in text) * size * (1.13 if bold else 1)


def _character_width(character: str) -> float:
    if unicodedata.east_asian_width(character) in "WF" or character > "\u2e7f":
        return 1.05
    if character in "mwMW%@±−+":
        return 0.9
    if character in "ijlftrI.,:;'|!()[] ":
        return 0.38
    return 0.7 if character.isupper() else 0.62


def fit(text: str, width: float, size: float, bold: bool = False) -> str:
    """The text, cut with … where it would be wider than `width`."""
    if text_width(text, size, bold) <= width:
        return text
    text = text[: int(width)]  # no character is narrower than a pixel: a text of a million characters costs no more
    while text and text_width(text + "…", size, bold) > width:
        text = text[:-1]
    return text + "…"


def label(x: float, y: float, text: str, size: float = 12, kind: str = "hw-text", anchor: str = "start", more: str = "") -> str:
    """One line of text. `more` is markup of the caller's own making, never words of the release."""
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" text-anchor="{anchor}"{more}>{escape(text)}</text>'


def paragraph(x: float, y: float, text: str, width: float, size: float, kind: str = "hw-soft") -> tuple[list[str], float]:
    """Lines of at most `width`, broken between words, and the height that they take."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and text_width(longer, size) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    step = round(1.4 * size)
    return [label(x, y + step * i, fit(line, width, size), size, kind) for i, line in enumerate(lines)], float(step * len(lines))


def whisker(low: float, high: float, y: float, cap: float = 2.5) -> str:
    """A horizontal error bar from `low` to `high` with caps."""
    caps = "".join(f"M{x:.1f} {y - cap:.1f}V{y + cap:.1f}" for x in (low, high))
    path = f"M{low:.1f} {y:.1f}H{high:.1f}{caps}"
    return f'<path class="hw-whisker" d="{path}" fill="none" stroke-width="1.2"/>'


def document(width: float, height: float, title: str, description: str, parts: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="hw-svg" role="img" aria-label={quoteattr(plain(title))} '
        f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}">'
        f"<title>{escape(title)}</title><desc>{escape(description)}</desc><style>{STYLE}</style>"
        f'<rect class="hw-page" width="{width:.0f}" height="{height:.0f}" rx="8"/>' + "".join(parts) + "</svg>"
    )


# ---------------------------------------------------------------- bars


def bars_svg(
    labels: Sequence[object],
    values: Sequence[float] | NDArray[Any],
    errors: Sequence[float] | NDArray[Any],
    title: str,
    colours: Sequence[str] = PALETTE[:1],
    numbers: Sequence[str] | None = None,
) -> str:
    """Horizontal bars with whiskers of ± 1 error, and the numbers beside them. Noise may make a value negative.

    `numbers` are the values in words, where they are not counts.
    """
    names = [plain(name) for name in labels]
    if numbers is None:
        numbers = [count_with_error(float(value), float(error)) for value, error in zip(values, errors, strict=True)]
    size, row, width = 13.0, 30.0, 480.0
    left = 16 + min(max((text_width(name, size) for name in names), default=0), 130)
    right = width - 30 - max((text_width(number, size) for number in numbers), default=0)
    place = scale_for(values, errors, left + 12, right)
    parts = [label(16, 28, fit(plain(title), width - 32, 15, bold=True), 15, more=BOLD)]
    top = 44.0
    for i, (name, number, value, error) in enumerate(zip(names, numbers, values, errors, strict=True)):
        middle = top + row * i + row / 2
        parts += [
            f"<g><title>{escape(f'{name}: {number}')}</title>",
            label(left, middle + 4.5, fit(name, left - 16 + 1, size), size, anchor="end"),
            bar(place, float(value), float(error), middle, 16, colours[i % len(colours)]),
            label(width - 16, middle + 4.5, number, size, "hw-soft", "end"),
            "</g>",
        ]
    bottom = top + row * len(names)
    parts.append(f'<line class="hw-axis" x1="{place(0):.1f}" x2="{place(0):.1f}" y1="{top:.0f}" y2="{bottom:.0f}"/>')
    listed = "; ".join(f"{name} {number}" for name, number in zip(names, numbers, strict=True))
    return document(width, bottom + 14, title, f"Bars: {listed}.", parts)


class scale_for:
    """Where a value stands between two places, so that 0 and every whisker are inside."""

    def __init__(self, values: Any, errors: Any, start: float, end: float) -> None:
        values, errors = np.asarray(values, dtype=np.float64), np.asarray(errors, dtype=np.float64)
        self.low = float(min(0.0, (values - errors).min(initial=0.0)))
        self.high = float(max(0.0, (values + errors).max(initial=0.0)))
        self.start, self.end = start, end

    def __call__(self, value: float) -> float:
        span = self.high - self.low
        return self.start + (self.end - self.start) * ((value - self.low) / span if span > 0 else 0.0)


def bar(place: scale_for, value: float, error: float, middle: float, height: float, colour: str) -> str:
    """One bar from 0 to the value, and its whisker."""
    a, b = sorted((place(0), place(value)))
    where = f'x="{a:.1f}" y="{middle - height / 2:.1f}" width="{b - a:.1f}" height="{height:.1f}"'
    drawn = f'<rect {where} rx="1" fill="{colour}"/>'
    if error > 0:
        drawn += whisker(place(value - error), place(value + error), middle, min(3.5, height / 2))
    return drawn


# ---------------------------------------------------------------- confusion

_NUMBERS_UP_TO, _CLASSES_UP_TO = 12, 60


def confusion_svg(confusion: NDArray[Any], classes: Sequence[object], noise_sd: float, title: str) -> str:
    """A heat map: rows are true classes, columns predicted ones; a darker cell holds more of its row."""
    table = np.asarray(confusion)[:_CLASSES_UP_TO, :_CLASSES_UP_TO]
    names = [plain(name) for name in classes][:_CLASSES_UP_TO]
    with_numbers = len(names) <= _NUMBERS_UP_TO
    cell_width = max(60.0, min(104.0, 420 / len(names))) if with_numbers else 18.0
    cell_height = 40.0 if with_numbers else 18.0
    upright = with_numbers and cell_width >= 84
    size = 13.0 if with_numbers else 11.0
    row_names = min(max(text_width(name, size) for name in names), 150.0)
    column_names = 16.0 if upright else min(max(text_width(name, size) for name in names), 110.0) + 6
    left, top = 44 + row_names, 66 + column_names
    width = max(left + cell_width * len(names) + 20, 460)
    parts = [
        label(16, 28, fit(plain(title), width - 32, 15, bold=True), 15, more=BOLD),
        label(left, 54, "predicted class", 12, "hw-soft"),
        label(0, 0, "true class", 12, "hw-soft", "middle",
              f' transform="translate(24 {top + cell_height * len(names) / 2:.0f}) rotate(-90)"'),
    ]  # fmt: skip
    for j, name in enumerate(names):
        middle = left + cell_width * (j + 0.5)
        if upright:
            parts.append(label(middle, top - 8, fit(name, cell_width - 6, size), size, anchor="middle"))
        else:
            turned = f' transform="translate({middle + 4:.1f} {top - 6:.1f}) rotate(-90)"'
            parts.append(label(0, 0, fit(name, 110, size), size, more=turned))
    totals = np.maximum(table, 0).sum(axis=1)
    for i, name in enumerate(names):
        y = top + cell_height * i
        parts.append(label(left - 8, y + cell_height / 2 + 4.5, fit(name, row_names, size), size, anchor="end"))
        for j, other in enumerate(names):
            share = max(float(table[i, j]), 0.0) / max(float(totals[i]), 1.0)
            number = count_with_error(float(table[i, j]), noise_sd)
            box = f'x="{left + cell_width * j + 1:.1f}" y="{y + 1:.1f}" rx="3"'
            box += f' width="{cell_width - 2:.1f}" height="{cell_height - 2:.1f}"'
            parts += [
                f"<g><title>{escape(f'true {name}, predicted {other}: {number}')}</title>",
                f'<rect class="hw-empty" {box}/><rect {box} fill="{PALETTE[0]}" fill-opacity="{share:.3f}"/>',
            ]
            if with_numbers:
                kind = "hw-strong" if share > 0.8 else "hw-text"  # from there on white is the more readable
                x, middle = left + cell_width * (j + 0.5), y + cell_height / 2 + 4.5
                parts.append(label(x, middle, count_text(float(table[i, j])), 13, kind, "middle"))
            parts.append("</g>")
    bottom = top + cell_height * len(names)
    noise = f"each number ± {error_text(noise_sd)} (noise)" if noise_sd > 0 else "exact numbers"
    if len(classes) > len(names):
        noise += f"; the first {len(names)} of {len(classes)} classes"
    parts.append(label(left, bottom + 20, noise, 12, "hw-soft"))
    words = f"Counts of true against predicted class for {len(names)} classes; {noise}."
    return document(width, bottom + 34, title, words, parts)
