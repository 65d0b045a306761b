"""Pictures of an audit: the two distributions that an attacker would have to tell apart, and every lower bound beside the claimed ε."""

from __future__ import annotations

from textwrap import wrap

from hedgerow.audit.attack import Audit, Finding
from hedgerow.audit.evidence import claim, sentence
from hedgerow.inference.text import plain
from hedgerow.plots.svg import BOLD, OTHER, PALETTE, document, escape, fit, label, text_width

WIDTH, LEFT, RIGHT = 640.0, 64.0, 20.0
TALL = 190.0  # of the bars
WITHOUT, WITH, TOO_MUCH = PALETTE[0], PALETTE[1], PALETTE[5]
LINE, LETTERS, MOST_LINES = 18.0, 92, 3  # of text: height, width, and how many for a sentence
SHOWN_LABELS = 8


def finding_svg(finding: Finding, epsilon: float, delta: float = 0.0, title: str | None = None) -> str:
    """Shares of runs without and with the row, what the event is, how often it happened, and the bound beside the claim."""
    title = title or f"{finding.pair}: {finding.why}"
    parts, bottom = _panel(finding, epsilon, delta, title, 0.0)
    return document(WIDTH, bottom + 12, title, " ".join(words_of(finding, epsilon, delta)), parts)


def audit_svg(audit: Audit) -> str:
    """The strongest finding large, and under it the lower bounds of all."""
    strongest = audit.strongest
    title = f"{audit.what}: the event that tells most"
    parts, y = _panel(strongest, audit.epsilon, audit.delta, title, 0.0)
    bounds, bottom = _bounds(audit, y + 20)
    told = [*words_of(strongest, audit.epsilon, audit.delta), sentence(audit)]
    return document(WIDTH, bottom + 14, title, " ".join(told), [*parts, *bounds])


def words_of(finding: Finding, epsilon: float, delta: float = 0.0) -> list[str]:
    """The event, its counts, and the bound: a sentence each."""
    likely, other = ("with", "without") if finding.likelier == "with" else ("without", "with")
    counts = f"{finding.hits[0]:,} of {finding.runs[0]:,} runs {likely} the row, {finding.hits[1]:,} of {finding.runs[1]:,} {other} it."
    shown = ", ".join(f"{bound:.3f} (confidence {confidence})" for confidence, bound in finding.bounds.items())
    return [f"Event: {plain(finding.event)}.", f"It happened in {counts}", f"So ε is at least {shown}; {claim(epsilon, delta)} is claimed."]


def _panel(finding: Finding, epsilon: float, delta: float, title: str, top: float) -> tuple[list[str], float]:
    parts = [label(16, top + 28, fit(plain(title), WIDTH - 32, 15, bold=True), 15, more=BOLD)]
    x = 16.0
    for name, colour in (("without the row", WITHOUT), ("with the row", WITH)):
        parts.append(f'<rect x="{x:.1f}" y="{top + 40:.1f}" width="12" height="12" rx="2" fill="{colour}"/>')
        parts.append(label(x + 18, top + 50.5, name, 12))
        x += 44 + text_width(name, 12)
    bottom = top + 66
    if finding.picture.get("labels"):
        bars, bottom = _bars(finding, bottom)
        parts += bars
    for line in (line for words in words_of(finding, epsilon, delta) for line in wrap(words, LETTERS)[:MOST_LINES]):
        bottom += LINE
        parts.append(label(16, bottom, line, 12))
    return parts, bottom


def _bars(finding: Finding, top: float) -> tuple[list[str], float]:
    labels = [plain(name) for name in finding.picture["labels"]]
    shares = [finding.picture["without"], finding.picture["with"]]
    most = max(*shares[0], *shares[1], 1e-9)
    bottom, cell = top + TALL, (WIDTH - LEFT - RIGHT) / len(labels)
    every, bar = -(-len(labels) // SHOWN_LABELS), min(cell * 0.42, 60.0)
    parts = []
    for part in (0.5, 1.0):
        y = bottom - TALL * part
        parts += [
            f'<path class="hw-rule" d="M{LEFT:.1f} {y:.1f}H{WIDTH - RIGHT:.1f}"/>',
            label(LEFT - 8, y + 4, f"{100 * most * part:.3g} %", 11, "hw-soft", "end"),
        ]
    for i, name in enumerate(labels):
        middle = LEFT + cell * (i + 0.5)
        told = f"{name}: {100 * shares[0][i]:.2f} % without the row, {100 * shares[1][i]:.2f} % with it"
        parts.append(f"<g><title>{escape(told)}</title>")
        for start, share, colour in ((middle - bar, shares[0][i], WITHOUT), (middle, shares[1][i], WITH)):
            height = TALL * share / most
            where = f'x="{start:.1f}" y="{bottom - height:.1f}" width="{bar:.1f}" height="{height:.1f}"'
            parts.append(f'<rect {where} fill="{colour}"/>')
        parts.append("</g>")
        if i % every == 0:
            parts.append(label(middle, bottom + 16, fit(name, cell * every, 11), 11, "hw-soft", "middle"))
    parts += [
        f'<path class="hw-axis" fill="none" d="M{LEFT:.1f} {bottom:.1f}H{WIDTH - RIGHT:.1f}"/>',
        label(LEFT - 8, bottom + 4, "0", 11, "hw-soft", "end"),
    ]
    return parts, bottom + 24


def _bounds(audit: Audit, top: float) -> tuple[list[str], float]:
    """A bar for each finding: what its verdict rests on, solid, and the bound at the larger risk of 5 %, faint; the claim is a line."""
    names = [plain(finding.pair) for finding in audit.findings]
    left = 28 + min(max(text_width(name, 12) for name in names), 170.0)
    faint = [max(finding.bounds.values(), default=0.0) for finding in audit.findings]
    right, row = WIDTH - 150, 22.0
    most = max(audit.epsilon, *faint) * 1.05 or 1.0

    def place(value: float) -> float:
        return left + (right - left) * value / most

    parts = [label(16, top + 8, "lower bounds on ε (faint: confidence 95 %; solid: what the verdict rests on)", 12, more=BOLD)]
    top += 30
    for i, (finding, name) in enumerate(zip(audit.findings, names, strict=True)):
        middle, colour = top + row * (i + 0.5), TOO_MUCH if finding.violated else WITHOUT
        told = f"{faint[i]:.3f} / {finding.verdict:.3f}" + (" violated" if finding.violated else "")
        parts += [f"<g><title>{escape(f'{name}: {told}')}</title>", label(left - 8, middle + 4, fit(name, left - 24, 12), 12, anchor="end")]
        for value, opacity in ((faint[i], 0.35), (finding.verdict, 1.0)):
            where = f'x="{left:.1f}" y="{middle - 6:.1f}" width="{place(value) - left:.1f}" height="12"'
            parts.append(f'<rect {where} fill="{colour}" fill-opacity="{opacity:g}"/>')
        parts += [label(WIDTH - 16, middle + 4, told, 12, "hw-soft", "end"), "</g>"]
    bottom, at = top + row * len(names), place(audit.epsilon)
    parts += [
        f'<path class="hw-axis" d="M{left:.1f} {top:.1f}V{bottom:.1f}"/>',
        f'<path d="M{at:.1f} {top - 4:.1f}V{bottom + 4:.1f}" stroke="{OTHER}" stroke-width="1.6" stroke-dasharray="5 4"/>',
        label(at, bottom + 18, f"claimed: {claim(audit.epsilon, audit.delta)}", 12, "hw-soft", "end" if at > WIDTH / 2 else "start"),
    ]
    return parts, bottom + 22
