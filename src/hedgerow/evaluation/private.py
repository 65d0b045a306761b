"""Private test scores: how well a release does on rows that are private too, and whether its probabilities mean what they say.

An exact score would be a leak.
"""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from difflib import get_close_matches
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hedgerow import formatting
from hedgerow.accounting.loss import exact_epsilon, noise_variance
from hedgerow.accounting.meter import Budget, checked_budget
from hedgerow.engines.engine import Engine
from hedgerow.engines.memory import MemoryRows
from hedgerow.engines.opening import is_place, open_place
from hedgerow.engines.person_ids import person_column
from hedgerow.engines.remote import RemoteEngine, RemoteSource, remote_schema
from hedgerow.errors import (
    BudgetError,
    HedgerowWarning,
    NoBudgetWarning,
    PlanError,
    SchemaMismatchWarning,
    SeenRowsWarning,
    TableError,
    UnclearScoreWarning,
)
from hedgerow.evaluation.score import PrivateScore as PrivateScore
from hedgerow.evaluation.seen_rows import say_seen
from hedgerow.inference.calibration import Calibration
from hedgerow.inference.ranking import ClassRanking, Ranking, positive_code
from hedgerow.mechanisms.coins import SYSTEM, random_name
from hedgerow.parallel import threads_of
from hedgerow.private_table import PrivateTable, is_private_table, private_table, reserved
from hedgerow.queries import Confusion, Reliability, ScoreBins
from hedgerow.queries.predictors import Probabilities
from hedgerow.queries.query import CountingQuery
from hedgerow.queries.reliability import bin_edges, checked_bins
from hedgerow.queries.score_bins import OF_CLASS, OTHERS, UNDECLARED, score_edges
from hedgerow.release.certificate import Certificate, certificate_of, part_of
from hedgerow.release.release import Release
from hedgerow.schema.codebook import Codebook
from hedgerow.schema.column_types import check_column_types, check_label_type
from hedgerow.schema.columns import check_fitted_order, check_labels_named, check_row_order, columns_of, labels_column, names_of

METRICS = ("accuracy", "recall", "precision", "f1", "balanced_accuracy", "auc", "brier")
OF_SCORES = ("auc", "brier")  # they need the scores of the rows, not only the predicted classes
SCORE_BINS = 20
_said: list[str] = []  # what was told once in this process


def private_score(
    release: Any,
    X: Any,
    y: Any = None,
    *,
    epsilon: Any,
    budget: Budget | None = None,
    metrics: Sequence[str] = ("accuracy",),
    bins: int = SCORE_BINS,
    positive: Any = None,
    n_jobs: int | None = 1,
) -> PrivateScore:
    """Charge ε, then count (true class, predicted class) over the rows of a file, a data frame or an array. Every call is paid for.

    `release` is a Release, or an estimator that has one, also as the last step of a Pipeline. Nothing else is taken: what is counted for
    a row must follow from that row alone, to the last bit, and of a function of your own nobody could know it (PROOF.md, V3).

    metrics: "accuracy", "balanced_accuracy", "recall", "precision" and "f1" follow from the confusion matrix and are always there. With
             "auc" or "brier" the rows are counted by their probability of a class, in `bins` bins, which also gives ROC curves and
             thresholds (`threshold_for`). Of two classes these counts are all that is asked, and the matrix is made of them; of more, half
             of the ε pays for the matrix.
    positive: the class that recall, precision, area and thresholds are about. By default the last that the schema declares, of two; of more
             than two classes the mean over all, of areas without the classes that the noise hides, which a warning names. `score.positive`
             says which.
    """
    model = release
    release, before = scored_model(model, "private_score", X)
    amount = exact_epsilon(epsilon)
    checked_budget(budget, amount)
    about = positive_code(release.schema.target.classes, positive)
    questions = score_queries(release, metrics, bins, about)
    prices = [amount / len(questions)] * len(questions)
    passed = transformed(X, before, "private_score")
    check_order(getattr(model, "best_estimator_", model), release, passed)
    engine = scored_rows(release, passed, y, n_jobs, "private_score")
    say_seen(model, X)
    ready_probabilities(release)

    def ask(table: PrivateTable) -> list[NDArray[np.int64]]:
        return [table.ask(query, price) for query, price in zip(questions, prices, strict=True)]

    counts, certificate = _paid(release, engine, amount, budget, _what(metrics), ask)
    score = score_of(release, questions, counts, prices, certificate, about=about)
    warn_about(score, metrics, score)
    return score


def score_queries(release: Release, metrics: Sequence[str], bins: int, about: int | None = None) -> list[CountingQuery[NDArray[np.int64]]]:
    """What must be asked for these metrics. Of two classes the counts of one are those of the other, too: the second is asked about."""
    named = [metrics] if isinstance(metrics, str) or not isinstance(metrics, Iterable) else list(metrics)
    if not named or not set(named) <= set(METRICS):
        raise PlanError(f"metrics: got {named}; expected some of {', '.join(METRICS)}. Nothing was spent.")
    confusion, n_classes = Confusion(release.predict_codes), release.codebook.n_classes
    if not set(named) & set(OF_SCORES):
        return [confusion]
    if checked_bins(bins) % 2:
        raise PlanError(f"bins: got {bins}; expected an even number, so that one half is the edge of a bin. Nothing was spent.")
    several = tuple(range(n_classes)) if about is None else (about,)
    scores = ScoreBins(release.predict_codes_proba, bins, (1,) if n_classes == 2 else several)
    return [scores] if n_classes == 2 else [confusion, scores]


def private_calibration(
    release: Any, X: Any, y: Any = None, *, epsilon: Any, budget: Budget | None = None, bins: int = 10, n_jobs: int | None = 1
) -> Calibration:
    """Charge ε, then count in which rows the most probable class is the true one, by how probable the release says that it is.

    The answer tells whether its probabilities mean what they say. For rows that are public, `calibration` is exact and free.
    """
    model = release
    release = scored_release(model, "private_calibration", X)
    amount = exact_epsilon(epsilon)
    checked_budget(budget, amount)
    bins = checked_bins(bins)
    scale = Reliability.cost(amount, release.schema.k).scale
    engine = scored_rows(release, X, y, n_jobs, "private_calibration")
    say_seen(model, X)
    shares = ready_probabilities(release)
    counts, certificate = _paid(release, engine, amount, budget, "calibration", lambda table: table.ask(Reliability(shares, bins), amount))
    return Calibration(counts, bin_edges(release.codebook.n_classes, bins), scale, certificate, release.schema.k)


def private_evaluation(
    release: Any,
    X: Any,
    y: Any = None,
    *,
    epsilon: Any,
    budget: Budget | None = None,
    bins: int = 10,
    metrics: Sequence[str] = ("accuracy",),
    positive: Any = None,
    n_jobs: int | None = 1,
) -> tuple[PrivateScore, Calibration]:
    """Both for one ε, charged at once: half of it pays for the score, half for the calibration. They share a certificate of ε."""
    model = release
    release = scored_release(model, "private_evaluation", X)
    amount = exact_epsilon(epsilon)
    half = amount / 2
    bins = checked_bins(bins)
    about = positive_code(release.schema.target.classes, positive)
    questions = score_queries(release, metrics, SCORE_BINS, about)
    prices = [half / len(questions)] * len(questions)
    scale = Reliability.cost(half, release.schema.k).scale
    engine = scored_rows(release, X, y, n_jobs, "private_evaluation")
    say_seen(model, X)
    shares = ready_probabilities(release)

    def ask(table: PrivateTable) -> tuple[list[NDArray[np.int64]], NDArray[np.int64]]:
        score = [table.ask(query, price) for query, price in zip(questions, prices, strict=True)]
        return score, table.ask(Reliability(shares, bins), half)

    (answers, counts), certificate = _paid(release, engine, amount, budget, f"{_what(metrics)}, calibration", ask)
    calibration = Calibration(counts, bin_edges(release.codebook.n_classes, bins), scale, certificate, release.schema.k)
    score = score_of(release, questions, answers, prices, certificate, about=about)
    warn_about(score, metrics, (score, calibration))
    return score, calibration


def scored_release(release: Any, who: str, X: Any = None) -> Release:
    found, before = scored_model(release, who, X)
    if before:
        raise PlanError(f"{who}: got a Pipeline; expected a Release or a fitted estimator. Nothing was spent. private_score takes one.")
    return found


def scored_model(model: Any, who: str, X: Any = None) -> tuple[Release, list[Any]]:
    """The release, and the fitted steps of scikit-learn's Pipeline in front of it; of a search, those of its best estimator.

    X: the rows, of which an array is refused where the order of its columns is not sure
    """
    model, before = getattr(model, "best_estimator_", model), []
    while hasattr(model, "steps") and hasattr(model, "named_steps"):  # a Pipeline: this room does not import scikit-learn
        before += [step for _, step in model.steps[:-1] if step is not None and not isinstance(step, str)]
        model = model.steps[-1][1]
    release = getattr(model, "release_", model)
    if not isinstance(release, Release):
        raise PlanError(
            f"{who}: got {type(model).__name__}; expected a Release or a fitted estimator of hedgerow, alone or as the last step of a "
            "Pipeline. Nothing was spent on the score."
        )
    if not before:
        check_order(model, release, X)
    return release, before


def check_order(model: Any, release: Release, X: Any) -> None:
    """model: with its Pipeline, or without"""
    while hasattr(model, "steps") and hasattr(model, "named_steps"):
        model = model.steps[-1][1]
    check_fitted_order(getattr(model, "_order_in_fit", None), release.schema.names, X)


def transformed(X: Any, steps: Sequence[Any], who: str) -> Any:
    """What the steps make of rows in memory: each row must follow from itself alone, which is the word of whoever made the pipeline."""
    if steps and (is_place(X) or is_private_table(X)):
        raise PlanError(f"{who}: the steps of a Pipeline need rows in memory; got rows that are elsewhere. Nothing was spent.")
    for step in steps:
        X = step.transform(X)
    return X


def scored_rows(release: Release, X: Any, y: Any, n_jobs: int | None, who: str, codebook: Codebook | None = None) -> Any:
    """The rows, with everything checked that can be without looking at a value. codebook: to read them by another than the release's"""
    codebook, threads = release.codebook if codebook is None else codebook, threads_of(n_jobs)
    person = codebook.schema.person
    key = b"" if person is None else SYSTEM.bytes(16)
    if is_private_table(X):
        if y is not None or not who.startswith("private") or not isinstance(X, RemoteSource):
            raise PlanError(f"{who}: rows behind a private table are private: use private_score or private_calibration, without y.")
        remote_schema(X, codebook.schema)
        if (seen := X.seen_by(release)) is not None:
            warnings.warn(seen, SeenRowsWarning, stacklevel=3)
        return X.engine_for(codebook)
    if is_place(X):
        if y is not None:
            raise TableError(f"{who}: with a file or a database, y must be None: the labels are its target column.")
        return open_place(X, codebook, threads, key=key)
    check_labels_named(y, X, codebook.schema.names, codebook.schema.target.name)
    check_row_order(y, X)
    columns = columns_of(X, codebook.schema.names, dates=codebook.schema.dates)
    check_column_types(columns, codebook.schema.attributes)
    persons = None if person is None else person_column(X, person)
    if y is None:
        y = _own_labels(X, codebook.schema.target.name, who)
    y = labels_column(y, codebook.schema.target.name)
    check_label_type(y, codebook.schema)
    if len(columns[0]) != len(y):
        raise TableError(f"{who}: X and y do not have the same number of rows.")
    return MemoryRows(X, y, codebook, threads, persons=persons, key=key)


def _own_labels(X: Any, target: str, who: str) -> Any:
    """The target column of a table without y."""
    named = not isinstance(X, np.ndarray) and (isinstance(X, Mapping) or hasattr(X, "columns"))
    have = names_of(X) if named else []
    if target in have or not (named or hasattr(X, "__array__")):  # a list of rows that are mappings
        return columns_of(X, [target])[0]
    near = [name for name in have if name.lower() == target.lower()] or get_close_matches(target, have, 1, 0.7)
    raise TableError(
        f"{who}: y is None, and the table has no column {target!r}, which the forest predicts. Nothing was spent. Give the labels, "
        f"{who}(model, X, y, …), or a table that has that column.{f' Did you mean {near[0]!r}?' if near else ''}"
    )


def ready_probabilities(release: Release) -> Probabilities:
    """The class probabilities for rows of codes. Its vote is made now, once, before any row is looked at, and not by several threads."""
    release.predict_codes_proba(np.zeros((1, len(release.codebook.sizes)), dtype=release.codebook.dtype))
    return release.predict_codes_proba


def _what(metrics: Sequence[str]) -> str:
    """As a budget lists it."""
    return f"evaluate, {metrics if isinstance(metrics, str) else ', '.join(metrics)}"


Answer = TypeVar("Answer")


def _paid(
    release: Release,
    engine: Engine,
    amount: Fraction,
    budget: Budget | None,
    what: str,
    ask: Callable[[PrivateTable], Answer],
) -> tuple[Answer, Certificate]:
    """Reserve, then ask: the answer, and what it may claim."""
    _say_no_budget(engine, amount, budget)
    with closing(engine):
        reservation = reserved(engine, checked_budget(budget, amount), amount, what)
        table = private_table(engine, reservation)
        answer = ask(table)
    part = part_of(
        reservation.events,
        requested=amount,
        sampler=table.sampler,
        secret=table._secret,
        unreviewed=release.codebook.schema.unreviewed,
        person=release.schema.person,
        rows_per_person=release.schema.k,
        assumed=engine.assumed,
        id=random_name(SYSTEM),
        no_guarantee=None if release.certificate.private else "the scored forest has no ε of its own",
    )
    with contextlib.suppress(BudgetError, OSError):  # it is paid for: what is not given back may not lose it
        reservation.settle()
    return answer, certificate_of([part])


def _say_no_budget(engine: Engine, amount: Fraction, budget: Budget | None) -> None:
    """As a fit does, once in a process. Of rows at an owner's service, the ledger there keeps the total."""
    if budget is not None or isinstance(engine, RemoteEngine) or _said:
        return
    _said.append("budget")
    warnings.warn(
        f"score: no budget: nothing adds up the {formatting.loss(amount, Fraction(0))} of this score and what others on the same rows "
        "spend. Give it the budget of these people's rows, that of the fit or one of their own: budget=… (This is said once.)",
        NoBudgetWarning,
        stacklevel=4,
    )


def warn_about(score: PrivateScore, metrics: Sequence[str], paid: Any) -> None:
    """What the released counts say is wrong with a score. Where warnings are errors, the error has what was paid for as `paid`."""
    problems: list[tuple[str | None, type[HedgerowWarning]]] = [(score.mismatch and f"{score.mismatch}.", SchemaMismatchWarning)]
    if score.ranking is not None and "auc" in metrics:
        problems.append((score.ranking.warning(), UnclearScoreWarning))
    for text, category in problems:
        if text is None:
            continue
        try:
            warnings.warn(text, category, stacklevel=3)
        except category as error:
            error.paid = paid
            error.add_note("The score is there, and paid for: it is `paid` of this exception.")
            raise


def _agreeing(counts: NDArray[np.int64], totals: NDArray[np.int64], c: int) -> NDArray[np.int64]:
    """Bins that add up to the rows of class c, and of the others, that the matrix has. Its sums have far less noise: a row is in one cell
    of the matrix, and in one bin of every class. By their own sums a class with many rows was left out, and one with few kept, as the noise
    would have it.
    """
    found, bins = counts.copy(), counts.shape[1]
    for row, rows in ((OF_CLASS, totals[c]), (OTHERS, totals.sum() - totals[c])):
        found[row] += np.rint((rows - counts[row].sum()) / bins).astype(np.int64)
    return found


def score_of(
    release: Release,
    questions: Sequence[CountingQuery[NDArray[np.int64]]],
    answers: Sequence[NDArray[np.int64]],
    prices: Sequence[Fraction],
    certificate: Certificate,
    kind: type[PrivateScore] = PrivateScore,
    about: int | None = None,
) -> PrivateScore:
    """The score from the answers to `score_queries`. prices: 0 for exact counts"""
    classes = tuple(release.schema.target.classes)
    matrix, undeclared, summed, ranking, scale = None, 0, 1, None, Fraction(0)
    for query, counts, price in zip(questions, answers, prices, strict=True):
        noise = query.event(price, release.schema.k).scale if price else Fraction(0)
        if isinstance(query, ScoreBins):
            sd = math.sqrt(noise_variance(noise)) if noise else 0.0
            totals: NDArray[np.int64] | None = None if matrix is None else matrix.sum(axis=1)
            agreed = (
                counts if totals is None or not price else [_agreeing(own, totals, c) for c, own in zip(query.classes, counts, strict=True)]
            )
            edges, scored = score_edges(query.bins), zip(query.classes, agreed, strict=True)
            of = tuple(ClassRanking(classes[c], edges, each[OTHERS], each[OF_CLASS], sd, alike=release.schema.k) for c, each in scored)
            of = tuple(each.opposite(classes[0]) for each in of) if len(classes) == 2 and about == 0 else of
            ranking = Ranking(of, classes)
        if matrix is None:
            scale = noise
            if isinstance(query, ScoreBins):  # of two classes: the second is predicted above one half
                summed = query.bins // 2
                matrix = counts[0][[OTHERS, OF_CLASS]].reshape(2, 2, summed).sum(axis=2)
                undeclared = int(counts[0][UNDECLARED].sum())
            else:
                matrix, undeclared = counts[:-1], int(counts[-1].sum())
    assert matrix is not None
    return kind(matrix, undeclared, classes, scale, certificate, summed, ranking, about, release.schema.k)
