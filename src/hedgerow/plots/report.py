"""One HTML page about a release: what it promises, what was spent, how good it is and what it says.

The page stands alone: no scripts, no links to other files, no fonts to fetch. Everything that comes from the release is
escaped, and the page forbids scripts and outside resources to itself, since a release file may be written by anyone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow import formatting
from hedgerow.accounting.meter import Budget
from hedgerow.accounting.noise import variance_of
from hedgerow.inference.boosted_words import boosted, forest_in_words
from hedgerow.inference.coverage import class_rows
from hedgerow.inference.effects import Effect
from hedgerow.inference.explain import Explanation
from hedgerow.inference.ranking import AREA_BY_BINS, BY_BINS, RECALLS, THRESHOLD_HEADS
from hedgerow.inference.rules import within_noise
from hedgerow.inference.text import MANY_VALUES, count_with_error, error_text, plain, score_with_error, share_text, share_with_error
from hedgerow.inference.vote import ADDITIVE
from hedgerow.plots.draw import bars_svg, confusion_svg, tree_svg, tree_text
from hedgerow.plots.effect_html import effects_content, explanations_content
from hedgerow.plots.html import many, page, pairs, section, table
from hedgerow.plots.reliability_svg import reliability_svg
from hedgerow.plots.report_privacy import (
    about_these_rows,
    budget_section,
    certificate_section,
    events_table,
    meaning,
    promise,
)
from hedgerow.plots.roc_svg import roc_svg
from hedgerow.plots.svg import PALETTE, escape
from hedgerow.release.release import Release
from hedgerow.schema.attributes import Numeric

if TYPE_CHECKING:  # scoring reaches the rows; a report needs only the shape of its result
    from hedgerow.evaluation.private import PrivateScore
    from hedgerow.inference.calibration import Calibration

_MAX_BARS = 24
_EFFECTS, _PAIRS = 6, 5  # attributes whose effects are drawn, and pairs that are named
_REPORT_BOXES = 26  # smaller trees than `hedgerow show` draws: a page has several


def html_report(
    release: Release,
    *,
    score: PrivateScore | None = None,
    calibration: Calibration | None = None,
    plan_lines: Sequence[tuple[str, str]] | None = None,
    budget: Budget | None = None,
    rules: int = 8,
    trees: int = 2,
) -> str:
    """The whole report as one HTML document.

    score:      a private score of this release (`hedgerow.evaluation.private.private_score`); its ε is stated beside the release's
    calibration: whether its probabilities are right (`private_calibration`, or `calibration` on public rows)
    plan_lines: `estimator.plan().lines()`, what was planned before any row was read
    budget:     the budget that paid, for a gauge and its list of requests
    rules, trees: how many of them to show
    """
    content = report_content(release, score=score, calibration=calibration, plan_lines=plan_lines, budget=budget, rules=rules, trees=trees)
    return page(f"Forest for {release.schema.target.name}", content, footer(release))


def report_content(
    release: Release,
    *,
    score: PrivateScore | None = None,
    calibration: Calibration | None = None,
    plan_lines: Sequence[tuple[str, str]] | None = None,
    budget: Budget | None = None,
    rules: int = 8,
    trees: int = 2,
) -> list[str]:
    """The report in pieces of HTML, for a page that has a frame of its own."""
    sections = [
        meaning(release.certificate),
        certificate_section(release),
        budget_section(budget) if budget is not None else "",
        _score(release, score) if score is not None else "",
        _calibration(release, calibration, score) if calibration is not None else "",
        _classes(release),
        _importances(release),
        _effects(release),
        _boosted(release),
        _trees(release, trees),
        _rules(release, rules),
        _plan(plan_lines) if plan_lines else "",
        _made(release),
    ]
    private = release.certificate.private
    head = [
        f"<h1>{'Private forest' if private else 'Forest'} for “{escape(release.schema.target.name)}”</h1>",
        f'<p class="lead">{escape(release.algorithm)}, {escape(_built(release))} over '
        f"{many(len(release.schema.attributes), 'attribute')}.</p>",
        promise(release.certificate),
        _tiles(release, score),
    ]
    return [*head, *sections]


def show_page(release: Release, tree: int = 0, max_depth: int = 3, *, pruned: bool = True) -> str:
    """One tree as an HTML page: its picture, the same as text, and the guarantee. `tree` is numbered from 0.

    pruned: without the nodes that the release does not predict with.
    """
    removed = release.removed if pruned else None
    picture = tree_svg(release.forest, tree, max_depth, removed=removed)
    text = tree_text(release.forest, tree, max_depth, removed=removed)
    body = [
        f"<h1>Tree {int(tree) + 1} of {len(release.forest.trees)} for “{escape(release.schema.target.name)}”</h1>",
        promise(release.certificate),
        f'<section><figure class="scroll wide" tabindex="0">{picture}</figure></section>',
        f"<section>{_as_text(text)}</section>",
    ]
    return page(f"Tree {int(tree) + 1} for {release.schema.target.name}", body, footer(release))


def effects_page(release: Release, effects: Sequence[Effect]) -> str:
    """What some attributes do, as an HTML page: pictures, the same as text, and the guarantee."""
    heading = f"What each attribute does for “{release.schema.target.name}”"
    body = [f"<h1>{escape(heading)}</h1>", promise(release.certificate), f"<section>{effects_content(effects)}</section>"]
    return page(heading, body, footer(release))


def explain_page(release: Release, explanations: Sequence[Explanation], top: int) -> str:
    """Why some rows are predicted as they are, as an HTML page. It tells about those rows: it is as private as they are."""
    heading = f"Predictions of “{release.schema.target.name}”, explained"
    body = [f"<h1>{escape(heading)}</h1>", about_these_rows(release.certificate), explanations_content(explanations, top)]
    return page(heading, body, f"{footer(release)} The rows explained are not part of it: keep this page as private as they are.")


def _as_text(text: str) -> str:
    lines = "\n".join(escape(line) for line in text.split("\n"))
    return f"<details><summary>The same tree as text</summary><pre>{lines}</pre></details>"


def footer(release: Release) -> str:
    return f"Made by {release.made_by}. Every number on this page was computed from what was released" + (
        "; looking at it costs no privacy." if release.certificate.private else "."
    )


# ---------------------------------------------------------------- numbers


def _tiles(release: Release, score: PrivateScore | None) -> str:
    forest, epsilon, delta = release.forest, release.certificate.epsilon, release.certificate.delta
    own, trees = release.vote == ADDITIVE, len(forest.trees)
    noise = f"± {error_text(forest.leaf_noise_sd)}" if forest.noisy else "none"
    tiles = [
        (_short_loss(epsilon), "privacy loss ε" + (f", δ = {formatting.amount(Fraction(delta))}" if delta else "")),
        (
            f"{sum(len(tree.leaves) for tree in forest.trees):,}",
            f"cells in one-way counts of {many(trees, 'attribute')}" if own else f"leaves in {many(trees, 'tree')}",
        ),
        (noise, "noise on one count"),
    ]
    if score is not None:
        found = "lost in the noise" if score.lost else share_with_error(score.accuracy, score.accuracy_error)
        tiles.append((found, "accuracy, privately measured"))
    drawn = [f'<div class="tile"><b>{escape(value)}</b><span>{escape(what)}</span></div>' for value, what in tiles]
    return f'<div class="tiles">{"".join(drawn)}</div>'


def _built(release: Release) -> str:
    return forest_in_words(len(release.forest.trees), release.additive if release.vote == ADDITIVE else None)


def _short_loss(epsilon: str | None) -> str:
    if epsilon is None:
        return "none claimed"
    return formatting.amount(Fraction(epsilon))


def _score(release: Release, score: PrivateScore, recalls: Sequence[float] = RECALLS) -> str:
    certificate = score.certificate
    cost = events_table(certificate.events) if certificate.events else ""
    together = ""
    if certificate.epsilon is not None and release.certificate.epsilon is not None:
        both = Fraction(certificate.epsilon) + Fraction(release.certificate.epsilon)
        chance = Fraction(certificate.delta or 0) + Fraction(release.certificate.delta or 0)
        total = formatting.loss(both, chance)
        together = f" If both looked at the same people, the release and its score together cost {total}."
    cells = len(score.classes) ** 2
    picture = confusion_svg(score.confusion, score.classes, score.noise_sd, "True against predicted class")
    rows_error = score.noise_sd * math.sqrt(cells)
    accuracy = f"Accuracy {share_with_error(score.accuracy, score.accuracy_error)}"
    if score.lost:
        accuracy = "The noise is larger than the accuracy: nothing can be said"
    wrong = f" Beware: {score.mismatch}." if score.mismatch else ""
    return section(
        "Private score",
        f"<p><strong>{escape(accuracy)}</strong>, on about "
        f"{escape(count_with_error(float(score.confusion.sum()), rows_error))} rows. The error is one standard error: "
        f"noise and the chance of the draw of rows together.{escape(wrong)}</p>"
        f'<figure class="scroll" tabindex="0">{picture}</figure>{_roc(score, recalls)}'
        f"<p>{escape(certificate.sentence())}.{escape(together)}</p>{cost}",
    )


def _roc(score: PrivateScore, recalls: Sequence[float]) -> str:
    if score.ranking is None:
        return ""
    of = ", the mean of each class against the others" if score.positive is None else f" of {plain(score.positive)} against the rest"
    of = f", the {score.ranking.words(plain)} (too few rows)" if score.ranking.left_out else of
    area, brier = score_with_error(score.auc, score.auc_error), score_with_error(score.brier, score.brier_error)
    lines = score.ranking.threshold_lines(recalls)
    tied = f" {AREA_BY_BINS[0].upper()}{AREA_BY_BINS[1:]}." if any(each.mostly_by_bins for each in score.ranking.of) else ""
    about = "<p>Thresholds: rows with at least that probability of the class are taken for it.</p>"
    by_bins = f"<p>{escape(BY_BINS[0].upper() + BY_BINS[1:])}.</p>" if score.ranking.mostly_by_bins(recalls) else ""
    thresholds = about + table(THRESHOLD_HEADS, lines) + by_bins if lines else ""
    return (
        f"<p><strong>Area under the ROC curve {area}</strong>{escape(of)}; Brier score {brier}.{tied}</p>"
        f'<figure class="scroll" tabindex="0">{roc_svg(score.ranking)}</figure>{thresholds}'
    )


def score_page(release: Release, score: PrivateScore, recalls: Sequence[float] = RECALLS) -> str:
    """A score as an HTML page: confusion matrix, ROC curves and thresholds for these recalls, what it cost."""
    heading = f"How good is the forest for “{release.schema.target.name}”?"
    return page(heading, [f"<h1>{escape(heading)}</h1>", _score(release, score, recalls)], footer(release))


def _calibration(release: Release, calibration: Calibration, score: PrivateScore | None) -> str:
    """Its cost is told once: with the score, if one request paid for both."""
    certificate, paid = calibration.certificate, [release.certificate]
    if score is not None and score.certificate != certificate:
        paid.append(score.certificate)
    cost = f"{certificate.sentence()}."
    if score is not None and score.certificate == certificate:
        cost = "It was paid for together with the score, half of the ε for each."
    elif certificate.epsilon is not None and all(each.epsilon is not None for each in paid):
        both = sum((Fraction(each.epsilon or 0) for each in (certificate, *paid)), Fraction(0))
        chance = sum((Fraction(each.delta or 0) for each in (certificate, *paid)), Fraction(0))
        total = formatting.loss(both, chance)
        what = "the release, its score and its calibration" if len(paid) > 1 else "the release and its calibration"
        cost += f" If all looked at the same people, {what} together cost {total}."
    subtracted = " What noise adds to it was subtracted as far as it is known." if calibration.charged else ""
    return section(
        "Calibration",
        f"<p><strong>Expected calibration error {escape(share_with_error(calibration.ece, calibration.ece_error))}</strong>: "
        "so far, on average, is the share of rows that are right from the probability that the forest gives."
        f"{subtracted} A calibrated forest would show up to about {escape(share_with_error(calibration.by_chance, 0))}, by the chance of "
        "who is in the rows, and because the middle of a bin stands for its rows.</p>"
        f'<figure class="scroll" tabindex="0">{reliability_svg(calibration)}</figure>'
        f"<p>{escape(cost)}</p>",
    )


def _classes(release: Release) -> str:
    """Rows of each class; the noises of different trees are independent."""
    forest = release.forest
    totals, error = class_rows(forest)
    order = np.arange(len(totals))
    if len(order) > _MAX_BARS:
        order = np.argsort(-totals, kind="stable")[:_MAX_BARS]
    labels = [release.schema.target.classes[int(c)] for c in order]
    colours = PALETTE if len(totals) <= len(PALETTE) else PALETTE[:1]
    picture = bars_svg(labels, totals[order], np.full(len(order), error), "Rows in each class", colours)
    rest = len(totals) - len(order)
    more = f'<p class="soft">{rest:,} smaller classes are not drawn.</p>' if rest else ""
    rows = ""
    if "rows" in release.released:
        sd = math.sqrt(sum(variance_of(event.noise) for event in release.certificate.events if event.query == "rows"))
        number = count_with_error(release.released["rows"], sd)
        rows = f"<p>A noisy number of rows was released as well: {escape(number)}.</p>"
    note = "Only hit and miss of each path are real." if release.certificate.by_hits else "Exact counts."
    if forest.noisy:
        note = "Released counts: the mean over the trees, by their noise; whiskers show ± 1 standard deviation of the noise."
    return section("Classes", f'<figure class="scroll" tabindex="0">{picture}</figure><p class="soft">{note}</p>{more}{rows}')


# ---------------------------------------------------------------- the model


def _importances(release: Release) -> str:
    """Of trees, what noise could have made alone is left out; of scores it is drawn."""
    shares = sorted(release.feature_importances().items(), key=lambda item: -item[1])
    shown = [(name, share) for name, share in shares if share > 0][:_MAX_BARS]
    if not shown:
        return section("Attributes", "<p>No split of these trees stands out from the noise.</p>")
    names, values = zip(*shown, strict=True)
    numbers = [share_text(value) for value in values]
    title = "What the attributes add to the scores" if release.vote == ADDITIVE else "What the splits tell about the class"
    noise = {each.attribute: each for each in release.effects()} if release.vote == ADDITIVE else {}
    errors = [noise[name].importance_noise if name in noise else 0.0 for name in names]
    picture = bars_svg(names, values, errors, title, numbers=numbers)
    rest = len(shares) - len(shown)
    more = f" Not drawn: {many(rest, 'attribute')} with less." if rest else ""
    note = (
        "Share of each attribute in the decrease of the Gini impurity, computed from released counts; nodes with no more rows "
        f"than twice their noise are left out.{more}"
    )
    if release.vote == ADDITIVE:
        note = "Share of each attribute in what all of them add to the scores, each value weighted by its noisy share of rows. Whiskers: ± "
        note += f"what noise alone would make of it.{more}"
        alone = [plain(name) for name in release.within_noise()]
        note += f" Within the noise: {escape(', '.join(alone))}." if alone else ""
    return section("Attributes", f'<figure class="scroll" tabindex="0">{picture}</figure><p class="soft">{note}</p>')


def _effects(release: Release) -> str:
    return section("What each attribute does", effects_content(release.effects()[:_EFFECTS])) if release.vote == ADDITIVE else ""


def _boosted(release: Release) -> str:
    """The boosted trees are too many to be drawn: how many, what they ask about, and what they say that no attribute says alone."""
    found = boosted(release.additive) if release.vote == ADDITIVE else None
    if found is None:
        return ""
    together = "".join(f"<li>{escape(one.text())}</li>" for one in release.interactions()[:_PAIRS])
    pairs = f"<p>What two attributes say only together, as a share of all that they do:</p><ul>{together}</ul>" if together else ""
    return section(
        "Boosted trees",
        f'<p>{escape(found.text())}.</p><p class="soft">Each was chosen and measured privately, for what the model before it got wrong, '
        f"and adds a little to the scores. What they say about each attribute is in its effect, drawn above.</p>{pairs}",
    )


def _trees(release: Release, trees: int) -> str:
    forest, count = release.forest, len(release.forest.trees)
    shown = min(trees, count)
    if release.vote == ADDITIVE:  # the others are the tables of the attributes, drawn above as effects
        shown = min(shown, 1 if release.additive.tables.layout.asks else 0)
    if shown < 1:
        return ""
    removed = release.removed
    pictures = "".join(
        f'<figure class="scroll wide" tabindex="0">{tree_svg(forest, t, 3, max_boxes=_REPORT_BOXES, removed=removed)}</figure>'
        + _as_text(tree_text(forest, t, 3, max_nodes=_REPORT_BOXES, removed=removed))
        for t in range(shown)
    )
    first = "All trees" if shown == count else f"The first {shown} of {count:,} trees"
    first = "The only tree" if count == 1 else first
    if release.vote == ADDITIVE:
        first = "The top tree alone (what each attribute adds under it is drawn above)"
    pruned = " Nodes that pruning removes, and that predictions do not use, are not drawn." if removed is not None else ""
    return section("Trees", f'<p class="soft">{first}, down to three questions.{pruned}</p>{pictures}')


def _rules(release: Release, rules: int) -> str:
    if rules < 1:
        return ""
    classes = release.schema.target.classes
    each = max(1, -(-rules // len(classes)))
    found = [rule for label in classes[:rules] for rule in release.rules(label=label, top=each)]
    left_out = within_noise(release.forest, removed=release.unused)
    items = "".join(f"<li>{escape(rule.text())} <small>tree {rule.tree + 1}</small></li>" for rule in found)
    note = "For each class the most informative paths: those that are surest after taking off twice their noise."
    if left_out.left_out:
        note += f" {left_out.text()}."
    if release.forest.noisy and found:
        note += " The best of many noisy rules looks a little better than it is."
    listed = f'<ol class="rules">{items}</ol>' if found else "<p>No rule stands above its noise.</p>"
    return section("Rules", f'<p class="soft">{note}</p>{listed}') if found or left_out.left_out else ""


def _plan(lines: Sequence[tuple[str, str]]) -> str:
    return section("The plan, made before any row was read", pairs(lines))


def _made(release: Release) -> str:
    lines: list[tuple[object, object]] = [("algorithm", release.algorithm), ("vote", release.vote)]
    lines += [(f"parameter: {name}", value) for name, value in release.parameters.items()]
    lines += [(f"chosen: {name}", words) for name, words in release.choices()]
    lines += [(f"released: {name}", f"{value:,}") for name, value in release.released.items()]
    bins = release.codebook.bins
    attributes = [(attribute.name, _domain(attribute, bins)) for attribute in release.schema.attributes]
    attributes.append((f"{release.schema.target.name} (predicted)", _listed(release.schema.target.classes)))
    schema = f"<details><summary>The public schema</summary>{pairs(attributes)}</details>"
    return section("How it was made", pairs(lines) + schema)


def _domain(attribute: Any, bins: int) -> str:
    if isinstance(attribute, Numeric):
        return f"{attribute.bounds_text}, in {many(len(attribute.cell_edges(bins)) - 1, 'cell')}"
    return _listed(attribute.domain)


def _listed(values: Sequence[object]) -> str:
    shown = ", ".join(str(value) for value in values[: 2 * MANY_VALUES])
    return shown if len(values) <= 2 * MANY_VALUES else f"{shown} and {len(values) - 2 * MANY_VALUES:,} more"
