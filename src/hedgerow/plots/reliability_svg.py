"""A reliability diagram: for each bin of claimed probability the share of rows that were right, with error bars, against the diagonal."""

from __future__ import annotations

import math

from hedgerow.formatting import number
from hedgerow.inference.calibration import Calibration
from hedgerow.inference.text import count_with_error, plain, share_with_error
from hedgerow.plots.svg import BOLD, PALETTE, document, escape, fit, label

_SIDE, _STRIP = 300.0, 56.0  # of the square, and the height of the bars below it
_LEFT, _TOP = 76.0, 48.0
_TICKS = (1.0, 0.0, 0.5, 0.9, 0.99, 0.7, 0.95, 0.2, 0.05, 0.8, 0.6, 0.1, 0.01, 0.3, 0.4)  # the first that find room
_ROOM = 34.0


def reliability_svg(calibration: Calibration, title: str = "Are its probabilities right?") -> str:
    """Points on the dashed line are calibrated; under it the forest is too sure, above it too unsure. Below: the rows of each bin.

    Both axes are stretched near 0 and 1 in the same way, so that all bins are equally wide.
    """
    edges, shares, errors = calibration.edges, calibration.shares, calibration.share_errors
    low = _lowest(calibration)
    width, bottom = _LEFT + _SIDE + 28, _TOP + _SIDE

    def x(value: float) -> float:
        return _LEFT + _SIDE * _stretched(value, low)

    def y(value: float) -> float:
        return bottom - _SIDE * _stretched(value, low)

    parts = [label(16, 28, fit(plain(title), width - 32, 15, bold=True), 15, more=BOLD)]
    ticks: list[float] = []
    for tick in (low, *_TICKS):
        if low <= tick and all(abs(x(tick) - x(other)) >= _ROOM for other in ticks):
            ticks.append(tick)
    for tick in ticks:
        parts += [
            f'<path class="hw-rule" d="M{_LEFT:.1f} {y(tick):.1f}H{_LEFT + _SIDE:.1f}M{x(tick):.1f} {_TOP:.1f}V{bottom:.1f}"/>',
            label(_LEFT - 8, y(tick) + 4, f"{tick * 100:.0f} %", 11, "hw-soft", "end"),
            label(x(tick), bottom + _STRIP + 30, f"{tick * 100:.0f} %", 11, "hw-soft", "middle"),
        ]
    parts.append(
        f'<line class="hw-axis" x1="{x(low):.1f}" y1="{y(low):.1f}" x2="{x(1):.1f}" y2="{y(1):.1f}" stroke-width="1.4" '
        'stroke-dasharray="5 4"/>'
    )
    most = max(float(calibration.bin_rows.max()), 1.0)
    told = []
    for b, middle in enumerate(calibration.middles):
        rows = count_with_error(float(calibration.bin_rows[b]), calibration.bin_rows_error)
        words = f"{number(edges[b] * 100, 3)} to {number(edges[b + 1] * 100, 3)} %: {rows} rows"
        if calibration.seen[b]:
            words += f", right {share_with_error(float(shares[b]), float(errors[b]))}"
        else:
            words += ", too few to say" if calibration.charged else ""
        told.append(words)
        start, end = x(float(edges[b])) + 1, x(float(edges[b + 1])) - 1
        height = (_STRIP - 8) * max(float(calibration.bin_rows[b]), 0.0) / most
        parts += [
            f"<g><title>{escape(words)}</title>",
            f'<rect x="{start:.1f}" y="{bottom + 10 + _STRIP - 8 - height:.1f}" width="{max(end - start, 0.5):.1f}" height="{height:.1f}" '
            f'fill="{PALETTE[4]}" fill-opacity="0.6"/>',
        ]
        if calibration.seen[b]:
            parts.append(_point(x(float(middle)), y(float(shares[b])), y(shares[b] - errors[b]), y(shares[b] + errors[b]), start, end))
        parts.append("</g>")
    strip, right = bottom + 10 + _STRIP - 8, _LEFT + _SIDE
    parts += [
        f'<path class="hw-axis" fill="none" d="M{_LEFT:.1f} {_TOP:.1f}V{bottom:.1f}H{right:.1f}M{_LEFT:.1f} {strip:.1f}H{right:.1f}"/>',
        label(_LEFT - 8, strip, "rows", 11, "hw-soft", "end"),
        label(_LEFT + _SIDE / 2, bottom + _STRIP + 50, "probability of the most probable class", 12, "hw-soft", "middle"),
        label(0, 0, "share right", 12, "hw-soft", "middle", f' transform="translate(24 {_TOP + _SIDE / 2:.0f}) rotate(-90)"'),
    ]
    rows_below = bottom + _STRIP + 72
    parts += [
        label(16, rows_below, f"calibration error {share_with_error(calibration.ece, calibration.ece_error)}", 12),
        label(16, rows_below + 18, _note(calibration), 12, "hw-soft"),
    ]
    return document(width, rows_below + 32, title, f"Reliability diagram. {'; '.join(told)}.", parts)


def _note(calibration: Calibration) -> str:
    noise = "noise and draw of rows" if calibration.charged else "draw of rows; exact, public rows"
    return f"bars: ± 1 standard error ({noise})"


def _lowest(calibration: Calibration) -> float:
    """Where both axes begin: a tenth below everything that is drawn."""
    seen = calibration.seen
    lowest = float((calibration.shares - calibration.share_errors)[seen].min(initial=float(calibration.edges[0])))
    return min(0.9, max(0.0, math.floor(lowest * 10 + 1e-9) / 10))


def _stretched(share: float, low: float) -> float:
    """0 at `low`, 1 at 1; equal steps of u, where the share is u²/(u² + (1 − u)²) as in `queries/reliability.py`."""
    u, first = (1 / (1 + math.sqrt((1 - each) / each)) if each > 0 else 0.0 for each in (min(max(share, low), 1.0), low))
    return (u - first) / (1 - first)


def _point(x: float, y: float, low: float, high: float, start: float, end: float) -> str:
    whisker = f"M{x:.1f} {low:.1f}V{high:.1f}" + "".join(f"M{x - 3:.1f} {place:.1f}H{x + 3:.1f}" for place in (low, high))
    return (
        f'<path d="M{start:.1f} {y:.1f}H{end:.1f}" stroke="{PALETTE[0]}" stroke-width="3"/>'
        f'<path class="hw-whisker" d="{whisker}" fill="none" stroke-width="1.2"/>'
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{PALETTE[0]}"/>'
    )
