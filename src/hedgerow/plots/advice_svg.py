"""The accuracy to expect at each ε: a line for each algorithm, a bar for the interval."""

from __future__ import annotations

import math
from fractions import Fraction

from hedgerow.inference.text import plain
from hedgerow.planner.advice import Advice
from hedgerow.plots.svg import BOLD, PALETTE, document, escape, fit, label, paragraph

_WIDE, _HIGH, _LEFT, _TOP = 420.0, 260.0, 64.0, 48.0


def advice_svg(advice: Advice, title: str = "What accuracy to expect") -> str:
    """ε on a logarithmic axis. A dashed line is the accuracy that is wanted."""
    names = list(dict.fromkeys(each.algorithm for each in advice.expectations))[: len(PALETTE)]
    places = {text: math.log(float(Fraction(text))) for text in dict.fromkeys(each.epsilon for each in advice.expectations)}
    first, last = min(places.values()), max(places.values())
    lowest = math.floor(min((each.low for each in advice.known), default=0.0) * 10) / 10
    bottom, width = _TOP + _HIGH, _LEFT + _WIDE + 24

    def x(epsilon: str, line: int = 0) -> float:
        return _LEFT + 20 + (_WIDE - 40) * (places[epsilon] - first) / ((last - first) or 1.0) + 3.0 * (line - (len(names) - 1) / 2)

    def y(value: float) -> float:
        return bottom - _HIGH * (value - lowest) / ((1 - lowest) or 1.0)

    parts = [label(16, 28, fit(plain(title), width - 32, 15, bold=True), 15, more=BOLD)]
    for tenth in range(round(lowest * 10), 11):
        parts.append(f'<path class="hw-rule" d="M{_LEFT:.1f} {y(tenth / 10):.1f}H{_LEFT + _WIDE:.1f}"/>')
        parts.append(label(_LEFT - 8, y(tenth / 10) + 4, f"{tenth * 10} %", 11, "hw-soft", "end"))
    parts += [label(x(text), bottom + 18, text, 11, "hw-soft", "middle") for text in places]
    if advice.target is not None and advice.target >= lowest:
        line = f'x1="{_LEFT:.1f}" y1="{y(advice.target):.1f}" x2="{_LEFT + _WIDE:.1f}" y2="{y(advice.target):.1f}"'
        parts.append(f'<line class="hw-axis" {line} stroke-width="1.4" stroke-dasharray="5 4"/>')
    for place, (name, colour) in enumerate(zip(names, PALETTE, strict=False)):
        mine = sorted((each for each in advice.known if each.algorithm == name), key=lambda each: places[each.epsilon])
        way = "L".join(f"{x(each.epsilon, place):.1f} {y(each.accuracy):.1f}" for each in mine)
        if mine:
            parts.append(f'<path d="M{way}" fill="none" stroke="{colour}" stroke-width="2.2" stroke-linejoin="round"/>')
        for each in mine:
            words = f"{name}, ε = {each.epsilon}: {advice.words(each)}"
            bar = f"M{x(each.epsilon, place):.1f} {y(each.low):.1f}V{y(each.high):.1f}"
            parts += [
                f"<g><title>{escape(words)}</title>",
                f'<path d="{bar}" fill="none" stroke="{colour}" stroke-opacity="0.45" stroke-width="1.4"/>',
                f'<circle cx="{x(each.epsilon, place):.1f}" cy="{y(each.accuracy):.1f}" r="3" fill="{colour}"/></g>',
            ]
    parts.append(f'<path class="hw-axis" fill="none" d="M{_LEFT:.1f} {_TOP:.1f}V{bottom:.1f}H{_LEFT + _WIDE:.1f}"/>')
    parts.append(label(_LEFT + _WIDE / 2, bottom + 38, "ε", 12, "hw-soft", "middle"))
    below = bottom + 60
    for line_number, (name, colour) in enumerate(zip(names, PALETTE, strict=False)):
        parts.append(f'<rect x="16" y="{below + 18 * line_number - 9:.1f}" width="10" height="10" fill="{colour}"/>')
        parts.append(label(32, below + 18 * line_number, fit(plain(name), width - 48, 12), 12))
    below += 18 * len(names)
    said, height = paragraph(16, below, f"bars: about four of five fits; {advice.trust}", width - 32, 12)
    return document(width, below + height, title, f"{advice.sentence()}. {advice.baseline_sentence()}. {advice.trust}.", [*parts, *said])
