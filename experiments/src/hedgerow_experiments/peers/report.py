"""What docs/PEERS.md and the pages beside it say, from stored results alone: the same results give the same text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from hedgerow_experiments.charts import Lines, Panel, Point, Series
from hedgerow_experiments.document import Block, Figure, Section, Table
from hedgerow_experiments.experiment import Result
from hedgerow_experiments.peers.head import HEAD
from hedgerow_experiments.peers.models import MODELS
from hedgerow_experiments.peers.summary import EVERY_SET, Folds, Gap, Key, Summary, cell, gaps, over_sets
from hedgerow_experiments.peers.tables import EPSILONS, EXTRA, FOLDS, SETS, classes_of
from hedgerow_experiments.statistics import Mean

PAGES = {  # of docs/, beside PEERS.md: title, and which sections stand there
    "PEERS_SETS.md": ("Beside its peers, set by set", ["Set by set"]),
    "PEERS_AUC.md": ("Beside its peers: area under the ROC curve", ["Area under the ROC curve", "AUC of Hedgerow as ε grows"]),
    "PEERS_COST.md": (
        "Beside its peers: time and memory",
        ["Fit times", "Predict times", "Peak memory", "What cannot run, or did not"],
    ),
}
WORDS = "What is compared, and how: [PEERS.md](PEERS.md)."
OTHERS = (
    "Here are the means, and where Hedgerow leads and loses. Every cell: [PEERS_SETS.md](PEERS_SETS.md). How well rows are ranked: "
    "[PEERS_AUC.md](PEERS_AUC.md). What it takes, and what did not run: [PEERS_COST.md](PEERS_COST.md)."
)
TWO_CLASSES = tuple(name for name in SETS if classes_of(name) == 2)


def blocks(results: Sequence[Result]) -> list[Block]:
    stored = Summary(results)
    if not stored.models:
        return []
    parts = [Section("", [*HEAD, *_pictures(stored)]), *_means(stored), _lead(stored), _auc(stored)]
    return [*parts, *_times(stored), _memory(stored), _left_out(stored), _sets(stored)]


def title(model: str) -> str:
    return MODELS[model].title


# ---------------------------------------------------------------- tables of accuracy


def _columns(model: str) -> tuple[str, ...]:
    return EPSILONS if len(MODELS[model].levels) > 1 else MODELS[model].levels * len(EPSILONS)  # without privacy: the same at every ε


def _text(found: Mean, of: int, what: str) -> str:
    return str(found) if found.n == of else f"{found} ({found.n} of {of} {what})"


def _over_sets(stored: Summary, sets: Sequence[str], models: Sequence[str]) -> Table:
    lines = []
    for model in models:
        found = [over_sets(stored.accuracy, sets, epsilon, model) for epsilon in _columns(model)]
        if any(found):
            lines.append([title(model), *("" if each is None else _text(each, len(sets), "sets") for each in found)])
    return Table(["mean accuracy at ε =", *EPSILONS], lines)


def _means(stored: Summary) -> list[Section]:
    several = [model for model in stored.models if not MODELS[model].binary]
    parts: list[Block] = ["± one standard error of folds and noise, the sets being fixed.", _over_sets(stored, SETS, several)]
    if stored.variants:
        said = ", ".join(f"{title(name)} {mean:.3f}" for name, mean in stored.variants.items())
        parts.append(f"Of diffprivlib's two variants the better one on average is shown, here and on the other pages ({said}).")
    binary: list[Block] = [", ".join(TWO_CLASSES) + ".", _over_sets(stored, TWO_CLASSES, stored.models)]
    return [Section(f"Mean over the {len(SETS)} sets", parts), Section(f"Mean over the {len(TWO_CLASSES)} sets with two classes", binary)]


def _one_set(stored: Summary, folds: dict[Key, Folds], name: str, what: str) -> Table:
    """A line for each model: its means, or why it has none."""
    lines = []
    for model in stored.models:
        found = [cell(folds, name, epsilon, model) for epsilon in _columns(model)]
        if why := MODELS[model].cannot(name):
            lines.append([title(model), *[why] * len(EPSILONS)])
        elif stored.repetitions(model, name):
            lines.append([title(model), *(_text(each, FOLDS, "folds") if each.n else "no fit done" for each in found)])
    return Table([what, *EPSILONS], lines)


def _auc(stored: Summary) -> Section:
    names = [name for name in EVERY_SET if classes_of(name) == 2 and any(key[0] == name for key in stored.auc)]
    inner = [Section(f"AUC: {_named(name)}", [_one_set(stored, stored.auc, name, "AUC at ε =")]) for name in names]
    return Section("Area under the ROC curve", ["All sets with two classes; ± one standard error over the folds.", *inner])


def _sets(stored: Summary) -> Section:
    inner = []
    for name in (name for name in EVERY_SET if any(key[0] == name for key in stored.accuracy)):
        table = _one_set(stored, stored.accuracy, name, "accuracy at ε =")
        inner.append(Section(f"Accuracy: {_named(name)}", [table, _repeated(stored, name)]))
    return Section("Set by set", ["± one standard error over the folds, after the repetitions were averaged within each.", *inner])


def _named(name: str) -> str:
    return f"{name} (beside the ten)" if name in EXTRA else name


def _repeated(stored: Summary, name: str) -> str:
    """How many repetitions the means are of."""
    models: dict[int, list[str]] = {}
    for model in stored.models:
        if times := stored.repetitions(model, name):
            models.setdefault(times, []).append(title(model))
    most = max(models, key=lambda times: len(models[times]))
    others = [f"{times} of {'; '.join(several)}" for times, several in sorted(models.items()) if times != most]
    return f"Repetitions: {most}{' but ' + ', '.join(others) if others else ''}."


# ---------------------------------------------------------------- who leads


def _lead(stored: Summary) -> Section:
    heading, present = "Where Hedgerow leads and where it loses", [model for model in stored.models if MODELS[model].kind == "hedgerow"]
    there = {model for _, _, model in stored.accuracy}  # of diffprivlib both variants: the better one in each cell is the rival
    private = [model for model in MODELS if model in there and MODELS[model].kind in ("paper", "peer")]
    peers = [model for model in private if MODELS[model].kind == "peer"]
    papers = [model for model in private if MODELS[model].kind == "paper"]
    lines, clear, sentences = [], [], []
    for model in present:
        against = (
            ("all others", private, SETS),
            ("the papers' forests", papers, SETS),
            ("peers", peers, SETS),
            ("all others, sets beside the ten", private, EXTRA),
        )
        for who, rivals, sets in against:
            if found := gaps(stored.accuracy, model, rivals, sets):
                lines.append([title(model), who, *_counted(found)])
                where = {"all others": "on the ten sets", "all others, sets beside the ten": "on the sets beside the ten"}.get(who)
                sentences += [_sentence(model, found, where)] if where else []
                clear += [_loss(model, gap) for gap in found if gap.lost and who.startswith("all others")]
    if not lines:
        return Section(heading, ["There is no cell with Hedgerow and a rival in the stored results."])
    said = (
        "A cell is a set and an ε. In each, the best rival is the one with the highest mean: chosen after the fact, "
        "which favours the rivals. A cell is won or lost only if the difference on the same folds is more than 2 standard errors; "
        "otherwise it is within the noise. With five folds, two standard errors are a confidence of about 88 %, and there are 40 cells: "
        "some are won or lost by chance. Hedgerow was made while looking at the ten sets; at most of those beside them, it was not."
    )
    heads = ["", "against the best of", "won", "within noise", "lost", "cells", "mean lead", "worst cell"]
    parts: list[Block] = [said, *sentences, Table(heads, lines)]
    lost: list[Block] = ["Cells that are lost:", Table(["", "set", "ε", "best rival", "lead"], clear)] if clear else ["No cell is lost."]
    return Section(heading, [*parts, *lost])


def _sentence(model: str, found: Sequence[Gap], where: str) -> str:
    won, lost = sum(gap.won for gap in found), sum(gap.lost for gap in found)
    return (
        f"{title(model)}, {where}: better than the best of all others in {won} of {len(found)} cells, "
        f"worse in {lost}, and {len(found) - won - lost} are within the noise."
    )


def _counted(found: Sequence[Gap]) -> list[str]:
    worst = min(found, key=lambda gap: gap.lead.mean)
    won, lost = sum(gap.won for gap in found), sum(gap.lost for gap in found)
    where = f"{worst.lead.signed}: {worst.set}, ε = {worst.epsilon}, {title(worst.rival)}"
    mean = fmean(gap.lead.mean for gap in found)
    return [str(won), str(len(found) - won - lost), str(lost), str(len(found)), f"{mean:+.3f}", where]


def _loss(model: str, gap: Gap) -> list[str]:
    return [title(model), _named(gap.set), gap.epsilon, title(gap.rival), gap.lead.signed]


# ---------------------------------------------------------------- time, memory, and what is left out


def _by_set(stored: Summary, values: Mapping[tuple[str, str], str]) -> Table:
    lines = []
    for name in (name for name in EVERY_SET if any(key[0] == name for key in values)):
        cells = [MODELS[model].cannot(name) or values.get((name, model), "") for model in stored.models]
        lines.append([name, *cells])
    return Table(["", *map(title, stored.models)], lines)


def _times(stored: Summary) -> list[Section]:
    said = (
        "Median seconds over all folds, ε and repetitions; one thread where a model lets us choose, on a machine that others used too: "
        "orders of magnitude, no more."
    )
    found = []
    verbs = (("Fit", "fit_seconds", "one fit"), ("Predict", "predict_seconds", "classifying the fifth of the rows that was left out"))
    for verb, field, what in verbs:
        seconds = {key: f"{value:.2g}" for key, value in stored.median_seconds(field).items()}
        found.append(Section(f"{verb} times", [f"{said} Here of {what}.", _by_set(stored, seconds)]))
    return found


def _memory(stored: Summary) -> Section:
    said = (
        "Megabytes at the peak of one fit (first fold, ε = 1) over what was resident before it: packages, input, and what a small "
        "fit before it had left. Each in a process of its own with one thread. Less than 0.1 MB is below what this can tell."
    )
    values = {}
    for key, measured in stored.memory.items():
        peak = measured.get("peak_mb")
        values[key] = measured["failed"] if peak is None else f"{peak:.1f}" if peak >= 0.1 else "< 0.1"
    return Section("Peak memory", [said, _by_set(stored, values)] if values else ["Not measured in the stored results."])


def _left_out(stored: Summary) -> Section:
    have = {model for _, _, model in stored.accuracy}
    lines = [[MODELS[model].title, "", "not in the stored results"] for model in MODELS if model not in have]
    for model in (model for model in MODELS if model in have):
        reasons: dict[str, list[str]] = {}
        for name in EVERY_SET:
            why = MODELS[model].cannot(name) or ("" if stored.repetitions(model, name) else "not in the stored results")
            reasons.setdefault(why, []).append(name)
        lines += [[title(model), ", ".join(names), why] for why, names in reasons.items() if why]
    for (model, name, why), fits in stored.failures().items():
        lines.append([title(model), name, f"{fits} fits without a result; the first of them: {why}"])
    for (name, model), measured in sorted(stored.memory.items()):
        lines += [[title(model), name, f"peak memory: {measured['failed']}"]] if "failed" in measured else []
    parts: list[Block] = [Table(["model", "sets", "why"], lines)] if lines else ["Every model ran on every set."]
    return Section("What cannot run, or did not", [*parts, f"Versions: {', '.join(stored.versions())}."])


# ---------------------------------------------------------------- the pictures


def _pictures(stored: Summary) -> list[Block]:
    """One of the ten sets, one of those beside them."""
    best = f" Of the papers' forests only the best on average is shown ({title(stored.best_paper)})." if stored.best_paper else ""
    caption = (
        "Accuracy against ε, a panel for each data set. Means over folds and repetitions; whiskers are one standard error. "
        f"Dashed: without privacy, the same at every ε.{best} DP-EBM takes two classes only."
    )
    ten, beside = (_panels(stored, sets) for sets in (SETS, EXTRA))
    found: list[Block] = [Figure("peers-accuracy", _chart("Accuracy against ε", ten, 4), caption)] if ten else []
    if beside:
        names = ", ".join(panel.title for panel in beside)
        said = f"Accuracy against ε on the sets beside the ten, drawn in the same way. In none of the means: {names}."
        found.append(Figure("peers-accuracy-beside", _chart("Accuracy against ε, beside the ten sets", beside, 3), said))
    return found


def _chart(heading: str, panels: Sequence[Panel], columns: int) -> Lines:
    return Lines(heading, panels, "ε", "accuracy", [(float(epsilon), epsilon) for epsilon in EPSILONS], log_x=True, columns=columns)


def _panels(stored: Summary, sets: Sequence[str]) -> list[Panel]:
    peers = ("naive-bayes", "dp-ebm-fast", "logistic", *list(stored.variants)[:1])
    wanted = ("hedgerow", "hedgerow-delta", stored.best_paper, *peers, "random-forest", "boosting")
    shown = [model for model in wanted if model in stored.models]
    names = [name for name in sets if any(key[0] == name for key in stored.accuracy)]
    return [Panel(name, [_line(stored, name, model) for model in shown if stored.repetitions(model, name)]) for name in names]


def _line(stored: Summary, name: str, model: str) -> Series:
    points = []
    for epsilon, level in zip(EPSILONS, _columns(model), strict=True):
        found = cell(stored.accuracy, name, level, model)
        points += [Point(float(epsilon), found.mean, found.error)] if found.n else []
    return Series(title(model), points, dashed=MODELS[model].kind == "ceiling")
