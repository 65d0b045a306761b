"""The prediction for one row as a picture: from the start, each attribute moves the score up or down; at the end stands the total."""

from __future__ import annotations

from hedgerow.inference.explain import Explanation, Said
from hedgerow.plots.effect_svg import DOWN, MARGIN, STAR, UP, WIDTH, Drawing, box, tick_text, ticks
from hedgerow.plots.effect_text import short_number, signed, with_error
from hedgerow.plots.svg import BOLD, OTHER, escape, fit, label, scale_for, text_width, whisker

ROW = 26.0


def waterfall_svg(one: Explanation, most: int = 8) -> str:
    return waterfall_drawing(one, most).svg()


def waterfall_drawing(one: Explanation, most: int = 8) -> Drawing:
    """A bar for each of the largest so many attributes, one for all others; whiskers of ± 1 standard error of the noise."""
    shown, rest = one.top(most)
    said = [*shown, *([rest] if rest is not None else [])]
    names = ["intercept", *map(_name, said), "together"]
    numbers = [
        signed(one.start),
        *(short_number(with_error(part.score, part.error), part.few, part.error) for part in said),
        with_error(one.total, one.error),
    ]
    ends = [(0.0, one.start)]
    for part in said:
        ends.append((ends[-1][1], ends[-1][1] + part.score))
    ends.append((0.0, one.total))
    errors = [0.0, *(part.error for part in said), one.error]

    left = MARGIN + min(max(text_width(name, 12.5) for name in names), 260)
    right = WIDTH - MARGIN - 12 - max(text_width(number, 12) for number in numbers)
    place = scale_for([end for _, end in ends], errors, left + 14, right)
    top = 62.0
    bottom = top + ROW * len(names)
    title = f"Row {one.row}: {one.predicted}, probability {one.probability:.2f}"
    parts = [
        label(MARGIN, 30, fit(title, WIDTH - 2 * MARGIN, 16, bold=True), 16, more=BOLD),
        label(MARGIN, 50, fit(f"What adds to the {one.about}:", WIDTH - 2 * MARGIN, 12), 12, "hw-soft"),
    ]
    for value in ticks(place.low, place.high):
        x = place(value)
        parts.append(f'<line class="hw-rule" x1="{x:.1f}" x2="{x:.1f}" y1="{top:.0f}" y2="{bottom:.0f}"/>')
        parts.append(label(x, bottom + 14, tick_text(value), 11, "hw-soft", "middle"))
    for i, (name, number, (before, after), error) in enumerate(zip(names, numbers, ends, errors, strict=True)):
        middle = top + ROW * (i + 0.5)
        whole = i in (0, len(names) - 1)
        a, b = sorted((place(before), place(after)))
        parts += [
            f"<g><title>{escape(f'{name}: {number}')}</title>",
            label(left, middle + 4.5, fit(name, left - MARGIN + 1, 12.5, bold=whole), 12.5, anchor="end", more=BOLD if whole else ""),
            box(a, middle - 7, b - a, 14, OTHER if whole else UP if after >= before else DOWN, 1),
        ]
        if error > 0:
            parts.append(whisker(place(after - error), place(after + error), middle, 3.5))
        parts += [label(WIDTH - MARGIN, middle + 4.5, number, 12, "hw-soft", "end"), "</g>"]
        if i < len(names) - 1:
            x = place(after)
            parts.append(f'<line class="hw-axis" x1="{x:.1f}" x2="{x:.1f}" y1="{middle + 7:.1f}" y2="{middle + ROW - 7:.1f}"/>')
    zero = place(0)
    parts.append(f'<line class="hw-axis" x1="{zero:.1f}" x2="{zero:.1f}" y1="{top:.0f}" y2="{bottom:.0f}"/>')
    foot = "Whiskers: ± 1 standard error of the noise. The score becomes a probability by the softmax over the classes."
    parts.append(label(MARGIN, bottom + 34, foot, 11.5, "hw-soft"))
    few = any(part.few for part in said)
    if few:
        parts.append(label(MARGIN, bottom + 50, STAR, 11.5, "hw-soft"))
    words = "; ".join(f"{name} {number}" for name, number in zip(names, numbers, strict=True))
    return Drawing(bottom + (66 if few else 50), title, f"What adds to the {one.about}: {words}.", tuple(parts))


def _name(part: Said) -> str:
    name = f"{part.attribute}: {part.value}" if part.value else part.attribute
    return f"{name} *" if part.few else name
