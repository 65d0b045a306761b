"""What a notebook shows of a release and of a score: the guarantee, and a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hedgerow.formatting import pairs_html
from hedgerow.inference.text import is_lost, plain, score_with_error, share_text, share_with_error
from hedgerow.plots.svg import bars_svg, confusion_svg

if TYPE_CHECKING:
    from hedgerow.release.release import Release

BARS = 12


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
        lines = [("accuracy", "lost in the noise, which is larger than the answer: score more rows, or with a larger epsilon")]
    else:
        lines = [("accuracy", share_with_error(score.accuracy, score.accuracy_error))]
        lines.append((f"always {plain(score.majority[0])}", f"{score.majority[1] * 100:.0f} %"))
    if getattr(score, "ranking", None) is not None:
        of = "mean of the classes" if score.positive is None else f"of {plain(score.positive)}"
        lines.append((f"area under the ROC curve, {of}", score_with_error(score.auc, score.auc_error)))
    lines += [("guarantee", guarantee)] if guarantee else []
    return pairs_html(lines) + confusion_svg(score.confusion, score.classes, score.noise_sd, "True against predicted class")
