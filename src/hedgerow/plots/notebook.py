"""What a notebook shows of a release, a certificate, a score, effects and explanations: the guarantee, and a picture."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from hedgerow.formatting import pairs_html
from hedgerow.inference.text import SCORE_MORE, is_lost, plain, score_with_error, share_text, share_with_error
from hedgerow.plots.effect_svg import effect_svg, effects_svg
from hedgerow.plots.reliability_svg import reliability_svg
from hedgerow.plots.report_privacy import events_table
from hedgerow.plots.roc_svg import roc_svg
from hedgerow.plots.svg import bars_svg, confusion_svg
from hedgerow.plots.waterfall_svg import waterfall_svg

if TYPE_CHECKING:
    from hedgerow.inference.calibration import Calibration
    from hedgerow.inference.effects import Effect
    from hedgerow.inference.explain import Explanation
    from hedgerow.release.certificate import Certificate
    from hedgerow.release.release import Release

BARS = 12
PICTURES = 4  # attributes whose effects are drawn


def release_html(release: Release) -> str:
    """The guarantee, what it predicts from what, and the attributes that do most."""
    names = ", ".join(map(plain, release.schema.names[:BARS])) + (" …" if len(release.schema.names) > BARS else "")
    lines = [
        ("guarantee", release.certificate.sentence()),
        ("predicts", f"{plain(release.schema.target.name)}: {', '.join(plain(value) for value in release.schema.target.classes[:BARS])}"),
        ("from", names),
    ]
    return pairs_html(lines, release.algorithm) + _picture(release)


def _picture(release: Release) -> str:
    found = [each for each in sorted(release.feature_importances().items(), key=lambda each: -each[1]) if each[1] > 0][:BARS]
    if not found:
        return "<p>No split stands out from the noise.</p>"
    names, shares = zip(*found, strict=True)
    return bars_svg(names, shares, [0.0] * len(shares), "What the attributes tell about the class", numbers=[*map(share_text, shares)])


def score_html(score: Any, guarantee: str = "") -> str:
    """How often it is right, and the noisy counts of (true, predicted) class."""
    if is_lost(score.accuracy, score.accuracy_error):
        lines = [("accuracy", f"lost in the noise, which is larger than the answer: {score.mismatch or SCORE_MORE}")]
    else:
        lines = [("accuracy", share_with_error(score.accuracy, score.accuracy_error))]
        lines.append((f"always {plain(score.majority[0])}", f"{score.majority[1] * 100:.0f} %"))
        lines += [("labels", score.mismatch)] if score.mismatch else []
    if getattr(score, "ranking", None) is not None:
        lines.append((f"area under the ROC curve, {score.ranking.words(plain)}", score_with_error(score.auc, score.auc_error)))
    lines += [("guarantee", guarantee)] if guarantee else []
    pictures = confusion_svg(score.confusion, score.classes, score.noise_sd, "True against predicted class")
    ranking = getattr(score, "ranking", None)
    return pairs_html(lines) + pictures + (roc_svg(ranking) if ranking is not None else "")


def certificate_html(certificate: Certificate) -> str:
    """The guarantee in a line, what it rests on, and every charged look at rows."""
    lines = [
        ("guarantee", certificate.sentence()),
        ("unit of privacy", certificate.unit),
        ("because", certificate.reason),
        *(("assumed", each) for each in certificate.assumptions),
    ]
    looks = f"<details><summary>Every charged look at the rows</summary>{events_table(certificate.events)}</details>"
    return pairs_html(lines, "Certificate") + (looks if certificate.events else "")


def effects_html(effects: Sequence[Effect]) -> str:
    """What each value of the most important attributes adds, with the band of the noise."""
    if not effects:
        return "<p>No attribute was measured.</p>"
    if len(effects) == 1:
        return effect_svg(effects[0])
    rest = f"<p>… and {len(effects) - PICTURES} more attributes.</p>" if len(effects) > PICTURES else ""
    return effects_svg(effects[:PICTURES]) + rest


def explanation_html(explanation: Explanation) -> str:
    """What each attribute adds for one row, the largest first."""
    unknown = f"<p>{escape(explanation.unknown_text)}</p>" if explanation.unknown else ""
    return waterfall_svg(explanation) + unknown


def calibration_html(calibration: Calibration) -> str:
    """Said beside found, bin by bin."""
    return reliability_svg(calibration)
