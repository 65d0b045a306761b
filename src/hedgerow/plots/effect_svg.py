"""Pictures of effects: what the values of one attribute add to the scores, with bands of ± 1 and ± 2 standard errors of the noise.

A numeric attribute is a line of steps with the share of rows below; others have a bar for each value, its share of rows beside it. With
two classes the log-odds of the second are drawn, with more the scores of the most frequent classes, each in a colour.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow.formatting import bound
from hedgerow.inference.effects import Effect, about
from hedgerow.inference.text import plain, share_text
from hedgerow.plots.effect_text import short_number, values_to_show, with_error, with_mark
from hedgerow.plots.svg import BOLD, OTHER, PALETTE, document, escape, fit, label, paragraph, scale_for, text_width

WIDTH, MARGIN = 760.0, 20.0
MOST_CLASSES = len(PALETTE)
MOST_BARS, MOST_GROUPS, MOST_STEPS = 42, 14, 64  # values that are drawn
STAR = "*: few rows, drawn towards the others."
UP, DOWN = PALETTE[0], PALETTE[5]


@dataclass(frozen=True)
class Drawing:
    """A picture before it is a document: several can stand in one."""

    height: float
    title: str
    words: str
    parts: tuple[str, ...]
    width: float = WIDTH

    def svg(self) -> str:
        return document(self.width, self.height, self.title, self.words, self.parts)


def stacked(drawings: Sequence[Drawing], title: str) -> str:
    """Pictures below one another, as one document."""
    parts, y = [], 0.0
    for drawing in drawings:
        parts.append(f'<g transform="translate(0 {y:.0f})">{"".join(drawing.parts)}</g>')
        y += drawing.height
    return document(max(d.width for d in drawings), y, title, " ".join(d.words for d in drawings), parts)


def effect_svg(effect: Effect) -> str:
    return effect_drawing(effect).svg()


def effects_svg(effects: Sequence[Effect]) -> str:
    return stacked([effect_drawing(effect) for effect in effects], f"What {len(effects)} attributes do")


def effect_drawing(effect: Effect) -> Drawing:
    picture = _Picture(effect)
    return picture.steps() if effect.cuts and len(effect.values) <= MOST_STEPS else picture.bars()


class _Picture:
    def __init__(self, effect: Effect) -> None:
        self.effect, self.two = effect, len(effect.classes) == 2
        frequent = np.sort(np.argsort(-effect.class_rows, kind="stable")[:MOST_CLASSES])
        self.classes = [1] if self.two else [int(c) for c in frequent]
        self.colours = [UP] if self.two else list(PALETTE[: len(self.classes)])
        if self.two:
            self.scores, self.errors = (numbers[:, None] for numbers in effect.log_odds)
            self.what = f"adds to the log-odds of {effect.classes[1]}"
        else:
            self.scores, self.errors = effect.scores[:, self.classes], effect.errors[:, self.classes]
            self.what = "adds to the score of each class, against the mean of all classes"
        reach = float(np.ptp(np.append(self.scores, 0.0))) / 2
        self.room = np.minimum(2 * self.errors, np.maximum(self.errors, reach))  # one wide band must not flatten the rest
        self.parts: list[str] = []
        self.few = effect.few_rows
        self.names = [f"{value} *" if few else value for value, few in zip(effect.values, self.few, strict=True)]

    # ------------------------------------------------------------ what both kinds have

    def _head(self) -> float:
        """Title, what is drawn, and the colours of the classes; returns where the picture begins."""
        effect = self.effect
        self.parts.append(label(MARGIN, 30, fit(plain(effect.attribute), WIDTH - 2 * MARGIN, 16, bold=True), 16, more=BOLD))
        soft = f"{share_text(effect.importance)} of what the attributes say. What it {self.what}:"
        self.parts.append(label(MARGIN, 50, fit(soft, WIDTH - 2 * MARGIN, 12), 12, "hw-soft"))
        y = 58.0
        if not self.two:
            y, x = 74.0, MARGIN
            for c, colour in zip(self.classes, self.colours, strict=True):
                name = fit(effect.classes[c], 180, 12)
                wide = 32 + text_width(name, 12)
                if x > MARGIN and x + wide > WIDTH - MARGIN:
                    x, y = MARGIN, y + 20
                self.parts.append(f'<rect x="{x:.1f}" y="{y - 10:.1f}" width="12" height="12" rx="2" fill="{colour}"/>')
                self.parts.append(label(x + 18, y, name))
                x += wide
            if len(self.classes) < len(effect.classes):
                y += 20
                text = f"The {len(self.classes)} most frequent of {len(effect.classes)} classes."
                self.parts.append(label(MARGIN, y, text, 12, "hw-soft"))
            y += 8
        return y

    def _foot(self, y: float, more: str) -> Drawing:
        exact = "Exact numbers, no noise." if self.scores.any() else "No prediction uses it: its effect is zero."
        bands = "Bands: ± 1 and ± 2 standard errors of the noise." if self.errors.any() else exact
        note = self.effect.rows_note
        bands += f" {STAR}" if self.few.any() else ""
        text = " ".join(f"{each[0].upper()}{each[1:].rstrip('.')}." for each in (bands, note, more) if each)
        said, height = paragraph(MARGIN, y + 16, text, WIDTH - 2 * MARGIN, 11.5)
        self.parts += said
        title = f"What {plain(self.effect.attribute)} {self.what}"
        return Drawing(y + 18 + height, title, f"{about(self.effect)}. {self._words()}", tuple(self.parts))

    def _words(self) -> str:
        """The picture for those who cannot see it."""
        shown, _ = values_to_show(self.effect, 12)
        return "; ".join(f"{self.effect.values[v]}: {self._numbers(int(v))}" for v in shown) + "."

    def _numbers(self, v: int) -> str:
        return with_mark(self._scores(v), self.few[v], float(self.errors[v].max()))

    def _scores(self, v: int) -> str:
        said = [with_error(float(s), float(e)) for s, e in zip(self.scores[v], self.errors[v], strict=True)]
        if self.two:
            return said[0]
        return ", ".join(f"{self.effect.classes[c]} {number}" for c, number in zip(self.classes, said, strict=True))

    def _tip(self, v: int) -> str:
        return f"<title>{escape(f'{self.effect.values[v]}, {self.effect.share_of(v)} of rows: {self._numbers(v)}')}</title>"

    # ------------------------------------------------------------ bars

    def bars(self) -> Drawing:
        effect = self.effect
        shown, more = values_to_show(effect, MOST_BARS if self.two else MOST_GROUPS)
        top = self._head() + 6
        thick = 12.0 if self.two else 7.0
        row = max(22.0, thick * len(self.classes) + 10)
        left = MARGIN + min(max(text_width(self.names[v], 12.5) for v in shown), 190)
        numbers = [short_number(self._scores(v), self.few[v], float(self.errors[v].max())) if self.two else "" for v in shown.tolist()]
        right = WIDTH - MARGIN - max((text_width(number, 12) for number in numbers), default=0) - (12 if self.two else 0)
        share_from, share_wide = left + 12, 56.0
        place = scale_for(self.scores[shown], self.room[shown], share_from + share_wide + 52, right)
        largest = max(float(effect.rows[shown].max()), 1e-9)
        bottom = top + row * len(shown)
        self._vertical_grid(place, top, bottom)
        for i, (v, number) in enumerate(zip(shown.tolist(), numbers, strict=True)):
            middle = top + row * (i + 0.5)
            share = float(effect.rows[v])
            self.parts += [
                f"<g>{self._tip(v)}",
                label(left, middle + 4.5, fit(self.names[v], left - MARGIN + 1, 12.5), 12.5, anchor="end"),
                box(share_from, middle - 5, share_wide * share / largest, 10, OTHER, 0.6),
                label(share_from + share_wide * share / largest + 5, middle + 4, _short_share(effect.share_of(v)), 10.5, "hw-soft"),
            ]
            first = middle - thick * len(self.classes) / 2
            for k in range(len(self.classes)):
                self._bar(place, v, k, first + thick * k, thick - 1)
            self.parts += [label(WIDTH - MARGIN, middle + 4.5, number, 12, "hw-soft", "end"), "</g>"]
        zero = place(0)
        self.parts.append(f'<line class="hw-axis" x1="{zero:.1f}" x2="{zero:.1f}" y1="{top:.0f}" y2="{bottom:.0f}"/>')
        return self._foot(bottom + 18, more and f"Not drawn: {more.removeprefix('and ')}.")

    def _bar(self, place: scale_for, v: int, k: int, y: float, thick: float) -> None:
        score, error = float(self.scores[v, k]), float(self.errors[v, k])
        colour = self.colours[k] if not self.two or score >= 0 else DOWN
        a, b = sorted((place(0), place(score)))
        self.parts.append(box(a, y, b - a, thick, colour, 1))
        for times, opacity in ((2, 0.2), (1, 0.3)):
            low, high = (place(min(max(score + sign * times * error, place.low), place.high)) for sign in (-1, 1))
            if error > 0:
                where = f'x="{low:.1f}" y="{y + thick * 0.25:.1f}" width="{high - low:.1f}" height="{thick * 0.5:.1f}"'
                self.parts.append(f'<rect class="hw-text" {where} fill-opacity="{opacity:g}"/>')

    def _vertical_grid(self, place: scale_for, top: float, bottom: float) -> None:
        for value in ticks(place.low, place.high):
            x = place(value)
            self.parts.append(f'<line class="hw-rule" x1="{x:.1f}" x2="{x:.1f}" y1="{top:.0f}" y2="{bottom:.0f}"/>')
            self.parts.append(label(x, bottom + 14, tick_text(value), 11, "hw-soft", "middle"))

    # ------------------------------------------------------------ steps

    def steps(self) -> Drawing:
        effect, count = self.effect, len(self.effect.values)
        assert effect.cuts is not None
        top, tall, below = self._head() + 10, 220.0, 46.0
        left, right = MARGIN + 44, WIDTH - MARGIN - 6
        numeric = len(effect.cuts) + 1
        gap = 10.0 if count > numeric else 0.0  # values without a number stand apart
        wide = (right - left - gap) / count
        starts = [left + wide * v + (gap if v >= numeric else 0.0) for v in range(count)]
        place = scale_for(self.scores, self.room, top + tall, top)
        for value in ticks(place.low, place.high):
            y = place(value)
            self.parts.append(f'<line class="hw-rule" x1="{left:.1f}" x2="{right:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>')
            self.parts.append(label(left - 6, y + 4, tick_text(value), 11, "hw-soft", "end"))
        zero = place(0)
        self.parts.append(f'<line class="hw-axis" x1="{left:.1f}" x2="{right:.1f}" y1="{zero:.1f}" y2="{zero:.1f}"/>')
        for k, colour in enumerate(self.colours):
            self._step_line(place, starts, wide, numeric, k, colour)
        self._cut_labels(effect.cut_texts or tuple(map(bound, effect.cuts)), left, wide, top + tall + 16)
        base = top + tall + 26 + below
        largest = max(float(effect.rows.max()), 1e-9)
        for v, x in enumerate(starts):
            share = float(effect.rows[v])
            self.parts.append(f"<g>{self._tip(v)}" + box(x, top, wide, tall + 26 + below, OTHER, 0))
            self.parts.append(box(x + 1, base - below * share / largest, wide - 2, below * share / largest, OTHER, 0.6))
            if wide >= 34:
                self.parts.append(label(x + wide / 2, base + 13, _short_share(effect.share_of(v)), 10.5, "hw-soft", "middle"))
            self.parts.append("</g>")
            if self.few[v]:
                self.parts.append(label(x + wide / 2, top + 10, "*", 12, "hw-soft", "middle"))
            if v >= numeric:
                self.parts.append(label(x + wide / 2, top + tall + 16, fit(effect.values[v], wide + gap, 11), 11, anchor="middle"))
        self.parts.append(label(left - 6, base, "rows", 11, "hw-soft", "end"))
        return self._foot(base + 16, "Every range is drawn equally wide.")

    def _step_line(self, place: scale_for, starts: list[float], wide: float, numeric: int, k: int, colour: str) -> None:
        scores, errors = self.scores[:, k], self.errors[:, k]
        if errors.any():
            for times, opacity in ((2, 0.16), (1, 0.3)) if self.two else ((2, 0.06), (1, 0.12)):
                for v, x in enumerate(starts):
                    ends = [min(max(float(scores[v] + sign * times * errors[v]), place.low), place.high) for sign in (1, -1)]
                    high, low = place(ends[0]), place(ends[1])
                    self.parts.append(box(x, high, wide, low - high, colour, opacity))
        path = ""
        for v, x in enumerate(starts):
            path += f"{'M' if v in (0, numeric) or v > numeric else 'L'}{x:.1f} {place(float(scores[v])):.1f}H{x + wide:.1f}"
        self.parts.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2.2"/>')

    def _cut_labels(self, cuts: tuple[str, ...], left: float, wide: float, y: float) -> None:
        """The numbers between the ranges, as many as there is room for."""
        free = left
        for i, text in enumerate(cuts):
            x = left + wide * (i + 1)
            half = text_width(text, 11) / 2
            if x - half >= free:
                self.parts.append(label(x, y, text, 11, anchor="middle"))
                free = x + half + 6


def box(x: float, y: float, width: float, height: float, colour: str, opacity: float) -> str:
    where = f'x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.0):.1f}" height="{max(height, 0.0):.1f}"'
    return f'<rect {where} fill="{colour}" fill-opacity="{opacity:g}"/>'


def _short_share(share: str) -> str:
    return share.replace("below ", "<").replace("at most ", "≤ ").replace("≤ <", "<")


def ticks(low: float, high: float) -> list[float]:
    """Round numbers from low to high, about five, 0 among them."""
    span = max(high - low, 1e-9)
    step = 10.0 ** math.floor(math.log10(span / 4))
    step = next((step * times for times in (1, 2, 5, 10) if span / (step * times) <= 5.5), step)
    return [i * step for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


def tick_text(value: float) -> str:
    return "0" if abs(value) < 1e-12 else f"{value:+.3g}".replace("-", "−")
