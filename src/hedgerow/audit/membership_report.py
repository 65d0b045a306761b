"""What a membership report says and shows: the advantage of each attack, its interval, and what ε allows."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import wrap

from hedgerow.audit.evidence import claim
from hedgerow.audit.membership import Attack, Membership
from hedgerow.inference.text import plain
from hedgerow.plots.svg import BOLD, OTHER, PALETTE, document, escape, fit, label, text_width, whisker

HEADS = ["row", "attack", "says member if", "true positives", "false positives", "advantage", "95 % interval"]
NUMBERS = (0, 3, 4, 5, 6)
NOT_TO_PUBLISH = "these numbers are exact looks at the target rows: they must not be published if the rows are sensitive"
WIDTH, ROW = 640.0, 24.0
LETTERS = 92  # of a line of text


def rows_of(report: Membership) -> list[list[str]]:
    return [
        [
            str(attack.row + 1),
            attack.kind,
            plain(attack.event),
            f"{attack.hits[0]:,} of {attack.runs[0]:,}",
            f"{attack.hits[1]:,} of {attack.runs[1]:,}",
            f"{attack.advantage:+.3f}",
            interval_text(attack.interval),
        ]
        for attack in report.attacks
    ]


def interval_text(interval: tuple[float, float]) -> str:
    return f"{interval[0]:+.3f} to {interval[1]:+.3f}"


def sentences(report: Membership) -> list[str]:
    """The largest advantage with an interval that allows for having chosen it, the bound, and the verdict."""
    best = report.strongest
    right = f"right in {50 * (1 + best.advantage):.1f} of 100 guesses where 50 are luck"
    found = (
        f"largest advantage: {best.advantage:.3f} (row {best.row + 1}, {best.kind}: {right}); with 95 % for all {len(report.attacks)} "
        f"attacks together {interval_text(best.corrected)}"
    )
    bound = f"{claim(report.epsilon, report.delta)} allows at most {report.allowed:.3f} to any attack on any row"
    verdict = (
        "VIOLATED: an attack gains more than that. A false alarm has a chance of at most one in a million."
        if report.violated
        else "consistent with it: no attack was found that surely gains more (other attacks, and other rows, may gain more than these did)"
    )
    return [found, bound, verdict]


def membership_svg(report: Membership) -> str:
    """A bar for each attack, with its 95 % interval, and a line at what ε allows."""
    title = f"{report.what}: what an attacker gains over guessing"
    names = [f"row {attack.row + 1}, {attack.kind}" for attack in report.attacks]
    left, right = 32 + min(max(text_width(name, 12) for name in names), 200.0), WIDTH - 84
    ends = [end for attack in report.attacks for end in attack.interval]
    low, high = min(0.0, *ends), max(report.allowed, *ends) * 1.03

    def place(value: float) -> float:
        return left + (right - left) * (value - low) / (high - low)

    top = 48.0
    bottom = top + ROW * len(names)
    parts = [label(16, 28, fit(plain(title), WIDTH - 32, 15, bold=True), 15, more=BOLD)]
    for i, (name, attack) in enumerate(zip(names, report.attacks, strict=True)):
        parts += _bar(name, attack, top + ROW * (i + 0.5), place, left)
    zero, most = place(0.0), place(report.allowed)
    parts += [
        f'<path class="hw-axis" d="M{zero:.1f} {top:.1f}V{bottom:.1f}"/>',
        f'<path d="M{most:.1f} {top - 4:.1f}V{bottom + 4:.1f}" stroke="{OTHER}" stroke-width="1.6" stroke-dasharray="5 4"/>',
        label(most, bottom + 18, f"{report.allowed:.3f}: the most that {claim(report.epsilon, report.delta)} allows", 12, "hw-soft", "end"),
    ]
    lines = [line for words in sentences(report) for line in wrap(words, LETTERS)]
    for i, words in enumerate([*lines, "bars: true positive rate − false positive rate; whiskers: 95 % for each attack"]):
        parts.append(label(16, bottom + 44 + 18 * i, words, 12, "hw-text" if i < len(lines) else "hw-soft"))
    return document(WIDTH, bottom + 44 + 18 * len(lines) + 14, title, ". ".join(sentences(report)), parts)


def _bar(name: str, attack: Attack, middle: float, place: Callable[[float], float], left: float) -> list[str]:
    start, end = sorted((place(0.0), place(attack.advantage)))
    colour = PALETTE[5] if attack.violated else PALETTE[0 if attack.kind == "probability" else 4]
    told = f"{name}: {attack.advantage:+.3f}, 95 % interval {interval_text(attack.interval)}"
    return [
        f"<g><title>{escape(told)}</title>",
        label(left - 8, middle + 4, fit(name, left - 24, 12), 12, anchor="end"),
        f'<rect x="{start:.1f}" y="{middle - 7:.1f}" width="{end - start:.1f}" height="14" fill="{colour}"/>',
        whisker(place(attack.interval[0]), place(attack.interval[1]), middle),
        label(WIDTH - 16, middle + 4, f"{attack.advantage:+.3f}", 12, "hw-soft", "end"),
        "</g>",
    ]
