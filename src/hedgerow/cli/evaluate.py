"""`hedgerow evaluate`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedgerow.cli import console
from hedgerow.cli.console import guarantee, say, warn
from hedgerow.cli.explain import check_picture
from hedgerow.cli.options import BudgetPath, Force, Jobs, threads
from hedgerow.cli.outputs import check_output
from hedgerow.cli.places import (
    PRIVATE_ROWS,
    CSVOfRows,
    EngineName,
    EngineOption,
    MasterOption,
    Place,
    PurposeOption,
    QueryOption,
    TableOption,
)
from hedgerow.errors import PlanError
from hedgerow.formatting import loss, number

if TYPE_CHECKING:
    from hedgerow.evaluation.private import PrivateScore
    from hedgerow.inference.calibration import Calibration
    from hedgerow.inference.ranking import Ranking
    from hedgerow.release.release import Release


def evaluate(
    forest: Annotated[Path, typer.Argument(help="A saved forest.", show_default=False)],
    data: Annotated[str | None, typer.Argument(help=PRIVATE_ROWS, show_default=False, metavar="DATA")] = None,
    epsilon: Annotated[str | None, typer.Option("--epsilon", help="The exact privacy loss, such as 0.1.", show_default=False)] = None,
    calibration: Annotated[
        bool, typer.Option("--calibration", help="Also whether its probabilities are right: half of the ε pays for that.")
    ] = False,
    auc: Annotated[
        bool, typer.Option("--auc", help="Also the area under the ROC curve, the Brier score, and thresholds for a class.")
    ] = False,
    recall: Annotated[
        list[float] | None,
        typer.Option(
            "--recall",
            metavar="SHARE",
            show_default="0.5, 0.8 and 0.9",
            help="Show the threshold that finds this share of a class, such as 0.8; may be repeated. Counts as --auc does.",
        ),
    ] = None,
    positive: Annotated[
        str | None,
        typer.Option(
            "--positive",
            metavar="CLASS",
            show_default="of two, the last of the schema",
            help="The class that recall, precision, area and thresholds are about.",
        ),
    ] = None,
    bins: Annotated[
        int | None,
        typer.Option(
            "--bins",
            min=2,
            show_default="20",
            help="With --auc: how many bins of probability rows are counted in. More tell rows of a rare class apart, "
            "and thresholds closer; each has its noise.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The ROC curve or the whole score: a name that ends in .svg or .html.", show_default=False),
    ] = None,
    force: Force = False,
    public: Annotated[
        bool, typer.Option("--public", help="The test rows may be looked at freely: exact numbers, no ε, no guarantee.")
    ] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Only what error the score would have, for --rows test rows. Reads no row, costs nothing.")
    ] = False,
    rows: Annotated[
        int | None, typer.Option("--rows", min=1, help="With --plan: roughly how many test rows there are.", show_default=False)
    ] = None,
    training_rows: Annotated[
        bool,
        typer.Option("--training-rows", help="Score a forest on the very rows that it was trained on, which flatter it, all the same."),
    ] = False,
    budget: BudgetPath = None,
    again: Annotated[bool, typer.Option("--again", help="Pay anew for a score that was paid for before.")] = False,
    jobs: Jobs = None,
    table: TableOption = None,
    query: QueryOption = None,
    engine: EngineOption = EngineName.duckdb,
    master: MasterOption = None,
    csv: CSVOfRows = None,
    purpose: PurposeOption = None,
) -> None:
    """Measure a forest on private test rows: a noisy confusion matrix and the accuracy, each with its error.

    An exact test score would leak, so this one is noisy and charged like any other query. Use rows that were not used
    for training (others are refused, as far as a service or the budget file knows, unless --training-rows says so). The ± of the
    accuracy is one standard error: noise and the chance of the draw of test rows together.
    With --calibration, half of the ε pays for the confusion matrix and half for counts that tell whether a forest that
    says 80 % is right in 80 of 100 cases. With --auc the rows are counted by the probability that the forest gives a
    class: of two classes these counts are all that is asked, of more they get half of the ε. With --public nothing is
    charged, and nothing protects the people in the rows.

    A score costs about ε = 200 / rows for the accuracy (of C classes 100 · C / rows), 400 / rows for the Brier score, and 400 / rows of the
    rarer class for the AUC and thresholds: with that, noise moves them by about 0.01. Of two classes ε = 0.1 is enough for the accuracy
    from 2,000 test rows on, and for the AUC where each has 4,000 (of three: three times that). Where the schema names persons, it takes
    rows_per_person times as much. What it would be for a forest, --plan says for free.

    Example:

        hedgerow evaluate forest.json --plan --rows 2000 --epsilon 0.1 --auc

        hedgerow evaluate forest.json test.csv --epsilon 0.1 --budget budget.json

        hedgerow evaluate forest.json test.csv --epsilon 0.5 --calibration --budget budget.json

        hedgerow evaluate forest.json test.csv --epsilon 0.5 --auc -o roc.html --budget budget.json

        hedgerow evaluate forest.json test.csv --epsilon 0.5 --recall 0.75 --recall 0.95 --budget budget.json
    """
    from hedgerow.inference.ranking import RECALLS

    auc, recalls = auc or bool(recall), tuple(recall or RECALLS)
    if not all(0 < each <= 1 for each in recalls):
        raise PlanError(f"--recall: got {', '.join(f'{each:g}' for each in recalls)}; expected a share above 0, at most 1, such as 0.8.")
    if bins is not None and (not auc or calibration):
        raise PlanError("--bins: it says in how many bins --auc counts rows, without --calibration. Leave out one of them.")
    if rows is not None and not plan:
        raise PlanError("--rows: it belongs to --plan, which says what error a score would have. Add --plan, or leave it out.")
    if plan:
        _forecast(forest, rows, epsilon, auc, calibration, {"positive": positive} | ({"bins": bins} if bins is not None else {}))
        return
    if data is None:
        raise PlanError("DATA: missing; expected the test rows (or --plan --rows N: what error a score would have, without them).")
    if output is not None:
        check_picture(output)
        check_output(output, [forest, *([Path(data)] if Path(data).is_file() else [])], force)
        if output.suffix.lower() == ".svg" and not auc:
            raise PlanError("--output: an .svg shows the ROC curve, which --auc counts. Add --auc, or choose a name that ends in .html.")
    place = Place(data, table, query, engine, master, purpose, csv)
    if public and (epsilon is not None or budget is not None):
        raise PlanError("--public: nothing is charged for public rows; leave out --epsilon and --budget, or --public.")
    how: dict[str, Any] = {"metrics": metrics_of(auc), "positive": positive, "n_jobs": threads(jobs)}
    how |= {"bins": bins} if bins is not None else {}
    if public:
        _evaluate_public(forest, place, calibration, how, output, recalls)
        return
    if epsilon is None:
        raise PlanError("--epsilon: missing; expected the exact privacy loss, such as 0.1 (or --public, for rows that are public).")
    from hedgerow.accounting.loss import exact_epsilon
    from hedgerow.cli.budget_source import TrackedBudgetFile, open_budget, paid_query, print_remaining
    from hedgerow.evaluation.private import SCORE_BINS, private_evaluation, private_score
    from hedgerow.inference.ranking import positive_code
    from hedgerow.release.release import Release

    release = Release.load(forest)
    positive_code(release.schema.target.classes, positive)  # a class that is none is another score, and none that was paid for
    if place.remote:
        place.service.check_scored(release, training_rows)
    about = positive if auc and len(release.schema.target.classes) > 2 else None  # else the same numbers are counted for each class
    finer = bins is not None and bins != SCORE_BINS
    request_budget = open_budget(budget, epsilon, owners=place.remote)
    if isinstance(request_budget, TrackedBudgetFile) and not place.remote:
        if not training_rows:
            request_budget.check_not_seen(place.named, release)
        request = ["evaluate", release.content_hash, *place.named, str(exact_epsilon(epsilon)), auc, about, calibration]
        request += [f"{bins} bins"] if finer else []
        request += [f"csv {csv}"] if csv is not None else []
        request_budget.pay_once(request, again)
    going_on: Any = nullcontext()
    if place.remote:
        asked = {"forest": release.content_hash, "metrics": how["metrics"], "positive": about, "calibration": calibration}
        asked |= {"bins": bins} if finer else {}
        folder, cost = forest.parent if os.access(forest.parent, os.W_OK) else Path(), exact_epsilon(epsilon)
        beside = place.service.beside(folder, "score", cost, asked)
        going_on = place.service.going_on(beside, "evaluate", cost, request_budget, asked, again)
    found = None
    with paid_query(request_budget, unfinished="There is no score."), going_on, place.rows() as rows:
        if calibration:
            score, found = private_evaluation(release, rows, epsilon=epsilon, budget=request_budget, **how)
        else:
            score = private_score(release, rows, epsilon=epsilon, budget=request_budget, **how)
    show_score(score, recalls)
    write_picture(release, score, output, recalls)
    if found is not None:
        show_calibration(found)
    if place.remote:
        place.service.shown()
    if len(score.certificate.events) > 1:
        each = " and ".join(f"ε = {event.epsilon} for {WHAT[event.query]}" for event in score.certificate.events)
        say(f"charged: {each}")
    guarantee(score.certificate.sentence(), score.certificate.private)
    print_remaining(request_budget)
    if place.remote:
        place.service.print_left(request_budget)


WHAT = {"confusion": "the confusion matrix", "reliability": "the reliability counts", "score_bins": "the counts of score bins"}


FINER, WORTH = 100, 0.8  # bins that --plan compares with the usual ones, and by how much less an error is worth saying


def _forecast(forest: Path, rows: int | None, epsilon: str | None, auc: bool, calibration: bool, how: dict[str, Any]) -> None:
    """What error to expect: free."""
    from hedgerow.accounting.loss import exact_epsilon
    from hedgerow.cli.predict import class_text
    from hedgerow.evaluation.forecast import HOPED, HOPED_AUC, score_error
    from hedgerow.inference.coverage import class_shares
    from hedgerow.inference.text import MANY_VALUES, is_lost, share_with_error
    from hedgerow.release.release import Release

    if rows is None or epsilon is None:
        raise PlanError("--plan: expected --rows, roughly how many test rows there are, and --epsilon, what the score may cost.")
    amount = exact_epsilon(epsilon)
    release = Release.load(forest)
    errors = score_error(release, rows, amount / 2 if calibration else amount, metrics_of(auc), **how)
    for name, what in (("accuracy", "accuracy"), ("auc", "area under the ROC curve, roughly")):
        if name in errors:
            lost = is_lost(HOPED, errors[name])
            say(f"{what}: {'lost in the noise' if lost else f'± {number(errors[name], 2)}'}", style="bold")
    if auc and "bins" not in how and not is_lost(HOPED, errors["auc"]):
        finer = score_error(release, rows, amount / 2 if calibration else amount, metrics_of(auc), bins=FINER, **how)["auc"]
        if finer < WORTH * errors["auc"] and not calibration:
            say(f"with --bins {FINER}: ± {number(finer, 2)}, since many of this forest's probabilities lie close together")
    hoped = f"about {HOPED} are right" + (f" and the area is about {HOPED_AUC} (a larger one has less error)" if auc else "")
    known = zip(release.classes, *class_shares(release.forest), strict=True)
    shares = [f"{class_text(label)} {share_with_error(share, error)}" for label, share, error in known]
    some = ", ".join(shares[:MANY_VALUES]) + (", …" if len(shares) > MANY_VALUES else "")
    say(f"of {rows:,} test rows at {loss(amount, amount * 0)}, if {hoped}; classes as frequent as this forest's counts say: {some}")
    say("nothing was spent, no row was read")


def metrics_of(auc: bool) -> tuple[str, ...]:
    return ("accuracy", "auc") if auc else ("accuracy",)


def _evaluate_public(
    forest: Path, place: Place, with_calibration: bool, how: dict[str, Any], output: Path | None, recalls: Sequence[float]
) -> None:
    from hedgerow.evaluation.public import calibration, public_score
    from hedgerow.release.release import Release

    release = Release.load(forest)
    warn(
        "--public: the test rows are taken as public. The numbers are exact and nothing is charged, so they tell about the people in "
        "these rows: right only for rows that anyone may see."
    )
    with place.rows() as rows:
        score = public_score(release, rows, **how)
        show_score(score, recalls)
        if release.schema.person is not None:
            say(f"scored: every row, also where a person has several (a private score takes at most {release.schema.k} of each, by chance)")
        write_picture(release, score, output, recalls)
        if with_calibration:
            show_calibration(calibration(release, rows, n_jobs=how["n_jobs"]))
    guarantee(score.certificate.sentence(), score.certificate.private)


def show_score(score: PrivateScore, recalls: Sequence[float] = ()) -> None:
    from hedgerow.cli.predict import class_text

    names = [class_text(value) for value in score.classes]
    lines = [[name, *numbers] for name, numbers in zip(names, score.confusion.tolist(), strict=True)]
    heads = ["true class", *(f"predicted {name}" for name in names)]
    noisy = score.noise_sd > 0
    title = f"noisy confusion matrix, each number ± {number(score.noise_sd, 3)}" if noisy else "confusion matrix, exact"
    console.table(title, heads, lines, numbers=range(1, len(names) + 1))
    rows = f"about {score.rows:,.0f} ± {number(score.rows_error, 2)} rows" if noisy else f"{score.rows:,.0f} rows"
    if score.lost:
        say(f"accuracy: lost in the noise, on {rows}", style="bold")
        warn(f"the noise is larger than the accuracy that was asked for, so this score says nothing.{_why_lost(score, names)}")
    else:
        say(f"accuracy: {score.accuracy:.3f} ± {score.accuracy_error:.2g}, on {rows}", style="bold")
    if score.ranking is not None:
        show_ranking(score.ranking, recalls)
    if not score.lost:
        label, share = score.majority
        say(f"always answering {class_text(label)} would give about {share:.3f} ± {score.majority_error:.2g}")


def _why_lost(score: PrivateScore, names: Sequence[str]) -> str:
    """Too much noise; or no row has a declared class, of which private_score has warned."""
    if score.mismatch is not None:
        return ""
    otherwise = f"spelled otherwise than the declared classes ({', '.join(names[:5])}{' …' if len(names) > 5 else ''})"
    return f" Score more rows, or with more ε (--plan says what error to expect, for free). Or the labels of these rows are {otherwise}."


def show_ranking(ranking: Ranking, recalls: Sequence[float]) -> None:
    """Areas under the curves, and what some thresholds would give."""
    from hedgerow.cli.predict import class_text
    from hedgerow.inference.ranking import AREA_BY_BINS, BY_BINS, MORE, THRESHOLD_HEADS
    from hedgerow.inference.text import score_with_error

    mean = ", mean of each class against the others" if len(ranking.of) > 1 else f", {class_text(ranking.of[0].label)} against the rest"
    mean = f", {ranking.words(class_text)}" if ranking.left_out else mean
    say(f"area under the ROC curve: {score_with_error(ranking.auc, ranking.auc_error)}{mean}", style="bold")
    finer = f"--bins {MORE * len(ranking.of[0].others)}, in a score that is paid for"
    if any(each.mostly_by_bins for each in ranking.of):
        say(f"{AREA_BY_BINS} ({finer})")
    say(f"Brier score: {score_with_error(ranking.brier, ranking.brier_error)}")
    if ranking.unclear and not ranking.left_out:  # of those that a mean leaves out, private_score has warned
        warn(f"too few rows beside the noise to say anything about: {', '.join(map(class_text, ranking.unclear))}")
    lines = ranking.threshold_lines(recalls)
    if lines:
        title = "thresholds: rows with at least that probability are taken for the class (hedgerow predict --threshold)"
        console.table(title, THRESHOLD_HEADS, lines, numbers=range(2, 6))
        if ranking.mostly_by_bins(recalls):
            say(f"{BY_BINS} ({finer})")


def write_picture(release: Release, score: PrivateScore, output: Path | None, recalls: Sequence[float]) -> None:
    if output is None:
        return
    from hedgerow.plots.report import score_page
    from hedgerow.plots.roc_svg import roc_svg

    svg = output.suffix.lower() == ".svg" and score.ranking is not None
    output.write_text(
        roc_svg(score.ranking) if svg and score.ranking is not None else score_page(release, score, recalls), encoding="utf-8"
    )
    say(f"wrote {output}")


def show_calibration(found: Calibration, width: int = 40) -> None:
    """One line for each bin: what the forest says, how often it is right, and a bar of that with a mark at what it says."""
    from hedgerow.inference.text import count_with_error, share_with_error

    lines, few = [], "too few rows" if found.charged else "no rows"
    for b, middle in enumerate(found.middles):
        share, error = float(found.shares[b]), float(found.share_errors[b])
        seen = bool(found.seen[b])
        filled = round(share * width) if seen else 0
        bar = ["█"] * filled + ["░"] * (width - filled)
        bar[min(int(middle * width), width - 1)] = "│"
        lines.append(
            [
                f"{number(found.edges[b] * 100, 3)} to {number(found.edges[b + 1] * 100, 3)} %",
                count_with_error(float(found.bin_rows[b]), found.bin_rows_error),
                share_with_error(share, error) if seen else few,
                "".join(bar),
            ]
        )
    noisy = f"noisy reliability, each count ± {number(found.noise_sd, 3)}" if found.charged else "reliability, exact"
    heads = ["it says", "rows", "it is right", "│ what it says"]
    console.table(f"{noisy}: how often the most probable class is right", heads, lines, numbers=(0, 1, 2))
    say(f"expected calibration error: {found.ece:.3f} ± {found.ece_error:.2g}", style="bold")
    noise = "; what noise adds was subtracted as far as it is known" if found.charged else ""
    chance = f"a calibrated forest would show up to about {found.by_chance:.3f}, by the chance of who is in the rows"
    say(f"{chance}, and because the middle of a bin stands for its rows{noise}")
