"""ROC curves: of each class that was scored, the share that is found against the share of others that is taken for it."""

from __future__ import annotations

from hedgerow.formatting import number
from hedgerow.inference.ranking import ClassRanking, OperatingPoint, Ranking
from hedgerow.inference.text import plain, score_with_error, share_with_error
from hedgerow.plots.svg import BOLD, PALETTE, document, escape, fit, label, paragraph

_SIDE, _LEFT, _TOP = 300.0, 76.0, 48.0
_CURVES = len(PALETTE)  # more than these could not be told apart


def roc_svg(ranking: Ranking, title: str = "How well are the classes told apart?") -> str:
    """A point for each threshold, with error bars in both directions; of many classes the first few. On the dashed line it is a coin."""
    shown = [each for each in ranking.of if each.clear][:_CURVES]
    width, bottom = _LEFT + _SIDE + 28, _TOP + _SIDE

    def x(value: float) -> float:
        return _LEFT + _SIDE * min(max(value, 0.0), 1.0)

    def y(value: float) -> float:
        return bottom - _SIDE * min(max(value, 0.0), 1.0)

    parts = [label(16, 28, fit(plain(title), width - 32, 15, bold=True), 15, more=BOLD)]
    for tenth in range(0, 11, 2):
        tick = tenth / 10
        parts += [
            f'<path class="hw-rule" d="M{_LEFT:.1f} {y(tick):.1f}H{_LEFT + _SIDE:.1f}M{x(tick):.1f} {_TOP:.1f}V{bottom:.1f}"/>',
            label(_LEFT - 8, y(tick) + 4, f"{tenth * 10} %", 11, "hw-soft", "end"),
            label(x(tick), bottom + 18, f"{tenth * 10} %", 11, "hw-soft", "middle"),
        ]
    parts.append(
        f'<line class="hw-axis" x1="{x(0):.1f}" y1="{y(0):.1f}" x2="{x(1):.1f}" y2="{y(1):.1f}" stroke-width="1.4" stroke-dasharray="5 4"/>'
    )
    told = []
    for each, colour in zip(shown, PALETTE, strict=False):
        points = each.roc()
        way = "L".join(f"{x(point.false_positive_rate):.1f} {y(point.recall):.1f}" for point in points)
        parts.append(f'<path d="M{way}" fill="none" stroke="{colour}" stroke-width="2.5" stroke-linejoin="round"/>')
        for point in points[1:-1]:
            far, high = point.false_positive_rate_error, point.recall_error
            cross = (
                f"M{x(point.false_positive_rate - far):.1f} {y(point.recall):.1f}H{x(point.false_positive_rate + far):.1f}"
                f"M{x(point.false_positive_rate):.1f} {y(point.recall - high):.1f}V{y(point.recall + high):.1f}"
            )
            parts += [
                f"<g><title>{escape(point_in_words(point))}</title>",
                f'<path d="{cross}" fill="none" stroke="{colour}" stroke-opacity="0.45" stroke-width="1.2"/>',
                f'<circle cx="{x(point.false_positive_rate):.1f}" cy="{y(point.recall):.1f}" r="3" fill="{colour}"/></g>',
            ]
        told.append(area_in_words(each))
    parts += [
        f'<path class="hw-axis" fill="none" d="M{_LEFT:.1f} {_TOP:.1f}V{bottom:.1f}H{_LEFT + _SIDE:.1f}"/>',
        label(_LEFT + _SIDE / 2, bottom + 38, "of the others, taken for the class (false positives)", 12, "hw-soft", "middle"),
        label(
            0, 0, "of the class, found (recall)", 12, "hw-soft", "middle", f' transform="translate(24 {_TOP + _SIDE / 2:.0f}) rotate(-90)"'
        ),
    ]
    below = bottom + 62
    for line, (words, colour) in enumerate(zip(told, PALETTE, strict=False)):
        parts.append(f'<rect x="16" y="{below + 18 * line - 9:.1f}" width="10" height="10" fill="{colour}"/>')
        parts.append(label(32, below + 18 * line, fit(words, width - 48, 12), 12))
    below += 18 * len(told)
    left_out = len(ranking.of) - len(shown)
    noise = "noise and draw of rows" if any(each.noise_sd for each in ranking.of) else "draw of rows; exact, public rows"
    more = f"; {left_out} classes not drawn" if left_out else ""
    said, height = paragraph(16, below, f"bars: ± 1 standard error ({noise}){more}", width - 32, 12)
    return document(width, below + height, title, f"ROC curves. {'; '.join(told)}{more}.", [*parts, *said])


def area_in_words(each: ClassRanking) -> str:
    return f"{plain(each.label)}: area under the curve {score_with_error(each.auc, each.auc_error)}"


def point_in_words(point: OperatingPoint) -> str:
    """ "from 35 %: finds 80 ± 3 %, right 45 ± 2 %, …" """
    right = (
        "" if point.precision != point.precision else f", of those taken {share_with_error(point.precision, point.precision_error)} right"
    )
    found = share_with_error(point.recall, point.recall_error)
    others = share_with_error(point.false_positive_rate, point.false_positive_rate_error)
    return f"taken from {number(point.threshold * 100, 3)} % on: {found} of the class are found{right}; of others {others} are taken, too"
